package follow

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Whether a failure is retried is decided by the policy first, then by the failure
// class.
func TestWhetherAJobIsTriedAgain(t *testing.T) {
	t.Parallel()
	num := func(n int) *int { return &n }
	on := []string{"oom"}
	for _, tt := range []struct {
		policy  job.Retry
		report  report.Report
		attempt int
		why     string // "" where it is tried again
	}{
		{job.Retry{Max: num(2)}, report.Report{Class: "link", Retry: true}, 0, ""},
		{job.Retry{Max: num(2)}, report.Report{Class: "link", Retry: true}, 1, ""},
		{job.Retry{Max: num(2)}, report.Report{Class: "link", Retry: true}, 2, "not submitted again: 2 retries are used up"},
		{job.Retry{Max: num(2)}, report.Report{Class: "oom"}, 0, "not submitted again: oom would come back unchanged"},
		{job.Retry{Max: num(2), On: on}, report.Report{Class: "oom"}, 0, ""},
		{job.Retry{Max: num(2), On: on}, report.Report{Class: "link", Retry: true}, 0, "not submitted again: link is not among retry.on"},
		{job.Retry{On: on}, report.Report{Class: "oom"}, 2, ""},
		{job.Retry{On: on}, report.Report{Class: "oom"}, 3, "not submitted again: 3 retries are used up"},
		{job.Retry{Max: num(99)}, report.Report{Retry: true}, 19, ""},
		{job.Retry{Max: num(99)}, report.Report{Retry: true}, 20, "not submitted again: 20 retries are used up"},
		{job.Retry{}, report.Report{Retry: true}, 0, "not submitted again: 0 retries are used up"},
	} {
		may, why := mayRetry(tt.policy, tt.report, tt.attempt)
		require.Equal(t, tt.why, why.EN)
		require.Equal(t, tt.why == "", may, tt.why)
		require.Equal(t, may, why.ZH == "")
	}
	var waits []int
	for attempt := range 8 {
		waits = append(waits, delayMinutes(attempt))
	}
	require.Equal(t, []int{1, 2, 4, 8, 16, 32, 60, 60}, waits)
	for class, on := range map[string]bool{outcome.SlurmTimeLimit: true, outcome.SlurmPreempted: true, "oom": false} {
		require.Equal(t, on, interrupted(class), class)
	}
}

// A retry and a job of a chain know the submission that they come from.
func TestWhatASubmissionComesFrom(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, lineage string
		attempt      int
	}{
		{"ada/prod/nightly", "nightly", 0}, {"ada/prod/nightly" + joblogs.RetryMark + "2", "nightly", 2}, {"ben/prod/x", "ben/prod/x", 0},
	} {
		lineage, attempt := lineageOf(store.Submission{Key: tt.key, Owner: "ada", Cluster: "prod"})
		require.Equal(t, tt.lineage, lineage)
		require.Equal(t, tt.attempt, attempt)
	}
	for key, want := range map[string]int{"a": 1, "a" + chainMark + "3": 3} {
		first, n := linkOf(store.Submission{Key: key})
		require.Equal(t, "a", first)
		require.Equal(t, want, n)
	}
	who := owner(store.Submission{Owner: "ada", AskedBy: "slack:T1/U1"})
	require.Equal(t, []string{"ada", "slack:T1/U1"}, []string{who.User, who.ID}, "whose job it is, and who asked")
	require.True(t, (&Follower{}).reader().Who.ReadOnly, "whoever only reads for news may change nothing")
	says := chainText("12", 2, 5, job.Spec{Name: "gpt", LogDir: "out"})
	require.Equal(t, "job 2 of the chain's 5 is queued as 12; `touch out/gpt.stop` ends the chain", says.EN)
	require.Contains(t, says.ZH, "第 2 个作业（共 5 个）已排队为 12")
}

// Spare nodes replace bad ones if a job names its nodes, but no more of them than
// needed.
func TestWhichNodesARetryHas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		nodelist, exclude    string
		bad, spares          []string
		wantList, wantExcept string
		taken                []string
	}{
		{"", "", []string{"gpu2"}, []string{"gpu9"}, "", "gpu2", nil},
		{"gpu[1-3]", "", []string{"gpu2"}, []string{"gpu2", "gpu8", "gpu9"}, "gpu[1,3,8]", "gpu2", []string{"gpu8"}},
		{"gpu[1-3]", "", []string{"gpu1", "gpu2"}, []string{"gpu3", "gpu9"}, "gpu[3,9]", "gpu[1-2]", []string{"gpu9"}},
		{"gpu[1-3]", "gpu[5,7]", nil, []string{"gpu9"}, "gpu[1-3]", "gpu[5,7]", nil},
		{"", "gpu[5,7]", []string{"gpu6", "gpu5"}, nil, "", "gpu[5-7]", nil},
		{"gpu[1", "gpu[", []string{"gpu1"}, []string{"gpu9"}, "gpu[1", "gpu1", nil},
	} {
		s, taken := withSpares(job.Spec{Nodelist: tt.nodelist, Exclude: tt.exclude}, tt.bad, tt.spares)
		s = excluding(s, tt.bad)
		require.Equal(t, tt.wantList, s.Nodelist)
		require.Equal(t, tt.wantExcept, s.Exclude)
		require.Equal(t, tt.taken, taken)
	}
}

// A yard is a cluster of four nodes, one of which its default partition lacks.
type yard struct {
	bench
	down string // the node that is out of service
}

func (y *yard) Partitions(context.Context) ([]slurm.Partition, error) {
	return []slurm.Partition{{Name: "dev", Default: true}, {Name: "all"}}, nil
}

func (y *yard) Nodes(context.Context) (nodes []slurm.Node, err error) {
	for _, name := range []string{"gpu1", "gpu2", "gpu3", "gpu4"} {
		n := slurm.Node{Name: name, State: "idle", Partitions: []string{"all"}}
		if name != "gpu4" {
			n.Partitions = append(n.Partitions, "dev")
		}
		if name == y.down {
			n.State = "drained"
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// A retry that would leave too few nodes waits for those that are out of service. If a
// node that is in service failed, it is not made, and a person is told what to do.
func TestARetryKeepsEnoughNodes(t *testing.T) {
	for name, tt := range map[string]struct {
		nodes                    int
		partition, exclude, down string
		bad, unwanted            []string
		wantAvoid, wantAwaited   []string
		why, whyZH               string
	}{
		"enough":                {nodes: 2, bad: []string{"gpu2"}, wantAvoid: []string{"gpu2"}},
		"nothing to avoid":      {nodes: 3},
		"in a larger partition": {nodes: 3, partition: "all", bad: []string{"gpu2"}, wantAvoid: []string{"gpu2"}},
		"drained":               {nodes: 3, down: "gpu2", bad: []string{"gpu2"}, wantAwaited: []string{"gpu2"}},
		"one of two is drained": {nodes: 3, partition: "all", down: "gpu2", bad: []string{"gpu2", "gpu4"}, wantAvoid: []string{"gpu4"}, wantAwaited: []string{"gpu2"}},
		"more than there are":   {nodes: 5, bad: []string{"gpu2"}, wantAvoid: []string{"gpu2"}},
		"in service": {
			nodes: 3, exclude: "gpu9", bad: []string{"gpu2"},
			why:   "not submitted again: without gpu2 too few nodes are left: 2 of 3, and the job needs 3. `submit --from 77` runs it again once they are repaired; `submit --from 77 --exclude gpu[2,9] --nodes 2` does so now with fewer",
			whyZH: "排除 gpu2 后 3 个节点只剩 2 个，而作业需要 3 个。修复后用 `submit --from 77` 再次运行；或现在就用更少的节点：`submit --from 77 --exclude gpu[2,9] --nodes 2`",
		},
		"down, and to be avoided": {
			nodes: 3, down: "gpu2", bad: []string{"gpu2"}, unwanted: []string{"gpu2"},
			why: "not submitted again: without gpu2 too few nodes are left: 2 of 3, and the job needs 3. `submit --from 77` runs it again once they are repaired; `submit --from 77 --exclude gpu2 --nodes 2` does so now with fewer",
		},
		"all of them": {
			nodes: 1, bad: []string{"gpu1", "gpu2", "gpu3"},
			why:   "not submitted again: without gpu[1-3] too few nodes are left: 0 of 3, and the job needs 1. `submit --from 77` runs it again once they are repaired",
			whyZH: "修复后用 `submit --from 77` 再次运行",
		},
	} {
		s := &ops.Service{Clusters: map[string]ops.Cluster{"yard": &yard{down: tt.down}}, Default: "yard", Now: time.Now}
		spec := job.Spec{Cluster: "yard", Nodes: &tt.nodes, Partition: tt.partition, Exclude: tt.exclude}
		avoid, awaited, why := leaveEnough(t.Context(), &ops.Call{Service: s}, spec, tt.bad, tt.unwanted, "77")
		require.ElementsMatch(t, tt.wantAvoid, avoid, name)
		require.ElementsMatch(t, tt.wantAwaited, awaited, name)
		require.Equal(t, tt.why, why.EN, name)
		require.Contains(t, why.ZH, tt.whyZH, name)
	}
}

// A retry without the failed node that leaves too few nodes is not sent to Slurm, which
// would refuse it.
func TestARetryWithTooFewNodesIsNotMade(t *testing.T) {
	l, _, _ := newQueue(t, `{"nodes":3,"retry":{"max":3}}`)
	l.f.Service.Clusters["bench"] = &yard{}
	n := News{Job: l.job, Report: &report.Report{Class: outcome.GPUHardware, RootLine: "Xid 79", Retry: true, ExcludeNodes: []string{"gpu2"}}}
	l.f.recover(t.Context(), l.st, &n)
	require.Empty(t, n.Next)
	require.Contains(t, n.Why.EN, "not submitted again: without gpu2 too few nodes are left: 2 of 3")
	require.NotContains(t, n.Why.EN, "could not be submitted")
}

// One end of a run is reported once. The same state of another run is another end.
func TestWhichEndsAreTheSame(t *testing.T) {
	t.Parallel()
	at, later := time.Unix(60, 0), time.Unix(61, 0)
	ended := slurm.Job{State: slurm.Failed, Restarts: 1, SubmittedAt: &at}
	for name, tt := range map[string]struct {
		other slurm.Job
		same  bool
	}{
		"the same":            {slurm.Job{State: slurm.Failed, Restarts: 1, SubmittedAt: &at}, true},
		"without a time":      {slurm.Job{State: slurm.Failed, Restarts: 1}, true},
		"another state":       {slurm.Job{State: slurm.Completed, Restarts: 1, SubmittedAt: &at}, false},
		"another run":         {slurm.Job{State: slurm.Failed, Restarts: 2, SubmittedAt: &at}, false},
		"another submission":  {slurm.Job{State: slurm.Failed, Restarts: 1, SubmittedAt: &later}, false},
		"one that is running": {slurm.Job{State: slurm.Running, Restarts: 1}, false},
	} {
		require.Equal(t, tt.same, sameEnd(ended, tt.other), name)
		require.Equal(t, tt.same, sameEnd(tt.other, ended), name)
	}
	running := slurm.Job{State: slurm.Running}
	require.False(t, sameEnd(running, running))
	why := requeuedText(slurm.Job{State: slurm.Pending, Restarts: 2, Requeues: []slurm.State{slurm.Failed, slurm.NodeFail}})
	require.Contains(t, why.EN, "the run before is NODE_FAIL: it was ended because a node", "the words of status")
	require.Contains(t, why.EN, "(restart 2)")
	require.Contains(t, why.ZH, "第 2 次")
	require.Equal(t, withoutDigits("rank 12: out at 0x7f"), withoutDigits("rank 3: out at 0x9f"))
	require.NotEqual(t, withoutDigits("rank 1: out"), withoutDigits("rank 1: in"))
}

// A job's nodes are released when its result is there only if the specification asks
// for it.
func TestAResultEndsNoJobUnasked(t *testing.T) {
	for _, spec := range []string{`{}`, `{"artifact":{"path":"out"}}`, `{"artifact":{"path":"out","cancel":false}}`, `{"artifact":{"cancel":true}}`} {
		l, _, _ := newQueue(t, spec)
		l.f.awaited = map[string]bool{}
		l.f.awaitArtifact(t.Context(), l.st, l.job)
		require.Empty(t, l.f.awaited, spec)
	}
}

// A run that reached its time limit is submitted again at once, dependent on the old
// job, and the news says so.
func TestARunAtItsTimeLimitGoesOn(t *testing.T) {
	y := followCluster(t, "exit 3\n")
	one := 1
	id := y.submit(job.Spec{Chain: &one, Retry: job.Retry{Max: &one, On: []string{outcome.SlurmTimeLimit}}})
	n := y.until("the failure", func(n News) bool { return n.Job.ID == id && n.Report != nil })
	require.Contains(t, n.Why.EN, "is not among retry.on")
	st, err := y.call.Store()
	require.NoError(t, err)
	n.Report, n.Why = &report.Report{Class: outcome.SlurmTimeLimit}, lang.Text{}
	(&Follower{Service: y.call.Service, Log: slog.New(slog.DiscardHandler)}).recover(t.Context(), st, &n)
	require.Equal(t, "submitted again as "+string(n.Next)+" (retry 1 of 1); `cancel "+string(n.Next)+"` stops that", n.Why.EN)
	require.Equal(t, "已再次提交为 "+string(n.Next)+"（第 1 次重试，共 1 次）；`cancel "+string(n.Next)+"` 可终止", n.Why.ZH)
	sub, err := st.ByJob(t.Context(), "local", n.Next)
	require.NoError(t, err)
	require.Contains(t, string(sub.Spec), "afterany:"+string(id))
	_, attempt := lineageOf(sub)
	require.Equal(t, 1, attempt, "the next failure counts this attempt")
}

// A run that fails for the same reason as the attempt before is not tried a third time.
func TestARunWhoseCauseCameTwiceStays(t *testing.T) {
	l, _, _ := newQueue(t, `{"retry":{"max":3}}`)
	r := report.Report{Class: outcome.NCCLIB, RootLine: "port 1 of mlx5_0 is down", Retry: true}
	sub, _ := specOf(t.Context(), l.st, l.job)
	lineage, _ := lineageOf(sub)
	again, err := l.f.sameCause(t.Context(), l.st, lineage, "1", r, "")
	require.NoError(t, err)
	require.False(t, again)
	n := News{Job: l.job, Report: &r}
	l.f.recover(t.Context(), l.st, &n)
	require.Equal(t, "not submitted again: the same cause came twice", n.Why.EN)
	require.Empty(t, n.Next)
}
