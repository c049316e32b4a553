// Package python reads what Python prints of an exception: its name and message, the
// frames of its traceback, how it came of the one before it, and the class of failure
// that its type, message and stack stand for.
package python

import (
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

// A Traceback is the stack of one exception, outermost frame first, as
// assembled from the lines of one rank.
type Traceback struct {
	Frames []Frame
	Caught bool // introduced by words that say that the program goes on
	Inset  bool // quoted inside torchelastic's summary
	Logged bool // at a level below error
	Chain  Chain
	// headless stacks may be no traceback at all, such as those of print_stack:
	// only a well-known name ends them.
	Headless bool
	Uncaught bool   // PyTorch wrote its rank before it, which it does of what ends a process (sys.excepthook)
	Of       string // the rank that raised it, where another quotes it; else empty
}

// RankOf is the rank that torch.distributed.checkpoint names behind the head of a
// traceback that it quotes: "Traceback (most recent call last): (RANK 3)".
func RankOf(head string) string {
	_, of, ok := strings.Cut(head, "(RANK ")
	if !ok {
		return ""
	}
	of, _, _ = strings.Cut(of, ")")
	return of
}

// InTracker reports whether it was raised by the process that multiprocessing keeps to
// clean up what others leave: it ends nothing else.
func (t *Traceback) InTracker() bool {
	return len(t.Frames) > 0 && strings.HasSuffix(t.Frames[len(t.Frames)-1].File, "/multiprocessing/resource_tracker.py")
}

// Header is the first line of a traceback, less its colon.
const Header = "Traceback (most recent call last)"

// Ignored is how Python introduces an exception that cannot end its process: of a
// finalizer, or of a function that it calls at exit.
const Ignored = "Exception ignored in"

// maxFrames bounds a traceback: the outermost and the innermost ones stay.
const maxFrames = 64

// Add appends a frame; of very deep stacks those in the middle are dropped. Those with
// which python -m begins are not the program's.
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

// runpy is the file of Python's that runs a module by its name.
var runpy = lazy.New(`^(?:<frozen runpy>|.*/python\d[\d.]*/runpy\.py)$`)

// boxed is a frame in the form of Rich's tracebacks, "│ /x/y.py:12 in f   │"; a long
// path leaves the function to the next line.
var boxed = lazy.New(`^│ (\S+\.py):(\d+) in ?(\S*) *│?$`)

// inBox reports whether a line stands in the box that Rich draws around a traceback.
func inBox(text string) bool {
	return strings.HasPrefix(text, "│") || strings.HasPrefix(text, "╰") || strings.HasPrefix(text, "╭")
}

// Boxes reads a line of Rich's that is no frame.
func (t *Traceback) Boxes(text string) bool {
	if n := len(t.Frames); inBox(text) && n > 0 && t.Frames[n-1].Function == "" {
		t.Frames[n-1].Function = strings.Trim(text, "│ ")
	}
	return inBox(text)
}

// ParseFrame reads `  File "/x/y.py", line 12, in f`.
func ParseFrame(text string) (Frame, bool) {
	if inBox(text) {
		g := boxed.FindStringSubmatch(text)
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
	n, err := strconv.Atoi(strings.TrimSpace(num))
	return Frame{file, n, strings.TrimSpace(function)}, err == nil
}

// exceptionName matches the last line of a traceback: a dotted class name,
// alone or followed by its message.
var exceptionName = lazy.New(`^([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::(?:\s(.*))?)?$`)

// ExceptionKinds are the endings of class names that are exceptions wherever
// they stand; within a traceback any class name is one.
var ExceptionKinds = lazy.New(`(?:Error|Exception|Interrupt|Failure|Exit|Timeout|StopIteration|Expired|Abort|Fault|Invalid|OfMemory|NotFound|` +
	`Unavailable|Enabled|OutOfResources)$`)

// ParseException splits the last line of a traceback into type and message.
func ParseException(text string, within bool) (kind, message string, ok bool) {
	text = strings.TrimRight(text, " \t\r")
	m := exceptionName.FindStringSubmatch(text[:min(len(text), 4096)])
	if m == nil {
		return "", "", false
	}
	known := ExceptionKinds.MatchString(m[1])
	if !known && (!within || m[1] == strings.ToUpper(m[1]) || len(m[1]) == len(text) && !strings.Contains(m[1], ".")) { // WARNING: …
		return "", "", false
	}
	if !within && (m[1] == "Error" || !strings.HasPrefix(text[len(m[1]):], ":")) { // any program says "Error: …"
		return "", "", false
	}
	return m[1], m[2], true
}

// libraries are the path parts of code that the user did not write.
var libraries = []string{"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ", "<string>", "/usr/lib/python", "/__autograph_generated_file"}

// Innermost returns the deepest frame of the user's own code, or the deepest
// of all.
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
	for _, l := range libraries {
		if strings.Contains(file, l) {
			return true
		}
	}
	return false
}

// Has reports whether any frame stands in the named file or function.
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

// phases name what a run was doing, by the functions on the stack; the first
// row that occurs decides.
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

// A refinement decides an exception that no pattern knows, or knows too
// generally, by where it was raised.
type refinement struct {
	class  string
	weight int
	kind   *lazy.Pattern // exception type
	says   *lazy.Pattern // message, nil for any
	within []string      // functions or files of the stack, nil for any
	deep   bool          // only the last three frames count
}

// unreached are the exceptions of those who ask another server.
var unreached = lazy.New(`(?:^|\.)(?:URLError|MaxRetryError|NewConnectionError|ConnectError|ProxyError)$|^requests\.exceptions\.\w+$|^aiohttp\.`)

// AsksServer reports whether an exception is of a kind that only those raise who ask
// another server: what it says of names and connections is not of the ranks.
func AsksServer(kind string) bool { return unreached.MatchString(kind) }

// sampled are the files of torch in which a sample of the data is read.
var sampled = []string{"torch/utils/data/_utils/fetch.py", "torch/utils/data/_utils/worker.py"}

// ReadsSample reports whether an exception was raised where a sample of the data is read.
func (t *Traceback) ReadsSample() bool { return t.Has(sampled...) }

var refinements = []refinement{
	// The other end of a pipe between processes is gone.
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`(EOF|BrokenPipe|ConnectionReset|ConnectionRefused|ConnectionAborted)Error$`), lazy.New(`^(?:$|\[Errno|(?i).*\b(?:pipe|connection)\b)`),
		[]string{"multiprocessing/", "_utils/", "dataloader.py", "pin_memory.py", "resource_sharer.py"},
		false,
	},
	// Ray's word on another process (python/ray/exceptions.py).
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`(?:ActorDied|RayActor|WorkerCrashed|NodeDied|ActorUnavailable)Error$`),
		lazy.New(`^(?:The actor (?:died unexpectedly|is unavailable)|The worker died unexpectedly|The node .* died)`), nil, false,
	},
	// A launcher's word on the process that it started, which said more itself.
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`CalledProcessError$`), lazy.New(`returned non-zero exit status [12]\.$`),
		[]string{"accelerate/commands/launch.py", "torch/distributed/launch.py", "deepspeed/launcher/launch.py", "llamafactory/cli.py"},
		false,
	},
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`CalledProcessError$`),
		lazy.New(`^Command '\[?'?(?:\S*/)?(?:torchrun|accelerate|deepspeed|python[\d.]*)\b.* returned non-zero exit status [12]\.$`), nil, false,
	},
	// vLLM's word on its engine, another process (vllm/v1/engine/utils.py, exceptions.py).
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`^(?:RuntimeError|(?:.*\.)?EngineDeadError)$`),
		lazy.New(`See root cause above\.|See stack trace (?:above|\(above\)) for the root cause`), nil, false,
	},
	// torchrun lost the store of the others.
	{outcome.Rendezvous, pattern.Symptom, lazy.New(`^RuntimeError$`), lazy.New(`^Broken pipe$`), []string{"c10d_rendezvous_backend.py"}, true},
	// It told a process its work, and was gone after half of it.
	{
		outcome.UnknownExit, pattern.Symptom, lazy.New(`(EOF|Unpickling)Error$`), lazy.New(`^(?:pickle data was truncated|Ran out of input)`),
		[]string{"multiprocessing/spawn.py"},
		true,
	},
	// A server of experiments is no hub.
	{outcome.UserException, pattern.Specific, unreached, lazy.New(`(?i)host='[\w.-]*\b(?:wandb|mlflow|neptune|comet|clearml|swanlab|tensorboard)\b`), nil, false},
	{
		outcome.HFHub, pattern.Specific, unreached,
		lazy.New(`(?i)name or service not known|name resolution|timed out|unreachable|getaddrinfo`), nil, false, // a download
	},
	{ // The same, where a download raised it: a database or a server of the job's own refuses too.
		outcome.HFHub, pattern.Specific, unreached, lazy.New(`(?i)refused`),
		[]string{
			"huggingface_hub/", "transformers/", "datasets/", "torch/hub.py", "torchvision/", "timm/", "nltk/", "tiktoken/", "urllib/request.py", "modelscope/",
		},
		false,
	},
	{outcome.EnvLaunch, pattern.Specific, lazy.New(`^KeyError$`), lazy.New(`^'(?:LOCAL_|NODE_)?RANK'$|^'(?:LOCAL_)?WORLD_SIZE'$|^'MASTER_(?:ADDR|PORT)'$`), nil, false}, // no launcher
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
			`|does not exist` +
			`|is a directory|empty|missing|cannot|invalid|header|size|corrupt`),
		[]string{
			"datasets/", "indexed_dataset.py", "gpt_dataset.py", "blended_dataset.py", "blended_megatron_dataset_builder.py",
			"train_valid_test_datasets_provider", "build_train_valid_test_data_iterators", "build_train_valid_test_datasets", "tokenizer/", "tokenizers/",
			"build_tokenizer",
		},
		false,
	},
	// The stream says only that a write failed, which is what a full disk looks like from inside.
	{
		outcome.DiskFull, pattern.Specific, lazy.New(`(Runtime|OS|IO)Error$`), lazy.New(`(?i)iostream error`),
		[]string{"save_checkpoint", "save_checkpoint_and_time", "save", "_save"},
		false,
	},
	// torchrun's meeting place, and its own arguments.
	{outcome.Rendezvous, pattern.Specific, lazy.New(`ValueError$`), nil, []string{"distributed/elastic/rendezvous/"}, true},
	{outcome.BadArgs, pattern.Specific, lazy.New(`ValueError$`), nil, []string{"torch/distributed/run.py"}, true},
	{outcome.DatasetMissing, pattern.Specific - 2, lazy.New(`^AssertionError$`), nil, []string{"indexed_dataset.py"}, true},
	{
		outcome.BadArgs, pattern.Specific, lazy.New(`(Assertion|Value|Runtime|NotImplemented|Type|Key|Attribute)Error$`), nil,
		[]string{
			"validate_args", "arguments.py", "parse_args", "_check_arg_is_not_none", "core_transformer_config_from_args", "__post_init__",
			"validate_yaml", "yaml_arguments.py", "argparse.py",
		},
		true,
	},
	// Weights that are not there; where they were to be written, their folder is not.
	{outcome.UserException, pattern.Generic, lazy.New(`FileNotFoundError$`), nil, []string{"save", "_save", "save_checkpoint", "_open_zipfile_writer"}, true},
	{outcome.CheckpointLoad, pattern.Specific - 2, lazy.New(`FileNotFoundError$`), lazy.New(`(?i)\.(?:pth?|pth\.tar|ckpt|safetensors)['"]?$`), nil, false},
	{
		outcome.DatasetMissing, pattern.Specific - 2, lazy.New(`(FileNotFound|IsADirectory|NotADirectory|errors_impl\.NotFound)Error$`),
		lazy.New(`(?i)\.(idx|bin|jsonl?|txt|model|npy|npz|parquet|arrow|tar|zst|gz|csv)['"]?$|/data|_document|corpus|dataset|token`), nil, false,
	},
}

// Refine returns the class and weight that the stack gives an exception.
func Refine(kind, message string, t *Traceback) (string, int) {
	for _, r := range refinements {
		if !r.kind.MatchString(kind) || r.says != nil && !r.says.MatchString(message) {
			continue
		}
		stack := t
		if r.deep && t != nil && len(t.Frames) > 3 {
			stack = &Traceback{Frames: t.Frames[len(t.Frames)-3:]}
		}
		if r.within == nil || stack.Has(r.within...) {
			return r.class, r.weight
		}
	}
	return outcome.UserException, pattern.Generic
}
