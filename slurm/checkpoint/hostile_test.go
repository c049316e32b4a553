package checkpoint

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/within"
)

// readSoon reads a checkpoint, and fails if that takes long.
func readSoon(t *testing.T, in *within.Folders, dir string) (c Checkpoint, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err = Read(in, dir, 0)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the checkpoint is still being read: ", dir)
	}
	return c, err
}

// Whoever may write into a folder of checkpoints can put anything under the names that are
// read. None of it keeps a reader waiting, or fills its memory.
func TestNothingUnderACheckpointsNamesHoldsAReaderUp(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(dir string) error{
		"a pipe for the tracker": func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, tracker), 0o600) },
		"a tracker without an end": func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, tracker), nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(filepath.Join(dir, tracker), 1<<40) // without content on the disk
		},
		"a pipe for the backend": func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, backendFile), 0o600) },
		"a pipe for the index":   func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, indexFile), 0o600) },
		"a pipe for the common part": func(dir string) error {
			return syscall.Mkfifo(filepath.Join(dir, commonFile), 0o600)
		},
		"a rank of very many": func(dir string) error { return os.Mkdir(filepath.Join(dir, "mp_rank_099999999_9999"), 0o700) },
	} {
		dir := t.TempDir()
		require.NoError(t, place(dir), name)
		c, err := readSoon(t, nil, dir)
		require.False(t, err == nil && c.Complete, name)
		require.Less(t, len(c.Faults), 10, name)
	}
}

// A folder that leads out of what may be read, whenever it came there, is not followed.
func TestACheckpointIsReadThroughItsFolders(t *testing.T) {
	t.Parallel()
	in, out := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(out, "token"), []byte("the secret"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(out, "token"), filepath.Join(in, tracker)))
	_, err := Read(nil, in, 0)
	require.ErrorContains(t, err, "the secret", "without folders a person reads what they may")
	folders, err := within.Open(in)
	require.NoError(t, err)
	defer folders.Close()
	_, err = readSoon(t, folders, in)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "the secret")

	require.NoError(t, os.Remove(filepath.Join(in, tracker)))
	require.NoError(t, os.CopyFS(filepath.Join(in, "iter_0000100"), os.DirFS("testdata/dist/iter_0000100")))
	c, err := readSoon(t, folders, in)
	require.NoError(t, err)
	require.True(t, c.Complete)
	require.Equal(t, 100, *c.Iteration)
}
