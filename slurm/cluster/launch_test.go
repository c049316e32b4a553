package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// testLaunch starts scripts in a job of the site through c.
func testLaunch(t *testing.T, s site, c *cluster.CLI) {
	job := s.submit(t, "--partition=prod --nodes=2 --ntasks-per-node=1 --gpus-per-node=2 --time=5 --output=/dev/null", "sleep 200")
	s.state(t, job, slurm.Running)
	script := func(body string) slurm.Launch {
		return slurm.Launch{
			Job: job, Step: "it-is-1", Dir: s.dir, Base: "logs/a b'$(x)", Args: []string{"it's $HOME"},
			Script: "#!/bin/bash\nexport SLURM_JOB_ID=" + string(job) + " SLURM_OVERLAP=1\n" + body + "\n",
		}
	}
	id, err := c.Launch(t.Context(), script(`srun --job-name=it-is-1 --ntasks=2 bash -c 'echo "$1 on $SLURMD_NODENAME"; echo oops >&2; sleep 2; exit 3' _ "$1"`))
	require.NoError(t, err)
	require.Equal(t, job, id.Job())
	require.True(t, slurm.IsStepID(string(id)))
	j, err := c.Step(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "it-is-1", j.Name)
	require.Len(t, j.Nodes, 2)
	require.NotEmpty(t, j.User)
	require.Eventually(t, func() bool {
		j, err = c.Step(t.Context(), id)
		return err == nil && j.State.Ended()
	}, 20*time.Second, 200*time.Millisecond)
	require.Equal(t, slurm.Failed, j.State)
	require.Equal(t, "3:0", *j.ExitCode)
	out := s.log(t, "logs/a b'$(x).out")
	require.Contains(t, out, "it's $HOME on "+j.Nodes[0])
	require.Contains(t, s.log(t, "logs/a b'$(x).err"), "oops")
	require.FileExists(t, filepath.Join(s.dir, "logs/a b'$(x).sh"))

	found, ok, err := c.FindStep(t.Context(), job, "it-is-1")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, id, found)
	_, ok, err = c.FindStep(t.Context(), job, "it-is-2")
	require.NoError(t, err)
	require.False(t, ok)
	_, err = c.Step(t.Context(), job+".77")
	require.ErrorIs(t, err, slurm.ErrNotFound)

	l := script(`echo "guard: stop: gpu1: no" >&2; exit 3`)
	l.Step = "it-is-2"
	_, err = c.Launch(t.Context(), l)
	require.ErrorContains(t, err, "no step was started: ") // srun may tell of the exit before what the guard wrote reaches it
	require.ErrorContains(t, err, "guard: stop: gpu1: no")

	// The started script goes on without this process, and CancelStep ends its step by
	// the step's id.
	l = script(`srun --job-name=it-is-3 --ntasks=1 sleep 100`)
	l.Step = "it-is-3"
	id, err = c.Launch(t.Context(), l)
	require.NoError(t, err)
	require.NoError(t, c.CancelStep(t.Context(), string(id)))
	require.Eventually(t, func() bool {
		j, err = c.Step(t.Context(), id)
		return err == nil && j.State == slurm.Cancelled
	}, 20*time.Second, 200*time.Millisecond)
	s.state(t, job, slurm.Running)
}

func TestLaunchByCommands(t *testing.T) {
	s, _ := realSite(t)
	testLaunch(t, s, s.backend.(*cluster.CLI)) //nolint:forcetypeassert // it is one
}

func TestLaunchOverSSH(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	c, err := cluster.NewSSH("far", cluster.SSHOptions{Host: "login", User: "alice", Config: real.SSHD(t), Bin: real.Bin()})
	require.NoError(t, err)
	dir, err := os.MkdirTemp(real.Work, "ssh-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777))
	testLaunch(t, site{backend: c, dir: dir}, c)
}

// Through sudo the script runs on a node of the job as the acting user, with the sudo
// rule that the program prints.
func TestLaunchThroughSudo(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	c := cluster.NewCLI("real")
	c.Environ, c.Helper = real.Environ, helper(t, real)
	alice, err := c.As("alice")
	require.NoError(t, err)
	dir, err := os.MkdirTemp(real.Work, "sudo-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777))
	testLaunch(t, site{backend: alice, dir: dir}, alice)
	owner, err := exec.Command("stat", "-c", "%U", filepath.Join(dir, "logs/a b'$(x).out")).Output()
	require.NoError(t, err)
	require.Equal(t, "alice\n", string(owner))

	bob, err := c.As("bob")
	require.NoError(t, err)
	job := site{backend: alice, dir: dir}.submit(t, "--partition=prod --nodes=1 --time=5 --output=/dev/null", "sleep 200")
	site{backend: alice, dir: dir}.state(t, job, slurm.Running)
	_, err = bob.Launch(t.Context(), slurm.Launch{Job: job, Step: "mine", Dir: dir, Base: "logs/bob", Script: "#!/bin/bash\nsrun --jobid=" + string(job) + " --overlap --job-name=mine true\n"})
	require.Error(t, err, "a step in another's job")
	require.Contains(t, err.Error(), "denied")
}
