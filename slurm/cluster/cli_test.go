package cluster_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// realSite returns the real Slurm, reached by its commands.
func realSite(t *testing.T) (site, *slurmtest.Cluster) {
	t.Helper()
	real := slurmtest.Start(t, slurmtest.Options{})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	dir, err := os.MkdirTemp(real.Work, "cli-")
	require.NoError(t, err)
	return site{backend: c, dir: dir, environ: real.Environ}, real
}

func TestCLIConforms(t *testing.T) {
	s, _ := realSite(t)
	conform(t, s)
}

// An array whose first elements have ended can still be held, changed and released.
func TestAnArrayIsChangedThoughSomeOfItHasEnded(t *testing.T) {
	s, _ := realSite(t)
	id := s.submit(t, "--partition=prod --array=1-3%1 --time=5 --output=/dev/null", "sleep 1")
	s.state(t, id+"_1", slurm.Completed)
	require.NoError(t, s.Hold(t.Context(), id))
	require.NoError(t, s.Release(t.Context(), id))
	s.state(t, id+"_3", slurm.Completed)
	require.ErrorContains(t, s.Hold(t.Context(), id), "already finished")
}

// One query returns the details of many jobs.
func TestDetailsOfManyJobsAreAsTheirOwn(t *testing.T) {
	s, _ := realSite(t)
	c := s.backend.(*cluster.CLI)
	ended := s.submit(t, "--partition=prod --time=5 --output=logs/ended-%j.out", "exit 3")
	array := s.submit(t, "--partition=prod --hold --array=1-2 --time=5 --output=logs/%A_%a.out", "true")
	held := s.submit(t, "--partition=prod --hold --time=5 --output=logs/höhe-%x-%j.out", "true")
	// A stranger's file name contains a line break and text that looks like a job's
	// record.
	odd := s.submit(t, "--partition=prod --hold --time=5", "true", func(sub *slurm.Submission) {
		sub.Args = append(sub.Args, "--output=logs/a\n"+string(ended))
	})
	s.until(t, ended, "ended", func(j slurm.Job) bool { return j.State == slurm.Failed })
	ids := []slurm.JobID{ended, array + "_1", array + "_2", held, odd}
	rows, err := c.Jobs(t.Context(), slurm.Filter{IDs: ids, All: true})
	require.NoError(t, err)
	details, err := c.Details(t.Context(), append(rows, slurm.Job{ID: "999999"}))
	require.NoError(t, err)
	require.Len(t, details, len(ids))
	for _, id := range ids {
		own, err := c.Job(t.Context(), id)
		require.NoError(t, err)
		require.NotEmpty(t, own.Stdout)
		require.Equal(t, own.Stdout, details[id].Stdout, id)
		require.Equal(t, own.Stderr, details[id].Stderr, id)
		require.Equal(t, own.ExitCode, details[id].ExitCode, id)
		require.Equal(t, own.GPUs, details[id].GPUs, id)
	}
	require.Equal(t, "3:0", *details[ended].ExitCode)
}
