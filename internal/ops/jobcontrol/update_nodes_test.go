package jobcontrol

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// An updatableSite accepts every change, and applies made to the job.
type updatableSite struct {
	*opstest.Site
	made    func(*slurm.Job, slurm.Update)
	updates []slurm.Update
	did     []string
	refuses error // the test of a submission, once a job is held
}

func (s *updatableSite) Hold(context.Context, slurm.JobID) error {
	s.did = append(s.did, "hold")
	return nil
}

func (s *updatableSite) Test(context.Context, slurm.Submission) (slurm.Estimate, error) {
	if s.refuses != nil && s.did[len(s.did)-1] == "hold" {
		return slurm.Estimate{}, s.refuses
	}
	return slurm.Estimate{}, slurm.ErrUnsupported
}

func (s *updatableSite) Release(context.Context, slurm.JobID) error {
	s.did = append(s.did, "release")
	return nil
}

func (s *updatableSite) Requeue(context.Context, slurm.JobID) error { return nil }

func (s *updatableSite) Update(_ context.Context, id slurm.JobID, u slurm.Update) error {
	s.updates = append(s.updates, u)
	j := s.KnownJobs[id]
	s.made(&j, u)
	s.Put(j)
	return nil
}

func newUpdatableSite(t *testing.T, made func(*slurm.Job, slurm.Update)) (*ops.Call, *updatableSite) {
	limit := int64(3600)
	s := &updatableSite{made: made, Site: &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"7": {ID: "7", Name: "own", User: "alice", State: slurm.Pending, Reason: "Priority", NumNodes: 2, Partition: "dev", TimeLimitS: &limit},
	}}}
	c := opstest.NewCall(t, s.Site)
	c.Clusters["test"] = s
	at := time.Now()
	c.Now = func() time.Time { at = at.Add(time.Second); return at }
	return c, s
}

func TestAnUpdateSaysWhatSlurmMadeOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newUpdatableSite(t, func(j *slurm.Job, u slurm.Update) { j.NumNodes = u.NumNodes })
		out, err := opstest.Do(t, c, Update(), "7", "--nodes", "3")
		require.NoError(t, err)
		require.Equal(t, "7 own: changed: nodes 3 (PENDING, Priority)\n", opstest.Text(t, out, lang.EN))

		c, _ = newUpdatableSite(t, func(*slurm.Job, slurm.Update) {})
		_, err = opstest.Do(t, c, Update(), "7", "--nodes", "3")
		require.EqualError(t, err, "job: Slurm took the change of job 7 and did not make it: it has 2 nodes")
		_, err = opstest.Do(t, c, Update(), "7", "--partition", "prod")
		require.ErrorContains(t, err, "it has partition dev")

		c, s := newUpdatableSite(t, func(j *slurm.Job, u slurm.Update) {
			j.NumNodes, j.Reason = u.NumNodes, map[bool]string{true: "BadConstraints", false: "Priority"}[u.NumNodes == 3]
		})
		_, err = opstest.Do(t, c, Update(), "7", "--nodes", "3")
		require.EqualError(t, err, "job: changed so, job 7 could never start (BadConstraints), so it was changed back")
		require.Equal(t, 2, s.updates[1].NumNodes)
		require.Equal(t, "Priority", s.KnownJobs["7"].Reason)
	})
}

// The script of a job that was submitted here depends on its number of nodes.
func TestAnotherNumberOfNodesIsSubmittedAnew(t *testing.T) {
	c, s := newUpdatableSite(t, func(*slurm.Job, slurm.Update) { t.Error("nothing is changed in place") })
	first, err := opstest.Do(t, c, launch.Submit(), append([]string{"--yes"}, opstest.GoodJob...)...)
	require.NoError(t, err)
	id := *first.(launch.SubmitOut).JobID
	limit := int64(90 * 60) // as an earlier update left it
	s.Put(slurm.Job{ID: id, Name: "gpt", User: "alice", State: slurm.Pending, NumNodes: 2, Partition: "long", QOS: "high", TimeLimitS: &limit})

	_, err = opstest.Do(t, c, Update(), string(id), "--nodes", "4")
	require.True(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "is made for 2 nodes: it is cancelled and submitted anew for 4, at the end of the queue")
	_, err = opstest.Do(t, c, Update(), string(id), "--nodes", "3", "--yes")
	require.Equal(t, ops.Preflight, ops.AsError(err).Code, "64 is no multiple of what 3 nodes need")
	require.Len(t, s.Submitted, 1)
	require.Equal(t, slurm.Pending, s.KnownJobs[id].State)

	out, err := opstest.Do(t, c, Update(), string(id), "--nodes", "4", "--yes")
	require.NoError(t, err)
	require.Equal(t, id, out.(ChangeOut).Replaces)
	require.NotEqual(t, id, out.(ChangeOut).JobID)
	for _, option := range []string{"--nodes=4", "--partition=long", "--qos=high", "--time=01:30:00"} {
		require.Contains(t, s.Submitted[1].Script, "#SBATCH "+option+"\n")
	}
	require.Equal(t, slurm.Cancelled, s.KnownJobs[id].State)
	require.Equal(t, []string{"hold"}, s.did)

	s.Put(slurm.Job{ID: id, Name: "gpt", User: "alice", State: slurm.Pending, NumNodes: 2})
	s.Refuse = slurm.FromStderr("submit", "Job violates accounting/QOS policy")
	_, err = opstest.Do(t, c, Update(), string(id), "--nodes", "8", "--yes")
	require.ErrorContains(t, err, "QOS policy")
	require.Equal(t, []string{"hold", "hold", "release"}, s.did, "the old one goes on waiting")

	// What the cluster has may change between the plan and the submission.
	s.Refuse, s.refuses = nil, slurm.FromStderr("submit", "Job violates accounting/QOS policy")
	_, err = opstest.Do(t, c, Update(), string(id), "--nodes", "8", "--yes")
	require.ErrorContains(t, err, "Slurm would refuse it: Job violates accounting/QOS policy")
	require.Equal(t, []string{"hold", "hold", "release", "hold", "release"}, s.did)
	require.Equal(t, slurm.Pending, s.KnownJobs[id].State)

	// A job that its user holds stays held where the new one is refused.
	waiting := s.KnownJobs[id]
	waiting.Reason = "JobHeldUser"
	s.Put(waiting)
	s.Refuse, s.refuses = slurm.FromStderr("submit", "Job violates accounting/QOS policy"), nil
	_, err = opstest.Do(t, c, Update(), string(id), "--nodes", "8", "--yes")
	require.ErrorContains(t, err, "QOS policy")
	require.Equal(t, []string{"hold", "hold", "release", "hold", "release"}, s.did)

	s.Put(slurm.Job{ID: id, Name: "gpt", User: "alice", State: slurm.Running, NumNodes: 2})
	_, err = opstest.Do(t, c, Update(), string(id), "--nodes", "8", "--yes")
	require.ErrorContains(t, err, "can be changed only while it waits")
}

func TestAChangedJobRunsSoOnSlurm(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	alice, err := c.Clusters["real"].(*cluster.CLI).As("alice")
	require.NoError(t, err)
	c.Clusters["real"] = alice
	nodes := func(id slurm.JobID, want int) {
		t.Helper()
		_, err := real.Run(t.Context(), "scontrol", "update", "JobId="+string(id), "StartTime=now")
		require.NoError(t, err)
		var j slurm.Job
		require.Eventually(t, func() bool {
			out, err := opstest.Do(t, c, Status(), string(id))
			require.NoError(t, err)
			j = out.(StatusOut).Job
			return j.State == slurm.Running || j.State.Ended()
		}, 60*time.Second, 300*time.Millisecond)
		require.Len(t, j.Nodes, want)
	}
	for _, to := range []string{"1", "3"} {
		id := opstest.Sbatch(t, real, "alice", "--partition=prod", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=4", "--gpus-per-node=2", "--time=5", "--begin=now+2hours", "--wrap=srun sleep 30")
		out, err := opstest.Do(t, c, Update(), string(id), "--nodes", to)
		require.NoError(t, err)
		require.Contains(t, opstest.Text(t, out, lang.EN), "changed: nodes "+to)
		nodes(id, map[string]int{"1": 1, "3": 3}[to])
		_, err = real.Run(t.Context(), "scancel", string(id))
		require.NoError(t, err)
	}
	never := opstest.Sbatch(t, real, "alice", "--partition=prod", "--nodes=2", "--begin=now+2hours", "--wrap=true")
	_, err = opstest.Do(t, c, Update(), string(never), "--nodes", "9")
	require.ErrorContains(t, err, "9 nodes are more than prod gives to one job: 4")
	_, err = opstest.Do(t, c, Update(), string(never), "--partition", "dev", "--time", "2:00:00")
	require.ErrorContains(t, err, "over the limit of dev")

	tree := filepath.Join(real.Work, "resized")
	require.NoError(t, os.MkdirAll(tree, 0o777))
	require.NoError(t, os.Chmod(tree, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "try.sh"), []byte("sleep 30\n"), 0o644))
	sub, err := opstest.Do(t, c, launch.Submit(), "--yes", "--name", "resized", "--nodes", "2", "--gpus-per-node", "2", "--partition", "prod", "--time", "5", "--begin", "now+2hours",
		"--worktree", tree, "--script", "try.sh", "--launcher", "custom", "--launcher-argv", "bash")
	require.NoError(t, err)
	out, err := opstest.Do(t, c, Update(), string(*sub.(launch.SubmitOut).JobID), "--nodes", "1", "--yes")
	require.NoError(t, err)
	nodes(out.(ChangeOut).JobID, 1)
	was, err := opstest.Do(t, c, Status(), string(*sub.(launch.SubmitOut).JobID))
	require.NoError(t, err)
	require.Equal(t, slurm.Cancelled, was.(StatusOut).State)
	_, err = real.Run(t.Context(), "scancel", string(out.(ChangeOut).JobID))
	require.NoError(t, err)
}
