package diagnose

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// The output of a rendered script's node check, before any training.
func TestTheNodeChecksBadNodesAreExcluded(t *testing.T) {
	const end = "srun: error: gpu2: task 1: Exited with exit code 1\nnode check: stop: a node is bad; give the nodes of the lines above as exclude\n"
	for name, c := range map[string]struct {
		log     string
		class   string
		exclude []string
	}{
		"a GPU without its memory": {
			"0: node-check: host=gpu1 gpu=0 status=ok gpus=8 memory_gib=139 allreduce_gb_per_s=210.3\n" +
				"1: node-check: host=gpu2 gpu=3 status=bad step=memory error=OutOfMemoryError: CUDA out of memory. Tried to allocate 125.00 GiB\n" + end,
			outcome.GPUHardware,
			[]string{"gpu2"},
		},
		"two of them, and the others wait for them in vain": {
			"3: node-check: host=gpu4 gpu=0 status=bad step=memory error=AcceleratorError: CUDA error: uncorrectable ECC error encountered\n" +
				"1: node-check: host=gpu2 gpu=3 status=bad step=memory error=AcceleratorError: CUDA error: unspecified launch failure\n" +
				"0: node-check: host=gpu1 gpu=0 status=bad step=nccl error=DistBackendError: wait timeout after 120000ms\n" + end,
			outcome.GPUHardware,
			[]string{"gpu2", "gpu4"},
		},
		"a network that nobody can be blamed for": {
			"0: node-check: host=gpu1 gpu=0 status=bad step=nccl error=DistBackendError: NCCL error: unhandled system error\n" +
				"1: node-check: host=gpu2 gpu=0 status=bad step=nccl error=DistBackendError: NCCL error: unhandled system error\n" + end,
			outcome.NCCLConnection,
			[]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := logfile.Read("gpt-7.out", strings.NewReader(c.log))
			require.NoError(t, err)
			r, err := Run(t.Context(), src, Context{})
			require.NoError(t, err)
			require.Equal(t, c.class, r.Class)
			require.Equal(t, c.exclude, r.ExcludeNodes)
			require.True(t, r.Retry)
		})
	}
}
