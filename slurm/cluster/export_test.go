package cluster

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// SetSSHPath lets a cluster that is reached by ssh find ssh and rsync in another PATH
// until the end of the test.
func SetSSHPath(t *testing.T, c *CLI, path string) {
	t.Helper()
	r := c.runner.(*sshRunner) //nolint:forcetypeassert // a test's mistake
	old := r.environ
	r.environ = func() []string {
		return append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "PATH=") }), "PATH="+path)
	}
	t.Cleanup(func() { r.environ = old })
}
