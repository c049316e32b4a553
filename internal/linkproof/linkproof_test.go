package linkproof_test

import (
	"context"
	"crypto/rand"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/account/accounttest"
	"github.com/megatron-ops/megatron-ops/internal/linkproof"
	"github.com/megatron-ops/megatron-ops/internal/munge"
)

// The users of these tests are known only to NSS.
const (
	honest, attacker = 61301, 61302
	team             = 61300
)

// asUser runs a helper in this test binary as another user: with real rights, in a real
// process.
func asUser(t *testing.T, uid int, env ...string) ([]byte, error) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestHelperWritesProof$")
	c.Env = append([]string{"HELPER=1"}, env...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: team}}
	return c.CombinedOutput()
}

// TestHelperWritesProof does what `megatron-ops link CODE` does, for asUser.
func TestHelperWritesProof(t *testing.T) {
	if os.Getenv("HELPER") == "" {
		return // it is started by another test alone
	}
	require.NoError(t, folder(os.Getenv("DIR"), os.Getenv("SOCKET")).Write(t.Context(), os.Getenv("CODE")))
}

func folder(dir, socket string) linkproof.Folder {
	f := linkproof.Folder{Dir: dir}
	if socket != "" {
		f.Munge = &munge.Service{Socket: socket}
	}
	return f
}

// site creates two users, and a folder for codes below one that only root may write.
func site(t *testing.T) (dir string) {
	if testing.Short() {
		t.Skip("needs root and libnss-extrausers")
	}
	accounttest.Add(t,
		accounttest.Person{Name: "honest", UID: honest, Group: "linkteam", GID: team},
		accounttest.Person{Name: "attacker", UID: attacker, Group: "attackers", GID: team + 9})
	top, err := os.MkdirTemp("/var/lib", "megatron-ops-link-test")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(top) })
	require.NoError(t, os.Chmod(top, 0o755))
	// The other user must be able to run this test's binary.
	require.NoError(t, os.Chmod(filepath.Dir(os.Args[0]), 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(os.Args[0])), 0o755))
	dir = filepath.Join(top, "links")
	require.NoError(t, os.Mkdir(dir, 0o777))
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	return dir
}

// munged starts a MUNGE service for this test.
func munged(t *testing.T) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "megatron-ops-munge-test")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	key := make([]byte, 1024)
	_, _ = rand.Read(key)
	require.NoError(t, os.WriteFile(dir+"/key", key, 0o400))
	socket = dir + "/socket"
	c := exec.Command("munged", "--foreground", "--force", "--key-file="+dir+"/key", "--socket="+socket,
		"--pid-file="+dir+"/pid", "--log-file="+dir+"/log", "--seed-file="+dir+"/seed")
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Signal(syscall.SIGTERM); _ = c.Wait() })
	require.Eventually(t, func() bool {
		_, err := munge.Service{Socket: socket}.Seal(t.Context(), "up")
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	return socket
}

// ways runs a test with both kinds of proof.
func ways(t *testing.T, test func(t *testing.T, dir, socket string)) {
	t.Run("munge", func(t *testing.T) { dir := site(t); test(t, dir, munged(t)) })
	t.Run("file", func(t *testing.T) { test(t, site(t), "") })
}

func TestAPersonProvesWhoTheyAre(t *testing.T) {
	ways(t, func(t *testing.T, dir, socket string) {
		code, now := rand.Text(), time.Now()
		f := folder(dir, socket)
		_, err := f.Owner(t.Context(), code, now)
		require.ErrorIs(t, err, fs.ErrNotExist)
		for range 2 { // run again, as somebody does who is not sure
			out, err := asUser(t, honest, "DIR="+dir, "SOCKET="+socket, "CODE="+code)
			require.NoError(t, err, string(out))
		}
		u, err := f.Owner(t.Context(), code, now)
		require.NoError(t, err)
		require.Equal(t, "honest", u.Name)
		names, err := filepath.Glob(dir + "/*" + code + "*")
		require.NoError(t, err)
		require.Empty(t, names, "who lists the folder does not learn the code")
	})
}

// The attack: another user's fresh file, from a group-writable folder, is renamed to
// the attacker's code.
func TestARenamedFileProvesNothing(t *testing.T) {
	ways(t, func(t *testing.T, dir, socket string) {
		code, other := rand.Text(), rand.Text()
		f := folder(dir, socket)
		// The honest user proves a code of their own, and owns another fresh file.
		out, err := asUser(t, honest, "DIR="+dir, "SOCKET="+socket, "CODE="+other)
		require.NoError(t, err, string(out))
		proofs, err := filepath.Glob(dir + "/megatron-ops-link-*")
		require.NoError(t, err)
		require.Len(t, proofs, 1)
		place := where(t, f, dir, code)

		for name, from := range map[string]string{"a proof of another code": proofs[0], "any fresh file": fresh(t, dir, "notes\n")} {
			require.NoError(t, os.Rename(from, place), name)
			_, err = f.Owner(t.Context(), code, time.Now())
			var refused *linkproof.Refused
			require.ErrorAs(t, err, &refused, name)
		}
	})
}

// where is the path of a code's proof, found by writing one.
func where(t *testing.T, f linkproof.Folder, dir, code string) string {
	t.Helper()
	before, err := filepath.Glob(dir + "/megatron-ops-link-*")
	require.NoError(t, err)
	require.NoError(t, f.Write(t.Context(), code))
	after, err := filepath.Glob(dir + "/megatron-ops-link-*")
	require.NoError(t, err)
	for _, p := range after {
		if !contains(before, p) {
			require.NoError(t, os.Remove(p))
			return p
		}
	}
	t.Fatal("no proof was written")
	return ""
}

func contains(list []string, p string) bool {
	return slices.Contains(list, p)
}

// fresh is a file of the honest person's.
func fresh(t *testing.T, dir, content string) string {
	p := filepath.Join(filepath.Dir(dir), "fresh")
	require.NoError(t, os.WriteFile(p, []byte(content), 0o644))
	require.NoError(t, os.Chown(p, honest, team))
	return p
}

// Without MUNGE the file itself must be above doubt.
func TestFilesOfDoubtfulOriginAreRefused(t *testing.T) {
	dir := site(t)
	f := folder(dir, "")
	for name, spoil := range map[string]func(p string) error{
		"others may write it": func(p string) error { return os.Chmod(p, 0o664) },
		"it has another name": func(p string) error { return os.Link(p, p+"-too") },
		"it is a link": func(p string) error {
			if err := os.Rename(p, p+"-real"); err != nil {
				return err
			}
			return os.Symlink(p+"-real", p)
		},
		"it is older than the code": func(p string) error { past := time.Now().Add(-time.Hour); return os.Chtimes(p, past, past) },
		"it is root's":              func(p string) error { return os.Chown(p, 0, 0) },
		"its owner is nobody known": func(p string) error { return os.Chown(p, 3_999_999, team) },
		"a pipe": func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return syscall.Mkfifo(p, 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			code := rand.Text()
			place := where(t, f, dir, code)
			require.NoError(t, os.WriteFile(place, []byte("megatron-ops link "+code), 0o644))
			require.NoError(t, os.Chown(place, honest, team))
			_, err := f.Owner(t.Context(), code, time.Now())
			require.NoError(t, err, "as it is, it is good")
			require.NoError(t, spoil(place))
			_, err = f.Owner(t.Context(), code, time.Now())
			var refused *linkproof.Refused
			require.ErrorAs(t, err, &refused)
		})
	}
}

func TestACredentialIsGoodOnce(t *testing.T) {
	dir := site(t)
	f := folder(dir, munged(t))
	code := rand.Text()
	out, err := asUser(t, honest, "DIR="+dir, "SOCKET="+f.Munge.Socket, "CODE="+code)
	require.NoError(t, err, string(out))
	_, err = f.Owner(t.Context(), code, time.Now())
	require.NoError(t, err)
	_, err = f.Owner(t.Context(), code, time.Now())
	require.ErrorContains(t, err, "Replayed")
}

func TestFoldersThatOthersRuleAreRefused(t *testing.T) {
	dir := site(t)
	f := folder(dir, "")
	code := rand.Text()
	for name, spoil := range map[string]func() (undo func()){
		"not sticky":          func() func() { return chmod(t, dir, 0o777, 0o777|os.ModeSticky) },
		"one above it":        func() func() { return chmod(t, filepath.Dir(dir), 0o777, 0o755) },
		"somebody else's own": func() func() { return chown(t, dir, attacker) },
	} {
		t.Run(name, func(t *testing.T) {
			defer spoil()()
			_, err := f.Owner(context.Background(), code, time.Now())
			require.ErrorContains(t, err, "folder of link codes")
		})
	}
}

func chmod(t *testing.T, p string, to, back os.FileMode) func() {
	require.NoError(t, os.Chmod(p, to))
	return func() { require.NoError(t, os.Chmod(p, back)) }
}

func chown(t *testing.T, p string, uid int) func() {
	require.NoError(t, os.Chown(p, uid, team))
	return func() { require.NoError(t, os.Chown(p, 0, 0)) }
}

func TestWhatIsNoCodeIsRefused(t *testing.T) {
	f := linkproof.Folder{Dir: t.TempDir()}
	for _, code := range []string{"", "../../etc/passwd", "SHORT", "ABCDEFGHIJKLMNOPQRSTUVWXY1"} {
		require.Error(t, f.Write(t.Context(), code))
	}
}
