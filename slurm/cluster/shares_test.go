package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// TestStanding fills a cluster of its own, so that jobs have to wait.
func TestStanding(t *testing.T) {
	t.Parallel()
	real := slurmtest.Start(t, slurmtest.Options{Preempt: true})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	s := site{backend: c, dir: real.Work, environ: real.Environ}
	ctx := t.Context()

	busy := s.submit(t, "--partition=prod --nodes=1 --gpus-per-node=8 --time=60 --output=logs/%j.out", "srun sleep 100")
	lazy := s.submit(t, "--partition=prod --nodes=2 --gpus-per-node=8 --time=60 --output=logs/%j.out", "sleep 100")
	s.state(t, busy, slurm.Running)
	s.state(t, lazy, slurm.Running)
	waiting := s.submit(t, "--partition=prod --nodes=4 --gpus-per-node=8 --time=60 --output=logs/%j.out", "true")

	t.Run("a pending job has a reason, a priority and an estimated start", func(t *testing.T) {
		j := s.until(t, waiting, "estimated", func(j slurm.Job) bool { return j.EstStart != nil && j.Reason != "" && j.Reason != "None" })
		require.Contains(t, []string{"Resources", "Priority"}, j.Reason)
		require.NotEmpty(t, slurm.ExplainReason(j.Reason).Do.ZH)
		p, err := c.Priorities(ctx, waiting)
		require.NoError(t, err)
		require.Len(t, p, 1)
		require.Equal(t, waiting, p[0].Job)
		require.Equal(t, *j.Priority, p[0].Total)
		require.Contains(t, p[0].String(), fmt.Sprintf("QOS %d", p[0].QOS))
	})
	t.Run("an allocation without a step is found idle", func(t *testing.T) {
		var idle []slurm.IdleAllocation
		require.Eventually(t, func() bool {
			jobs, err := c.Jobs(ctx, slurm.Filter{})
			require.NoError(t, err)
			steps, err := c.RunningSteps(ctx)
			require.NoError(t, err)
			idle = slurm.IdleAllocations(jobs, steps, 30*time.Minute, time.Now().Add(time.Hour))
			return len(idle) == 1
		}, 10*time.Second, 100*time.Millisecond)
		require.Equal(t, lazy, idle[0].Job.ID)
		require.InDelta(t, 16, idle[0].GPUHours, 0.4)
	})
	t.Run("steps tell their command and nodes", func(t *testing.T) {
		var steps []slurm.Step
		require.Eventually(t, func() bool {
			var err error
			steps, err = c.Steps(ctx, busy)
			require.NoError(t, err)
			return len(steps) == 2
		}, 10*time.Second, 100*time.Millisecond)
		require.Equal(t, string(busy)+".batch", steps[0].ID)
		require.Equal(t, "srun sleep 100", steps[1].Submit)
		require.Len(t, steps[1].Nodes, 1)
		require.Equal(t, busy, steps[1].Job())
	})
	t.Run("accounts and shares of a user", func(t *testing.T) {
		a, err := c.Associations(ctx, "alice")
		require.NoError(t, err)
		require.Len(t, a, 2)
		require.Contains(t, a[0].QOS, "urgent")
		shares, err := c.Shares(ctx)
		require.NoError(t, err)
		shares = slices.DeleteFunc(shares, func(sh slurm.Share) bool { return sh.User != "alice" })
		require.Len(t, shares, 2)
		for _, sh := range shares {
			require.Equal(t, "alice", sh.User)
			require.Contains(t, []string{"infra", "research"}, strings.TrimSpace(sh.Account))
			require.GreaterOrEqual(t, sh.Factor, 0.0)
		}
	})
	t.Run("a preempted job waits again and tells how its first run ended", func(t *testing.T) {
		require.NoError(t, c.Cancel(ctx, waiting)) // it would be first in line
		id, err := c.Submit(ctx, slurm.Submission{Dir: s.dir, LogDir: "logs", Script: script("--partition=prod --nodes=1 --gpus-per-node=8 --time=60 --qos=scavenge --output=logs/%j.out", "sleep 100")})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Cancel(context.Background(), id) })
		s.state(t, id, slurm.Running)
		_, err = real.RunAs(ctx, "alice", "sbatch", "--parsable", "--partition=prod", "--nodes=1", "--gpus-per-node=8", "--qos=urgent", "--output=/dev/null", "--wrap=sleep 3")
		require.NoError(t, err)
		j := s.until(t, id, "preempted", func(j slurm.Job) bool { return j.State == slurm.Pending })
		require.Equal(t, 1, j.Restarts)
		require.Eventually(t, func() bool {
			jobs, err := c.Past(ctx, slurm.Filter{IDs: []slurm.JobID{id}})
			require.NoError(t, err)
			return len(jobs) == 1 && len(jobs[0].Requeues) == 1 && jobs[0].Requeues[0] == slurm.Preempted
		}, 15*time.Second, 200*time.Millisecond)
	})
}
