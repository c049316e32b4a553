package names_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/names"
)

func TestNamesThatExistAreKnown(t *testing.T) {
	for _, o := range []string{
		"--tensor-model-parallel-size", "--gpus-per-node", "--rdzv_backend", "--container-image", "--locked", "--only-group",
		"--tensor-model-par", // as argparse takes it
	} {
		require.True(t, names.Option(o), o)
	}
	for _, v := range []string{"NCCL_DEBUG", "SLURM_JOB_ID", "CUDA_DEVICE_MAX_CONNECTIONS", "UV_CACHE_DIR", "MAX_CONNECTIONS"} {
		require.True(t, names.Variable(v), v)
	}
	require.False(t, names.Option("--turbo-mode"))
	require.False(t, names.Option("--tensor-model-x"))
	require.False(t, names.Variable("NCCL_MAGIC"))
}
