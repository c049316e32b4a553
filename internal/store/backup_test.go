package store

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A backup that is made during writes is a complete database of one moment.
func TestABackupIsWholeWhileOthersWrite(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), filepath.Join(dir, "state.db"))
	require.NoError(t, err)
	defer s.Close()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	first := make(chan struct{})
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.Slack().Put(t.Context(), "n", "n", i, time.Time{}); err != nil {
				t.Error(err)
				return
			}
			if i == 20 {
				close(first)
			}
		}
	})
	<-first
	file := filepath.Join(dir, "backup.db")
	require.NoError(t, s.Backup(t.Context(), file))
	close(stop)
	writing.Wait()
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Error(t, s.Backup(t.Context(), file), "nothing is overwritten")
	none := filepath.Join(dir, "none.db")
	ctx, end := context.WithCancel(t.Context())
	end()
	require.Error(t, s.Backup(ctx, none))
	require.NoFileExists(t, none, "no part of a copy is taken for one")

	restored, err := Open(t.Context(), file)
	require.NoError(t, err)
	defer restored.Close()
	var n int
	ok, err := restored.Slack().Get(t.Context(), "n", "n", time.Now(), &n)
	require.NoError(t, err)
	require.True(t, ok)
	require.GreaterOrEqual(t, n, 20)
}
