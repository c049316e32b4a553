package cluster_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// realSite is the real Slurm by its commands.
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

// A train is held, mended and released while its first elements have ended.
func TestAnArrayIsChangedThoughSomeOfItHasEnded(t *testing.T) {
	s, _ := realSite(t)
	id := s.submit(t, "--partition=prod --array=1-3%1 --time=5 --output=/dev/null", "sleep 1")
	s.state(t, id+"_1", slurm.Completed)
	require.NoError(t, s.Hold(t.Context(), id))
	require.NoError(t, s.Release(t.Context(), id))
	s.state(t, id+"_3", slurm.Completed)
	require.ErrorContains(t, s.Hold(t.Context(), id), "already finished")
}
