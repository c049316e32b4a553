package diagnose_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// What CUDA and its libraries allocate for themselves is little: if that fails, the GPU is full, and
// often by another process.
func TestAnAllocationOutsideThePool(t *testing.T) {
	for line, outside := range map[string]bool{
		"torch.AcceleratorError: CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/cuda/ for more information.":                                                                                   true,
		"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`":                                                                                                                                           true,
		"torch.distributed.DistBackendError: NCCL error in: /pytorch/NCCLUtils.cpp:93, unhandled cuda error, NCCL version 2.28.9\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nFailed to CUDA calloc async 608 bytes": true,
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.":                                                                                                                                                            false,
	} {
		r := diagnosetest.Text(t, diagnosetest.Raised(line))
		require.Equal(t, outcome.CUDAOOM, r.Class, line)
		require.Equal(t, outside, strings.Contains(r.Advice[0], "outside PyTorch's pool"), line)
	}
}

// A rank's line that srun wrote once more with those of all ranks is one piece of evidence.
func TestALineInTwoFilesIsShownOnce(t *testing.T) {
	line := "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\n"
	raised := "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/train.py\", line 9, in <module>\n" + line
	r := ofFolder(t, map[string]string{"rank-0.err": raised, "slurm-7.out": "[rank1]: step 3\n" + raised})
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Len(t, r.Evidence, 1)
}
