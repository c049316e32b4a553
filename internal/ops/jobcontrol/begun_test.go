package jobcontrol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A call that a stopped server had begun is made again: what became of the job meanwhile decides.
func TestACallThatHadBegunIsNotRepeatedBlindly(t *testing.T) {
	ended, cancelled, requeued, next := his, his, his, his
	ended.State, cancelled.State = slurm.Completed, slurm.Cancelled
	requeued.State, requeued.Restarts = slurm.Pending, 1
	next.Restarts = 1
	for _, c := range []struct {
		name, words string
		op          ops.Op
		now         slurm.Job
		times       int
		asks        bool
	}{
		{"cancelled", "20", Cancel(), cancelled, 1, false},
		{"completed first", "20", Cancel(), ended, 1, false},
		{"not cancelled yet", "20", Cancel(), his, 2, false},
		{"another run began", "20", Cancel(), next, 1, true},
		{"requeued", "20", Requeue(), requeued, 1, false},
		{"requeued, and runs", "20", Requeue(), next, 1, false},
		{"not requeued yet", "20", Requeue(), his, 2, false},
		{"ended by itself", "20", Requeue(), ended, 1, true},
	} {
		call, did, _ := slackCall(t, bob, his)
		call.Key, call.Confirmed = "press", true
		_, err := opstest.Do(t, call, c.op, c.words)
		require.NoError(t, err, c.name)
		call.Clusters["test"].(actingSite).Put(c.now)
		out, err := opstest.Do(t, call, c.op, c.words)
		require.Len(t, *did, c.times, c.name)
		require.Equal(t, c.asks, err != nil && ops.AsError(err).MayBeDone(), "%s: %v", c.name, err)
		if o, ok := out.(CancelOut); ok && !c.asks {
			require.Equal(t, c.now.State != slurm.Completed, o.Cancelled, c.name)
		}
		if c.asks {
			require.ErrorContains(t, err, "it may have been carried out on job 20 already")
			call.Key = "another press"
			_, err = opstest.Do(t, call, c.op, c.words)
			require.NoError(t, err, "a yes is another call")
		}
	}
}

// What its owner submitted meanwhile is not among the jobs that a call had begun to end.
func TestJobsThatBeganMeanwhileGoOn(t *testing.T) {
	call, did, _ := slackCall(t, bob, his)
	call.Key, call.Confirmed = "press", true
	_, err := opstest.Do(t, call, Cancel(), "--mine")
	require.NoError(t, err)
	call.Clusters["test"].(actingSite).Put(waiting)
	_, err = opstest.Do(t, call, Cancel(), "--mine")
	require.NoError(t, err)
	require.NotContains(t, *did, "bob cancel 30")
}

// An update that submits a job in place of another submits it once, wherever its server was stopped.
func TestAnUpdateThatHadBegunSubmitsOnce(t *testing.T) {
	c, s := newUpdatableSite(t, func(*slurm.Job, slurm.Update) { t.Error("nothing is changed in place") })
	first, err := opstest.Do(t, c, launch.Submit(), append([]string{"--yes"}, opstest.GoodJob...)...)
	require.NoError(t, err)
	id := *first.(launch.SubmitOut).JobID
	limit := int64(90 * 60)
	old := slurm.Job{ID: id, Name: "gpt", User: "alice", State: slurm.Pending, NumNodes: 2, Partition: "long", QOS: "high", TimeLimitS: &limit}
	c.Key, c.Confirmed = "press", true
	var made []slurm.JobID
	for _, state := range []slurm.State{slurm.Pending, slurm.Pending, slurm.Cancelled} {
		old.State = state
		s.Put(old)
		out, err := opstest.Do(t, c, Update(), string(id), "--nodes", "1")
		require.NoError(t, err, state)
		made = append(made, out.(ChangeOut).JobID)
	}
	require.Len(t, s.Submitted, 2)
	require.Equal(t, []slurm.JobID{made[0], made[0], made[0]}, made)
}

// A server that was stopped while it held the old job for its replacement leaves no job held.
func TestAnUpdateThatFailsTheSecondTimeReleasesTheJob(t *testing.T) {
	c, s := newUpdatableSite(t, func(*slurm.Job, slurm.Update) { t.Error("nothing is changed in place") })
	first, err := opstest.Do(t, c, launch.Submit(), append([]string{"--yes"}, opstest.GoodJob...)...)
	require.NoError(t, err)
	limit := int64(90 * 60)
	old := slurm.Job{
		ID: *first.(launch.SubmitOut).JobID, Name: "gpt", User: "alice", State: slurm.Pending, NumNodes: 2, Partition: "long", QOS: "high", TimeLimitS: &limit,
	}
	c.Key, c.Confirmed, s.Refuse = "press", true, slurm.FromStderr("submit", "Job violates accounting/QOS policy")
	for _, reason := range []string{"Priority", "JobHeldUser"} {
		old.Reason, s.did = reason, nil
		s.Put(old)
		_, err := opstest.Do(t, c, Update(), string(old.ID), "--nodes", "1")
		require.Error(t, err)
		require.Equal(t, []string{"hold", "release"}, s.did, reason)
	}
}
