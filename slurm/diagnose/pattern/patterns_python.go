package pattern

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"

// pythonPatterns match messages of Python, PyTorch, Megatron and related packages about a wrong program
// or wrong input. Sources: PyTorch's ATen shape checks, argparse, importlib,
// megatron/training/arguments.py, megatron/core/utils.py (ensure_divisibility),
// megatron/core/rerun_state_machine.py, megatron/core/datasets, megatron/core/dist_checkpointing,
// huggingface_hub.
var pythonPatterns = []pattern{
	{outcome.MaxConnections, Specific + 6, oneOf("cuda_device_max_connections"), `(error|exception|assert|must|should|require|needs?|always|setting|set` +
		`|larger?|value|not).*cuda_device_max_connections|cuda_device_max_connections.*(must|should|require|needs?|to 1|is not|larger?|value|but|=)`},

	{outcome.ParallelConfig, Specific + 4, oneOf("must divide|should divide|does not divide|parallel dims|cannot be split|divisible|multiple of" +
		"|divide evenly|evenly divide|evenly split|split evenly|not divide|divided evenly|is not a factor of"), `(assert|must|should` +
		`|not|cannot|can't|has to|have to|needs? to).*(divisible|multiple of|evenly|divide|factor of)|(divisible|multiple of).*(but|got)|(divisible` +
		`|multiple of).*(parallel|size|world|number)|(must|should|does not) divide|parallel dims|(size|layers|heads|experts|batch)\b.* cannot be split`},
	{outcome.ParallelConfig, Specific + 2, oneOf("parallel"), `(tensor|pipeline|context|expert|data|model|sequence)[ _-]*(model[ _-]*)?parallel[ _-]*(size` +
		`|world size|degree)?.{0,60}(larger than|greater than|exceed|less than|smaller than|does not match|doesn't match|not equal|must equal` +
		`|cannot be split|too (large|small|many))|(world.?size).{0,80}(not equal|must equal|!=|does not equal|less than|smaller than).{0,80}parallel` +
		`|parallel.{0,60}(!=|does not equal|not equal|must equal).{0,40}world.?size|(number of|num_?)(query.groups|attention.heads|kv.heads` +
		`|key.value.heads|(moe.)?experts|layers|microbatches|micro.?batches).{0,80}(less than|smaller than|greater than|at least|cannot` +
		`|must).{0,80}(parallel|stage|rank)|decoder world size`},

	// Sizes whose product must be the world size.
	{
		outcome.ParallelConfig, Specific + 2, oneOf(" * "),
		`\bworld.?size\b.{0,40}(==|equal)\D{0,40}\w+ \* \w+|\w \* \w+\b.{0,40}(==|equal).{0,20}\bworld.?size\b` +
			`|assertion failed: \w*size == [tpdce]p \* [tpdce]p`,
	},

	{
		outcome.BadArgs, Specific + 3, oneOf("error: unrecognized arguments|error: the following arguments are required|error: argument " +
			"|error: ambiguous option|error: one of the arguments|error: unknown option|error: no such option|error: invalid value|unrecognized arguments:" +
			"|expected one argument|expected at least one argument|invalid choice:|error: invalid choice|not allowed with argument|no such option:" +
			"|missing option|arguments are not used|unknown argument|unrecognized option|unknown flag|unexpected extra argument" +
			"|flags parsing error:|unknown command line flag"), // absl and gflags
		`error:|invalid choice|unrecognized|argument|option|flag`,
	},
	{outcome.BadArgs, Specific + 1, oneOf("configattributeerror|configkeyerror|could not override|missingmandatoryvalue|missingconfigexception" +
		"|configcompositionexception|overrideparseexception|lexernoviablealtexception|mandatory value|yaml.scanner|yaml.parser|scannererror|parsererror" +
		"|missing_mandatory|tomldecodeerror|validationerror"), `error|exception|override|mandatory|missing`},
	{outcome.ShapeMismatch, Specific + 1, oneOf("incompatible with"), `(error|exception)\b.*\bincompatible with (the )?layer\b`}, // Keras, of its input
	{outcome.BadArgs, Specific, oneOf("is not supported with|not supported with|incompatible with|mutually exclusive|requires --|cannot be used together" +
		"|is no longer valid|must be specified|should be specified|must be provided|can only be used|only supported with|is deprecated and|must use --" +
		"|expected iteration-based|expected sample-based"), `(assertionerror|valueerror|runtimeerror|notimplementederror|exception)\b.*`},
	// Programs and scripts describe an error in their own arguments.
	{
		outcome.BadArgs, Specific - 10, oneOf("is required|are required|must be set|must be given|must be specified|is not set|not specified|missing required"),
		`^\W*(error|fatal|usage error)\W+.{0,80}\b(is|are) required\b|^\W*(error|fatal|usage error)\W+.{0,80}\b(must be (set|given|specified)` +
			`|(is )?not (set|specified)|missing required)\b`,
	},
	{outcome.BadArgs, Specific - 5, oneOf(".py: error: "), `^[\w.-]+\.py: error: `}, // argparse, with any message
	{outcome.BadArgs, Specific, oneOf("assertionerror: --|valueerror: --|runtimeerror: --|assertionerror: ('--|\"--)|unknown arguments|unknown config"), ``},

	{
		outcome.ShapeMismatch, Specific, oneOf("must match the size of tensor|shapes cannot be multiplied|is invalid for input of size" +
			"|must match the existing size|to match target batch_size|sizes of tensors must match|shape mismatch|doesn't match the broadcast shape" +
			"|split_with_sizes|could not be broadcast|inconsistent tensor size|expects each tensor to be equal size|tensors must have same" +
			"|must have the same number of dimensions|size of tensor|target sizes|shapes do not match|shapes don't match|mismatched shape|mismatched shapes" +
			"|mismatch in shape|invalid shape|incompatible shape|incompatible tensor shapes|dimension mismatch|inner dimensions|dimensions must match" +
			"|dimensions should match|batch1 and batch2|batch2 tensor|to have shape|to be of shape|padded input size|output size is too small|expected size|wrong shape|unexpected shape" +
			"|normalized_shape|normalized shape|must have same dimension|must have the same shape|must have the same size|same size as" +
			"|does not match the shape of|tensor sizes|size mismatch, m1|split sizes|broadcast together|negative dimension|expected input" +
			"|expected hidden size|expected hidden[0] size|expected hidden[1] size|input.size(-1) must be equal to input_size|must be matrices|is not broadcastable|does not broadcast|reduction dim|number of dimensions|are incompatible|shape '[" +
			"|d (unbatched)|(batch mode)"), // of a convolution's or a recurrent layer's input
		`^[\w.]*(error|exception)\b.*(size|shape|dimension|broadcast|multipl|normalized|split|equal|matri|matrices|same|match|expected input` +
			`|reduction dim)|^\W*(the )?(size of tensor|mat1 and mat2|shape '\[|shape mismatch|sizes of tensors)`,
	},
	{
		outcome.ShapeMismatch, Specific - 1, oneOf("mismatch|match|same as|torch.size(|but got|but is|but should be|differ"),
		`^[\w.]*(error|exception)\b.*(torch\.size\(.*torch\.size\(|\b(mismatch\w*|(does|do)(n't| not) match|must match|must be (the )?same|not equal` +
			`|differs?)\b.*\b(shapes?|sizes?|dims?|dimensions?|(sequence )?lengths?|seq_?len)\b|\b(shapes?|sizes?|dims?|dimensions?|sequence lengths?` +
			`|seq_?len)\b.*\b(mismatch\w*|(does|do)(n't| not) match|must match|must be (the )?same|not equal|differs?)\b|\b(shape|size` +
			`|dims?)\b.*[\[(][\d, ]+[\])].*\bbut (got|is|found|was|should be)\b.*[\[(][\d, ]+[\])])`,
	},
	{outcome.ShapeMismatch, Specific - 1, oneOf("output tensor size must be equal to|tensor size must be equal to|all tensor operands" +
		"|must be equal to world_size times|does not match expected shape|expected shape|got tensor with dims|dims ="), ``},

	// Qt and clients of the X server end a program that has no display.
	{outcome.UserException, Generic, oneOf("could not connect to any x display|no qt platform plugin could be initialized|cannot connect to x server"), ``},
	// Julia reports the exception that ended a script.
	{outcome.UserException, Generic, oneOf("error: loaderror: "), `^error: loaderror: `},
	{outcome.ExtensionABI, Specific + 5, oneOf("undefined symbol|glibcxx_|cxxabi_|no kernel image is available|cannot open shared object file" +
		"|invalid elf header|wrong elf class|symbol lookup error|numpy.dtype size changed|compiled using numpy 1|compiled against" +
		"|different cuda major versions|is not compatible with the current pytorch installation|torch not compiled with cuda" +
		"|device kernel image is invalid|unsupported gpu architecture|file too short|built with a different|was compiled for|was built for" +
		"|binary incompatibility|abi mismatch|abi version|module compiled against|only supports ampere|only supports hopper|undefined reference" +
		"|does not support sm|arch list|cudaerrornokernelimagefordevice|could not load library lib|could not load this library" +
		"|unsupported compute capability|requires compute capability|compute capability|ptxas fatal|is not defined for option" +
		"|could not find shared object|not a valid elf|symbol not found|multiple definition of|failed to load ptx|ptx jit|error building extension" +
		"|ninja: build stopped|no symbol version section"), `undefined symbol|(glibc\w*|cxxabi)_[\d.]+.{0,3} not found|no kernel image` +
		`|cannot open shared object|\belf\b|symbol (lookup|not found)|numpy|different cuda|not compatible with the current|not compiled with cuda` +
		`|kernel image is invalid|unsupported gpu|too short|(compiled|built) (against|for|with)|\babi\b|only supports|undefined reference` +
		`|does not support sm|cudaerrornokernel|could not load|compute capability.*(requir|support|least|only|not)|(requir|unsupported` +
		`|need).*compute capability|shared object|ptx|not defined for option|extension|ninja|version section`},
	// A PyTorch built without CUDA lacks the functions behind torch.cuda.
	{outcome.ExtensionABI, Specific + 5, oneOf("module 'torch._c' has no attribute '_cuda"), ``},
	// torch's registry has no operator of an extension, because its library was not loaded (aten/src/ATen/core/dispatch/Dispatcher.cpp,
	// torch/csrc/jit/runtime/operator.cpp, torch/_ops.py).
	{
		outcome.ExtensionABI, Specific + 5, oneOf("operator |_opnamespace"),
		`^runtimeerror: (operator \w+::\w+ does not exist|no such operator \w+::\w+)|'_opnamespace' '\w+' object has no attribute`,
	},
	{outcome.ExtensionABI, Specific + 5, oneOf("glibc_"), `glibc_[\d.]+.{0,3} not found`},
	{outcome.ExtensionABI, Specific + 2, oneOf("c++ extension|cpp extension|cpp_extension|building extension"), `(required|requires?|needed|failed|error` +
		`|cannot|could not|unable)\b.{0,60}(c\+\+|cpp)[ _]extension|error building extension|(c\+\+|cpp)[ _]extensions?\b.{0,60}(not (built|found` +
		`|available|compiled)|failed|required|missing)`},
	// A package that is built when the job starts (pip, CMake, torch.utils.cpp_extension).
	{
		outcome.ExtensionABI, Specific, oneOf("error compiling objects for extension|failed building wheel for|failed-wheel-build-for-install|cmake error at"),
		`^\s*(runtimeerror: error compiling objects|error: failed (building wheel for|to build installable)|error: failed-wheel-build|cmake error at \S+:\d+)`,
	},
	{outcome.ExtensionABI, Specific, oneOf("detected cuda version|cuda version"), `detected cuda version.*mismatch|cuda version.{0,60}(mismatch|does not match|differs)`},
	{outcome.ExtensionABI, Specific, oneOf("transformer_engine|transformer engine|flash_attn|flash-attn|apex|causal_conv1d|mamba_ssm|deep_ep|grouped_gemm" +
		"|nvte|triton"), `(version|abi|compiled|built|build).{0,60}(mismatch|incompatible|not compatible)|incompatible.{0,60}(version|build)`},

	{outcome.ImportError, Specific, oneOf("modulenotfounderror|no module named|cannot import name|attempted relative import" +
		"|error while finding module specification|partially initialized module|has no attribute '__version__'|is not a package"), ``},
	{outcome.ImportError, Specific - 1, oneOf("importerror"), `importerror\s*:`},
	{outcome.ImportError, Specific - 1, oneOf("packagenotfounderror|distributionnotfound|no package metadata|versionconflict|requires the|please install" +
		"|is not installed|not installed"), `(packagenotfounderror|distributionnotfound|versionconflict|no package metadata|((import|runtime|module` +
		`|assertion|value)error).*(install))`},
	{
		outcome.ImportError, Specific - 1, oneOf("module '"),
		`attributeerror: (partially initialized )?module '(megatron|transformer_engine|torch|apex|flash_attn)[\w.]*' has no attribute`,
	},

	// torch/distributions: of all numbers only NaN fails the constraint to be real.
	{outcome.NaNLoss, Specific + 2, oneOf("to satisfy the constraint"), `satisfy the constraint (\w+\()*real(vector)?\(.*found invalid values`},
	{outcome.NaNLoss, Specific + 2, oneOf("损失|梯度"), `(?:损失|梯度)(?:范数)?(?:值)?(?:为|是|=|出现|变成|变为) ?(?:nan|inf)|已发散`},
	{outcome.NaNLoss, Specific + 2, oneOf("found nan|found inf|nan in |inf in |unexpected result nan|unexpected result inf|message='loss is nan|loss is nan" +
		"|loss is inf|is nan|is inf|loss scale already at minimum|already at minimum - cannot decrease|minimum loss scale|nan values in its|exploding|non-finite" +
		"|nonfinite|not finite|isnan|loss became nan|nan detected|nan loss|been nan|been inf|was nan|was inf|norm is nan|norm is inf|norm nan|contains nan|contains inf|spiky loss" +
		"|diverged|nan or inf|nan/inf|inf/nan|inf or nan"), `(found|unexpected|encountered|detected|got|produced|returned|contains?|has|is|became|was` +
		`|were)\W+(a )?(nan|inf)\b|(nan|inf)\b.{0,4}(in|values|detected|or|/|loss|grad)|already at minimum|minimum loss scale|non.?finite|not finite` +
		`|loss.*(nan|inf)\b|spiky loss|(loss|training|model) (has )?diverged|(grad\w*|loss).{0,20}exploding|exploding.{0,12}(grad|loss)`},

	{outcome.DatasetMissing, Specific + 3, oneOf(".idx|.bin|dataset|index map|data-path|data_path|blend|vocab|merges|tokenizer.model|.jsonl|corpus" +
		"|data-cache|data_cache|sentencepiece|document|samples"), `(cannot be found|not found|does not exist|no such file|doesn't exist|couldn't find` +
		`|could not find|missing|is empty|empty dataset|no samples|not enough samples|cannot read|bad header|bad version|unsupported version` +
		`|doesn't match expected format|invalid (index|header|magic)|corrupt|can't find|unable to open|no (such )?file|datasetnotfound|zero.?(length` +
		`|samples)|\b0 (samples|documents)|mmap length|unable to find|failed to open|failed to load).*(\.idx|\.bin|dataset|index map|data.?path|blend` +
		`|vocab|merges|tokenizer\.model|\.jsonl?|corpus|data.cache|sentencepiece|documents?\b)|(\.idx|\.bin|dataset|index map|data.?path|blend|vocab` +
		`|merges|tokenizer\.model|\.jsonl?|corpus|data.cache|sentencepiece|documents?\b).*(cannot be found|not found|does not exist|doesn't exist` +
		`|couldn't find|could not find|missing|is empty|no samples|bad header|expected format|corrupt|cannot be (read|opened|mapped))`},
	// A script looks at, copies or unpacks data. All of coreutils say that they cannot do something with a file.
	{
		outcome.DatasetMissing, Specific, oneOf("no such file or directory"),
		`^(\S*/)?((cp|mv|rsync|tar|unzip|ln|cat|scp|gunzip|zstd)\b|[\w.-]+: cannot \w+).*(/data|dataset|corpus|\.(tar|tgz|gz|zst|zip|jsonl?|bin|idx|parquet|arrow|h5|np[yz])\b).*: no such file`,
	},
	{outcome.DatasetMissing, Specific + 3, oneOf("bad header, cannot read|bad version, cannot read|index file doesn't match|one or both of the .idx and .bin" +
		"|cannot mmap an empty file|mmap length is greater than file size|no sample to consume|num_samples should be a positive" +
		"|oversamples the contributing|datasetnotfounderror|emptydataseterror|datagenerationerror|datafilesnotfounderror|dataset scripts are no longer" +
		"|missing data file"), ``},
	// Files of other data formats that are truncated or not of that format.
	{
		outcome.DatasetMissing, Specific, oneOf("arrow|parquet|webdataset|readerror|not a gzipped file|avro|tfrecord|hdf5|h5py|zarr"),
		`(arrowinvalid|arrowioerror|arrow\w*error)\b|(parquet|webdataset|avro|tfrecord|hdf5|h5py|zarr|truncated|corrupt\w*)\b.{0,80}(magic|invalid` +
			`|corrupt|truncat|not found|not a|unable|cannot|signature|footer)|(invalid|corrupt|unable|cannot|could not|not a)\b.{0,40}(parquet|webdataset` +
			`|avro|tfrecord|hdf5|zarr|gzipped) file|not a gzipped file`,
	},
	{
		outcome.DatasetMissing, Specific + 1, oneOf("parse modelproto|not found: \"|internal: src/sentencepiece|sentencepiece_processor.cc"),
		`not found: "|sentencepiece|modelproto`,
	},

	{
		outcome.HFHub, Specific + 4, oneOf("huggingface.co|hf.co|localentrynotfounderror|offlinemodeisenabled|hfhubhttperror|gatedrepoerror" +
			"|repositorynotfounderror|revisionnotfounderror|entrynotfounderror|hfvalidationerror|hf_hub_offline|outgoing traffic has been disabled" +
			"|is not a local folder and is not a valid model|can't load tokenizer for|can't load the configuration of|can't load the model for" +
			"|cannot access gated repo|gated repo|hf-mirror|modelscope.cn|cdn-lfs|openaipublic.blob|couldn't connect to 'https" +
			"|does not appear to have a file named|hub.py|cas-bridge|xethub"),
		`error|exception|couldn't|can't|cannot|offline|disabled|not a local folder|gated|timed out|refused|retries|not appear`,
	},
	{outcome.HFHub, Specific, oneOf("client error|server error|max retries exceeded"), `(401|403|404|429|5\d\d) (client` +
		`|server) error.{0,60} for url: https?://[^ ]*(hugging|hf|model|hub|tokenizer)|max retries exceeded with url: /\S*(resolve|api/models|tokenizer` +
		`|config\.json)`},

	{
		outcome.CheckpointLoad, Specific + 4, oneOf("loading state_dict|missing key(s) in state_dict|unexpected key(s)|copying a param with shape" +
			"|checkpointingexception|checkpointexception|failed finding central directory|pytorchstreamreader|ran out of input|invalid load key" +
			"|file might be corrupted|unpicklingerror|pickle data was truncated|weights only load failed|weights_only|archive is corrupted" +
			"|corrupted archive|global shape mismatch|is not a distributed checkpoint|safetensorerror|error while deserializing header" +
			"|metadataincompletebuffer|invalid header or archive|badzipfile|not a zip file|parameter group that doesn't match" +
			"|different number of parameter groups|exit-on-missing-checkpoint|no checkpoint found|value from checkpoint" +
			"|unable to load optimizer|unable to load rng state|unable to load iteration|invalid metadata file|error parsing metadata file|could not find common_state|unexpected eof|unsupported operand state_dict" +
			"|loaded state dict|load_state_dict|state dict|checkpoint shard|missing shards|not found in checkpoint|missing from the checkpoint|magic number" +
			"|wrong byte size|corrupt checkpoint|checkpoint is corrupt"),
		`error|exception|missing|mismatch|corrupt|invalid|failed|exiting|truncat|unexpected|not (a|found|match|equal)|unable|different|wrong`,
	},
	// DeepSpeed's optimizer state belongs to another number of ranks (deepspeed/runtime/engine.py).
	{outcome.CheckpointLoad, Specific + 4, oneOf("checkpoint being loaded used a"), ``},
	{outcome.CheckpointLoad, Specific + 4, oneOf("error no file named"), `no file named .*(\.safetensors|\.bin|\.ckpt)`},
	{outcome.CheckpointLoad, Specific + 4, oneOf("checkpoint"), `\b(missing|unexpected|unknown|mismatched)( \w+)? keys?\b.{0,60}checkpoint|(error|exception` +
		`|exit\w*|fail\w*|fatal)\b.{0,160}\bcheckpoint\S*.{0,120}(not exist|not found|missing|mismatch|does not match|corrupt|invalid|incompatible` +
		`|cannot|could ?n.t|unable|incomplete|unexpected|not equal|no such file)|(cannot|could ?n.t|could not|unable to|failed to|error while` +
		`|error) (load|loading|read|reading|open|find|restore|restoring|deserializ\w+).{0,60}checkpoint|^[\w.]*(error|exception): (loading` +
		`|restoring) (a )?checkpoint`},
	{outcome.CheckpointLoad, Specific + 4, oneOf("iter_0|.distcp|model_optim_rng|latest_checkpointed_iteration|mp_rank_|common.pt|distrib_optim|.safetensors" +
		"|metadata.json|.metadata"), `(filenotfounderror|runtimeerror|eoferror|oserror|exception|valueerror|keyerror).*(no such file|not found` +
		`|does not exist|corrupt|missing|truncat|incomplete)`},
	{outcome.UserException, Generic, oneOf("failed"), testsFailedForm},
}
