// Package accounttest adds users that only the system's name services know, as at a
// site with LDAP, for tests that run as root.
package accounttest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	config = "/etc/nsswitch.conf"
	folder = "/var/lib/extrausers" // the files of libnss-extrausers
)

// A Person is a user and a group.
type Person struct {
	Name  string
	UID   int
	Group string
	GID   int
}

// Add makes people known to NSS, but not in /etc/passwd, until the test ends. Tests
// that call it run one after the other.
func Add(t testing.TB, people ...Person) {
	t.Helper()
	require.Zero(t, os.Getuid(), "name services are set by root")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	lock, err := os.OpenFile(folder+"/.lock", os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { lock.Close() })
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))

	// Remove the users and the nsswitch.conf line of an earlier run that was killed.
	removeAll(t)
	t.Cleanup(func() { removeAll(t) })
	var users, groups strings.Builder
	for _, p := range people {
		fmt.Fprintf(&users, "%s:x:%d:%d::/home/%s:/bin/sh\n", p.Name, p.UID, p.GID, p.Name)
		fmt.Fprintf(&groups, "%s:x:%d:\n", p.Group, p.GID)
	}
	require.NoError(t, os.WriteFile(folder+"/passwd", []byte(users.String()), 0o644))
	require.NoError(t, os.WriteFile(folder+"/group", []byte(groups.String()), 0o644))
	rewrite(t, func(conf string) string { return databases.ReplaceAllString(conf, "$1 extrausers") })
}

// removeAll removes the users and their name service.
func removeAll(t testing.TB) {
	rewrite(t, func(conf string) string { return strings.ReplaceAll(conf, " extrausers", "") })
	for _, name := range []string{"passwd", "group"} {
		require.NoError(t, os.WriteFile(folder+"/"+name, nil, 0o644))
	}
}

// databases matches the lines of nsswitch.conf that name the sources of users and
// groups.
var databases = regexp.MustCompile(`(?m)^((?:passwd|group):.*)$`)

// rewrite changes nsswitch.conf.
func rewrite(t testing.TB, change func(string) string) {
	conf, err := os.ReadFile(config)
	require.NoError(t, err)
	changed := change(string(conf))
	if changed == string(conf) {
		return
	}
	// Other programs may read the file at any moment, so it is replaced as a whole.
	require.NoError(t, os.WriteFile(config+".new", []byte(changed), 0o644))
	require.NoError(t, os.Rename(config+".new", config))
}
