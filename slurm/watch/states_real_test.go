package watch_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

const hetScript = `#!/bin/bash
#SBATCH --partition=prod --nodes=1 --gpus-per-node=2 --time=5
#SBATCH hetjob
#SBATCH --partition=prod --nodes=2 --gpus-per-node=1 --time=5
srun --het-group=0,1 sleep 6
`

// TestHowJobsEndOnSlurm causes every end of a job that is possible in a Slurm without
// cgroups, and checks the events: a node's daemon is killed, a job is preempted, one
// reaches its time limit, one can no longer meet its deadline.
func TestHowJobsEndOnSlurm(t *testing.T) {
	t.Parallel()
	real := slurmtest.Start(t, slurmtest.Options{MinJobAge: 2, SlurmdTimeout: 5, Preempt: true})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	submit := func(words ...string) slurm.JobID {
		t.Helper()
		out, err := real.RunAs(ctx, "alice", append([]string{"sbatch", "--parsable", "--output=/dev/null", "--partition=prod", "--mem=100M"}, words...)...)
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = real.Run(context.Background(), "scancel", out) })
		return slurm.JobID(out)
	}
	script := filepath.Join(real.Work, "het.sh")
	require.NoError(t, os.WriteFile(script, []byte(hetScript), 0o755))

	limit := submit("--time=1", "--nodelist=gpu1", "--wrap=exec sleep 300")
	victim := submit("--qos=scavenge", "--nodelist=gpu2", "--exclusive", "--wrap=exec sleep 300")
	noRequeue := submit("--qos=scavenge", "--nodelist=gpu3", "--exclusive", "--no-requeue", "--wrap=exec sleep 300")
	lost := submit("--nodelist=gpu4", "--no-requeue", "--wrap=exec sleep 300")
	again := submit("--nodelist=gpu4", "--requeue", "--wrap=exec sleep 300")
	array := submit("--nodelist=gpu1", "--array=1-3", "--wrap=sleep 2; exit $((SLURM_ARRAY_TASK_ID == 2))")
	put := submit("--nodelist=gpu1", "--requeue", "--wrap=exec sleep 300")
	nothing := submit("--nodelist=gpu[1,4]", "--no-requeue", "--gpus-per-node=1", "--wrap=exec sleep 300") // no srun: its second node does nothing

	w := watch.New(c, watch.Options{Interval: time.Second, Floor: 500 * time.Millisecond, Longest: 2 * time.Second, Idle: 6 * time.Second})
	sub := w.Subscribe()
	defer sub.Close()
	var story []watch.Event
	states := func(id slurm.JobID) (all []slurm.State) {
		for _, e := range story {
			if e.Job.ID == id && (len(all) == 0 || all[len(all)-1] != e.Job.State) {
				all = append(all, e.Job.State)
			}
		}
		return all
	}
	// until reads events up to one for which fits is true.
	until := func(what string, fits func(watch.Event) bool) slurm.Job {
		t.Helper()
		for _, e := range story {
			if fits(e) {
				return e.Job
			}
		}
		for {
			e, err := sub.Next(ctx)
			require.NoError(t, err, "waiting for %s; so far:\n%s", what, told(story))
			story = append(story, e)
			if fits(e) {
				return e.Job
			}
		}
	}
	runs := func(id slurm.JobID) func(watch.Event) bool {
		return func(e watch.Event) bool { return e.Job.ID == id && e.Job.State == slurm.Running }
	}
	ends := func(id slurm.JobID) func(watch.Event) bool {
		return func(e watch.Event) bool { return e.Kind == watch.Ended && e.Job.ID == id }
	}
	requeued := func(id slurm.JobID, how slurm.State) func(watch.Event) bool {
		return func(e watch.Event) bool { return e.Job.ID == id && slices.Contains(e.Job.Requeues, how) }
	}
	all := []slurm.JobID{limit, victim, noRequeue, lost, again, array, put, nothing}
	for _, id := range all {
		w.Watch(slurm.Job{ID: id})
	}
	go w.Run(ctx)
	for _, id := range all {
		until("the start of "+string(id), runs(id))
	}

	for idle := false; !idle; {
		e, err := sub.Next(ctx)
		require.NoError(t, err, "no idle allocation was told of:\n%s", told(story))
		story = append(story, e)
		if idle = e.Kind == watch.Idle; idle {
			require.Equal(t, nothing, e.Job.ID, "only the one that leaves a node alone")
			require.InDelta(t, e.Idle.For.Hours()*2, e.Idle.GPUHours, 0.001)
		}
	}
	require.NoError(t, c.Cancel(ctx, nothing))

	// The causes of the ends.
	require.NoError(t, real.Signal("slurmd.gpu4", syscall.SIGKILL))
	_, err := real.RunAs(ctx, "alice", "scontrol", "requeue", string(put))
	require.NoError(t, err)
	for _, node := range []string{"gpu2", "gpu3"} {
		submit("--qos=urgent", "--nodelist="+node, "--exclusive", "--wrap=sleep 20")
	}
	late := submit("--nodelist=gpu2", "--exclusive", "--time=1", "--deadline=now+75", "--wrap=sleep 1")
	w.Watch(slurm.Job{ID: late})
	out, err := real.RunAs(ctx, "alice", "sbatch", "--parsable", "--output=/dev/null", "--mem=100M", script)
	require.NoError(t, err)
	het := slurm.JobID(out)
	w.Watch(slurm.Job{ID: het})
	w.Watch(slurm.Job{ID: het + "+1"})

	j := until("a requeue by hand", requeued(put, slurm.Requeued))
	require.Equal(t, slurm.Pending, j.State)
	require.Equal(t, "BeginTime", j.Reason)
	require.Equal(t, 1, j.Restarts)
	j = until("a preemption", requeued(victim, slurm.Preempted))
	require.Equal(t, slurm.Pending, j.State, "a preempted job waits for its next run")
	require.Equal(t, slurm.Preempted, until("the end of one that may not be requeued", ends(noRequeue)).State)
	j = until("an array's end", ends(array))
	require.Equal(t, slurm.Failed, j.State)
	require.Equal(t, slurm.Deadline, until("a deadline", ends(late)).State)
	j = until("the parts of a heterogeneous job", runs(het))
	require.Len(t, j.Nodes, 3)
	require.Equal(t, 4, j.GPUs)
	require.Len(t, until("its second component", runs(het+"+1")).Nodes, 2)
	require.Equal(t, slurm.Completed, until("the end of a heterogeneous job", ends(het)).State)
	require.Equal(t, slurm.NodeFail, until("a node's failure", ends(lost)).State)
	j = until("a node's failure under a job that starts again", requeued(again, slurm.NodeFail))
	require.False(t, j.State.Ended())
	require.Equal(t, slurm.Timeout, until("the time limit", ends(limit)).State)

	for _, id := range []slurm.JobID{limit, noRequeue, lost, array, late, het} {
		n := 0
		for _, e := range story {
			if e.Kind == watch.Ended && e.Job.ID == id {
				n++
			}
		}
		require.Equal(t, 1, n, "%s ends once", id)
		last := states(id)[len(states(id))-1]
		require.NotEmpty(t, last.Explain().Says.EN)
		require.NotEmpty(t, last.Explain().Says.ZH)
	}
	require.NoError(t, real.StartNode("gpu4"))
	t.Logf("%s", told(story))
}

func told(story []watch.Event) string {
	var b strings.Builder
	for _, e := range story {
		b.WriteString(string(e.Kind) + " " + string(e.Job.ID) + " " + string(e.Job.State) + " " + e.Job.Reason)
		for _, r := range e.Job.Requeues {
			b.WriteString(" after " + string(r))
		}
		b.WriteString("\n")
	}
	return b.String()
}
