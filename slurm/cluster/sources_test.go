package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// repository returns a folder with a git repository of one commit, which adds a.py.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "--template=")
	write(t, dir, "a.py", "one\n")
	git(t, dir, "add", "a.py")
	git(t, dir, "commit", "-qm", "one")
	return dir
}

// The source of a job contains the changes since its commit, within bounds.
func TestTheSourceOfAJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		change       func(t *testing.T, dir string)
		changed, cut bool
		files        int
		diff         string
	}{
		{"as it was committed", func(*testing.T, string) {}, false, false, 0, ""},
		{"edited", func(t *testing.T, dir string) { write(t, dir, "a.py", "two\n") }, true, false, 0, "+two"},
		{"a new file", func(t *testing.T, dir string) { write(t, dir, "b.py", "") }, true, false, 1, ""},
		{"a new file and an edited one", func(t *testing.T, dir string) { write(t, dir, "b.py", ""); write(t, dir, "a.py", "two\n") }, true, false, 1, "+two"},
		{"what a sync keeps there", func(t *testing.T, dir string) { write(t, dir, ".megatron-ops/lock", "") }, false, false, 0, ""},
		{"edited at length", func(t *testing.T, dir string) { write(t, dir, "a.py", strings.Repeat("a line\n", 5000)) }, true, true, 0, "+a line"},
		{"a hundred new files", func(t *testing.T, dir string) {
			for i := range 100 {
				write(t, dir, fmt.Sprint("new", i), "")
			}
		}, true, false, 100, ""},
		{"more than can be listed", func(t *testing.T, dir string) {
			for i := range 105 {
				write(t, dir, fmt.Sprint("new", i), "")
			}
		}, true, true, 100, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t)
			c.change(t, dir)
			s, ok := cluster.SourceHere(t.Context(), dir)
			require.True(t, ok)
			require.Len(t, s.Commit, 40)
			require.Equal(t, c.changed, s.Changed)
			require.Equal(t, c.cut, s.Cut)
			require.Len(t, s.New, c.files)
			require.Contains(t, s.Diff, c.diff)
			require.LessOrEqual(t, len(s.Diff), 32<<10)
		})
	}
	_, ok := cluster.NewCLI("here").Source(t.Context(), "")
	require.False(t, ok, "a job without a folder has no source")
}

// A tree contains the files that git would add, also those of a repository within it,
// and links that stay inside. It contains nothing else.
func TestWhatATreeHolds(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "inner"), 0o755))
	git(t, filepath.Join(dir, "inner"), "init", "-q", "--template=")
	write(t, dir, "inner/.gitignore", "*.o\n")
	write(t, dir, "inner/x.py", "")
	write(t, dir, "inner/x.o", "")
	write(t, dir, ".megatronopsignore", "/private/\n")
	write(t, dir, "private/key", "")
	write(t, dir, "gone.py", "")
	git(t, dir, "add", "gone.py")
	require.NoError(t, os.Remove(filepath.Join(dir, "gone.py")))
	require.NoError(t, os.Symlink("a.py", filepath.Join(dir, "within")))
	require.NoError(t, os.Symlink("../../etc", filepath.Join(dir, "inner/without")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "a.py"), 0o755))
	tree, err := cluster.ReadSourceTree(t.Context(), dir, nil)
	require.NoError(t, err)
	defer tree.Close()
	var held []string
	for _, f := range tree.Files {
		held = append(held, fmt.Sprintf("%s exec=%v link=%s", f.Path, f.Exec, f.Link))
	}
	require.Equal(t, []string{
		".megatronopsignore exec=false link=", "a.py exec=true link=", "inner/.gitignore exec=false link=", "inner/x.py exec=false link=", "within exec=false link=a.py",
	}, held)
	require.Equal(t, []string{"inner/without"}, tree.Outside)
	_, err = cluster.ReadSourceTree(t.Context(), filepath.Join(dir, "nowhere"), nil)
	require.ErrorContains(t, err, "nowhere")
}

// A sync copies only the difference that was agreed to, and only to a cluster that is
// reached by ssh.
func TestATreeIsBroughtAsAgreed(t *testing.T) {
	far, dir, to, _ := treeFar(t)
	tree, err := cluster.ReadSourceTree(t.Context(), dir, nil)
	require.NoError(t, err)
	defer tree.Close()
	d, err := far.CompareTree(t.Context(), tree, to)
	require.NoError(t, err)
	require.False(t, d.None())
	tree.Agreed = "another"
	_, err = far.BringTree(t.Context(), tree, to, "alice@laptop", cluster.GitSource{})
	require.ErrorIs(t, err, cluster.ErrDifferenceChanged)
	tree.Agreed = d.Digest()
	_, err = far.BringTree(t.Context(), tree, to, "alice@laptop", cluster.GitSource{})
	require.NoError(t, err)
	after, err := far.CompareTree(t.Context(), tree, to)
	require.NoError(t, err)
	require.True(t, after.None())
	require.NotEqual(t, d.Digest(), after.Digest())

	require.NoError(t, os.Remove(filepath.Join(to, "...")))
	require.NoError(t, os.Mkdir(filepath.Join(to, "..."), 0o755))
	_, err = far.CompareTree(t.Context(), tree, to)
	require.ErrorContains(t, err, `"..." is a folder or a device on the cluster, and a file here`)

	here := cluster.NewCLI("here")
	_, err = here.CompareTree(t.Context(), tree, to)
	require.ErrorContains(t, err, "cluster here is not reached by ssh")
	_, err = here.BringTree(t.Context(), tree, to, "alice@laptop", cluster.GitSource{})
	require.ErrorIs(t, err, slurm.ErrRejected)
}

// A cluster over ssh has defaults for a sync, and acts for another user by that login.
func TestAClusterOverSSHForAnotherLogin(t *testing.T) {
	far, err := cluster.NewSSH("far", cluster.SSHOptions{Host: "login", SyncTo: "/w/src", SyncExclude: []string{"*.pt"}})
	require.NoError(t, err)
	far.TokenInName = true
	bob, err := far.As("bob")
	require.NoError(t, err)
	for _, c := range []*cluster.CLI{far, bob} {
		to, excludes := c.SyncDefaults()
		require.Equal(t, "/w/src", to)
		require.Equal(t, []string{"*.pt"}, excludes)
		require.Equal(t, "ssh", c.Kind())
		require.Empty(t, c.Environ(), "a job's environment is never this machine's")
	}
	require.True(t, bob.TokenInName)
	require.Same(t, far.Meter(), bob.Meter(), "both ask one controller")
	for _, login := range []string{"root", "slurm", "a@b", "-oX", ""} {
		_, err := far.As(login)
		require.Error(t, err, login)
	}
	to, _ := cluster.NewCLI("here").SyncDefaults()
	require.Empty(t, to)
}
