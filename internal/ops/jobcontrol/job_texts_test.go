package jobcontrol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestStatusTellsTheTimesThatItHas(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.Local)
	later := at.Add(time.Hour)
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": {
		ID: "7", User: "alice", State: slurm.Running, SubmittedAt: &at, StartedAt: &later, Nodes: []string{"n1", "n2", "n3"},
	}}})
	out, err := opstest.Do(t, c, Status(), "7")
	require.NoError(t, err)
	said := opstest.Text(t, out, lang.EN)
	require.Regexp(t, `submitted +2026-06-11 10:00:00\n +started +2026-06-11 11:00:00\n`, said)
	require.NotContains(t, said, "ended ")
	require.Contains(t, said, "n[1-3]")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "提交时间")
}

// The clock may have been set back since a job was last seen.
func TestAnAgeIsNeverNegative(t *testing.T) {
	require.Contains(t, asOf(time.Now().Add(time.Hour)).EN, ", 00:00 ago")
	require.Contains(t, asOf(time.Now().Add(-time.Hour)).EN, ", 01:00:00 ago")
}

func TestAJobThatSlurmHasNotLookedAtIsNotSentToItsReason(t *testing.T) {
	for _, reason := range []string{"", "None"} {
		c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": {ID: "7", User: "alice", State: slurm.Pending, Reason: reason}}})
		out, err := opstest.Do(t, c, Status(), "7")
		require.NoError(t, err)
		require.Contains(t, opstest.Text(t, out, lang.EN), "not looked at by the scheduler yet")
		require.NotContains(t, opstest.Text(t, out, lang.EN), "look at the reason")
	}
}

// A job's page is shown where browsers reach one, and a cluster's name cannot change
// its path.
func TestStatusLeadsToThePage(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7_1": {ID: "7_1", User: "alice", State: slurm.Running}}})
	out, err := opstest.Do(t, c, Status(), "7_1")
	require.NoError(t, err)
	require.NotContains(t, opstest.Text(t, out, lang.EN), "page")
	c.PageURL = "https://ops.example.org/"
	out, err = opstest.Do(t, c, Status(), "7_1")
	require.NoError(t, err)
	require.Regexp(t, `page +https://ops\.example\.org/web/jobs/test/7_1\n`, opstest.Text(t, out, lang.EN))
	require.Regexp(t, `网页 +https://ops`, opstest.Text(t, out, lang.ZH))
	require.Equal(t, "https://ops.example.org/web/jobs/..%2Fa%3Fb/7", c.JobPage("../a?b", "7"))
}

func TestAWaitingJobIsNotSaidToRun(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"7": {ID: "7", Name: "x", User: "alice", State: slurm.Pending, NumNodes: 2},
		"8": {ID: "8", Name: "y", User: "alice", State: slurm.Running, NumNodes: 2, ElapsedS: 61},
	}})
	_, err := opstest.Do(t, c, Cancel(), "7")
	require.EqualError(t, err, "cancelling 7 (x, 2 nodes, which waits) gives up its place in the queue")
	_, err = opstest.Do(t, c, Cancel(), "8")
	require.EqualError(t, err, "cancelling 8 (y, 2 nodes, running for 01:01) cannot be undone")
}

// A state decides the colour.
func TestAStateIsGoodOrBadNews(t *testing.T) {
	for state, tone := range map[slurm.State]view.Tone{
		slurm.Pending: view.Plain, slurm.Running: view.Good, slurm.Completed: view.Good, slurm.Failed: view.Bad,
		slurm.Cancelled: view.Warn, slurm.Preempted: view.Warn, slurm.Timeout: view.Warn,
	} {
		require.Equal(t, tone, StatusOut{Job: slurm.Job{State: state}}.View(lang.EN).Tone, state)
	}
}
