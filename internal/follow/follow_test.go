package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary replace srun and related commands of the embedded
// back end.
func TestMain(m *testing.M) {
	if code, ok := local.Standin(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// A followedCluster is an embedded back end with a Follower.
type followedCluster struct {
	t    *testing.T
	call *ops.Call
	f    *Follower
	st   *store.Store
	tree string
	mu   sync.Mutex
	news []News
}

func followCluster(t *testing.T, uv string) *followedCluster {
	me, err := user.Current()
	require.NoError(t, err)
	dir := slurmtest.Dir(t)
	y := &followedCluster{t: t, tree: filepath.Join(dir, "tree")}
	require.NoError(t, os.MkdirAll(filepath.Join(y.tree, ".venv"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "uv"), []byte("#!/bin/sh\n"+uv), 0o755))
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	st, err := store.Open(t.Context(), filepath.Join(dir, "state.db"))
	require.NoError(t, err)
	cluster := local.New("local", filepath.Join(dir, "local"))
	y.call = &ops.Call{
		Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"local": cluster}, Default: "local",
			Now: time.Now, Store: func() (*store.Store, error) { return st, nil }, Self: me.Username,
			Failures: &ops.FailureReports{},
		},
		Who: ops.Caller{Surface: ops.Shell, ID: me.Username, User: me.Username},
	}
	w := watch.New(cluster, watch.Options{Interval: 200 * time.Millisecond, Floor: 200 * time.Millisecond})
	f := &Follower{
		Service: y.call.Service, Log: calmLog(t), Interval: 200 * time.Millisecond, stable: 500 * time.Millisecond,
		Watchers: map[string]*watch.Watcher{"local": w},
		Tell: func(_ context.Context, n News) error {
			y.mu.Lock()
			defer y.mu.Unlock()
			y.news = append(y.news, n)
			return nil
		},
	}
	y.f, y.st = f, st
	ctx, stop := context.WithCancel(context.Background())
	go w.Run(ctx)
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
		st.Close()
	})
	return y
}

func (y *followedCluster) submit(s job.Spec) slurm.JobID {
	y.t.Helper()
	none, time := 0, "10:00"
	s.Worktree, s.Script, s.GPUsPerNode, s.Name = y.tree, "train.py", &none, "run"
	s.Time = cmp.Or(s.Time, time)
	op, _ := operations.Lookup("submit")
	out, err := op.Run(y.t.Context(), y.call, &launch.SubmitIn{SpecIn: launch.SpecIn{Spec: s}, Yes: true, Force: true})
	require.NoError(y.t, err)
	require.NotNil(y.t, out.(launch.SubmitOut).JobID)
	return *out.(launch.SubmitOut).JobID
}

// A calm is a log that fails the test at a failure without an error.
type calm struct {
	slog.Handler
	t *testing.T
}

func calmLog(t *testing.T) *slog.Logger { return slog.New(calm{slog.DiscardHandler, t}) }

func (c calm) Enabled(context.Context, slog.Level) bool { return true }

func (c calm) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" && a.Value.Any() == nil {
			c.t.Errorf("nothing has failed, and the log says: %s", r.Message)
		}
		return true
	})
	return nil
}

// until waits for news for which fits returns true, and returns it.
func (y *followedCluster) until(what string, fits func(News) bool) News {
	y.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		y.mu.Lock()
		for _, n := range y.news {
			if fits(n) {
				y.mu.Unlock()
				return n
			}
		}
		y.mu.Unlock()
		time.Sleep(50 * time.Millisecond)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.t.Fatalf("nothing was told of %s; told was %+v", what, y.news)
	return News{}
}

func TestAFailureIsDiagnosedAndTriedAgainOnce(t *testing.T) {
	y := followCluster(t, `echo 'Traceback (most recent call last):
  File "/m/train.py", line 3, in <module>
    fail()
ValueError: the number is odd' >&2
exit 1
`)
	two := 2
	first := y.submit(job.Spec{Retry: job.Retry{Max: &two, On: []string{"user_exception"}}})
	n := y.until("the first failure", func(n News) bool { return n.Job.ID == first && n.Report != nil })
	require.Equal(t, slurm.Failed, n.Job.State)
	require.Equal(t, "user_exception", n.Report.Class)
	told, err := joblogs.DiagnoseFailure(t.Context(), &ops.Call{Service: &ops.Service{Now: time.Now, Failures: y.call.Failures}}, n.Job)
	require.NoError(t, err, "whoever else tells of it needs no cluster")
	require.Equal(t, *n.Report, told.Report)
	require.NotEmpty(t, n.Next, "%v", n.Why)
	require.Contains(t, n.Why.EN, "retry 1 of 2")

	// The retry waits in the queue, visibly, until its start time.
	j, err := y.call.Clusters["local"].Job(t.Context(), n.Next)
	require.NoError(t, err)
	require.Equal(t, slurm.Pending, j.State)
}

func TestNoRetryThatNobodyAskedFor(t *testing.T) {
	y := followCluster(t, "exit 3\n")
	id := y.submit(job.Spec{})
	n := y.until("the failure", func(n News) bool { return n.Job.ID == id && n.Report != nil })
	require.Empty(t, n.Next)
	require.Empty(t, n.Why.EN)
}

func TestNodesAreGivenBackOnceTheResultIsThere(t *testing.T) {
	y := followCluster(t, `mkdir -p results; echo '{"done": true}' > results/metrics.json; exec sleep 60
`)
	yes := true
	id := y.submit(job.Spec{Artifact: job.Artifact{Path: "results/metrics.json", Cancel: &yes}})
	y.until("the end", func(n News) bool { return n.Job.ID == id && n.Job.State == slurm.Cancelled })
	n := y.until("why it was ended", func(n News) bool { return n.Job.ID == id && n.Why.EN != "" })
	require.Equal(t, "results/metrics.json is there: the nodes were given back, which saves up to 0.0 GPU hours", n.Why.EN)
}

func TestRetriesEnd(t *testing.T) {
	require.Equal(t, []int{1, 2, 4, 60}, []int{delayMinutes(0), delayMinutes(1), delayMinutes(2), delayMinutes(30)})
	require.Equal(t, withoutDigits("rank 3 at 10.1.2.3: lost"), withoutDigits("rank 17 at 10.1.2.44: lost"))
	lineage, attempt := lineageOf(store.Submission{Key: "me/local/abc/retry-2", Owner: "me", Cluster: "local"})
	require.Equal(t, "abc", lineage)
	require.Equal(t, 2, attempt)
	require.Equal(t, 3, job.Retry{On: []string{"hang"}}.Limit())
	require.Equal(t, 2, job.Retry{Max: new(2)}.Limit())
	require.Equal(t, 20, job.Retry{Max: new(100)}.Limit(), "no job is tried for ever")
	require.Zero(t, job.Retry{}.Limit(), "nobody asked for any")
	require.Equal(t, "gpu[1-3]", excluding(job.Spec{Exclude: "gpu[1-2]"}, []string{"gpu3", "gpu1"}).Exclude)
}

func TestARetryGoesOnFromTheLastCheckpoint(t *testing.T) {
	y := followCluster(t, `mkdir -p ckpt/iter_0000120; touch ckpt/iter_0000120/metadata.json; echo 120 > ckpt/latest_checkpointed_iteration.txt
echo 'Traceback (most recent call last):
  File "/m/train.py", line 3, in <module>
    fail()
ValueError: the number is odd' >&2
exit 1
`)
	first := y.submit(job.Spec{
		Retry: job.Retry{On: []string{"user_exception"}},
		Args:  []string{"--finetune", "--load", "/base", "--save", "ckpt", "--seq-length", "1024"},
	})
	n := y.until("the first failure", func(n News) bool { return n.Job.ID == first && n.Report != nil })
	require.NotEmpty(t, n.Next, "%v", n.Why)
	require.Contains(t, n.Why.EN, "retry 1 of 3")
	require.Contains(t, n.Why.EN, "from the checkpoint of iteration 120")
	require.Contains(t, n.Why.ZH, "第 120 次迭代")
	require.Contains(t, n.Why.EN, "cancel "+string(n.Next))
	st, err := y.call.Store()
	require.NoError(t, err)
	sub, err := st.ByJob(t.Context(), "local", n.Next)
	require.NoError(t, err)
	require.Contains(t, sub.Script, "--load ckpt")
	require.NotContains(t, sub.Script, "/base")
	require.NotContains(t, sub.Script, "--finetune")
}

func TestABlamedNodeIsReportedOnceAndLeftOut(t *testing.T) {
	y := followCluster(t, `echo "[rank3]: NVRM: Xid (PCI:0000:4e:00): 79, pid=2201, GPU has fallen off the bus." >&2
echo "gpu07: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered" >&2
exit 1
`)
	st, err := y.call.Store()
	require.NoError(t, err)
	f := &Follower{Service: y.call.Service, Log: slog.New(slog.DiscardHandler)}
	ended := time.Now()
	for i, id := range []slurm.JobID{"41", "42"} {
		ended := ended.Add(time.Duration(i) * time.Minute)
		n := News{
			Job:    slurm.Job{ID: id, Cluster: "local", Name: "gpt", User: "ada", State: slurm.Failed, EndedAt: &ended},
			Report: &report.Report{Class: outcome.GPUHardware, ExcludeNodes: []string{"gpu07"}, RootLine: "Xid 79", RootFile: "rank3.log"},
		}
		f.blameNodes(t.Context(), st, &n)
		told, err := y.call.Notices(t.Context())
		require.NoError(t, err)
		require.Len(t, told, 1, "once in a window, at failure %d", i)
		require.True(t, told[0].Operators)
		require.Contains(t, told[0].Title.EN, "gpu07")
		for _, says := range []string{told[0].Text.EN, told[0].Text.ZH} {
			require.Contains(t, says, "41")
			require.Contains(t, says, "Xid 79")
			require.Contains(t, says, "nodecheck gpu07")
		}
	}
	blames := fleet.BlamesOf(t.Context(), y.call.Service, "local", "gpu07")
	require.Len(t, blames, 2)
	require.True(t, slices.ContainsFunc(blames, func(b fleet.Blame) bool { return b.At.Equal(ended.Add(time.Minute)) }), "when the job ended, not when it was diagnosed")
	list, err := fleet.AvoidedNodes(t.Context(), y.call.Service, "local", y.call.Who.User)
	require.NoError(t, err)
	require.Equal(t, "gpu07", list[0].Node)

	// A retry excludes the bad node, and uses a spare one if the job names its nodes.
	require.NoError(
		t,
		fleet.PutAvoided(t.Context(), y.call.Service, "local", fleet.Avoided{Node: "gpu09", Spare: true, Owner: y.call.Who.User, Until: ended.Add(time.Hour)}),
	)
	s, left, unwanted, taken := f.avoidNodes(t.Context(), y.call, job.Spec{Cluster: "local", Nodelist: "gpu[07-08]"}, nil)
	require.Equal(t, "gpu[08-09]", s.Nodelist)
	require.Equal(t, []string{"gpu07"}, left)
	require.Equal(t, []string{"gpu09"}, taken)
	require.Empty(t, unwanted, "a diagnosis put it on the list")
	require.NoError(t, fleet.PutAvoided(t.Context(), y.call.Service, "local", fleet.Avoided{Node: "gpu08", Owner: y.call.Who.User, Until: ended.Add(time.Hour)}))
	_, _, unwanted, _ = f.avoidNodes(t.Context(), y.call, job.Spec{Cluster: "local"}, nil)
	require.Equal(t, []string{"gpu08"}, unwanted, "a person did")
	require.NoError(t, fleet.PutAvoided(t.Context(), y.call.Service, "local", fleet.Avoided{Node: "gpu08", Owner: y.call.Who.User, Until: ended}))
	_, left, _, _ = f.avoidNodes(t.Context(), y.call, job.Spec{Cluster: "local"}, []string{"gpu07"})
	require.Equal(t, []string{"gpu07"}, left, "named once, though it is blamed now and on the list")

	// The entry expires, or is removed.
	later := *y.call.Service
	later.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	list, err = fleet.AvoidedNodes(t.Context(), &later, "local", y.call.Who.User)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestTheSameCauseTwiceEndsIt(t *testing.T) {
	y := followCluster(t, "exit 0\n")
	st, err := y.call.Store()
	require.NoError(t, err)
	f := &Follower{Service: y.call.Service, Log: slog.New(slog.DiscardHandler)}
	jobs := 0
	same := func(lineage, class, line, iteration string) bool {
		jobs++
		id := slurm.JobID(fmt.Sprint(jobs))
		again, err := f.sameCause(t.Context(), st, lineage, id, report.Report{Class: class, RootLine: line}, iteration)
		require.NoError(t, err)
		return again
	}
	require.False(t, same("a", outcome.NCCLTimeout, "rank 3 waited 600 s", "100"))
	require.False(t, same("a", outcome.NCCLIB, "rank 3 waited 600 s", "100"), "another class")
	require.False(t, same("a", outcome.NCCLIB, "port 1 of mlx5_0 is down", "100"), "another line")
	require.True(t, same("a", outcome.NCCLIB, "port 2 of mlx5_3 is down", "200"), "numbers aside it is the same")
	require.False(t, same("b", outcome.NCCLIB, "port 2 of mlx5_3 is down", "200"), "another run's")
	require.False(t, same("c", outcome.SlurmTimeLimit, "DUE TO TIME LIMIT", "100"))
	require.False(t, same("c", outcome.SlurmTimeLimit, "DUE TO TIME LIMIT", "200"), "it came further")
	require.True(t, same("c", outcome.SlurmTimeLimit, "DUE TO TIME LIMIT", "200"), "it did not")
	jobs--
	require.True(t, same("c", outcome.NCCLIB, "asked again after a crash", ""), "the same job has the same answer")
}

// News that cannot be stored is reported again. Only stored news counts as reported, and
// nothing is reported once the follower is stopped: the next start does so.
func TestNewsIsToldUntilItIsWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := 3
		f := &Follower{Log: slog.New(slog.DiscardHandler), Tell: func(context.Context, News) error {
			if away--; away >= 0 {
				return errors.New("the database is starting up")
			}
			return nil
		}}
		require.True(t, f.tell(t.Context(), News{}))
		require.Equal(t, -1, away)
		away = 1000
		require.False(t, f.tell(t.Context(), News{}), "which the next start tells")
		over, stop := context.WithCancel(t.Context())
		stop()
		away = 0
		require.False(t, f.tell(over, News{}), "its diagnosis may have been cut off")
		require.Zero(t, away)
		away = 1000
		ends, stop := context.WithTimeout(t.Context(), 2*time.Second)
		defer stop()
		require.False(t, f.tell(ends, News{}), "stopped between two tries")
	})
}
