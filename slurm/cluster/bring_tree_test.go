package cluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// hostileNames are file names that a shell, rsync, tar or a terminal could
// misinterpret.
var hostileNames = []string{
	"-rf", "--rsync-path=touch pwned", "#comment", ";semicolon", " blank ", "tab\tname", "new\nline", "quote'\"s", "$(touch pwned)", "`touch pwned`",
	"*", "?", "[a]", "back\\slash", "\\#012", "ünï/cödé", "bad\xff\xfeutf8", "colon:name", "host::module", "~", "~root/x", "...", "a/-b/--c", "\x1b[31mred",
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func git(t *testing.T, dir string, words ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"}, words...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// paths returns the sorted names in a difference.
func paths(all []cluster.TreeChange) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.Path)
	}
	slices.Sort(names)
	return names
}

// fakeSSH stands in for ssh. It accepts the options that the program passes to ssh, and
// hands the remote command to a shell, as sshd does.
const fakeSSH = `#!/bin/bash
while [ "$1" != -- ] && [[ $1 == -* ]]; do case $1 in -T) shift ;; *) shift 2 ;; esac; done
[ "$1" = -- ] && shift
[ "$1" = login ] || { echo "ssh: Could not resolve hostname $1" >&2; exit 255; }
shift
export PATH=/usr/local/bin:/usr/bin:/bin
exec /bin/sh -c "$*"
`

// treeFar returns a cluster behind a real sshd (with -short, behind fakeSSH), a tree of
// hostile names, an empty place for it on the cluster, and the PATH in which ssh is found.
func treeFar(t *testing.T) (far *cluster.CLI, dir, to, path string) {
	t.Helper()
	t.Parallel()
	o := cluster.SSHOptions{Host: "login", User: "alice"}
	path = os.Getenv("PATH")
	var work string
	if testing.Short() {
		for _, name := range []string{"rsync", "flock", "sha256sum"} {
			if _, err := exec.LookPath(name); err != nil {
				t.Skip("needs " + name)
			}
		}
		bin := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte(fakeSSH), 0o755))
		path = bin + ":" + path
		o.Config, work = "/dev/null", t.TempDir()
	} else {
		real := slurmtest.Start(t, slurmtest.Options{})
		o.Config, o.Bin, work = real.SSHD(t), real.Bin(), real.Work
	}
	far, err := cluster.NewSSH("far", o)
	require.NoError(t, err)
	cluster.SetSSHPath(t, far, path)
	there, err := os.MkdirTemp(work, "sync there'$(x) ")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(there, 0o777))
	dir = t.TempDir()
	for _, name := range hostileNames {
		write(t, dir, name, "content of "+name)
	}
	return far, dir, filepath.Join(there, "Megatron LM"), path
}

func bring(ctx context.Context, t *testing.T, far *cluster.CLI, dir, to string) (cluster.TreeDifference, error) {
	t.Helper()
	tree, err := cluster.ReadSourceTree(ctx, dir, []string{"*.ckpt"})
	require.NoError(t, err)
	defer tree.Close()
	of, _ := cluster.SourceHere(ctx, dir)
	return far.BringTree(ctx, tree, to, "alice@laptop", of)
}

func TestATreeIsBroughtOverSSH(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"rsync", "tar"} {
		t.Run(way, func(t *testing.T) {
			far, dir, to, path := treeFar(t)
			if way == "tar" { // a PATH without rsync
				bin := t.TempDir()
				ssh, err := exec.LookPath("ssh")
				if testing.Short() {
					ssh, err = filepath.Join(filepath.SplitList(path)[0], "ssh"), nil
				}
				require.NoError(t, err)
				require.NoError(t, os.Symlink(ssh, filepath.Join(bin, "ssh")))
				cluster.SetSSHPath(t, far, bin)
			}
			git(t, dir, "init", "-q", "--template=")
			write(t, dir, ".gitignore", "/out/\n*.pyc\n")
			write(t, dir, ".megatronopsignore", "/secrets/\n")
			write(t, dir, "out/log.txt", "x")
			write(t, dir, "a.pyc", "x")
			write(t, dir, "big.ckpt", "x")
			write(t, dir, "secrets/key", "x")
			write(t, dir, "run.sh", "#!/bin/sh\n")
			require.NoError(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
			require.NoError(t, os.Symlink("run.sh", filepath.Join(dir, "within")))
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "outside")))
			require.NoError(t, os.Symlink("../../up", filepath.Join(dir, "above")))
			require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "etc")))
			git(t, dir, "add", "-f", "run.sh", "secrets/key", "*")
			git(t, dir, "commit", "-qm", "one")
			write(t, dir, "run.sh", "#!/bin/sh\necho two\n")

			want := slices.Concat(hostileNames, []string{".gitignore", ".megatronopsignore", "run.sh", "within"})
			slices.Sort(want)
			tree, err := cluster.ReadSourceTree(t.Context(), dir, []string{"*.ckpt"})
			require.NoError(t, err)
			require.Equal(t, []string{"above", "etc", "outside"}, tree.Outside)
			d, err := far.CompareTree(t.Context(), tree, to)
			require.NoError(t, err)
			require.Equal(t, want, paths(d.Added))
			_, err = os.Stat(to)
			require.ErrorIs(t, err, os.ErrNotExist, "to compare changes nothing")
			require.NoError(t, tree.Close())

			_, err = bring(t.Context(), t, far, dir, to)
			require.NoError(t, err)
			for _, name := range append([]string{"run.sh"}, hostileNames...) {
				here, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				there, err := os.ReadFile(filepath.Join(to, name))
				require.NoError(t, err, "%q", name)
				require.Equal(t, string(here), string(there), "%q", name)
			}
			info, err := os.Stat(filepath.Join(to, "run.sh"))
			require.NoError(t, err)
			require.NotZero(t, info.Mode()&0o100, "it can be run there too")
			leads, err := os.Readlink(filepath.Join(to, "within"))
			require.NoError(t, err)
			require.Equal(t, "run.sh", leads)
			for _, name := range []string{"out", "a.pyc", "big.ckpt", "secrets", "outside", "above", "etc", ".git", ".megatron-ops/incoming", ".megatron-ops/bringing", "pwned"} {
				_, err := os.Lstat(filepath.Join(to, name))
				require.ErrorIs(t, err, os.ErrNotExist, name)
			}

			d, err = bring(t.Context(), t, far, dir, to)
			require.NoError(t, err)
			require.True(t, d.None(), "the second time there is nothing to bring")
			require.Equal(t, len(want), d.Same)

			// What a job writes stays; what was brought and is gone here goes; what was edited
			// there is told.
			require.NoError(t, exec.Command("sh", "-c", `cd "$1" && mkdir logs && echo loss >logs/1.out && echo edited >run.sh && echo edited >-rf && chmod -R a+rw .`, "sh", to).Run())
			write(t, dir, "run.sh", "#!/bin/sh\necho three\n")
			require.NoError(t, os.Remove(filepath.Join(dir, "-rf")))
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "a")))
			write(t, dir, "new.py", "")
			d, err = bring(t.Context(), t, far, dir, to)
			require.NoError(t, err)
			require.Equal(t, []string{"new.py"}, paths(d.Added))
			require.Equal(t, []string{"run.sh"}, paths(d.Changed))
			require.True(t, d.Changed[0].EditedThere)
			require.Equal(t, []string{"-rf", "a/-b/--c"}, paths(d.Deleted))
			require.True(t, d.Deleted[slices.IndexFunc(d.Deleted, func(c cluster.TreeChange) bool { return c.Path == "-rf" })].EditedThere)
			_, err = os.Lstat(filepath.Join(to, "a"))
			require.ErrorIs(t, err, os.ErrNotExist, "nor are its folders left")
			_, err = os.Stat(filepath.Join(to, "logs/1.out"))
			require.NoError(t, err)

			of, ok := far.Source(t.Context(), to)
			require.True(t, ok)
			require.Len(t, of.Commit, 40)
			require.True(t, of.Changed)
			require.Contains(t, of.Diff, "+echo three")
			require.Contains(t, of.New, "new.py")
			require.Equal(t, "alice@laptop", of.Brought)
		})
	}
}

// A transfer that breaks off leaves the tree on the cluster unchanged. One that breaks
// off while it installs files is finished by the next sync.
func TestATransferThatBreaksOff(t *testing.T) {
	far, dir, to, path := treeFar(t)
	_, err := bring(t.Context(), t, far, dir, to)
	require.NoError(t, err)
	write(t, dir, "train.py", "new")
	write(t, dir, "...", "changed")

	t.Run("on its way", func(t *testing.T) {
		bin := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(bin, "rsync"), []byte("#!/bin/sh\necho 'rsync: connection unexpectedly closed' >&2\nexit 12\n"), 0o755))
		cluster.SetSSHPath(t, far, bin+":"+path)
		_, err := bring(t.Context(), t, far, dir, to)
		require.ErrorContains(t, err, "the tree on the cluster is unchanged: rsync: connection unexpectedly closed")
		there, err := os.ReadFile(filepath.Join(to, "..."))
		require.NoError(t, err)
		require.Equal(t, "content of ...", string(there))
	})
	t.Run("with less than was sent", func(t *testing.T) {
		bin := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(bin, "rsync"), []byte("#!/bin/sh\nexit 0\n"), 0o755))
		cluster.SetSSHPath(t, far, bin+":"+path)
		_, err := bring(t.Context(), t, far, dir, to)
		require.ErrorContains(t, err, "differs after the transfer, and the tree on the cluster is unchanged")
	})
	t.Run("while files are put in place", func(t *testing.T) {
		require.NoError(t, os.WriteFile(filepath.Join(to, ".megatron-ops/bringing"), []byte(`{"by":"bob@desk","files":{"aGFsZi5weQ==":"x"}}`), 0o666))
		write(t, to, "half.py", "of a transfer")
		tree, err := cluster.ReadSourceTree(t.Context(), dir, nil)
		require.NoError(t, err)
		defer tree.Close()
		d, err := far.CompareTree(t.Context(), tree, to)
		require.NoError(t, err)
		require.Equal(t, "bob@desk", d.Unfinished)
		require.Equal(t, []string{"half.py"}, paths(d.Deleted), "what it brought and is not here goes")
	})
	_, err = bring(t.Context(), t, far, dir, to)
	require.NoError(t, err)
	there, err := os.ReadFile(filepath.Join(to, "..."))
	require.NoError(t, err)
	require.Equal(t, "changed", string(there))
}

func TestNothingIsWrittenBehindALinkThere(t *testing.T) {
	far, dir, to, _ := treeFar(t)
	_, err := bring(t.Context(), t, far, dir, to)
	require.NoError(t, err)
	elsewhere := filepath.Join(filepath.Dir(to), "elsewhere")
	require.NoError(t, os.MkdirAll(elsewhere, 0o777))
	require.NoError(t, os.Chmod(to, 0o777))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(to, "data")))
	write(t, dir, "data/x", "x")
	_, err = bring(t.Context(), t, far, dir, to)
	require.ErrorContains(t, err, "nothing is written behind it")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "data")))

	require.NoError(t, os.RemoveAll(filepath.Join(to, ".megatron-ops")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(to, ".megatron-ops")))
	_, err = bring(t.Context(), t, far, dir, to)
	require.Error(t, err)
	left, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOneSyncAtATime(t *testing.T) {
	far, dir, to, path := treeFar(t)
	_, err := bring(t.Context(), t, far, dir, to)
	require.NoError(t, err)
	write(t, dir, "x", "x")
	bin, gate := t.TempDir(), filepath.Join(t.TempDir(), "gate")
	real, err := exec.LookPath("rsync")
	require.NoError(t, err)
	require.NoError(t, exec.Command("mkfifo", gate+"1", gate+"2").Run())
	require.NoError(t, os.WriteFile(filepath.Join(bin, "rsync"), []byte("#!/bin/sh\nread x <"+gate+"1\nread x <"+gate+"2\nexec "+real+" \"$@\"\n"), 0o755))
	cluster.SetSSHPath(t, far, bin+":"+path)
	first := make(chan error, 1)
	go func() { _, err := bring(t.Context(), t, far, dir, to); first <- err }()
	open := func(which string) {
		f, err := os.OpenFile(gate+which, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString("go\n")
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	open("1") // the first is at its transfer now
	_, err = bring(t.Context(), t, far, dir, to)
	require.ErrorContains(t, err, "another sync of "+to+" is under way: alice@laptop")
	open("2")
	require.NoError(t, <-first)
}

// A folder that is no git repository is read by the same rules.
func TestAFolderThatIsNoRepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, ".gitignore", "*.log\n")
	write(t, dir, "a.py", "")
	write(t, dir, "b.log", "")
	write(t, dir, "data/c.bin", "")
	tree, err := cluster.ReadSourceTree(t.Context(), dir, []string{"/data/"})
	require.NoError(t, err)
	defer tree.Close()
	var names []string
	for _, f := range tree.Files {
		names = append(names, f.Path)
	}
	require.Equal(t, ".gitignore a.py", strings.Join(names, " "))
	_, known := cluster.SourceHere(t.Context(), dir)
	require.False(t, known)
}

// A cancelled sync does not wait for a host that does not answer.
func TestASyncThatIsBrokenOffWaitsForNoHost(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o755))
	far, err := cluster.NewSSH("far", cluster.SSHOptions{Host: "login"})
	require.NoError(t, err)
	cluster.SetSSHPath(t, far, bin+":"+os.Getenv("PATH"))
	ctx, breakOff := context.WithCancel(t.Context())
	breakOff()
	_, err = far.BringTree(ctx, &cluster.SourceTree{}, "/w", "alice@laptop", cluster.GitSource{})
	require.ErrorIs(t, err, context.Canceled)
}
