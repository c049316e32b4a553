package pattern

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"

// gpuPatterns match messages of CUDA, its libraries, the driver and the kernel about a GPU. Sources:
// CUDA's error strings (cudaGetErrorString), PyTorch's c10/cuda/CUDACachingAllocator.cpp and
// CUDAException.cpp, the Xid catalogue.
var gpuPatterns = []pattern{
	{outcome.HostOOM, Specific + 3, oneOf("java.lang.outofmemoryerror"), ``},
	{outcome.CUDAOOM, Specific, oneOf("cuda out of memory|hip out of memory|outofmemoryerror"), ``},
	{outcome.CUDAOOM, Specific, oneOf("cublas_status_alloc_failed|cudnn_status_alloc_failed|cusolver_status_alloc_failed|cusparse_status_alloc_failed" +
		"|cusparse_status_insufficient_resources|cuda_error_out_of_memory|cudaerrormemoryallocation|hiperroroutofmemory"), ``},
	{outcome.CUDAOOM, Specific, oneOf("out of memory"), `cuda (runtime |driver )?(error|failure)[^a-z]*(2|out of memory)|nccl.*out of memory|(cumem` +
		`|cudamalloc|cuda alloc|cuda calloc)\w*.*out of memory|allocat\w+ .*(gpu|device|cuda).*out of memory|out of memory (on|for) (gpu|device)|(gpu` +
		`|device|cuda|hbm) .*out of memory|out of memory.*(gpu|cuda)`},
	{outcome.CUDAOOM, Specific, oneOf("out of gpu memory trying to allocate|less than desired gpu memory utilization"), ``}, // Julia's CUDA.jl; vLLM
	// PyCUDA, RMM and Theano raise errors with the names of Python's own.
	{outcome.CUDAOOM, Specific + 3, oneOf("memoryerror"), `memoryerror: .*(cuda error|cumem\w+ failed|of device memory)`},
	{outcome.CUDAOOM, Specific, oneOf("oom when allocating"), `device:gpu|gpu_\d+_bfc`},
	{outcome.CUDAOOM, Specific, oneOf("allocation on device|failed to cuda malloc|failed to cuda calloc|resource_exhausted: out of memory|ran out of memory in memory space"), ``},
	{outcome.CUDAOOM, vague, oneOf("cublas_status_not_initialized|cudnn_status_not_initialized"), ``},

	// The node check that a rendered script runs before training. A GPU that cannot provide its memory
	// is bad; a GPU that does not answer may have a bad peer.
	{outcome.GPUHardware, Fact, oneOf("node-check: "), `\bnode-check: host=\S+ gpu=\d+ status=bad step=memory`},
	{outcome.NCCLConnection, Fact, oneOf("node-check: "), `\bnode-check: host=\S+ gpu=\d+ status=bad step=nccl`},
	{outcome.GPUHardware, Fact, oneOf("xid"), `\bxid\b[^:]*(\([^)]*\))?:? *(46|48|54|58|60|61|62|63|64|74|79|80|81|94|95|96|97|98|109|110|119|120|122` +
		`|123|124|125|136|140|142|143|144|145|146|147|148|149|150|151|154|155|156|158|160|162|163|164|165|166|167|168|169|170|171|172)\b`},
	// The driver repaired these, or counts them; NVIDIA's catalogue says to ignore them. They explain an end only if nothing else does.
	{outcome.GPUHardware, Death, oneOf("xid"), `\bxid\b[^:]*(\([^)]*\))?:? *(92|121|137|157|161)\b`},
	{outcome.GPUHardware, Fact, oneOf("fallen off the bus|gpu is lost|unable to determine the device handle|gpu requires reset|gpu reset required" +
		"|rminitadapter failed|gpu access blocked|row remapping failure|row remap failure|row remapper failure|double bit ecc|double-bit ecc" +
		"|nvswitch fatal|sxid|gpu_is_lost|reset required"), ``},
	{outcome.GPUHardware, Fact, oneOf("ecc"), `(uncorrect\w+|unrecoverable|dbe|double.bit)[^:]{0,20} ecc|ecc[^:]{0,10} (uncorrect` +
		`|error (encountered|detected))|cuda_?error_?ecc_?uncorrectable|ecc page retirement|sram ecc`},
	{outcome.GPUHardware, Fact, oneOf("nvlink"), `(uncorrectable|fatal|hardware) .*nvlink|nvlink.*(uncorrectable|fatal|link .*down|is down|hardware error` +
		`|error detected|inactive)`},
	{
		outcome.GPUHardware, Fact, oneOf("hardware error|pcie bus error|thermal shutdown|contained error|uncontained"),
		`mce:.*hardware error|severity=uncorrect|severity=fatal|thermal shutdown|(un)?contained (memory )?error` +
			`|peer gpu memory over nvlink or a hardware error|gpu.*hardware error`,
	},
	{
		outcome.GPUHardware, vague, oneOf("cuda error: unknown error|gsp rpc|gpu has an unhandled|tensor core health|gpu sniff test"),
		`cuda error: unknown error|timeout.*gsp rpc|gpu sniff test.*fail`,
	},

	{outcome.CUDADriver, Specific, oneOf("driver on your system is too old|no cuda gpus are available|invalid device ordinal|system not yet initialized" +
		"|invalid cudaplace(|driver version is insufficient|found no nvidia driver|no cuda-capable device|forward compatibility was attempted" +
		"|driver/library version mismatch|display driver / cuda driver combination|couldn't communicate with the nvidia driver" +
		"|nvml shared library not found|cuda driver initialization failed|cudaerrornodevice|cudaerrorinvaliddevice|cuda_error_no_device" +
		"|cuda_error_invalid_device|cuda_error_system_not_ready|cudaerrorsystemnotready|devices are busy or unavailable" +
		"|device(s) is/are busy or unavailable|no devices were found|fabric manager|fabricmanager|nv-fabricmanager|cudaerrorinsufficientdriver" +
		"|cudaerrorinitializationerror|cudaerrordevicesunavailable|failed to initialize nvml|unsupported toolchain|no gpus found|no gpu found" +
		"|no nvidia gpu|cannot find any torch accelerator|cuda is not available|cuda not available|device < num_gpus|cuda call failed lazily|libcuda.so cannot found"), ``},
	{
		outcome.CUDADriver, Specific, oneOf("cuda unknown error|cuda error: initialization error|initialization error|cuda initialization"),
		`cuda unknown error - this may be due to|cuda (error|failure)\W*(3 ')?initialization error|cuda initialization: (unexpected|cuda)`,
	},
	{outcome.CUDADriver, Specific, oneOf("torch.cuda.is_available|device_count|visible devices|gpus per node"), `torch\.cuda\.is_available\(\) is false` +
		`|assert.*device_count\(\)|device_count\(\).*(is|==|returned) 0|local.?rank \d+ .*(only|but) .*\d+ (gpu|device|visible)|visible devices (is` +
		`|are) (empty|0)`},
	{
		outcome.CUDADriver, Specific, oneOf("requires cuda|requires a cuda|requires gpu|requires a gpu|requires an nvidia|requires nvidia"),
		`^[\w.]*(error|exception)\b.*requires (an? )?(nvidia )?(cuda|gpu)s?( device| support)?\W*$`,
	},
	{outcome.CUDADriver, vague, oneOf("cuda error: operation not supported|peer access is not supported"), ``},

	{outcome.CUDAIllegalAccess, Specific, oneOf("illegal memory access|misaligned address|unspecified launch failure|illegal instruction was encountered" +
		"|invalid program counter|address space mismatch|operation not supported on global/shared address space|cuda_error_illegal_address" +
		"|cudaerrorillegaladdress|cuda_error_launch_failed|cudaerrorlaunchfailure|warp illegal|the launch timed out and was terminated" +
		"|hardware stack error|cuda error: invalid address"), ``},
	{outcome.CUDAIllegalAccess, vague, oneOf("cublas_status_execution_failed|cublas_status_internal_error|cublas_status_mapping_error" +
		"|cudnn_status_execution_failed|cudnn_status_internal_error|cuda error: invalid argument|cuda error: invalid configuration argument" +
		"|cuda error: invalid resource handle|cuda error: launch failed|gpu program failed to execute|cufft_internal_error" +
		"|cusolver_status_internal_error|nvte_error"), ``},
	{outcome.CUDAIllegalAccess, vague, oneOf("xid"), `\bxid\b[^:]*(\([^)]*\))?:? *(6|8|11|12|13|31|32|44|45|68|69)\b`},

	// A program's own error while it records a CUDA graph (cudaGetErrorString, 900 to 908).
	{outcome.UserException, Specific + 6, oneOf("when stream is capturing|cudaerrorstreamcapture|capturing stream has|previous error during capture"), ``},

	{outcome.DeviceAssert, Specific, oneOf("device-side assert|cudaerrorassert|cuda_error_assert|srcselectdimsize"), ``},
	{outcome.DeviceAssert, Specific, oneOf("assertion `"), "(block: \\[|thread: \\[|\\.cu:\\d+|index out of bounds).*assertion `.*` failed" +
		"|assertion `.*(index|idx|ind|t |class|target|label|prob|cur_target).*` failed"},
}
