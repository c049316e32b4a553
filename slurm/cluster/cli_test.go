package cluster_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

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
