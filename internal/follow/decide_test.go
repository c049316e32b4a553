package follow

import (
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/stretchr/testify/require"
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
