package diagnosetest

import (
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// Causes are the failures that the composed jobs have on one rank.
var Causes = []struct {
	Class string
	Line  string // a part of the line that shows the cause
	Do    func(r *Run, at time.Duration, rank int)
	Code  int
	Node  bool // the diagnosis should exclude the node
}{
	{outcome.CUDAOOM, "CUDA out of memory", raises("backward_step", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of "+
		"79.10 GiB of which 1.20 GiB is free."), 1, false},
	{outcome.UserException, "KeyError: 'mask'", raises("forward_step", "KeyError: 'mask'"), 1, false},
	{outcome.Filesystem, "Stale file handle", raises("get_batch", "OSError: [Errno 116] Stale file handle: '/nfs/d.bin'"), 1, true},
	{outcome.GPUHardware, "uncorrectable ECC", raises("forward_step", "RuntimeError: CUDA error: uncorrectable ECC error encountered"), 1, true},
	{outcome.NaNLoss, "found NaN in local", raises("train_step", "AssertionError: Rank {rank}: found NaN in local grad norm. Device: {local}, node: {host}"), 1, false},
	{outcome.CheckpointLoad, "central directory", raises("load_checkpoint", "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"), 1, false},
	{outcome.Segfault, "Segmentation fault", func(r *Run, at time.Duration, rank int) {
		r.Say(at, rank, "Fatal Python error: Segmentation fault", "", "Thread 0x00007f12 (most recent call first):", `  File "/v/x.py", line 3 in f`)
	}, -11, false},
	{outcome.CUDAIllegalAccess, "illegal memory access", raises("forward_step", "RuntimeError: CUDA error: an illegal memory access was encountered"), 1, false},
	{outcome.DatasetMissing, "part_044.idx", raises("train_valid_test_datasets_provider", "FileNotFoundError: [Errno 2] No such file or directory: '/d/part_044.idx'"), 1, false},
	{outcome.HostOOM, "killed by signal: Killed", raises("get_batch", "RuntimeError: DataLoader worker (pid 812) is killed by signal: Killed. "), 1, false},
	{outcome.DiskFull, "No space left", raises("save_checkpoint", "OSError: [Errno 28] No space left on device: '/ckpt/x.distcp'"), 1, false},
	{outcome.DeviceAssert, "srcIndex < srcSelectDimSize", func(r *Run, at time.Duration, rank int) {
		r.Say(at, rank, "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1553: indexSelectLargeIndex: block: [17,0,0], thread: [64,0,0] Assertion "+
			"`srcIndex < srcSelectDimSize` failed.")
		r.Raise(at+time.Second, rank, "forward_step", "RuntimeError: CUDA error: device-side assert triggered")
	}, 1, false},
	{outcome.ShapeMismatch, "must match the size", raises("forward_step", "RuntimeError: The size of tensor a (4096) must match the size of tensor b (2048) at non-singleton dimension 1"), 1, false},
	{outcome.CUDADriver, "No CUDA GPUs are available", raises("initialize_megatron", "RuntimeError: No CUDA GPUs are available"), 1, true},
	{outcome.HostOOM, "-9", func(*Run, time.Duration, int) {}, -9, false},
	{outcome.ShmBusError, "-7", func(*Run, time.Duration, int) {}, -7, false},
}

// raises returns a cause that is one exception, raised in a function.
func raises(function, line string) func(r *Run, at time.Duration, rank int) {
	return func(r *Run, at time.Duration, rank int) { r.Raise(at, rank, function, line) }
}
