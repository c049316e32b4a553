package store

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// each runs a test on both databases.
func each(t *testing.T, test func(*testing.T, *Store)) {
	t.Run("sqlite", func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "state", "state.db"))
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		test(t, s)
	})
	t.Run("postgres", func(t *testing.T) {
		s, err := Open(t.Context(), needPostgres(t))
		require.NoError(t, err)
		t.Cleanup(func() {
			for _, table := range []string{"submissions", "audit", "feedback"} {
				_, _ = s.db.ExecContext(context.Background(), "DELETE FROM "+table)
			}
			s.Close()
		})
		test(t, s)
	})
}

var noon = time.UnixMilli(1_795_176_000_000)

func TestOneKeyIsOneSubmission(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		var created sync.Map
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				_, first, err := s.Begin(ctx, Submission{Key: "k", Token: "t", Cluster: "local", Name: "run", Spec: []byte("{}"), CreatedAt: noon})
				if err != nil {
					t.Error(err)
				}
				if first {
					created.Store(i, true)
				}
			})
		}
		wg.Wait()
		n := 0
		created.Range(func(any, any) bool { n++; return true })
		require.Equal(t, 1, n, "twenty equal requests begin one submission")

		unfinished, err := s.Unfinished(ctx)
		require.NoError(t, err)
		require.Len(t, unfinished, 1)

		require.NoError(t, s.Finish(ctx, "k", Submitted, "4711", "", noon))
		sub, err := s.ByJob(ctx, "local", "4711")
		require.NoError(t, err)
		require.Equal(t, Submitted, sub.State)
		require.Equal(t, "k", sub.Key)
		unfinished, err = s.Unfinished(ctx)
		require.NoError(t, err)
		require.Empty(t, unfinished)
	})
}

func TestAnAdoptedJobIsASubmissionOnce(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for _, id := range []slurm.JobID{"12", "13"} {
			require.NoError(t, s.Adopt(t.Context(), Submission{Key: "k/link-2", Token: "t-2", Cluster: "real", Name: "run", Spec: []byte("{}"), JobID: id, CreatedAt: noon}))
		}
		sub, err := s.ByJob(t.Context(), "real", "12")
		require.NoError(t, err)
		require.Equal(t, Submitted, sub.State)
		_, err = s.ByJob(t.Context(), "real", "13")
		require.ErrorIs(t, err, ErrNotFound)
		unfinished, err := s.Unfinished(t.Context())
		require.NoError(t, err)
		require.Empty(t, unfinished, "nobody may hand it over again")
	})
}

func TestUnknownSubmission(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		_, err := s.Submission(t.Context(), "nosuch")
		require.ErrorIs(t, err, ErrNotFound)
	})
}

func TestAuditTrailShowsTampering(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		for _, op := range []string{"submit", "cancel", "submit"} {
			require.NoError(t, s.AddAudit(ctx, Entry{At: noon, Surface: "shell", Who: "alice", Owner: "alice", Op: op}))
		}
		broken, err := s.VerifyAudit(ctx)
		require.NoError(t, err)
		require.Zero(t, broken)

		newest, err := s.Audit(ctx, 2)
		require.NoError(t, err)
		require.Len(t, newest, 2)
		require.Greater(t, newest[0].ID, newest[1].ID)

		_, err = s.exec(ctx, `UPDATE audit SET who = 'bob' WHERE id = ?`, newest[1].ID)
		require.NoError(t, err)
		broken, err = s.VerifyAudit(ctx)
		require.NoError(t, err)
		require.Equal(t, newest[1].ID, broken)
	})
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := Open(t.Context(), path)
	require.NoError(t, err)
	_, err = s.exec(t.Context(), `INSERT INTO schema_version (version) VALUES (999)`)
	require.NoError(t, err)
	s.Close()
	_, err = Open(t.Context(), path)
	require.ErrorContains(t, err, "use a newer megatron-ops")
}

func TestPasswordIsNotShown(t *testing.T) {
	require.Equal(t, "postgres://ops@db:5432/ops", redactURL("postgres://ops:s3cret@db:5432/ops"))
}

func TestStateIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	path := filepath.Join(dir, "state.db")
	old, err := Open(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, old.Close())
	require.NoError(t, os.Chmod(path, 0o644), "as earlier releases left it")
	s, err := Open(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, s.AddAudit(t.Context(), Entry{}))
	files, err := filepath.Glob(dir + "/*")
	require.NoError(t, err)
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, f)
	}
	require.NoError(t, s.Close())

	require.NoError(t, os.Chmod(dir, 0o777))
	_, err = Open(t.Context(), path)
	require.ErrorContains(t, err, "others may write it")
	require.ErrorContains(t, err, "chmod go-w")
}
