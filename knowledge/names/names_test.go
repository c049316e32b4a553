package names_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/names"
)

func TestOptionAndVariable(t *testing.T) {
	for _, o := range []string{
		"--tensor-model-parallel-size", "--gpus-per-node", "--rdzv_backend", "--container-image", "--locked", "--only-group",
		"--tensor-model-par",                // an abbreviation, which argparse accepts
		"--nodefile", "--disable-fp8-wgrad", // each from one source: the table, and an older name of Megatron's
	} {
		require.True(t, names.Option(o), o)
	}
	for _, v := range []string{"NCCL_DEBUG", "SLURM_JOB_ID", "CUDA_DEVICE_MAX_CONNECTIONS", "UV_CACHE_DIR", "MAX_CONNECTIONS", "NCCL_TUNER_PLUGIN"} {
		require.True(t, names.Variable(v), v)
	}
	require.True(t, names.Option("--tenso"), "the shortest abbreviation")
	require.False(t, names.Option("--tens"), "a shorter one would match too many options")
	require.False(t, names.Option("--turbo-mode"))
	require.False(t, names.Option("--tensor-model-x"))
	require.False(t, names.Variable("NCCL_MAGIC"))
}

func TestNear(t *testing.T) {
	for unknown, want := range map[string][]string{
		"NCCL_IB_TIMEOT":              {"NCCL_IB_TIMEOUT"},
		"--nun-layers":                {"--num-layers"},
		"--num-layres":                {"--num-layers"}, // two letters that changed places
		"--Tensor_model_parallel_sze": {"--tensor-model-parallel-size"},
		"--turbo-mode":                nil,
		"NCCL_NO_SUCH_SWITCH":         nil,
		"--fp9":                       nil, // a number is no misspelling
		"NCCL_IB_TO":                  nil, // nor is another word of two letters
		"SLURM_JOB_UID":               nil,
		"--np":                        nil,
	} {
		require.Equal(t, want, names.Near(unknown), unknown)
	}
	require.Greater(t, len(names.Near("--mem-per-xpu")), 1, "several are as near")
}
