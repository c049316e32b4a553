package fleet

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// oneNode is a node that runs a visit on this machine.
type oneNode struct{ threeNodes }

func (*oneNode) Visit(ctx context.Context, v slurm.Visit) (string, error) {
	cmd := exec.CommandContext(ctx, v.Argv[0], v.Argv[1:]...)
	cmd.Env = append(os.Environ(), "SLURMD_NODENAME=gpu1")
	out, err := cmd.Output()
	return string(out), err
}

// A yes ends the processes that the question has named, and none that was left meanwhile.
func TestAYesIsToTheProcessesThatWereShown(t *testing.T) {
	was := leftoverAge
	leftoverAge = 0
	t.Cleanup(func() { leftoverAge = was })
	number := "4243." + strconv.Itoa(os.Getpid())
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sleep", number)
		cmd.Env = append(os.Environ(), "SLURM_JOB_ID=99999999")
		require.NoError(t, cmd.Start())
		return cmd
	}
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = &oneNode{}
	call := func() (CleanupOut, *ops.Error) {
		out, err := opstest.Do(t, c, Cleanup(), "gpu[1-2]", "--match", number)
		return out.(CleanupOut), ops.AsError(err)
	}
	pids := func(of ...*exec.Cmd) (all []int) {
		for _, cmd := range of {
			all = append(all, cmd.Process.Pid)
		}
		return all
	}
	found := func(out CleanupOut) (all []int) {
		for _, p := range out.Processes {
			all = append(all, p.PID)
		}
		return all
	}
	first, second := start(), start()
	var asked *ops.Error
	require.Eventually(t, func() bool { // until both have become sleep
		_, asked = call()
		return asked != nil && strings.Contains(asked.Message.EN, "2 processes")
	}, 10*time.Second, 20*time.Millisecond)
	later := start()
	t.Cleanup(func() { _ = later.Process.Kill(); _ = later.Wait() })
	require.Eventually(t, func() bool { out, _ := call(); return len(out.Processes) == 3 }, 10*time.Second, 20*time.Millisecond)

	c.Confirmed, c.Shown = true, "gpu1:"+strconv.Itoa(first.Process.Pid)+"/1" // an earlier process with its pid
	out, err := call()
	require.Nil(t, err)
	require.Empty(t, out.Processes)
	c.Shown = asked.Shown
	out, err = call()
	require.Nil(t, err)
	require.True(t, out.Ended)
	require.ElementsMatch(t, pids(first, second), found(out))
	require.Error(t, first.Wait(), "it was ended by a signal")
	require.Error(t, second.Wait())
	require.NoError(t, later.Process.Signal(syscall.Signal(0)))
	out, err = call()
	require.Nil(t, err)
	require.Empty(t, out.Processes)
	c.Confirmed, c.Shown = false, ""
	_, asked = call()
	require.Contains(t, asked.Message.EN, "1 process of")
	require.Contains(t, asked.Shown, strconv.Itoa(later.Process.Pid))
}

func TestCleanupOnSlurm(t *testing.T) {
	c, real := opstest.OnSlurm(t)
	alice, err := c.Clusters["real"].(*cluster.CLI).As("alice")
	require.NoError(t, err)
	alice.Environ = real.Environ
	c.Clusters["real"] = alice
	was := leftoverAge
	leftoverAge = 0
	t.Cleanup(func() { leftoverAge = was })

	// Only these are ended: no other process has such a number in its command.
	number := "4242." + strconv.Itoa(os.Getpid())
	start := func(env string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "setpriv", "--reuid=alice", "--regid=alice", "--clear-groups", "env", env, "sleep", number)
		require.NoError(t, cmd.Start())
		return cmd
	}
	left, login := start("SLURM_JOB_ID=99999999"), start("NO_JOB=1")
	t.Cleanup(func() { _ = login.Process.Kill(); _ = login.Wait() })
	mine := opstest.Sbatch(t, real, "alice", "--partition=dev", "--wrap=sleep "+number)
	require.Eventually(t, func() bool {
		out, err := opstest.Do(t, c, jobcontrol.Status(), string(mine))
		return err == nil && out.(jobcontrol.StatusOut).State == slurm.Running
	}, 15*time.Second, 100*time.Millisecond)

	out, err := opstest.Do(t, c, Cleanup(), "gpu1", "--match", number)
	require.True(t, ops.AsError(err).Confirm, "%v", err)
	found := out.(CleanupOut).Processes
	require.Len(t, found, 1, "%+v", found)
	require.Equal(t, "gpu1", found[0].Node)
	require.Equal(t, slurm.JobID("99999999"), found[0].JobID)
	out, err = opstest.Do(t, c, Cleanup(), "gpu1", "--match", number, "--yes")
	require.NoError(t, err)
	require.True(t, out.(CleanupOut).Ended)
	require.Error(t, left.Wait(), "it was ended by a signal")
	require.NoError(t, login.Process.Signal(syscall.Signal(0)), "a login is no leftover")
	out, err = opstest.Do(t, c, jobcontrol.Status(), string(mine))
	require.NoError(t, err)
	require.Equal(t, slurm.Running, out.(jobcontrol.StatusOut).State)
	out, err = opstest.Do(t, c, Cleanup(), "gpu1", "--match", number)
	require.NoError(t, err)
	require.Empty(t, out.(CleanupOut).Processes)

	c.Who.User = "root"
	_, err = opstest.Do(t, c, Cleanup(), "gpu1", "--yes")
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
}
