package web_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/web"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// part requests what the page's own script requests to replace a part of the page.
func (b browser) part(path string) string {
	b.s.t.Helper()
	status, body := b.partOf(path)
	require.Equal(b.s.t, 200, status, body)
	return body
}

// partOf is part with the answer's status.
func (b browser) partOf(path string) (int, string) {
	b.s.t.Helper()
	req, err := http.NewRequestWithContext(b.s.t.Context(), http.MethodGet, b.s.url+path, nil)
	require.NoError(b.s.t, err)
	req.Header.Set("X-Part", "1")
	res, err := b.Do(req)
	require.NoError(b.s.t, err)
	return read(b.s.t, res)
}

// A page that updates itself requests only the part that changes.
func TestPartsOfPages(t *testing.T) {
	s := newFullSite(t)
	s.pipeline()
	b := s.as("alice")
	for path, holds := range map[string]string{
		"/web/jobs": "runs", "/web/jobs/test/6": "RUNNING|running", "/web/pipelines/alice/nightly": "1 of 4 steps completed",
	} {
		require.Regexp(t, holds, b.part(path), path)
		require.NotContains(t, b.part(path), "<html", path)
		_, whole := b.get(path)
		require.Regexp(t, holds, whole, path)
		require.Contains(t, whole, "<html", path)
	}
	status, body := b.partOf("/web/jobs/test/99")
	require.Equal(t, 404, status)
	require.Contains(t, body, "not known to Slurm")
	require.NotContains(t, body, "<html", "the page shows it where the part would be")
	status, _ = b.partOf("/web/jobs/test/6/nosuch")
	require.Equal(t, 404, status)
}

// first returns the first message of a stream.
func (b browser) first(path string) string {
	b.s.t.Helper()
	res, err := b.Get(b.s.url + path)
	require.NoError(b.s.t, err)
	defer res.Body.Close()
	text := make([]byte, 500)
	n, err := res.Body.Read(text)
	require.NoError(b.s.t, err)
	return string(text[:n])
}

// The stream of a pipeline's page sends each step's job and state; that of the list
// changes with a job.
func TestStreamsTellWhatTheirPageShows(t *testing.T) {
	s := newFullSite(t)
	s.pipeline()
	b := s.as("alice")
	require.Contains(t, b.first("/web/pipelines/alice/nightly/stream"), `"steps":["4701COMPLETED","4702FAILED","4703CANCELLED"]`)
	require.Contains(t, b.first("/web/pipelines/alice/weekly/stream"), `"problem":`)
	before := b.first("/web/jobs/stream?find=runs")
	require.Contains(t, before, `"rows":`)
	require.Equal(t, before, b.first("/web/jobs/stream?find=runs"))
	j := s.jobs.KnownJobs["6"]
	j.State = slurm.Completing
	s.jobs.KnownJobs["6"] = j
	require.NotEqual(t, before, b.first("/web/jobs/stream?find=runs"))
}

// An ended job is listed under all jobs and under ended ones, not under running ones.
func TestWhichJobsAStateShows(t *testing.T) {
	s := newSite(t)
	b := s.as("alice")
	for query, shows := range map[string]bool{"": true, "?state=ended": true, "?state=running": false, "?state=waiting": false} {
		_, body := b.get("/web/jobs" + query)
		require.Equal(t, shows, strings.Contains(body, ">gpt<"), query)
	}
}

// An accountlessSite has accounts that do not answer.
type accountlessSite struct{ *opstest.Site }

func (s accountlessSite) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	jobs, _ := s.Site.Jobs(ctx, f)
	if f.Since.IsZero() {
		return jobs, nil
	}
	return jobs, &slurm.AccountsError{Err: slurm.FromStderr("sacct", "sacct: error: Connection refused")}
}

// While the accounts are away, the page shows the queue and says what is missing.
func TestThePageOfJobsSaysThatTheAccountsAreAway(t *testing.T) {
	s := newSite(t)
	s.svc.Clusters["test"] = accountlessSite{s.jobs}
	b := s.as("alice")
	_, body := b.get("/web/jobs")
	require.Contains(t, body, "runs")
	require.Contains(t, body, "accounts do not answer")
	_, body = b.get("/web/jobs?state=running")
	require.NotContains(t, body, "accounts do not answer", "none of the running jobs is missing")
}

// Job asks the accounts for a job that has left the queue.
func (s accountlessSite) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	j, err := s.Site.Job(ctx, id)
	if err != nil || j.State.Ended() {
		return slurm.Job{}, &slurm.AccountsError{Err: slurm.FromStderr("sacct", "sacct: error: Connection refused")}
	}
	return j, nil
}

// While the accounts are away, an ended job that was submitted from here has its page, and each
// part of it shows what is known.
func TestAnEndedJobHasItsPageWhileTheAccountsAreAway(t *testing.T) {
	s := newSite(t)
	s.svc.Clusters["test"] = accountlessSite{s.jobs}
	b := s.as("alice")
	_, body := b.get("/web/jobs/test/7")
	require.Contains(t, body, "Connection refused", "a job that only the accounts know")
	st, err := s.svc.Store()
	require.NoError(t, err)
	require.NoError(t, st.Adopt(t.Context(), store.Submission{Key: "k", Token: "k", Cluster: "test", JobID: "7", Owner: "alice", Name: "gpt", Spec: []byte("{}"), CreatedAt: s.svc.Now().Add(-2 * time.Hour)}))
	_, body = b.get("/web/jobs/test/7")
	require.Contains(t, body, "how it ended is not known")
	_, body = b.get("/web/jobs/test/7/attempts")
	require.Contains(t, body, `href="/web/jobs/test/7"`)
	require.Contains(t, body, "accounts do not answer")
	require.Contains(t, body, `class="waits" x="0" width="5"`, "nobody saw it wait until now")
}

// A pending job shows its expected start, a running job its actual start, and each how its runs
// ended. An end is good only of a job that completed.
func TestAJobsLife(t *testing.T) {
	s := newSite(t)
	at := *s.jobs.KnownJobs["7"].EndedAt
	for state, tone := range map[slurm.State]string{slurm.Completed: "good", slurm.Timeout: "bad"} {
		j := s.jobs.KnownJobs["7"]
		j.ID, j.State, j.Requeues = "9", state, []slurm.State{slurm.NodeFail}
		s.jobs.KnownJobs["9"] = j
		_, body := s.as("alice").get("/web/jobs/test/9")
		require.Regexp(t, `<li class="`+tone+`"><time[^>]*>[^<]*</time> ended: `, body)
		require.Contains(t, body, "put back into the queue: node fail")
		require.Contains(t, body, at.Format("2006-01-02 15:04:05 UTC"))
	}
	expected := time.Date(2026, 11, 21, 12, 34, 0, 0, time.UTC)
	for id, waits := range map[slurm.JobID]bool{"5": true, "6": false, "7": false} {
		j := s.jobs.KnownJobs[id]
		j.EstStart = &expected
		s.jobs.KnownJobs[id] = j
		_, body := s.as("alice").get("/web/jobs/test/" + string(id))
		require.Equal(t, waits, strings.Contains(body, "expected to start"), id)
		require.Equal(t, id == "7", strings.Contains(body, "ended: failed"), id)
	}
}

// Users who are not signed in get a limited number of codes per hour, all together.
func TestCodesAreCounted(t *testing.T) {
	s := newSite(t, func(c *web.Config) {
		c.Proof = func(context.Context, string, time.Time) (account.User, error) { return account.User{}, fs.ErrNotExist }
	})
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s.svc.Now = func() time.Time { return now }
	code := regexp.MustCompile(`megatron-ops link \w+`)
	given := func() bool {
		_, body := s.browser().get("/web/login")
		if !code.MatchString(body) {
			require.Contains(t, body, "too many codes were requested in the last hour")
			return false
		}
		return true
	}
	for n := range 600 {
		require.True(t, given(), n)
	}
	require.False(t, given())
	now = now.Add(time.Hour)
	require.False(t, given())
	now = now.Add(time.Second)
	require.True(t, given())
}

// The fix of a job that failed is applied by a button; that of one which Slurm has put back into
// the queue by commands, since a job submitted by a button would run beside it.
func TestTheFixOfAJobIsAppliedOnce(t *testing.T) {
	s := newSite(t)
	st, err := s.svc.Store()
	require.NoError(t, err)
	one := 1
	args := strings.Fields("--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 " +
		"--micro-batch-size 4 --global-batch-size 64 --train-iters 100 --eval-interval 100 --lr 1e-4")
	raw, err := json.Marshal(job.Spec{Name: "gpt", Nodes: &one, GPU: "h100", Time: "1:00:00", Worktree: "/lustre/m", Args: args})
	require.NoError(t, err)
	at := *s.jobs.KnownJobs["7"].SubmittedAt
	require.NoError(t, st.Adopt(t.Context(), store.Submission{Key: "k", Token: "k", Cluster: "test", JobID: "7", Owner: "alice", Spec: raw, CreatedAt: at}))
	b := s.as("alice")
	_, body := b.get("/web/jobs/test/7/diagnosis")
	require.Contains(t, body, "Apply the fix and submit again")
	again := s.jobs.KnownJobs["7"]
	again.State, again.Reason, again.Restarts, again.EndedAt = slurm.Pending, "BeginTime", 1, nil
	s.jobs.Put(again)
	_, body = b.get("/web/jobs/test/7/diagnosis")
	require.Contains(t, body, "<code>megatron-ops cancel 7</code>")
	require.Contains(t, body, "<code>megatron-ops submit --from 7")
	require.NotContains(t, body, "Apply the fix and submit again")
}
