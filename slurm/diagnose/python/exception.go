// Package python parses what Python prints for an exception: its type and message, its traceback, and
// its relation to the exception before it. It classifies failures by type, message and stack.
package python

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// A Frame is one line of a Python traceback.
type Frame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

// A Traceback is the stack of one exception, outermost frame first. It is assembled from the lines of
// one rank.
type Traceback struct {
	Frames []Frame
	Caught bool // introduced by words that say that the program goes on
	Inset  bool // quoted in torchelastic's summary
	Logged bool // logged at a level below error
	Chain  Chain
	// A headless stack has no header. It may not be a traceback, such as the output of print_stack, so
	// only a well-known exception name ends it.
	Headless bool
	creates  bool   // a line of source code on it creates a file
	source   string // its last line of source code
	Uncaught bool   // PyTorch wrote its rank before it, as sys.excepthook does for an exception that ends the process
	Of       string // the rank that raised it, where another rank quotes it; else empty
}

// RankOf returns the rank that torch.distributed.checkpoint names after the header of a traceback that
// it quotes: "Traceback (most recent call last): (RANK 3)".
func RankOf(head string) string {
	_, of, ok := strings.Cut(head, "(RANK ")
	if !ok {
		return ""
	}
	of, _, _ = strings.Cut(of, ")")
	return of
}

// InTracker reports whether multiprocessing's resource tracker raised the exception. That process
// cleans up after others; its end affects no other process.
func (t *Traceback) InTracker() bool {
	return len(t.Frames) > 0 && strings.HasSuffix(t.Frames[len(t.Frames)-1].File, "/multiprocessing/resource_tracker.py")
}

// Header is the first line of a traceback, without its colon.
const Header = "Traceback (most recent call last)"

// Ignored introduces an exception that cannot end its process: one in a finalizer, or in a function
// called at exit.
const Ignored = "Exception ignored in"

// LoggingFailed introduces an exception with which a handler of Python's logging could not write a record. The program goes on.
const LoggingFailed = "--- Logging error ---"

// AddSource takes in a line of source code, which Python prints below each frame.
func (t *Traceback) AddSource(line string) {
	t.creates = t.creates || opensToWrite.MatchString(line)
	if strings.ContainsAny(line, "()") { // not the marks below it
		t.source = line[:min(len(line), 400)]
	}
}

// missingExtension matches the name of a compiled module that is not defined, because its import had failed and the
// program went on without it: _C, or one that ends like setuptools' names for what nvcc and the C++ compiler built.
var missingExtension = lazy.New(`^name '(_C|_ext|\w+_(?:cuda|cpp|ext|C))' is not defined`)

// extensionMissing reports whether an exception says that a compiled module is missing of which the program calls a function.
// A variable whose name ends so is a tensor or a text, which its methods tell.
func extensionMissing(kind, message string, t *Traceback) bool {
	if kind != "NameError" || t == nil {
		return false
	}
	g := missingExtension.FindStringSubmatch(message)
	if g == nil {
		return false
	}
	_, called, found := strings.Cut(t.source, g[1]+".")
	name := attribute.FindString(called)
	return found && name != "" && (strings.HasPrefix(g[1], "_") || !ofValues.MatchString(name))
}

// attribute matches the name behind a dot.
var attribute = lazy.New(`^\w+`)

// ofValues matches what tensors, texts and their containers have, as opposed to modules.
var ofValues = lazy.New(`^(?:to|cuda|cpu|numpy|item|tolist|detach|clone|copy_?|data|grad|device|dtype|shape|size|dim|ndim|numel|view|reshape|flatten|` +
	`permute|transpose|T|squeeze|unsqueeze|expand|repeat|contiguous|float|half|double|bfloat16|long|int|bool|type|mean|sum|std|var|max|min|abs|norm|` +
	`argmax|argmin|index_select|masked_fill_?|requires_grad_?|zero_|fill_|pin_memory|split|chunk|append|extend|get|keys|values|items|pop|` +
	`lower|upper|strip|lstrip|rstrip|startswith|endswith|replace|join|format|encode|decode)$`)

// FolderMissing reports whether an exception of this kind and stack says that the folder is missing in
// which the run was to create a file.
func FolderMissing(kind string, t *Traceback) bool {
	return kind == "FileNotFoundError" && t != nil && (t.creates || t.Has("logging/__init__.py"))
}

// opensToWrite matches a call with a mode in which open creates the file.
var opensToWrite = lazy.New(`\(.*, *(?:mode *= *)?['"][wax][bt+]{0,2}['"]`)

// maxFrames bounds the frames of a traceback. Add keeps the outermost and the innermost ones.
const maxFrames = 64

// Add appends a frame. It drops frames in the middle of a very deep stack, and the outermost frames of
// python -m, which are not the program's.
func (t *Traceback) Add(f Frame) {
	if len(t.Frames) == 0 && runpy.MatchString(f.File) {
		return
	}
	if len(t.Frames) >= maxFrames {
		copy(t.Frames[maxFrames/2:], t.Frames[maxFrames/2+1:])
		t.Frames = t.Frames[:maxFrames-1]
	}
	t.Frames = append(t.Frames, f)
}

// runpy matches Python's own file that runs a module by name.
var runpy = lazy.New(`^(?:<frozen runpy>|.*/python\d[\d.]*/runpy\.py)$`)

// richFrame matches a frame in a traceback drawn by Rich, "│ /x/y.py:12 in f │". After a long path the
// function is on the next line.
var richFrame = lazy.New(`^│ (\S+\.py):(\d+) in ?(\S*) *│?$`)

// inBox reports whether a line is part of the box that Rich draws around a traceback.
func inBox(text string) bool {
	return strings.HasPrefix(text, "│") || strings.HasPrefix(text, "╰") || strings.HasPrefix(text, "╭")
}

// Boxes reports whether a line is part of Rich's box, and takes the last frame's function from it if
// that is still missing.
func (t *Traceback) Boxes(text string) bool {
	if n := len(t.Frames); inBox(text) && n > 0 && t.Frames[n-1].Function == "" {
		t.Frames[n-1].Function = strings.Trim(text, "│ ")
	}
	return inBox(text)
}

// ParseFrame parses ` File "/x/y.py", line 12, in f`, or the same in Rich's form.
func ParseFrame(text string) (Frame, bool) {
	if inBox(text) {
		g := richFrame.FindStringSubmatch(text)
		if g == nil {
			return Frame{}, false
		}
		n, err := strconv.Atoi(g[2])
		return Frame{g[1], n, g[3]}, err == nil
	}
	text = strings.TrimLeft(text, " \t|")
	rest, ok := strings.CutPrefix(text, `File "`)
	if !ok {
		return Frame{}, false
	}
	file, rest, ok := strings.Cut(rest, `", line `)
	if !ok {
		return Frame{}, false
	}
	num, function, _ := strings.Cut(rest, ", in ")
	function, _, _ = strings.Cut(strings.TrimSpace(function), "   ") // a terminal's copy mode writes its position behind the line
	n, err := strconv.Atoi(strings.TrimSpace(num))
	return Frame{file, n, function}, err == nil
}

// exceptionName matches the last line of a traceback: a dotted class name, alone or with a message.
var exceptionName = lazy.New(`^([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::(?:\s(.*))?)?$`)

// ExceptionKinds matches class names that denote exceptions anywhere in a log. Within a traceback any
// class name does.
var ExceptionKinds = lazy.New(`(?:Error|Exception|Interrupt|Failure|Exit|Timeout|StopIteration|Expired|Abort|Fault|Invalid|OfMemory|NotFound|` +
	`Unavailable|Enabled|OutOfResources)$`)

// torchelasticHeading begins torchelastic's list of failed processes, which may stand amid tracebacks of several processes.
const torchelasticHeading = "Failures:"

// ParseException splits the last line of a traceback into type and message. within says that a
// traceback precedes the line. Python may write the module, the dot and the class one after the other,
// and another process between them, so that the line begins with the dot.
func ParseException(text string, within bool) (kind, message string, ok bool) {
	text = strings.TrimPrefix(strings.TrimRight(text, " \t\r"), ".")
	m := exceptionName.FindStringSubmatch(text[:min(len(text), 4096)])
	if m == nil {
		return "", "", false
	}
	known := ExceptionKinds.MatchString(m[1])
	alone := len(m[1]) == len(text) && !strings.Contains(m[1], ".")
	if !known && (!within || m[1] == strings.ToUpper(m[1]) || alone || text == torchelasticHeading) { // such as "WARNING: …"
		return "", "", false
	}
	if !within && (m[1] == "Error" || !strings.HasPrefix(text[len(m[1]):], ":")) { // any program may write "Error: …"
		return "", "", false
	}
	return m[1], m[2], true
}

// libraries are parts of paths of code that the user did not write.
var libraries = []string{"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ", "<string>", "/usr/lib/python", "/__autograph_generated_file"}

// Innermost returns the deepest frame of the user's own code, or the deepest frame if all are
// libraries'.
func (t *Traceback) Innermost() (Frame, bool) {
	if t == nil || len(t.Frames) == 0 {
		return Frame{}, false
	}
	for i := len(t.Frames) - 1; i >= 0; i-- {
		if !InLibrary(t.Frames[i].File) {
			return t.Frames[i], true
		}
	}
	return t.Frames[len(t.Frames)-1], true
}

// InLibrary reports whether a file belongs to Python or to an installed package.
func InLibrary(file string) bool {
	return slices.ContainsFunc(libraries, func(part string) bool { return strings.Contains(file, part) })
}

// Has reports whether any frame is in one of the named functions, files, or (with a slash at the end)
// folders.
func (t *Traceback) Has(names ...string) bool {
	if t == nil {
		return false
	}
	for _, f := range t.Frames {
		file := "/" + f.File
		for _, n := range names {
			if f.Function == n || strings.HasSuffix(file, "/"+n) || strings.HasSuffix(n, "/") && strings.Contains(file, "/"+n) {
				return true
			}
		}
	}
	return false
}

// phases maps functions on the stack to what the run was doing. The first row with a match decides.
var phases = []struct {
	phase string
	names []string
}{
	{"checkpoint load", []string{"load_checkpoint", "_load_base_checkpoint", "dist_checkpointing/"}},
	{"checkpoint save", []string{"save_checkpoint", "save_checkpoint_and_time"}},
	{"evaluation", []string{"evaluate", "evaluate_and_print_results"}},
	{"data", []string{
		"get_batch", "get_batch_on_this_tp_rank", "build_train_valid_test_data_iterators", "train_valid_test_datasets_provider",
		"datasets/", "_next_data", "dataloader.py",
	}},
	{"optimizer", []string{"step_with_ready_grads", "optimizer/", "clip_grad_norm", "_copy_main_params_to_model_params", "adam.py", "fused_adam.py"}},
	{"backward", []string{"backward_step", "custom_backward", "_engine_run_backward", "run_backward", "backward"}},
	{"forward", []string{"forward_step", "forward", "_call_impl"}},
	{"setup", []string{"initialize_megatron", "setup_model_and_optimizer", "get_model", "parse_args", "validate_args", "build_tokenizer", "init_process_group"}},
	{"import", []string{"_find_and_load"}},
}

// Phase names what the run was doing when the exception was raised.
func (t *Traceback) Phase() string {
	if t == nil {
		return ""
	}
	for _, p := range phases {
		if t.Has(p.names...) {
			return p.phase
		}
	}
	return ""
}

// A refinement classifies an exception by where it was raised, if no pattern knows the exception or the
// pattern is too general.
type refinement struct {
	class     string
	weight    int
	kind      *lazy.Pattern // the exception's type
	says      *lazy.Pattern // its message; nil for any
	within    []string      // functions or files of which one must be on the stack; nil for any stack
	innermost bool          // consider only the last three frames
}

// requestErrors matches exceptions of clients that send requests to a server.
var requestErrors = lazy.New(`(?:^|\.)(?:URLError|MaxRetryError|NewConnectionError|ConnectError|ProxyError)$|^requests\.exceptions\.\w+$|^aiohttp\.`)

// AsksServer reports whether only clients of a server raise this kind of exception. The names and
// connections in its message are the server's, not the ranks'.
func AsksServer(kind string) bool { return requestErrors.MatchString(kind) }

// sampleReaders are the files of torch that read samples of the data.
var sampleReaders = []string{"torch/utils/data/_utils/fetch.py", "torch/utils/data/_utils/worker.py"}

// ReadsSample reports whether the exception was raised while a sample of the data was read.
func (t *Traceback) ReadsSample() bool { return t.Has(sampleReaders...) }

var refinements = []refinement{
	// The process at the other end of a pipe is gone.
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`(EOF|BrokenPipe|ConnectionReset|ConnectionRefused|ConnectionAborted)Error$`), lazy.New(`^(?:$|\[Errno|(?i).*\b(?:pipe|connection)\b)`),
		[]string{"multiprocessing/", "_utils/", "dataloader.py", "pin_memory.py", "resource_sharer.py"},
		false,
	},
	// Ray reports the end of another process (python/ray/exceptions.py).
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`(?:ActorDied|RayActor|WorkerCrashed|NodeDied|ActorUnavailable)Error$`),
		lazy.New(`^(?:The actor (?:\w+ )?(?:died unexpectedly|is unavailable)|The worker died unexpectedly|The node .* died)`), nil, false,
	},
	// A launcher reports the exit of the process that it started, whose own output says more.
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`CalledProcessError$`), lazy.New(`returned non-zero exit status [12]\.$`),
		[]string{"accelerate/commands/launch.py", "torch/distributed/launch.py", "deepspeed/launcher/launch.py", "llamafactory/cli.py"},
		false,
	},
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`CalledProcessError$`),
		lazy.New(`^Command '\[?'?(?:\S*/)?(?:torchrun|accelerate|deepspeed|python[\d.]*)\b.* returned non-zero exit status [12]\.$`), nil, false,
	},
	// vLLM reports the end of its engine, another process (vllm/v1/engine/utils.py, exceptions.py).
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`^(?:RuntimeError|(?:.*\.)?EngineDeadError)$`),
		lazy.New(`See root cause above\.|See stack trace (?:above|\(above\)) for the root cause`), nil, false,
	},
	// torchrun lost the rendezvous store, which another process hosts.
	{outcome.Rendezvous, pattern.Symptom, lazy.New(`^RuntimeError$`), lazy.New(`^Broken pipe$`), []string{"c10d_rendezvous_backend.py", "torch/distributed/elastic/utils/store.py"}, true},
	// The parent process died while it was sending a spawned process its work.
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`(EOF|Unpickling)Error$`), lazy.New(`^(?:pickle data was truncated|Ran out of input)`),
		[]string{"multiprocessing/spawn.py"},
		true,
	},
	// The server is an experiment tracker, not a model hub.
	{outcome.UserException, pattern.Specific, requestErrors, lazy.New(`(?i)host='[\w.-]*\b(?:wandb|mlflow|neptune|comet|clearml|swanlab|tensorboard)\b`), nil, false},
	{
		outcome.HFHub, pattern.Specific, requestErrors,
		lazy.New(`(?i)name or service not known|name resolution|timed out|unreachable|getaddrinfo`), nil, false, // a download failed
	},
	{ // The same, raised by a download: a database or another server of the job may also refuse connections.
		outcome.HFHub, pattern.Specific, requestErrors, lazy.New(`(?i)refused`),
		[]string{
			"huggingface_hub/", "transformers/", "datasets/", "torch/hub.py", "torchvision/", "timm/", "nltk/", "tiktoken/", "urllib/request.py", "modelscope/",
		},
		false,
	},
	{outcome.EnvLaunch, pattern.Specific, lazy.New(`^KeyError$`), lazy.New(`^'(?:LOCAL_|NODE_)?RANK'$|^'(?:LOCAL_)?WORLD_SIZE'$|^'MASTER_(?:ADDR|PORT)'$`), nil, false}, // started without a launcher
	{
		outcome.CheckpointLoad, pattern.Specific + 1, lazy.New(`(FileNotFound|EOF|Key|Runtime|OS|Value|Unpickling|Assertion|IO|Attribute|Type)Error$`), nil,
		[]string{
			"load_checkpoint", "_load_base_checkpoint", "load_state_dict", "_load_global_dist_base_checkpoint", "_load_non_persistent_base_checkpoint",
			"load_args_from_checkpoint", "read_metadata", "load_checkpoint_metadata",
		},
		false,
	},
	{
		outcome.DatasetMissing, pattern.Specific, lazy.New(`(FileNotFound|IsADirectory|NotADirectory|OS|Assertion|Value|Runtime|EOF)Error$`), lazy.New(`(?i)no such file|not found` +
			`|does not exist|is a directory|empty|missing|cannot|invalid|header|size|corrupt`),
		[]string{
			"datasets/", "indexed_dataset.py", "gpt_dataset.py", "blended_dataset.py", "blended_megatron_dataset_builder.py",
			"train_valid_test_datasets_provider", "build_train_valid_test_data_iterators", "build_train_valid_test_datasets", "tokenizer/", "tokenizers/",
			"build_tokenizer",
		},
		false,
	},
	// Python's semaphores and shared memory are files of /dev/shm. Its heap (heap.py) turns to the folder for temporary
	// files before /dev/shm is full.
	{
		outcome.ShmBusError, pattern.Specific + 6, lazy.New(`^OSError$`), lazy.New(`No space left on device`),
		[]string{"multiprocessing/synchronize.py", "multiprocessing/shared_memory.py"},
		true,
	},
	// The stream's message says only that a write failed. A full disk has this effect.
	{
		outcome.DiskFull, pattern.Specific, lazy.New(`(Runtime|OS|IO)Error$`), lazy.New(`(?i)iostream error`),
		[]string{"save_checkpoint", "save_checkpoint_and_time", "save", "_save"},
		false,
	},
	// torchrun's rendezvous, and torchrun's own arguments.
	{outcome.Rendezvous, pattern.Specific, lazy.New(`^(?:Value|Type|Attribute|Key|Assertion)Error$`), nil, []string{"distributed/elastic/rendezvous/"}, true},
	{outcome.BadArgs, pattern.Specific, lazy.New(`ValueError$`), nil, []string{"torch/distributed/run.py"}, true},
	{outcome.DatasetMissing, pattern.Specific - 2, lazy.New(`^AssertionError$`), nil, []string{"indexed_dataset.py"}, true},
	{
		outcome.BadArgs, pattern.Specific, lazy.New(`(Assertion|Value|Runtime|NotImplemented|Type|Key|Attribute)Error$`), nil,
		[]string{
			"validate_args", "arguments.py", "parse_args", "_check_arg_is_not_none", "core_transformer_config_from_args", "__post_init__",
			"validate_yaml", "yaml_arguments.py", "argparse.py", "optimizer_param_scheduler.py",
		},
		true,
	},
	// Lightning compares its settings with Slurm's, and does not support --ntasks.
	{outcome.BadArgs, pattern.Specific, lazy.New(`^RuntimeError$`), lazy.New("^You set `--ntasks="), nil, false},
	{outcome.BadArgs, pattern.Specific, lazy.New(`MisconfigurationException$`), lazy.New(`^You requested (?:GPUs|gpu): `), nil, false},
	{outcome.NodeCountMismatch, pattern.Specific, lazy.New(`^ValueError$`), lazy.New(`in Lightning, but the number of [\w ]+ configured in SLURM`), nil, false},
	{
		outcome.NodeCountMismatch, pattern.Specific, lazy.New(`^(?:Assertion|Runtime|Value)Error$`),
		lazy.New(`(?i)^\W*(?:requires?|needs?|expect(?:s|ed)) (?:at least |exactly )?\d+ (?:GPU|CUDA device)s?\b`), nil, false,
	},
	// Missing weights; and where the run was writing or removing weights, a missing folder.
	{outcome.UserException, pattern.Generic, lazy.New(`FileNotFoundError$`), nil, []string{"save", "_save", "save_checkpoint", "_save_checkpoint", "_open_zipfile_writer", "rmtree"}, true},
	{ // A name that says so outweighs folders named after the data.
		outcome.CheckpointLoad, pattern.Specific + 4, lazy.New(`FileNotFoundError$`),
		lazy.New(`(?i)^[^>]*(?:(?:checkpoint|ckpt|snapshot)[^/'".]*(?:\.(?:pth?|pkl|pickle|bin|h5|hdf5|np[yz]|tar|zip|txt))?|pytorch_model[\w-]*\.bin` +
			`|\b(?:checkpoint-\d+|iter_\d{7}|global_step\d+)/[^'"]+)['"]?$`), nil, false,
	},
	{outcome.CheckpointLoad, pattern.Specific - 2, lazy.New(`FileNotFoundError$`), lazy.New(`(?i)\.(?:pth?|pth\.tar|ckpt|safetensors)['"]?$`), nil, false},
	{
		outcome.DatasetMissing, pattern.Specific - 2, lazy.New(`(FileNotFound|IsADirectory|NotADirectory|errors_impl\.NotFound)Error$`),
		lazy.New(`(?i)\.(idx|bin|jsonl?|txt|model|npy|npz|parquet|arrow|tar|zst|gz|csv|mat|hdf5|lmdb|tfrecords?|jpe?g|png|tiff?|wav|flac|mp[34]|avi)['"]?$` +
			`|/data|_data['"]?$|_document|corpus|dataset|token`), nil, false,
	},
}

// Refine returns the class and weight of an exception, by its type, message and stack.
func Refine(kind, message string, t *Traceback) (string, int) {
	if FolderMissing(kind, t) {
		return outcome.UserException, pattern.Generic
	}
	if extensionMissing(kind, message, t) {
		return outcome.ExtensionABI, pattern.Specific
	}
	for _, r := range refinements {
		if !r.kind.MatchString(kind) || r.says != nil && !r.says.MatchString(message) {
			continue
		}
		stack := t
		if r.innermost && t != nil && len(t.Frames) > 3 {
			stack = &Traceback{Frames: t.Frames[len(t.Frames)-3:]}
		}
		if r.within == nil || stack.Has(r.within...) {
			return r.class, r.weight
		}
	}
	return outcome.UserException, pattern.Generic
}
