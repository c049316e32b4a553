package follow

import (
	"context"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
	"github.com/stretchr/testify/require"
)

// A queue is a cluster with the jobs that a test puts there. Its estimate is earlier
// for a job with a shorter time limit.
type queue struct {
	bench
	jobs   []slurm.Job
	asked  int  // how many requests were tried
	silent bool // it gives no estimates
}

func (q *queue) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	for _, j := range q.jobs {
		if j.ID == id {
			return j, nil
		}
	}
	return slurm.Job{}, slurm.ErrNotFound
}

func (q *queue) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) { return q.jobs, nil }

func (q *queue) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, nil }

func (q *queue) Test(_ context.Context, s slurm.Submission) (slurm.Estimate, error) {
	q.asked++
	start := time.Date(2026, 6, 11, 20, 0, 0, 0, time.UTC)
	switch {
	case q.silent:
		return slurm.Estimate{}, nil
	case len(s.Args) > 1:
		start = start.Add(-time.Hour)
	}
	return slurm.Estimate{Start: start}, nil
}

// newQueue returns a job on a cluster with a queue of other jobs. told collects the
// follower's news.
func newQueue(t *testing.T, spec string) (l *life, q *queue, told *[]News) {
	l, q, told = newLife(t), &queue{}, &[]News{}
	l.submitted(spec)
	l.f.Service.Clusters["bench"] = q
	l.f.live, l.f.asked = map[string]slurm.Job{}, map[string]time.Time{}
	l.f.Tell = func(_ context.Context, n News) error { *told = append(*told, n); return nil }
	return l, q, told
}

// A user is told once what a pending job could ask for to start sooner, and the
// scheduler is asked about it once an hour.
func TestAWaitingJobIsToldWhatStartsSooner(t *testing.T) {
	l, q, told := newQueue(t, `{}`)
	limit := int64(4 * 3600)
	sub, err := l.st.ByJob(t.Context(), "bench", "77")
	require.NoError(t, err)
	sub.Key, sub.Token, sub.JobID, sub.Script = "ada/bench/k2", "k2", "78", "#!/bin/bash\n#SBATCH --time=04:00:00\n"
	require.NoError(t, l.st.Adopt(t.Context(), sub))
	j := slurm.Job{ID: "78", Cluster: "bench", User: "ada", State: slurm.Pending, TimeLimitS: &limit}
	q.jobs = []slurm.Job{j}
	hint := func(reason string) bool {
		j.Reason = reason
		return l.f.hint(t.Context(), l.st, j)
	}
	for _, reason := range []string{"Dependency", "JobHeldUser", "BeginTime", ""} {
		require.False(t, hint(reason), reason)
	}
	require.Zero(t, q.asked)
	reused := time.Now().AddDate(0, 0, 2)
	j.SubmittedAt = &reused
	require.False(t, hint("Priority"), "another job that has its id")
	j.SubmittedAt = nil

	q.silent = true
	require.True(t, hint("Priority"))
	require.Empty(t, *told, "nothing would start it sooner")
	asked := q.asked
	q.silent = false
	require.False(t, hint("Priority"), "asked a moment ago")
	require.Equal(t, asked, q.asked)

	q.jobs = nil
	clear(l.f.asked)
	require.True(t, hint("Priority"), "a question without an answer is one, too")
	require.Empty(t, *told)
	q.jobs = []slurm.Job{j}

	l.f.asked[key("bench", "78")] = time.Now().Add(-hintInterval)
	require.True(t, hint("Resources"))
	require.Len(t, *told, 1)
	require.Contains(t, (*told)[0].Why.EN, "`update 78 --time 02:00")
	require.Contains(t, (*told)[0].Why.ZH, "`update 78 --time 02:00")
	clear(l.f.asked)
	require.False(t, hint("Resources"), "told once, also after a restart")
	require.Len(t, *told, 1)

	j.ID = "79"
	require.False(t, hint("Priority"), "it was not submitted here")
}

// The scheduler is asked about each pending job in turn, even if the watcher has not
// looked at it yet.
func TestThePatrolAsksAboutEachWaitingJob(t *testing.T) {
	l, q, _ := newQueue(t, `{}`)
	sub, err := l.st.ByJob(t.Context(), "bench", "77")
	require.NoError(t, err)
	w := watch.New(q, watch.Options{})
	l.f.Watchers, l.f.Interval = map[string]*watch.Watcher{"bench": w}, time.Millisecond
	turns := make(chan slurm.JobID, 10)
	l.f.Tell = func(_ context.Context, n News) error { turns <- n.Job.ID; return nil }
	for _, id := range []slurm.JobID{"81", "82"} {
		sub.Key, sub.Token, sub.JobID, sub.Script = "ada/bench/"+string(id), string(id), id, "#!/bin/bash\n#SBATCH --time=04:00:00\n"
		require.NoError(t, l.st.Adopt(t.Context(), sub))
		q.jobs = append(q.jobs, slurm.Job{ID: id, Cluster: "bench", User: "ada", State: slurm.Pending, Reason: "Priority", Partition: "prod"})
		l.f.live[key("bench", id)] = q.jobs[len(q.jobs)-1]
		w.Watch(slurm.Job{ID: id})
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { l.f.checkLoop(ctx, l.st); close(done) }()
	got := []slurm.JobID{<-turns, <-turns}
	stop()
	<-done
	require.ElementsMatch(t, []slurm.JobID{"81", "82"}, got)
}
