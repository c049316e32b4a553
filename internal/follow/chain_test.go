package follow

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// TestAChainIsOneRunOnSlurm follows a chain of three jobs, each of which submits the
// next: each is reported with its own diagnosis and the next one is followed, even
// though the follower is stopped for a while.
func TestAChainIsOneRunOnSlurm(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{Conf: "# chains\n"})
	alice := opstest.As(t, real, "alice")
	tree := filepath.Join(real.Work, "chained")
	require.NoError(t, os.MkdirAll(tree, 0o777))
	require.NoError(t, os.Chmod(tree, 0o777)) //nolint:gosec // alice's jobs write there
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.sh"), []byte("echo >&2 'ModuleNotFoundError: No module named \"apex\"'\nsleep 6\nexit 1\n"), 0o755))
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	o := watch.Options{Interval: time.Second, Floor: 500 * time.Millisecond, Window: time.Second}
	shared := watch.NewShared(alice, o)
	call := &ops.Call{
		Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"real": alice}, Default: "real", Now: time.Now, Self: "alice",
			Store: func() (*store.Store, error) { return st, nil }, Views: map[string]ops.View{"real": shared},
		},
		Who: ops.Caller{Surface: ops.Shell, ID: "alice", User: "alice"},
	}
	var mu sync.Mutex
	var news []News
	follow := func() (stop func()) {
		w := watch.New(shared, o)
		f := &Follower{
			Service: call.Service, Log: slog.New(slog.DiscardHandler), Interval: time.Second, Watchers: map[string]*watch.Watcher{"real": w},
			Tell: func(_ context.Context, n News) error {
				mu.Lock()
				defer mu.Unlock()
				news = append(news, n)
				return nil
			},
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 2)
		go func() { w.Run(ctx); done <- nil }()
		go func() { done <- f.Run(ctx) }()
		return func() { cancel(); <-done; <-done }
	}
	stop := follow()
	t.Cleanup(func() {
		_, _ = real.Run(context.Background(), "scancel", "--user=alice")
		stop()
		st.Close()
	})
	// Other jobs of the same name and folder exist besides this one.
	_, err = real.RunAs(t.Context(), "alice", "sbatch", "--job-name=long", "--chdir="+tree, "--output=/dev/null", "--hold", "--wrap=true")
	require.NoError(t, err)
	none, no, three := 0, false, 3
	op, _ := operations.Lookup("submit")
	out, err := op.Run(t.Context(), call, &launch.SubmitIn{Yes: true, Force: true, SpecIn: launch.SpecIn{Spec: job.Spec{
		Name: "long", Worktree: tree, GPUsPerNode: &none, Guards: &no, Launcher: job.Custom, LauncherArgv: []string{"bash"}, Script: "train.sh",
		Partition: "prod", Time: "5", Chain: &three,
	}}})
	require.NoError(t, err)
	ids := []slurm.JobID{*out.(launch.SubmitOut).JobID}

	find := func(what string, is func(News) bool) News {
		t.Helper()
		var found News
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			i := slices.IndexFunc(news, is)
			if i >= 0 {
				found = news[i]
			}
			return i >= 0
		}, 60*time.Second, 100*time.Millisecond, what)
		return found
	}
	for n := 1; n <= 3; n++ {
		id := ids[n-1]
		if n < 3 {
			next := find("the next job", func(x News) bool { return x.Job.ID == id && x.Next != "" })
			ids = append(ids, next.Next)
			require.Contains(t, next.Why.EN, "of the chain's 3 is queued as "+string(next.Next))
			require.Contains(t, next.Why.ZH, string(next.Next))
			require.Contains(t, next.Why.EN, "logs/long.stop")
		}
		if n == 2 {
			// The follower is stopped while this job ends and the last one starts.
			stop()
			require.Eventually(t, func() bool {
				j, err := alice.Job(t.Context(), ids[2])
				return err == nil && j.State == slurm.Running
			}, 60*time.Second, 100*time.Millisecond)
			stop = follow()
		}
		end := find("its end", func(x News) bool { return x.Job.ID == id && x.Job.State.Ended() })
		require.Equal(t, slurm.Failed, end.Job.State)
		require.NotNil(t, end.Report, "job %d of the chain", n)
		require.Contains(t, end.Report.RootLine, "apex")
	}
	// The report of a later job's end shows that the follower has looked at the others
	// again.
	out, err = op.Run(t.Context(), call, &launch.SubmitIn{Yes: true, Force: true, SpecIn: launch.SpecIn{Spec: job.Spec{
		Name: "later", Worktree: tree, GPUsPerNode: &none, Guards: &no, Launcher: job.Custom, LauncherArgv: []string{"true"}, Script: "train.sh",
		Partition: "prod", Time: "5",
	}}})
	require.NoError(t, err)
	after := *out.(launch.SubmitOut).JobID
	find("the end of a later job", func(x News) bool { return x.Job.ID == after && x.Job.State.Ended() })
	told := map[string]int{}
	mu.Lock()
	for _, x := range news {
		if x.Next != "" {
			told["next of "+string(x.Job.ID)]++
		} else if x.Job.State.Ended() {
			told["end of "+string(x.Job.ID)]++
		}
	}
	mu.Unlock()
	require.Equal(t, map[string]int{
		"next of " + string(ids[0]): 1, "next of " + string(ids[1]): 1,
		"end of " + string(ids[0]): 1, "end of " + string(ids[1]): 1, "end of " + string(ids[2]): 1, "end of " + string(after): 1,
	}, told)
	subs, err := st.Submissions(t.Context(), "alice", "long", 10)
	require.NoError(t, err)
	require.Len(t, subs, 3)
	// Sending the same request again returns the first job.
	out, err = op.Run(t.Context(), call, &launch.SubmitIn{Yes: true, Force: true, IdempotencyKey: strings.TrimPrefix(subs[2].Key, "alice/real/"), SpecIn: launch.SpecIn{Spec: job.Spec{
		Name: "long", Worktree: tree, GPUsPerNode: &none, Guards: &no, Launcher: job.Custom, LauncherArgv: []string{"bash"}, Script: "train.sh",
		Partition: "prod", Time: "5", Chain: &three,
	}}})
	require.NoError(t, err)
	require.Equal(t, ids[0], *out.(launch.SubmitOut).JobID)
}

func TestTheNextJobOfAChainIsKnown(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	after := func(d time.Duration) *time.Time { u := at.Add(d); return &u }
	j := slurm.Job{ID: "10", User: "alice", WorkDir: "/w", Name: "long-token", StartedAt: &at}
	next := slurm.Job{ID: "11", User: "alice", WorkDir: "/w", Name: "long", SubmittedAt: after(2 * time.Second), Reason: "Priority"}
	s := job.Spec{Name: "long"}
	require.True(t, isQueuedBy(next, j, s))
	for name, change := range map[string]func(*slurm.Job){
		"another's":                    func(n *slurm.Job) { n.User = "bob" },
		"another name":                 func(n *slurm.Job) { n.Name = "longer" },
		"another folder":               func(n *slurm.Job) { n.WorkDir = "/v" },
		"an earlier number":            func(n *slurm.Job) { n.ID = "9" },
		"an array's":                   func(n *slurm.Job) { n.ID = "11_1" },
		"queued before it began":       func(n *slurm.Job) { n.SubmittedAt = after(-time.Second) },
		"queued much later":            func(n *slurm.Job) { n.SubmittedAt = after(time.Hour) },
		"one of our own":               func(n *slurm.Job) { n.Comment = slurm.TagComment("", "abc") },
		"of which the time is unknown": func(n *slurm.Job) { n.SubmittedAt = nil },
	} {
		n := next
		change(&n)
		require.False(t, isQueuedBy(n, j, s), name)
	}
	waits := next
	waits.SubmittedAt, waits.Reason = after(time.Hour), "Dependency"
	require.True(t, isQueuedBy(waits, j, s), "it waits for a job's end")
}

// The job that a chain's job submits is reported once, and followed as the next job of
// the chain.
func TestAChainsNextJobIsTakenUp(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	soon := at.Add(10 * time.Second)
	l, q, told := newQueue(t, `{"name":"gpt","chain":2}`)
	l.job.StartedAt = &at
	next := slurm.Job{ID: "80", Cluster: "bench", Name: "gpt", User: "ada", WorkDir: l.job.WorkDir, SubmittedAt: &soon, Reason: "Dependency"}
	l.f.adoptNext(t.Context(), l.st, l.job)
	require.Empty(t, *told, "it has queued none")
	stranger := next
	stranger.ID, stranger.User = "79", "ben"
	q.jobs = []slurm.Job{stranger, next}
	for range 2 {
		l.f.adoptNext(t.Context(), l.st, l.job)
	}
	require.Len(t, *told, 1)
	require.Equal(t, slurm.JobID("80"), (*told)[0].Next)
	require.Contains(t, (*told)[0].Why.EN, "job 2 of the chain's 2")
	sub, err := l.st.ByJob(t.Context(), "bench", "80")
	require.NoError(t, err)
	require.Equal(t, "ada", sub.Owner)
	third := next
	third.ID = "82"
	q.jobs = append(q.jobs, third)
	l.f.adoptNext(t.Context(), l.st, l.job)
	require.Len(t, *told, 1, "the job after the next is not a second next one")
	next.StartedAt = &at
	l.f.adoptNext(t.Context(), l.st, next)
	require.Len(t, *told, 1, "the last job of a chain has no next job, whatever else is in the queue")

	// A job that was submitted here is nobody's next job.
	l, q, told = newQueue(t, `{"name":"gpt","chain":2}`)
	l.job.StartedAt, next.WorkDir = &at, l.job.WorkDir
	q.jobs = []slurm.Job{next}
	require.NoError(t, l.st.Adopt(t.Context(), store.Submission{Key: "own", Token: "own", Cluster: "bench", JobID: "80", Owner: "ada", Spec: []byte(`{}`), CreatedAt: at}))
	l.f.adoptNext(t.Context(), l.st, l.job)
	require.Empty(t, *told)
}

// The jobs of a chain queue one another, whatever the specification says of retries.
func TestAJobOfAChainIsNotTriedAgain(t *testing.T) {
	l, _, _ := newQueue(t, `{"chain":3,"retry":{"max":3}}`)
	n := News{Job: l.job, Report: &report.Report{Class: outcome.NCCLIB, RootLine: "port 1 of mlx5_0 is down", Retry: true}}
	l.f.recover(t.Context(), l.st, &n)
	require.Empty(t, n.Next)
	require.Empty(t, n.Why)
}
