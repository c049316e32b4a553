package opstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// OwnCLI returns the real cluster as the user who runs the test, able to act as others.
func OwnCLI(t *testing.T, real *slurmtest.Cluster) *cluster.CLI {
	t.Helper()
	dir, err := os.MkdirTemp(real.Dir, "helper-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // processes of other users start the program in it
	program := filepath.Join(dir, "megatron-ops")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/megatron-ops/megatron-ops/internal/ops/opstest/asuser").CombinedOutput()
	require.NoError(t, err, string(out))
	cl := cluster.NewCLI("real")
	cl.Environ = real.Environ
	cl.Helper = cluster.Helper{Program: program, SlurmBin: real.Bin(), SlurmConf: real.Conf()}
	return cl
}

// As returns the real cluster as user.
func As(t *testing.T, real *slurmtest.Cluster, user string) *cluster.CLI {
	t.Helper()
	cl, err := OwnCLI(t, real).As(user)
	require.NoError(t, err)
	return cl
}
