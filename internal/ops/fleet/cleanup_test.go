package fleet

import (
	"os"
	"os/exec"
	"strconv"
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
