// Package account looks up users and groups of the operating system. The binary is
// static, so Go's os/user reads only /etc/passwd; where users come from LDAP or SSSD,
// getent and id query the system's name services. The package never guesses: an unknown
// user is an error.
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

// A User is a user of the operating system.
type User struct {
	Name     string
	UID, GID int
}

// UnknownError is the error for a user or group that no name service knows.
type UnknownError struct{ What string }

func (e *UnknownError) Error() string { return e.What + " is not known to this machine" }

// longestLookup bounds the wait for a name service that does not answer.
const longestLookup = 10 * time.Second

// ByName returns the user with that login name.
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

// ByID returns the user with that numeric id.
func ByID(ctx context.Context, uid int) (User, error) {
	id := strconv.Itoa(uid)
	right := func(u User) bool { return u.UID == uid }
	if u, err := user.LookupId(id); err == nil {
		return fromFile(u, right)
	}
	return passwd(ctx, id, right)
}

// Current returns the user that this process runs as, regardless of the variable USER.
func Current(ctx context.Context) (User, error) { return ByID(ctx, os.Getuid()) }

// Member reports whether the user is in the group of that name, as its primary or as a
// further group.
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
	out, _ := ask(ctx, "getent", "group", "--", group) // a failing getent prints no line
	id, ok := groupLine(out, group)
	if !ok {
		return "", &UnknownError{fmt.Sprintf("group %q", group)}
	}
	return id, nil
}

// groupLine returns the id in a line "name:password:gid:members" of that group.
func groupLine(text, group string) (string, bool) {
	fields := strings.Split(strings.TrimSpace(text), ":")
	if len(fields) < 3 || fields[0] != group {
		return "", false
	}
	return fields[2], true
}

// passwd queries the name services for a line of the passwd database, and accepts only
// a user for which right is true.
func passwd(ctx context.Context, key string, right func(User) bool) (User, error) {
	unknown := &UnknownError{fmt.Sprintf("user %q", key)}
	out, err := ask(ctx, "getent", "passwd", "--", key)
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 2 || errors.Is(err, exec.ErrNotFound) {
			return User{}, unknown
		}
		return User{}, lang.Text{EN: "looking up user %q: %s", ZH: "查找用户 %q：%s"}.Err(key, err)
	}
	u, err := parsePasswd(out)
	if err != nil || !right(u) {
		return User{}, unknown
	}
	return u, nil
}

// parsePasswd parses a line "name:password:uid:gid:gecos:home:shell".
func parsePasswd(text string) (User, error) {
	text, _, _ = strings.Cut(text, "\n")
	f := strings.Split(text, ":")
	if len(f) < 6 || f[0] == "" {
		return User{}, lang.Text{EN: "%q is not a line of the passwd database", ZH: "%q 不是 passwd 数据库的一行"}.Err(text)
	}
	return newUser(f[0], f[2], f[3])
}

// newUser returns a user whose ids are written as text.
func newUser(name, uid, gid string) (User, error) {
	u, err1 := strconv.Atoi(uid)
	g, err2 := strconv.Atoi(gid)
	return User{Name: name, UID: u, GID: g}, errors.Join(err1, err2)
}

// fromFile converts a user found by os/user. It rejects a user for which right is
// false: some name services answer with another user for ids that they do not serve.
func fromFile(u *user.User, right func(User) bool) (User, error) {
	found, err := newUser(u.Username, u.Uid, u.Gid)
	if err != nil {
		return User{}, err
	}
	if !right(found) {
		return User{}, &UnknownError{fmt.Sprintf("user %q (%s)", u.Username, u.Uid)}
	}
	return found, nil
}

// ask runs a system command from the system's folders, never from the caller's PATH.
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

// plain reports whether name can be a name in the passwd or group database. A number is
// not plain, because getent would take it for an id.
func plain(name string) bool {
	if name == "" || strings.ContainsAny(name, ":\n\x00/ \t") || name[0] == '-' {
		return false
	}
	_, err := strconv.Atoi(name)
	return err != nil
}
