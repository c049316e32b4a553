package watch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// TestWhatJobsWaitForOnSlurm makes jobs wait for a licence, for the end of a
// maintenance, for a preferred partition, and for a node in power saving. The events
// give each reason, and none is a failure.
func TestWhatJobsWaitForOnSlurm(t *testing.T) {
	t.Parallel()
	power := filepath.Join(t.TempDir(), "power.sh")
	require.NoError(t, os.WriteFile(power, []byte("#!/bin/sh\nexit 0\n"), 0o755)) //nolint:gosec // slurmctld starts it
	for dir := filepath.Dir(power); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // and looks for it as its own user
	}
	real := slurmtest.Start(t, slurmtest.Options{Conf: fmt.Sprintf(`Licenses=matlab:1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=low Nodes=gpu[1-4] PriorityTier=1 PreemptMode=REQUEUE MaxTime=1:00:00
PartitionName=high Nodes=gpu[1-4] PriorityTier=10 PreemptMode=OFF MaxTime=1:00:00
SuspendProgram=%[1]s
ResumeProgram=%[1]s
SuspendTime=2
SuspendTimeout=1
ResumeTimeout=300
SuspendRate=0
ResumeRate=0
SuspendExcNodes=gpu[1-3]
`, power)})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	w := watch.New(c, watch.Options{Interval: time.Second, Floor: 500 * time.Millisecond, Longest: 2 * time.Second, Idle: -1})
	sub := w.Subscribe()
	defer sub.Close()
	submit := func(words ...string) slurm.JobID {
		t.Helper()
		out, err := real.RunAs(ctx, "alice", append([]string{"sbatch", "--parsable", "--output=/dev/null", "--mem=100M", "--time=10"}, words...)...)
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = real.Run(context.Background(), "scancel", out) })
		w.Watch(slurm.Job{ID: slurm.JobID(out)})
		return slurm.JobID(out)
	}
	node := func(name string) slurm.Node {
		all, err := c.Nodes(ctx)
		require.NoError(t, err)
		for _, n := range all {
			if n.Name == name {
				return n
			}
		}
		return slurm.Node{}
	}
	_, err := real.Run(ctx, "scontrol", "create", "reservation", "reservationname=upgrade", "starttime=now", "duration=60",
		"flags=MAINT,IGNORE_JOBS", "nodes=gpu3", "users=root")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return node("gpu4").State == "idle~" }, 3*time.Minute, 200*time.Millisecond, "power saving")
	require.Contains(t, slurm.ExplainNode("idle~").Says.EN, "powered down to save power")
	require.Equal(t, "maint", node("gpu3").State)
	require.False(t, node("gpu3").Free())

	holder := submit("--partition=low", "--nodelist=gpu1", "--licenses=matlab", "--wrap=exec sleep 300")
	waiter := submit("--partition=low", "--nodelist=gpu1", "--licenses=matlab", "--wrap=exec sleep 1")
	closed := submit("--partition=low", "--nodelist=gpu3", "--wrap=exec sleep 1")
	victim := submit("--partition=low", "--nodelist=gpu2", "--exclusive", "--wrap=exec sleep 300")
	booting := submit("--partition=low", "--nodelist=gpu4", "--wrap=exec sleep 1")
	go w.Run(ctx)

	var story []watch.Event
	until := func(what string, id slurm.JobID, fits func(slurm.Job) bool) slurm.Job {
		t.Helper()
		for _, e := range story {
			if e.Job.ID == id && fits(e.Job) {
				return e.Job
			}
		}
		for {
			e, err := sub.Next(ctx)
			require.NoError(t, err, "waiting for %s; so far:\n%s", what, told(story))
			story = append(story, e)
			if e.Job.ID == id && fits(e.Job) {
				return e.Job
			}
		}
	}
	in := func(state slurm.State) func(slurm.Job) bool {
		return func(j slurm.Job) bool { return j.State == state }
	}
	waits := func(id slurm.JobID, reason, says string) {
		t.Helper()
		j := until(reason, id, func(j slurm.Job) bool { return strings.HasPrefix(j.Reason, reason) })
		require.Equal(t, slurm.Pending, j.State)
		m, known := slurm.KnownReason(j.Reason)
		require.True(t, known, j.Reason)
		require.Contains(t, m.Says.EN, says)
		require.NotEmpty(t, m.Says.ZH)
	}
	until("the licence's holder", holder, in(slurm.Running))
	until("the victim", victim, in(slurm.Running))
	first := submit("--partition=high", "--nodelist=gpu2", "--exclusive", "--wrap=exec sleep 300")
	waits(waiter, "Licenses", "waits for a licence")
	waits(closed, "ReqNodeNotAvail, ", "maintenance") // 22.05 says that the node may be reserved for another job
	until("the first partition's job", first, in(slurm.Running))
	j := until("the preemption", victim, func(j slurm.Job) bool { return len(j.Requeues) > 0 })
	require.Equal(t, []slurm.State{slurm.Preempted}, j.Requeues)
	require.Equal(t, slurm.Pending, j.State, "it waits for its next run")
	require.Equal(t, 1, j.Restarts)
	j = until("a node that boots", booting, in("CONFIGURING"))
	require.Contains(t, j.State.Explain().Says.EN, "made ready or booted")
	require.Equal(t, "mixed#", node("gpu4").State)
	require.Contains(t, slurm.ExplainNode("mixed#").Says.EN, "is being powered up")

	// The awaited things happen; the node boots.
	require.NoError(t, real.Signal("slurmd.gpu4", syscall.SIGKILL))
	require.NoError(t, real.BootNode("gpu4"))
	require.NoError(t, c.Cancel(ctx, holder))
	_, err = real.Run(ctx, "scontrol", "delete", "reservationname=upgrade")
	require.NoError(t, err)
	for _, id := range []slurm.JobID{waiter, closed, booting} {
		require.Equal(t, slurm.Completed, until("its end", id, func(j slurm.Job) bool { return j.State.Ended() }).State, "job %s:\n%s", id, told(story))
	}
	for _, e := range story {
		require.Contains(t, []watch.Kind{watch.Changed, watch.Ended}, e.Kind, "no alarm:\n%s", told(story))
		require.True(t, e.Kind != watch.Ended || e.Job.State == slurm.Completed || e.Job.ID == holder, "no failure:\n%s", told(story))
	}
}
