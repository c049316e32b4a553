package diagnose_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
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

// Megatron-LM exits with 0 where it finds no checkpoint to load and was told to exit then, so that Slurm
// calls the job completed.
func TestAMissingCheckpointEndsTheRunWithZero(t *testing.T) {
	log := "WARNING: could not find the metadata file /w/none/latest_checkpointed_iteration.txt\n    will not load any checkpoints and will start from random\n" +
		">> '--exit-on-missing-checkpoint' set ... exiting. <<\n"
	r := diagnosetest.With(t, log, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"})
	require.Equal(t, outcome.CheckpointLoad, r.Class)
	require.Contains(t, r.Advice[0], "--load")
	r = diagnosetest.With(t, log+diagnosetest.Rounds(9, " iteration {n}/ 9 | elapsed time per iteration (ms): 9.0 | lm loss: 2.0E+00 |\n"), diagnose.Context{JobState: "COMPLETED"})
	require.Equal(t, outcome.Success, r.Class, "an earlier attempt's word")
}

// The interpreter writes its stacks below its report of a crash, so nobody need ask for them.
func TestTheStackOfACrashIsThere(t *testing.T) {
	r := diagnosetest.Text(t, "step 9\nFatal Python error: Segmentation fault\n\nCurrent thread 0x00007f59 (most recent call first):\n  File \"/w/train.py\", line 19 in step\n")
	require.Equal(t, outcome.Segfault, r.Class)
	require.Contains(t, r.Advice[0], "Current thread")
	require.NotContains(t, strings.Join(r.Advice, " "), "PYTHONFAULTHANDLER")
}
