package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
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
			for _, table := range []string{"submissions", "audit", "feedback", "slack_docs"} {
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

// Every cluster has its own job 7, and Slurm begins anew once its numbers are used up.
func TestAJobIsTheNewestOfItsNumberOnItsCluster(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for i, cluster := range []string{"near", "near", "far"} {
			key := fmt.Sprint(i)
			sub, first, err := s.Begin(t.Context(), Submission{
				Key: key, Token: key, Cluster: cluster, Spec: []byte("{}"), CreatedAt: noon.Add(time.Duration(i) * time.Hour),
				State: Submitted, JobID: "6", Message: "of another submission",
			})
			require.NoError(t, err)
			require.True(t, first)
			stored, err := s.Submission(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, sub, stored)
			require.Equal(t, Submission{
				Key: key, Token: key, Cluster: cluster, Spec: []byte("{}"), State: Submitting,
				CreatedAt: sub.CreatedAt, UpdatedAt: sub.CreatedAt, AttemptedAt: sub.CreatedAt,
			}, stored, "nothing is submitted yet")
			require.NoError(t, s.Finish(t.Context(), key, Submitted, "7", "", noon))
		}
		for cluster, key := range map[string]string{"near": "1", "far": "2"} {
			sub, err := s.ByJob(t.Context(), cluster, "7")
			require.NoError(t, err)
			require.Equal(t, key, sub.Key)
		}
		_, err := s.ByJob(t.Context(), "other", "7")
		require.ErrorIs(t, err, ErrNotFound)
	})
}

func TestAuditTrailShowsTampering(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		for range 3 {
			require.NoError(t, s.AddAudit(ctx, Entry{At: noon, Surface: "shell", Who: "alice", Owner: "alice", Op: "cancel"}))
		}
		broken, cut, err := s.VerifyAudit(ctx)
		require.NoError(t, err)
		require.Zero(t, broken)
		require.False(t, cut)

		newest, err := s.Audit(ctx, 2)
		require.NoError(t, err)
		require.Len(t, newest, 2)
		newest, err = s.Audit(ctx, 3)
		require.NoError(t, err)
		require.Greater(t, newest[0].ID, newest[1].ID)

		for _, column := range strings.Fields("at surface who owner agent op input result job script agreed") {
			_, err = s.exec(ctx, `UPDATE audit SET `+column+` = '17' WHERE id = ?`, newest[1].ID)
			require.NoError(t, err)
			broken, _, err = s.VerifyAudit(ctx)
			require.NoError(t, err)
			require.Equal(t, newest[1].ID, broken, column)
			_, err = s.exec(ctx, `UPDATE audit SET `+column+` = (SELECT `+column+` FROM audit WHERE id = ?) WHERE id = ?`, newest[2].ID, newest[1].ID)
			require.NoError(t, err)
			broken, _, err = s.VerifyAudit(ctx)
			require.NoError(t, err)
			require.Zero(t, broken, "%s is as it was", column)
		}
	})
}

// If somebody removes entries at the end, the chain is still consistent, but the head,
// which is stored elsewhere, reveals it. Entries of the first format keep their
// digests.
func TestACutTailShows(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx, dir := t.Context(), t.TempDir()
		old := Entry{At: noon, Surface: "shell", Who: "alice", Owner: "alice", Op: "submit", form: firstForm}
		_, err := s.exec(ctx, `INSERT INTO audit (at, surface, who, owner, agent, op, input, result, digest) VALUES (?, 'shell', 'alice', 'alice', '', 'submit', '', '', ?)`, millis(noon), old.digest(""))
		require.NoError(t, err)
		s.KeepHead(dir)
		for _, job := range []string{"4711", "4712", "4713"} {
			require.NoError(t, s.AddAudit(ctx, Entry{At: noon, Surface: "slack", Who: "T1/U1", Owner: "alice", Op: "submit", Job: job, Script: "ab12", Agreed: "T1/U5"}))
		}
		check := func(wantBroken, wantCut bool, why string) {
			t.Helper()
			broken, cut, err := s.VerifyAudit(ctx)
			require.NoError(t, err)
			require.Equal(t, wantBroken, broken != 0, why)
			require.Equal(t, wantCut, cut, why)
		}
		check(false, false, "as it was written")
		all, err := s.Audit(ctx, 10)
		require.NoError(t, err)
		require.Equal(t, "4713 ab12 T1/U5", all[0].Job+" "+all[0].Script+" "+all[0].Agreed)
		last := all[0]
		require.NoError(t, s.head.write(all[1]), "as a process that was slow to do so")
		_, err = s.exec(ctx, `DELETE FROM audit WHERE id = ?`, last.ID)
		require.NoError(t, err)
		check(false, true, "the last entry is gone")
		_, err = s.exec(ctx, `UPDATE audit SET job = '9' WHERE id = ?`, all[1].ID)
		require.NoError(t, err)
		check(true, false, "a job was changed")

		file := filepath.Join(dir, "audit.head")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, forge := range [][2]string{{last.Digest, all[1].Digest}, {fmt.Sprintf(`"id":%d`, last.ID), fmt.Sprintf(`"id":%d`, all[1].ID)}} {
			forged := strings.Replace(string(raw), forge[0], forge[1], 1)
			require.NoError(t, os.WriteFile(file, []byte(forged), 0o600))
			_, _, err = s.VerifyAudit(ctx)
			require.ErrorIs(t, err, errHead)
		}

		// A head that cannot be read is not taken for none.
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.Symlink("audit.head", file))
		_, _, err = s.VerifyAudit(ctx)
		require.Error(t, err)
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.WriteFile(file, raw, 0o600))

		// A key that cannot be read is not replaced by a new one that would sign
		// whatever is there.
		key := filepath.Join(dir, "audit.key")
		require.NoError(t, os.Remove(key))
		require.NoError(t, os.Symlink("audit.key", key))
		_, _, err = s.VerifyAudit(ctx)
		require.Error(t, err)
		info, err = os.Lstat(key)
		require.NoError(t, err)
		require.Equal(t, os.ModeSymlink, info.Mode().Type())
	})
}

// Whoever can write the database can make a consistent chain of other entries. It does
// not have the head.
func TestATrailThatWasWrittenAnewShows(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx, dir := t.Context(), t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "audit.key"), []byte("short"), 0o600))
		s.KeepHead(dir)
		e := Entry{At: noon, Surface: "shell", Who: "alice", Owner: "alice", Op: "cancel", form: currentForm}
		require.NoError(t, s.AddAudit(ctx, e))
		key, err := os.ReadFile(filepath.Join(dir, "audit.key"))
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(key), 32, "a key that can be guessed is replaced")
		broken, cut, err := s.VerifyAudit(ctx)
		require.NoError(t, err)
		require.Zero(t, broken)
		require.False(t, cut)
		e.Who = "bob"
		_, err = s.exec(ctx, `UPDATE audit SET who = ?, digest = ?`, e.Who, e.digest(""))
		require.NoError(t, err)
		broken, cut, err = s.VerifyAudit(ctx)
		require.NoError(t, err)
		require.Zero(t, broken)
		require.True(t, cut)
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
	for _, password := range []string{"s3cret", "s3@cret", "s3:cret"} {
		require.Equal(t, "postgres://ops@db:5432/ops", redactURL("postgres://ops:"+password+"@db:5432/ops"))
	}
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

	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	for _, mode := range []os.FileMode{0o777, 0o770, 0o702} {
		require.NoError(t, os.Chmod(dir, mode))
		_, err = Open(t.Context(), path)
		require.ErrorContains(t, err, fmt.Sprintf("has mode %04o: others may write it", mode))
		require.ErrorContains(t, err, "chmod go-w")
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Open(t.Context(), filepath.Join(file, "below", "state.db"))
	require.ErrorContains(t, err, "name one that you may write in MEGATRON_OPS_STATE_DIR")
	_, err = Open(t.Context(), t.TempDir()) // where the database is to be, there is a folder
	require.ErrorContains(t, err, "name one that you may write in MEGATRON_OPS_STATE_DIR")
}

func TestAFullDiskIsToldWithWhatHelps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s, err := Open(t.Context(), filepath.Join(dir, "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	var pages int
	require.NoError(t, s.row(t.Context(), "PRAGMA page_count").Scan(&pages))
	require.NoError(t, s.row(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)).Scan(&pages))
	_, inOne := s.exec(t.Context(), "CREATE TABLE big AS SELECT randomblob(1000000)")
	for what, err := range map[string]error{"a transaction": s.AddAudit(t.Context(), Entry{Input: strings.Repeat("x", 1<<20)}), "a statement": inOne} {
		said := lang.Said(err)
		require.Contains(t, said.EN, "the disk of "+dir+" is full (", what)
		require.Contains(t, said.EN, "free some space, or name another folder in MEGATRON_OPS_STATE_DIR", what)
		require.Contains(t, said.ZH, dir+" 所在的磁盘已满", what)
	}
}

func TestADamagedDatabaseIsToldWithWhatHelps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "state.db"), bytes.Repeat([]byte("no database "), 1000), 0o600))
	_, err := Open(t.Context(), filepath.Join(dir, "state.db"))
	require.ErrorContains(t, err, "the database in "+dir+" is damaged (")
	require.ErrorContains(t, err, "put a copy by `megatron-ops backup` in its place, or move it away")
}

func TestWhatWasSubmittedSinceIsListedWithoutItsScript(t *testing.T) {
	each(t, submittedSince)
}

func submittedSince(t *testing.T, st *Store) {
	now := time.Now()
	for i, key := range []string{"old", "new", "refused"} {
		_, _, err := st.Begin(t.Context(), Submission{Key: key, Token: key, Cluster: "c", Owner: "ada", AskedBy: "mcp:ada", Name: "gpt", Spec: []byte("{}"), Script: "x", CreatedAt: now.Add(-time.Hour)})
		require.NoError(t, err)
		state := map[bool]SubmissionState{true: Submitted, false: Rejected}[key != "refused"]
		require.NoError(t, st.Finish(t.Context(), key, state, slurm.JobID(fmt.Sprint(i+1)), "", now.Add(time.Duration(i)*time.Minute)))
	}
	list, err := st.SubmittedSince(t.Context(), now.Add(time.Minute))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, slurm.JobID("2"), list[0].JobID)
	require.Equal(t, []string{"c", "ada", "mcp:ada", "gpt"}, []string{list[0].Cluster, list[0].Owner, list[0].AskedBy, list[0].Name})
	require.WithinDuration(t, now.Add(-time.Hour), list[0].CreatedAt, time.Second)
	list, err = st.SubmittedSince(t.Context(), now.Add(-time.Hour))
	require.NoError(t, err)
	require.Len(t, list, 2)
}

// A user's submissions are listed newest first. Those without an answer show the
// request and its time.
func TestSubmissionsAreThoseOfAPerson(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		require.NoError(t, s.Ping(ctx))
		for i, sub := range []Submission{{Owner: "ada", Name: "gpt"}, {Owner: "ada", Name: "moe"}, {Owner: "bob", Name: "gpt"}, {Owner: "ada", Name: "gpt", Cluster: "far"}} {
			sub.Key, sub.Cluster = fmt.Sprint(i), cmp.Or(sub.Cluster, "near")
			sub.Token, sub.SpecHash, sub.Spec, sub.CreatedAt = sub.Key, "h-"+sub.Name, []byte("{}"), noon.Add(time.Duration(i)*time.Minute)
			_, _, err := s.Begin(ctx, sub)
			require.NoError(t, err)
		}
		keys := func(list []Submission, err error) (all string) {
			require.NoError(t, err)
			for _, sub := range list {
				all += sub.Key
			}
			return all
		}
		require.Equal(t, "3210", keys(s.Submissions(ctx, "", "", 9)))
		require.Equal(t, "32", keys(s.Submissions(ctx, "", "", 2)))
		require.Equal(t, "310", keys(s.Submissions(ctx, "ada", "", 9)))
		require.Equal(t, "30", keys(s.Submissions(ctx, "ada", "gpt", 9)))
		require.Equal(t, "0", keys(s.Unanswered(ctx, "near", "ada", "h-gpt", noon.Add(-time.Minute))))
		require.Empty(t, keys(s.Unanswered(ctx, "near", "ada", "h-gpt", noon)))
		require.Equal(t, "0123", keys(s.Unfinished(ctx)))
		require.NoError(t, s.Finish(ctx, "0", Rejected, "", "no", noon))
		require.Empty(t, keys(s.Unanswered(ctx, "near", "ada", "h-gpt", noon.Add(-time.Minute))))

		before, err := s.Sizes(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Slack().Put(ctx, "counted", "once", 1, time.Time{}))
		sizes, err := s.Sizes(ctx)
		require.NoError(t, err)
		require.Equal(t, int64(4), sizes.Rows["submissions"])
		require.Equal(t, int64(0), sizes.Rows["audit"])
		require.Equal(t, before.Rows["slack_docs"]+1, sizes.Rows["slack_docs"])
		require.Equal(t, s.postgres, sizes.Kind == "PostgreSQL")
		require.Equal(t, s.postgres, sizes.Bytes == 0)
		require.Positive(t, sizes.Schema)
	})
}
