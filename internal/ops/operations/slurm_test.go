package operations

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/ops/smoke"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// asItIs prints the cluster's state where a test has failed. It is deferred rather than
// a cleanup, so that it runs before the test's jobs are cancelled.
func asItIs(t *testing.T, real *slurmtest.Cluster) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, words := range [][]string{{"squeue", "--all", "--long"}, {"sinfo", "--Node", "--long"}} {
		said, _ := real.Run(context.Background(), words...)
		t.Log(said)
	}
}

func TestStandingOnSlurm(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	defer asItIs(t, real)
	busy := opstest.Sbatch(t, real, "bob", "--partition=prod", "--nodes=4", "--gpus-per-node=8", "--time=60", "--wrap=sleep 300")
	require.Eventually(t, func() bool { // otherwise a busy scheduler starts jobs with a higher priority first
		out, err := do(t, c, "status", string(busy))
		return err == nil && out.(jobcontrol.StatusOut).State == slurm.Running
	}, 60*time.Second, 200*time.Millisecond)
	mine := opstest.Sbatch(t, real, "alice", "--partition=prod", "--nodes=2", "--gpus-per-node=8", "--time=60", "--job-name=a|b", "--wrap=true")
	held := opstest.Sbatch(t, real, "alice", "--partition=prod", "--hold", "--wrap=true")
	array := opstest.Sbatch(t, real, "bob", "--partition=prod", "--array=1-3", "--nodes=4", "--gpus-per-node=8", "--qos=scavenge", "--wrap=true")
	require.Eventually(t, func() bool { // the jobs of the previous test may still be ending
		out, err := do(t, c, "queue")
		require.NoError(t, err)
		return len(out.(jobcontrol.QueueOut).Jobs) == 3 && out.(jobcontrol.QueueOut).Jobs[0].EstStart != nil
	}, 60*time.Second, 200*time.Millisecond)

	t.Run("queue", func(t *testing.T) {
		out, err := do(t, c, "queue", "--mine")
		require.NoError(t, err)
		q := out.(jobcontrol.QueueOut)
		require.Len(t, q.Jobs, 2)
		require.Equal(t, mine, q.Jobs[0].ID)
		require.Equal(t, 1, q.Jobs[0].Position)
		require.Equal(t, "a|b", q.Jobs[0].Name)
		require.Zero(t, q.Jobs[1].Position, "a held job is not in line")
		require.Equal(t, held, q.Jobs[1].ID)
		require.Contains(t, opstest.Text(t, q, lang.ZH), "JobHeldUser (1)")

		out, err = do(t, c, "queue", "--user", "bob,alice")
		require.NoError(t, err)
		require.Len(t, out.(jobcontrol.QueueOut).Jobs, 3)
		require.Contains(t, opstest.Text(t, out, lang.EN), string(array)+" (×3)")
	})
	t.Run("priority", func(t *testing.T) {
		out, err := do(t, c, "priority", string(array))
		require.NoError(t, err)
		p := out.(jobcontrol.PriorityOut)
		require.Equal(t, 2, p.Position)
		require.Equal(t, mine, p.Line[0].ID)
		out, err = do(t, c, "priority", string(mine))
		require.NoError(t, err)
		require.Equal(t, "QOS", out.(jobcontrol.PriorityOut).Parts[0].Part)
		require.Equal(t, int64(10000), out.(jobcontrol.PriorityOut).Parts[0].Most)
		_, err = do(t, c, "priority", string(busy))
		require.ErrorContains(t, err, "only a waiting job")
	})
	t.Run("partitions", func(t *testing.T) {
		out, err := do(t, c, "partitions", "dev")
		require.NoError(t, err)
		p := out.(fleet.PartitionsOut).Partitions
		require.Len(t, p, 1)
		require.Equal(t, int64(600), *p[0].Limits.DefaultTimeS)
		require.Equal(t, 2, p[0].Limits.MaxNodes)
		require.Contains(t, opstest.Text(t, out, lang.EN), "4/0/0/4")
		require.Contains(t, p[0].Features, "nvlink")
		_, err = do(t, c, "partitions", "nosuch")
		require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	})
	t.Run("accounts", func(t *testing.T) {
		out, err := do(t, c, "accounts")
		require.NoError(t, err)
		a := out.(jobcontrol.AccountsOut)
		require.Len(t, a.Accounts, 2)
		require.NotNil(t, a.Accounts[0].Standing)
		require.LessOrEqual(t, a.Accounts[0].Standing.Rank, a.Accounts[0].Standing.Of)
		require.Contains(t, opstest.Text(t, a, lang.EN), "time 00:30:00; per user gres/gpu=8")
		require.Contains(t, opstest.Text(t, a, lang.ZH), "公平份额")
		_, err = do(t, c, "accounts", "nobody-here")
		require.Equal(t, ops.NotFound, ops.AsError(err).Code)
		_, err = do(t, c, "accounts", "a,b")
		require.Equal(t, ops.BadInput, ops.AsError(err).Code)
	})
	t.Run("history", func(t *testing.T) {
		_, err := real.Run(t.Context(), "scancel", string(mine), string(held), string(array), string(busy))
		require.NoError(t, err)
		var h jobcontrol.HistoryOut
		require.Eventually(t, func() bool {
			out, err := do(t, c, "history", "--user", "alice,bob", "--partition", "prod", "--days", "1")
			require.NoError(t, err)
			h = out.(jobcontrol.HistoryOut)
			return h.Total >= 3 && len(h.Users) == 2
		}, 20*time.Second, 300*time.Millisecond)
		require.Equal(t, slurm.Cancelled, h.States[0].State)
		require.GreaterOrEqual(t, h.Users[0].GPUHours, h.Users[1].GPUHours, "who used most comes first")
		require.Positive(t, h.GPUHours)
		require.Contains(t, opstest.Text(t, h, lang.EN), "a|b")
		out, err := do(t, c, "history", "--state", "completed")
		require.NoError(t, err)
		require.Zero(t, out.(jobcontrol.HistoryOut).Total)
	})
}

func TestCancelOfSeveralOnSlurm(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	theirs := opstest.Sbatch(t, real, "bob", "--partition=dev", "--wrap=sleep 100")
	other := opstest.Sbatch(t, real, "alice", "--partition=prod", "--wrap=srun sleep 100")
	one := opstest.Sbatch(t, real, "alice", "--partition=dev", "--wrap=sleep 100")
	array := opstest.Sbatch(t, real, "alice", "--partition=dev", "--array=1-3%1", "--wrap=sleep 100")
	state := func(id slurm.JobID) slurm.State {
		out, err := do(t, c, "status", string(id))
		require.NoError(t, err)
		return out.(jobcontrol.StatusOut).State
	}
	require.Eventually(t, func() bool { return state(other) == slurm.Running && state(one) == slurm.Running }, 15*time.Second, 100*time.Millisecond)

	_, err := do(t, c, "cancel", "--mine", "--partition", "dev")
	require.True(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "2 jobs of alice")
	out, err := do(t, c, "cancel", "--mine", "--partition", "dev", "--yes")
	require.NoError(t, err)
	require.Len(t, out.(jobcontrol.CancelOut).Jobs, 2)
	require.Contains(t, opstest.Text(t, out, lang.EN), "2 jobs cancelled")
	require.Eventually(t, func() bool { return state(one).Ended() && state(array).Ended() }, 20*time.Second, 200*time.Millisecond)
	require.Equal(t, slurm.Running, state(other))
	require.Equal(t, slurm.Running, state(theirs), "another's is left alone")

	c.Who.Operator = true
	require.Eventually(t, func() bool {
		out, err = do(t, c, "cancel", string(other)+".0", "--yes")
		return err == nil
	}, 10*time.Second, 300*time.Millisecond, "%v", err)
	require.Equal(t, string(other)+".0", out.(jobcontrol.CancelOut).Step)
	_, err = do(t, c, "cancel", string(theirs)+".7", "--yes")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	out, err = do(t, c, "cancel", "--mine", "--yes")
	require.NoError(t, err)
	require.LessOrEqual(t, len(out.(jobcontrol.CancelOut).Jobs), 1)
	require.Equal(t, slurm.Running, state(theirs), "mine is mine, for operators too")
}

func TestResumeOnSlurm(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	_, err := real.Run(t.Context(), "scontrol", "update", "NodeName=gpu[3-4]", "State=DRAIN", "Reason=Kill task failed")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = real.Run(context.Background(), "scontrol", "update", "NodeName=gpu[3-4]", "State=RESUME")
	})
	_, err = do(t, c, "resume", "--reason", "kill task", "gpu[1-3]")
	require.True(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "gpu3 (drained: Kill task failed)")
	require.NotContains(t, err.Error(), "gpu4")
	out, err := do(t, c, "resume", "--reason", "kill task", "--yes")
	require.NoError(t, err)
	require.Len(t, out.(fleet.ResumeOut).Nodes, 2)
	_, err = do(t, c, "resume", "--reason", "kill task", "--yes")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	_, err = do(t, c, "resume", "--yes")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
	c.Who = ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "alice"}
	_, err = do(t, c, "resume", "gpu3", "--yes")
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
}

func TestEarlierOnSlurm(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	busy := opstest.Sbatch(t, real, "bob", "--partition=prod", "--nodes=2", "--gpus-per-node=8", "--time=60", "--wrap=sleep 300")
	big := opstest.Sbatch(t, real, "alice", "--partition=prod", "--nodes=4", "--gpus-per-node=8", "--time=60", "--wrap=true")
	require.Eventually(t, func() bool {
		out, err := do(t, c, "status", string(busy))
		return err == nil && out.(jobcontrol.StatusOut).State == slurm.Running
	}, 15*time.Second, 100*time.Millisecond)
	var out any
	var err error
	require.Eventually(t, func() bool { // Slurm does not try nodes at once that were just given back
		out, err = do(t, c, "status", string(big), "--earlier")
		return err == nil
	}, 15*time.Second, 300*time.Millisecond, "%v", err)
	e := out.(jobcontrol.StatusOut).Earlier
	require.NotNil(t, e.AsItIs)
	require.NotEmpty(t, e.Options)
	least := e.Options[len(e.Options)-1]
	require.True(t, least.Start.Before(*e.AsItIs))
	require.Contains(t, opstest.Text(t, out, lang.EN), fmt.Sprintf("update %s --nodes %d", big, least.Nodes))
	_, err = do(t, c, "status", string(busy), "--earlier")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
}

// TestSmokeOnSlurm runs the small jobs on a real Slurm with a program that fails from
// two nodes on.
func TestSmokeOnSlurm(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{Conf: "# what people ask\n"})
	alice := opstest.As(t, real, "alice")
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters, c.Default = map[string]ops.Cluster{"real": alice}, "real"
	dir := filepath.Join(real.Work, "smoke")
	require.NoError(t, os.MkdirAll(dir, 0o777))
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // alice's jobs write there
	require.NoError(t, os.WriteFile(filepath.Join(dir, "try.sh"), []byte("#!/bin/bash\necho \"$SLURM_NNODES nodes, $* \"\n[ \"$SLURM_NNODES\" = 1 ]\n"), 0o755))
	out, err := do(t, c, "smoke", "--name", "own", "--nodes", "4", "--gpus-per-node", "8", "--partition", "prod", "--time", "1-0", "--worktree", dir,
		"--script", "try.sh", "--launcher", "custom", "--launcher-argv", "bash", "--no-guards", "--no-monitor", "--yes")
	require.NoError(t, err)
	s := out.(smoke.Out)
	require.Equal(t, "2 nodes", s.Failed, "%+v", s)
	require.Len(t, s.Rungs, 3)
	for i, size := range []struct {
		nodes, gpus int
		state       slurm.State
	}{{1, 1, slurm.Completed}, {1, 8, slurm.Completed}, {2, 16, slurm.Failed}} {
		j, err := alice.Job(t.Context(), s.Rungs[i].JobID)
		require.NoError(t, err)
		require.Equal(t, size.state, j.State)
		require.Equal(t, size.gpus, j.GPUs)
		require.Len(t, j.Nodes, size.nodes)
		require.Equal(t, int64(600), *j.TimeLimitS)
	}
	require.Contains(t, opstest.Text(t, s, lang.EN), "the first rung that fails is 2 nodes")
}

// TestGPUMemoryIsSampledBesideAJob uses a stand-in for nvidia-smi on the nodes, and a
// job that uses all that it was given.
func TestGPUMemoryIsSampledBesideAJob(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	bin := filepath.Join(real.Work, "gpu-bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte("#!/bin/sh\necho \"0, 40960, 81920, 97\"\necho \"1, 20480, 81920, 3\"\n"), 0o755))
	c.Clusters["real"].(*cluster.CLI).Environ = func() []string {
		return append(real.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	}
	log := filepath.Join(real.Work, "sampled.out")
	lines := ""
	for i := range 3 {
		lines += fmt.Sprintf(" [2026-06-11 10:00:0%d.000000] iteration        %d/     100 | consumed samples: 64 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.0E+00 |\n", i, i+1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(real.Work, "lines"), []byte(lines), 0o644))
	me, err := user.Current()
	require.NoError(t, err)
	c.Who = ops.Caller{Surface: ops.Shell, ID: me.Username, User: me.Username}
	said, err := real.Run(t.Context(), "sbatch", "--parsable", "--partition=dev", "--nodes=2", "--gpus-per-node=2", "--time=5", "--output="+log, "--chdir=/tmp", "--wrap=cat "+filepath.Join(real.Work, "lines")+"; sleep 300")
	require.NoError(t, err)
	id := slurm.JobID(said)
	t.Cleanup(func() { _, _ = real.Run(context.Background(), "scancel", said) })
	require.Eventually(t, func() bool {
		j, err := c.Clusters["real"].Job(t.Context(), id)
		return err == nil && j.State == slurm.Running
	}, 60*time.Second, 300*time.Millisecond)
	require.Eventually(t, func() bool { b, err := os.ReadFile(log); return err == nil && len(b) == len(lines) }, 20*time.Second, 100*time.Millisecond)
	out, err := do(t, c, "metrics", string(id), "--sample", "1", "--samples", "3")
	require.NoError(t, err)
	gpus := out.(joblogs.MetricsOut).GPUs
	require.Len(t, gpus, 4, "two of each node")
	require.NotEqual(t, gpus[0].Node, gpus[2].Node)
	require.Equal(t, []float64{40960, 40960, 40960}, gpus[0].UsedMB)
	require.Contains(t, opstest.Text(t, out, lang.EN), "40.0")
}

// TestCheckpointsAreSeenOverSSH runs a job on a cluster whose files this process can
// read only on the login node.
func TestCheckpointsAreSeenOverSSH(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	far, err := cluster.NewSSH("real", cluster.SSHOptions{Host: "login", User: "alice", Config: real.SSHD(t), Bin: real.Bin()})
	require.NoError(t, err)
	c.Clusters["real"], c.Self = far, "alice"
	tree, err := os.MkdirTemp(real.Work, "far-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(tree, 0o777)) //nolint:gosec // alice's jobs write there
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.sh"), []byte("sleep 100\n"), 0o644))
	opstest.SaveAt(t, filepath.Join(tree, "ckpt"), map[int]time.Duration{1000: 40 * time.Minute, 2000: 20 * time.Minute}, "2000")
	out, err := do(t, c, "submit", "--yes", "--force", "--name", "far", "--nodes", "1", "--gpus-per-node", "2", "--partition", "dev", "--time", "10", "--worktree", tree,
		"--no-guards", "--launcher", "custom", "--launcher-argv", "bash", "--script", "train.sh", "--", "--save", "ckpt")
	require.NoError(t, err)
	id := *out.(launch.SubmitOut).JobID
	t.Cleanup(func() { _, _ = real.Run(context.Background(), "scancel", string(id)) })
	var o *joblogs.CheckpointOut
	require.Eventually(t, func() bool {
		out, err := do(t, c, "status", string(id))
		require.NoError(t, err)
		o = out.(jobcontrol.StatusOut).Checkpoint
		return o != nil
	}, 30*time.Second, 300*time.Millisecond)
	require.Equal(t, "2000", o.Iteration)
	require.Equal(t, int64(1200), *o.EveryS)
	require.True(t, o.TooLate, "ten minutes are left, and the next is due in twenty")

	// The watcher reports it in time, and looks at the files only once in a while.
	c.Who = ops.Caller{Surface: ops.Watcher, ID: "follow", ReadOnly: true}
	j, err := far.Job(t.Context(), id)
	require.NoError(t, err)
	j.Cluster = "real"
	require.NoError(t, os.RemoveAll(filepath.Join(tree, "ckpt")))
	alarms, err := joblogs.Alarms(t.Context(), c, j)
	require.NoError(t, err)
	require.Len(t, alarms, 1)
	require.Equal(t, "checkpoint_late", alarms[0].ID)
}
