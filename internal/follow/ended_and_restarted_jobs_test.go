package follow

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// A job that the scheduler no longer knows is reported once, and then no longer
// followed.
func TestAJobThatNobodyKnowsIsLetGo(t *testing.T) {
	l, q, _ := newQueue(t, `{}`)
	w := watch.New(q, watch.Options{Interval: time.Millisecond, Forget: time.Millisecond})
	l.f.Watchers, l.f.Interval = map[string]*watch.Watcher{"bench": w}, time.Millisecond
	told := make(chan News, 10)
	l.f.Tell = func(_ context.Context, n News) error { told <- n; return nil }
	l.f.track(l.job)
	w.Watch(l.job)
	ctx, stop := context.WithCancel(t.Context())
	var under sync.WaitGroup
	sub := w.Subscribe()
	under.Go(func() { l.f.listen(ctx, l.st, sub) })
	under.Go(func() { w.Run(ctx) })
	require.Equal(t, slurm.ReasonUnsettled, (<-told).Job.Reason, "it has left the queue")
	n := <-told
	require.Contains(t, n.Why.EN, "how it ended is not known")
	require.Contains(t, n.Why.ZH, "结局未知")
	under.Go(func() { l.f.checkLoop(ctx, l.st) })
	require.Eventually(t, func() bool { l.f.mu.Lock(); defer l.f.mu.Unlock(); return len(l.f.live) == 0 }, time.Minute, time.Millisecond)
	stop()
	under.Wait()
	require.Empty(t, told)
}

// An end is reported and then recorded as reported; a second look at the same end
// reports nothing.
func TestAnEndIsToldOnce(t *testing.T) {
	l, _, told := newQueue(t, `{}`)
	end := l.job
	end.State = slurm.Completed
	for range 2 {
		l.f.handle(t.Context(), l.st, end)
		require.Len(t, *told, 1)
	}
}

// An end that could not be stored as news is told by the next start.
func TestAnEndThatWasNotToldIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, told := newQueue(t, `{}`)
		l.f.Log = slog.New(slog.DiscardHandler)
		tell := l.f.Tell
		end := l.job
		end.State = slurm.Completed
		l.f.Tell = func(context.Context, News) error { return errors.New("the database is starting up") }
		l.f.handle(t.Context(), l.st, end)
		l.f.Tell = tell
		l.f.handle(t.Context(), l.st, end)
		require.Len(t, *told, 1)
	})
}

// The queue shows an end before the accounts settle it. A server that is started later need
// not ask the accounts again for every job of the last day.
func TestAStartAsksForNoEndThatIsSettled(t *testing.T) {
	l, q, told := newQueue(t, `{}`)
	end, now := l.job, time.Now()
	end.State, end.EndedAt, end.Reason = slurm.Failed, &now, slurm.ReasonUnsettled
	l.f.handle(t.Context(), l.st, end)
	end.Reason = ""
	l.f.handle(t.Context(), l.st, end)
	require.Len(t, *told, 1)
	w := watch.New(q, watch.Options{})
	l.f.Watchers = map[string]*watch.Watcher{"bench": w}
	l.f.recallEnded(t.Context(), l.st)
	require.Empty(t, w.Watched())
}

// What else the news of a state say.
func TestWhatIsSaidOfAState(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	soon := at.Add(10 * time.Second)
	for name, tt := range map[string]struct {
		change func(*slurm.Job)
		says   func(News) bool
	}{
		"a failed job has a diagnosis":            {func(j *slurm.Job) { j.State = slurm.Failed }, func(n News) bool { return n.Report != nil }},
		"a cancelled one has none":                {func(j *slurm.Job) { j.State = slurm.Cancelled }, func(n News) bool { return n.Report == nil && n.Why == (lang.Text{}) }},
		"nor has one that ended well":             {func(j *slurm.Job) { j.State = slurm.Completed }, func(n News) bool { return n.Report == nil }},
		"a requeued one starts by itself":         {func(j *slurm.Job) { j.State, j.Requeues = slurm.Pending, []slurm.State{slurm.NodeFail} }, func(n News) bool { return n.Why.EN != "" && n.Why.ZH != "" }},
		"one of a chain that ended has queued it": {func(j *slurm.Job) { j.State, j.StartedAt = slurm.Completed, &at }, func(n News) bool { return n.Next == "80" }},
	} {
		l, q, told := newQueue(t, `{"name":"gpt","chain":2,"retry":{"max":3}}`)
		l.say("ValueError: the number is odd")
		require.NoError(t, os.WriteFile(l.job.Stdout, []byte(l.log.String()), 0o600))
		j := l.job
		tt.change(&j)
		next := slurm.Job{ID: "80", Cluster: "bench", Name: "gpt", User: "ada", WorkDir: l.job.WorkDir, SubmittedAt: &soon, Reason: "Dependency"}
		q.jobs = []slurm.Job{j, next}
		l.f.handle(t.Context(), l.st, j)
		require.NotEmpty(t, *told, name)
		require.True(t, tt.says((*told)[0]), "%s: %+v", name, *told)
	}
}

// Operators are told that a cluster is unavailable and that it is back, in messages of
// their own.
func TestAnOutageIsTold(t *testing.T) {
	l := newLife(t)
	at := time.Date(2026, 6, 11, 10, 30, 0, 0, time.UTC)
	for _, tt := range []struct {
		kind   watch.Kind
		en, zh string
	}{
		{watch.Unreachable, "bench does not answer since 10:30:00; jobs are looked after again as soon as it does", "集群 bench 自 10:30:00 起无响应；恢复后会继续跟踪作业"},
		{watch.Reachable, "bench answers again", "集群 bench 已恢复响应"},
	} {
		l.f.reportOutage(t.Context(), watch.Event{Kind: tt.kind, Cluster: "bench", At: at})
		told, err := l.f.Service.Notices(t.Context())
		require.NoError(t, err)
		var titles []lang.Text
		for _, n := range told {
			require.True(t, n.Operators)
			titles = append(titles, n.Title)
		}
		require.Contains(t, titles, lang.Text{EN: tt.en, ZH: tt.zh})
	}
}

// On start the follower takes up the running jobs of a watched cluster, and reports no
// old news.
func TestAStartTakesUpWhatStillRuns(t *testing.T) {
	l := newLife(t)
	w := watch.New(&queue{}, watch.Options{})
	l.f.Watchers, l.f.Interval = map[string]*watch.Watcher{"bench": w}, time.Millisecond
	l.f.live, l.f.asked = map[string]slurm.Job{}, map[string]time.Time{}
	for _, s := range []store.Submission{
		{Key: "ended", Cluster: "bench", JobID: "70"},
		{Key: "with the id of a job that ended before", Cluster: "bench", JobID: "69"},
		{Key: "elsewhere", Cluster: "gone", JobID: "71"},
		{Key: "running", Cluster: "bench", JobID: "72"},
		{Key: "new", Cluster: "bench", JobID: "73"},
		{Key: "old", Cluster: "bench", JobID: "74", CreatedAt: time.Now().Add(-lookback - time.Hour)},
	} {
		s.Owner, s.Token, s.Spec = "ada", s.Key, []byte(`{}`)
		if s.CreatedAt.IsZero() {
			s.CreatedAt = time.Now()
		}
		require.NoError(t, l.st.Adopt(t.Context(), s))
	}
	for id, state := range map[slurm.JobID]slurm.State{"70": slurm.Completed, "72": slurm.Running} {
		require.NoError(t, l.st.Slack().Put(t.Context(), followedDocs, key("bench", id), slurm.Job{ID: id, State: state}, time.Now().Add(lookback)))
	}
	before := time.Now().Add(-time.Hour)
	earlier := slurm.Job{ID: "69", State: slurm.Failed, EndedAt: &before}
	require.NoError(t, l.st.Slack().Put(t.Context(), followedDocs, key("bench", "69"), earlier, time.Now().Add(lookback)))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { l.f.watchSubmissions(ctx, l.st); close(done) }()
	require.Eventually(t, func() bool { return len(w.Watched()) >= 3 }, time.Minute, time.Millisecond)
	// Another server's clock is behind.
	late := store.Submission{Key: "late", Token: "late", Cluster: "bench", JobID: "75", Owner: "ada", Spec: []byte(`{}`), CreatedAt: time.Now().Add(-5 * time.Minute)}
	require.NoError(t, l.st.Adopt(t.Context(), late))
	require.Eventually(t, func() bool { return len(w.Watched()) >= 4 }, time.Minute, time.Millisecond)
	watched := func() (ids []slurm.JobID) {
		for _, j := range w.Watched() {
			ids = append(ids, j.ID)
		}
		return ids
	}
	require.Equal(t, []slurm.JobID{"69", "72", "73", "75"}, watched())

	w.Clear()
	next := late
	next.Key, next.Token, next.JobID = "next", "next", "76"
	require.NoError(t, l.st.Adopt(t.Context(), next))
	require.Eventually(t, func() bool { return len(w.Watched()) > 0 }, time.Minute, time.Millisecond)
	stop()
	<-done
	require.Equal(t, []slurm.JobID{"76"}, watched(), "a job that was let go is not followed again")
}

// What the follower misses while its store fails is in the log.
func TestAStoreThatFailsIsLogged(t *testing.T) {
	l := newLife(t)
	lines, wrote := io.Pipe()
	l.f.Log, l.f.Interval = slog.New(slog.NewTextHandler(wrote, nil)), time.Hour
	require.NoError(t, l.st.Close())
	go l.f.watchSubmissions(t.Context(), l.st)
	read := bufio.NewScanner(lines)
	for _, missed := range []string{"what was begun and not answered could not be looked for", "jobs that have ended could not be read", "submissions could not be read"} {
		require.True(t, read.Scan())
		require.Contains(t, read.Text(), missed)
	}
}

// A job that has ended, submitted here or not, is followed again after a start if somebody has
// requeued it, so that its next failure is diagnosed and told.
func TestAJobThatIsRequeuedWhileNoServerRunsIsFollowedAgain(t *testing.T) {
	l, q, told := newQueue(t, `{}`)
	w := watch.New(q, watch.Options{Interval: time.Millisecond, Floor: time.Millisecond})
	l.f.Watchers, l.f.Interval = map[string]*watch.Watcher{"bench": w}, time.Millisecond
	end, now := l.job, time.Now()
	end.State, end.EndedAt = slurm.Failed, &now
	other := end
	other.ID = "78"
	for _, j := range []slurm.Job{end, other} {
		l.f.handle(t.Context(), l.st, j)
	}
	require.Len(t, *told, 2)

	again, beside := l.job, l.job
	beside.ID = other.ID
	q.jobs = []slurm.Job{again, beside}
	news := make(chan News, 10)
	l.f.Tell = func(_ context.Context, n News) error { news <- n; return nil }
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, run := range []func(){func() { w.Run(ctx) }, func() { _ = l.f.Run(ctx) }} {
		wg.Go(run)
	}
	ids := []slurm.JobID{}
	for range 2 {
		n := <-news
		ids = append(ids, n.Job.ID)
		require.Equal(t, slurm.Running, n.Job.State)
		require.Equal(t, 1, n.Job.Restarts, "the news of this run is not that of the run before")
	}
	stop()
	wg.Wait()
	require.ElementsMatch(t, []slurm.JobID{"77", "78"}, ids)
}
