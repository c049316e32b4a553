// Package account looks people and groups up as the operating system knows them.
// The binary is static, so that Go's os/user reads /etc/passwd alone; where
// people come from LDAP or SSSD, getent and id ask the system's own name
// services. Nobody is guessed: who is not known is an error.
package account

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A User is a person or a service as the operating system knows it.
type User struct {
	Name     string
	UID, GID int
}

// UnknownError says that no name service knows the user or group.
type UnknownError struct{ What string }

func (e *UnknownError) Error() string { return e.What + " is not known to this machine" }

// longestLookup bounds one question to a name service that does not answer.
const longestLookup = 10 * time.Second

// ByName returns the user of that login name.
func ByName(ctx context.Context, name string) (User, error) {
	if !plain(name) {
		return User{}, &UnknownError{fmt.Sprintf("user %q", name)}
	}
	right := func(u User) bool { return u.Name == name }
	if u, err := user.Lookup(name); err == nil {
		return fromFile(u, right)
	}
	return passwd(ctx, name, right)
}

// ByID returns the user of that numeric id.
func ByID(ctx context.Context, uid int) (User, error) {
	id := strconv.Itoa(uid)
	right := func(u User) bool { return u.UID == uid }
	if u, err := user.LookupId(id); err == nil {
		return fromFile(u, right)
	}
	return passwd(ctx, id, right)
}

// Current returns the user that this process runs as, whatever USER says.
func Current(ctx context.Context) (User, error) { return ByID(ctx, os.Getuid()) }

// Member reports whether the user is in the group of that name: as its primary
// or as a further one.
func Member(ctx context.Context, name, group string) (bool, error) {
	if !plain(name) || !plain(group) {
		return false, &UnknownError{fmt.Sprintf("user %q or group %q", name, group)}
	}
	id, err := groupID(ctx, group)
	if err != nil {
		return false, err
	}
	out, err := ask(ctx, "id", "-G", "--", name)
	if err != nil {
		return false, &UnknownError{fmt.Sprintf("user %q", name)}
	}
	return slices.Contains(strings.Fields(out), id), nil
}

func groupID(ctx context.Context, group string) (string, error) {
	if g, err := user.LookupGroup(group); err == nil {
		return g.Gid, nil
	}
	out, _ := ask(ctx, "getent", "group", "--", group) // what fails prints no line
	id, ok := groupLine(out, group)
	if !ok {
		return "", &UnknownError{fmt.Sprintf("group %q", group)}
	}
	return id, nil
}

// groupLine reads the id in "name:password:gid:members" where that is the group's line.
func groupLine(text, group string) (string, bool) {
	fields := strings.Split(strings.TrimSpace(text), ":")
	if len(fields) < 3 || fields[0] != group {
		return "", false
	}
	return fields[2], true
}

// passwd asks the name services for a line of the passwd database, and takes
// only one that is the answer to what was asked.
func passwd(ctx context.Context, key string, right func(User) bool) (User, error) {
	unknown := &UnknownError{fmt.Sprintf("user %q", key)}
	out, err := ask(ctx, "getent", "passwd", "--", key)
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 2 || errors.Is(err, exec.ErrNotFound) {
			return User{}, unknown
		}
		return User{}, lang.Text{EN: "looking up user %q: %s", ZH: "查找用户 %q：%s"}.Err(key, err)
	}
	u, err := line(out)
	if err != nil || !right(u) {
		return User{}, unknown
	}
	return u, nil
}

// line reads "name:password:uid:gid:gecos:home:shell".
func line(text string) (User, error) {
	text, _, _ = strings.Cut(text, "\n")
	f := strings.Split(text, ":")
	if len(f) < 6 || f[0] == "" {
		return User{}, lang.Text{EN: "%q is no line of the passwd database", ZH: "%q 不是 passwd 数据库的一行"}.Err(text)
	}
	uid, err := strconv.Atoi(f[2])
	if err != nil {
		return User{}, err
	}
	gid, err := strconv.Atoi(f[3])
	return User{Name: f[0], UID: uid, GID: gid}, err
}

// fromFile is what os/user found. A name service that answers with somebody
// else, as some do for ids that they do not serve, is not believed.
func fromFile(u *user.User, right func(User) bool) (User, error) {
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return User{}, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return User{}, err
	}
	found := User{Name: u.Username, UID: uid, GID: gid}
	if !right(found) {
		return User{}, &UnknownError{fmt.Sprintf("user %q (%s)", u.Username, u.Uid)}
	}
	return found, nil
}

// ask runs a system command from where the system keeps it, never from the
// caller's PATH.
func ask(ctx context.Context, name string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, longestLookup)
	defer stop()
	for _, dir := range []string{"/usr/bin", "/bin"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			c := exec.CommandContext(ctx, path, args...)
			c.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
			out, err := c.Output()
			return string(out), err
		}
	}
	return "", lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(name, exec.ErrNotFound)
}

// plain reports whether a name can be one of the database's, and is no number:
// getent would take that for an id.
func plain(name string) bool {
	if name == "" || strings.ContainsAny(name, ":\n\x00/ \t") || name[0] == '-' {
		return false
	}
	_, err := strconv.Atoi(name)
	return err != nil
}
