package store

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A store that release 0.2.0 wrote can be read and continued. testdata contains its
// stores as its own code filled them, dumped as SQL.
func TestAStoreOfRelease020IsTakenUp(t *testing.T) {
	for name, c := range map[string]struct {
		driver string
		url    func(*testing.T) string
	}{
		"sqlite":   {"sqlite", func(t *testing.T) string { return filepath.Join(t.TempDir(), "state.db") }},
		"postgres": {"pgx", freshPostgres},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			url := c.url(t)
			dump, err := os.ReadFile(filepath.Join("testdata", "release-0.2.0."+name+".sql"))
			require.NoError(t, err)
			db, err := sql.Open(c.driver, url)
			require.NoError(t, err)
			_, err = db.ExecContext(ctx, string(dump))
			require.NoError(t, err)
			require.NoError(t, db.Close())

			s, err := Open(ctx, url)
			require.NoError(t, err)
			t.Cleanup(func() { s.Close() })
			var version int
			require.NoError(t, s.row(ctx, `SELECT MAX(version) FROM schema_version`).Scan(&version))
			require.Equal(t, len(migrations), version)

			sub, err := s.ByJob(ctx, "dev", "4711")
			require.NoError(t, err)
			require.Equal(t, Submission{
				Key: "ada/dev/a", Token: "a", Cluster: "dev", Owner: "ada", AskedBy: "slack:U1", Name: "gpt", Spec: []byte(`{"name":"gpt","nodes":2}`), SpecHash: "h",
				Script: "#!/bin/bash\n#SBATCH --nodes=2\n", Dir: "/home/ada/gpt", State: Submitted, JobID: "4711",
				CreatedAt: noon, UpdatedAt: noon, Place: "login1:/run/locks", AttemptedAt: noon,
			}, sub)
			open, err := s.Unfinished(ctx)
			require.NoError(t, err)
			require.Len(t, open, 1, "what was begun is looked for")
			require.NoError(t, s.Finish(ctx, open[0].Key, Submitted, "4712", "", noon))

			require.NoError(t, s.AddAudit(ctx, Entry{At: noon, Surface: "shell", Who: "ada", Owner: "ada", Op: "cancel", Job: "4712"}))
			broken, cut, err := s.VerifyAudit(ctx)
			require.NoError(t, err)
			require.Zero(t, broken, "the trail goes on")
			require.False(t, cut)
			entries, err := s.Audit(ctx, 10)
			require.NoError(t, err)
			require.Len(t, entries, 3)
			verdicts, err := s.Feedback(ctx, 10)
			require.NoError(t, err)
			require.Equal(t, "good", verdicts[0].Verdict)

			k := s.Slack()
			asked, err := k.Unfinished(ctx, 10)
			require.NoError(t, err)
			require.Equal(t, "status 4711", asked[0].Body)
			due, err := k.Due(ctx, noon.Add(time.Hour), 10)
			require.NoError(t, err)
			require.Equal(t, []string{"end/dev/4711"}, keys(due))
			at, ok, err := k.Ref(ctx, "card/dev/4711")
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, SlackRef{"C1", "1.2"}, at)
			require.NoError(t, k.Enqueue(ctx, SlackMessage{Key: "new", Lane: "C2", Queued: noon}))
			require.NoError(t, k.Enqueue(ctx, SlackMessage{Key: "card/dev/4711", Lane: "C1", Queued: noon}))
			n, _, err := k.Backlog(ctx)
			require.NoError(t, err)
			require.Equal(t, 2, n, "a card that was sent is not sent again")
			var known slurm.Job
			ok, err = k.Get(ctx, "followed", "dev/4711", noon, &known)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, slurm.Running, known.State)
			owed, err := k.Keys(ctx, "notify", noon)
			require.NoError(t, err)
			require.Equal(t, []string{"team/dev/4711/end/0"}, owed)

			// Its server is gone without notice.
			next := s.Lease("leader", "next")
			require.Eventually(t, func() bool {
				ok, err := next.Renew(ctx, time.Nanosecond)
				return err == nil && ok
			}, time.Minute, time.Millisecond)
		})
	}
}
