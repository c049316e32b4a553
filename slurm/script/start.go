package script

import (
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Start is one command that starts a training program: a launcher, Python itself, or
// a script whose text is unknown.
type Start struct {
	*Command
	Launcher Launcher
	// Flags are the launcher's own options. Their names have dashes for underscores.
	Flags Options
	// FlagsUnknown is true if a variable may hold some of the flags.
	FlagsUnknown bool
	// Program is the script or module that runs; Module is true for -m.
	Program Arg
	Module  bool
	// ProgramArgs are the program's own arguments.
	ProgramArgs []Arg
	// Python is the interpreter, if the command names one.
	Python Arg
}

// A Launcher is the program that starts the workers.
type Launcher string

// The launchers.
const (
	Torchrun   Launcher = "torchrun"
	RunModule  Launcher = "torch.distributed.run"
	OldModule  Launcher = "torch.distributed.launch"
	Accelerate Launcher = "accelerate"
	DeepSpeed  Launcher = "deepspeed"
	Composer   Launcher = "composer"
	Python     Launcher = "python"
	Wrapper    Launcher = "script" // a script or program whose text is unknown
)

// Elastic reports whether l is torchrun under one of its names.
func (l Launcher) Elastic() bool { return l == Torchrun || l == RunModule || l == OldModule }

// Forks reports whether l itself starts one worker per GPU of its node.
func (l Launcher) Forks() bool {
	return l.Elastic() || l == Accelerate || l == DeepSpeed || l == Composer
}

// launcherSwitches are the options of all launchers that take no value.
var launcherSwitches = strings.Fields("standalone no-python run-path h help use-env " +
	"multi-gpu cpu tpu mps use-deepspeed use-fsdp use-megatron-lm use-xpu debug quiet q same-network use-cpu ipex " +
	"no-ssh no-local-rank force-multi save-pid no-ssh-check bind-cores-to-rank no-tpu-cluster tpu-use-sudo enable-cpu-affinity")

var pythonName = lazy.New(`^python[0-9.]*$`)

// modules maps the Python modules that are launchers, as -m names them.
var modules = map[string]Launcher{
	"torch.distributed.run": RunModule, "torch.distributed.launch": OldModule,
	"accelerate.commands.launch": Accelerate, "deepspeed.launcher.runner": DeepSpeed, "deepspeed": DeepSpeed,
}

// launch records c as a Start if c starts a training program.
func (r *reader) launch(c *Command) {
	name := c.Name()
	s := &Start{Command: c}
	args := c.Args[1:]
	switch {
	case name == "torchrun" || name == "torchrun.py" || name == "ft_launcher": // ft_launcher is torchrun with health checks
		s.Launcher = Torchrun
		s.elastic(args)
	case name == "accelerate":
		if c.argText(1) != "launch" {
			return
		}
		s.Launcher = Accelerate
		s.elastic(args[1:])
	case name == "accelerate-launch":
		s.Launcher = Accelerate
		s.elastic(args)
	case name == "deepspeed" || name == "deepspeed.pt" || name == "ds":
		s.Launcher = DeepSpeed
		s.elastic(args)
	case name == "composer":
		s.Launcher = Composer
		s.elastic(args)
	case pythonName.MatchString(name):
		s.Python = c.Args[0]
		if !s.python(args) {
			return
		}
	case strings.HasSuffix(name, ".py"):
		s.Launcher = Python
		s.Program, s.ProgramArgs = c.Args[0], args
	default:
		if c.Step != nil && (c.By != nil || scriptFile(c.Args)) || callsTorchrun(args) {
			r.wrapper(c)
		}
		return
	}
	r.job.Starts = append(r.job.Starts, s)
}

// callsTorchrun reports whether a program of unknown text starts torchrun with the words
// after it, as "oumi distributed torchrun -m oumi train" does.
func callsTorchrun(args []Arg) bool {
	i := slices.IndexFunc(args, func(a Arg) bool { return a.Text() == string(Torchrun) })
	return i >= 0 && i+1 < len(args) && strings.HasPrefix(args[i+1].Text(), "-")
}

// scriptFile reports whether args run a shell script by its path, as ./train.sh and
// bash train.sh do.
func scriptFile(args []Arg) bool {
	if slices.Contains(shells, args[0].Text()) {
		args = skipOptions(args[1:], []string{"-o"})
	} else if !strings.Contains(args[0].Text(), "/") {
		return false
	}
	return len(args) > 0 && (strings.HasSuffix(args[0].Text(), ".sh") || strings.HasSuffix(args[0].Text(), ".bash"))
}

// shells are the shells that run a script whose text is unknown.
var shells = []string{"bash", "sh", "zsh", "dash"}

// helpers are commands that scripts run on nodes and that start no training.
var helpers = strings.Fields("hostname nvidia-smi echo printf mkdir cp rsync rm mv ls df du free sleep true false date cat tee uname env printenv " +
	"sbcast pkill killall kill ulimit which id lscpu lspci ibstat ibv_devinfo ibstatus dcgmi nvcc module tar unzip git chmod chown ln touch head tail grep sed awk wc sort uptime top ps ip ifconfig ping nc curl wget find test [ sh.exe sync numactl taskset pip pip3 uv conda mamba docker podman enroot singularity apptainer gcloud az oci kubectl pgrep dmesg sysctl nproc lsof fuser stat readlink realpath basename dirname seq ray scontrol squeue sacct sinfo sstat scancel sattach sbatch wandb huggingface-cli hf aws gsutil rclone dstat sar nvtop gpustat iostat vmstat mpstat dool telegraf node_exporter dcgm-exporter prometheus")

// wrapper records a program of unknown text that runs on nodes, unless it is a helper.
func (r *reader) wrapper(c *Command) {
	if slices.Contains(helpers, c.Name()) {
		return
	}
	s := &Start{Command: c, Launcher: Wrapper, Program: c.Args[0], ProgramArgs: c.Args[1:]}
	if slices.Contains(shells, c.Name()) {
		rest := skipOptions(c.Args[1:], []string{"-o"})
		if len(rest) == 0 {
			return
		}
		s.Program, s.ProgramArgs = rest[0], rest[1:]
	}
	if r.settling && startsProgram(s.ProgramArgs) {
		r.start(c, s.ProgramArgs, c.Env.spawn(c.Place, Direct, c.Line), frame{sh: c.Env})
		return
	}
	r.job.Starts = append(r.job.Starts, s)
}

// startsProgram reports whether args, the arguments of a script of unknown text, are a command
// that it runs, as in "./bind.sh python train.py", "adapt.sh bash -c …" and "launch.sh train.py".
func startsProgram(args []Arg) bool {
	if len(args) == 0 {
		return false
	}
	name := path.Base(args[0].Text())
	return strings.HasSuffix(name, ".py") || len(args) > 1 && (launcherNames[name] || pythonName.MatchString(name) ||
		slices.Contains(shells, name) && strings.HasPrefix(args[1].Text(), "-"))
}

var launcherNames = map[string]bool{"torchrun": true, "accelerate": true, "deepspeed": true, "ft_launcher": true}

// pythonValues are the options of the Python interpreter that take a value.
var pythonValues = []string{"-W", "-X", "--check-hash-based-pycs"}

// python parses the interpreter's arguments. It reports false if they start no training
// program, such as python -c or python -V.
func (s *Start) python(args []Arg) bool {
	for len(args) > 0 {
		t := args[0].Text()
		if t == "-m" || t == "-um" {
			if len(args) < 2 {
				return false
			}
			mod := args[1].Text()
			if l, ok := modules[mod]; ok {
				s.Launcher = l
				s.elastic(args[2:])
				return true
			}
			s.Launcher, s.Module = Python, true
			s.Program, s.ProgramArgs = args[1], args[2:]
			return !slices.Contains([]string{"pip", "venv", "ensurepip", "http.server", "torch.utils.collect_env", "json.tool", "site", "wandb"}, mod)
		}
		if strings.HasPrefix(t, "-c") || t == "-V" || t == "--version" || t == "-" {
			return false
		}
		if !strings.HasPrefix(t, "-") {
			s.Launcher = Python
			s.Program, s.ProgramArgs = args[0], args[1:]
			return true
		}
		args = args[1:]
		if slices.Contains(pythonValues, t) && len(args) > 0 {
			args = args[1:]
		}
	}
	return false
}

// elastic parses the options of a launcher and the program after them.
func (s *Start) elastic(args []Arg) {
	for len(args) > 0 {
		a := args[0]
		if len(a.Value) == 0 {
			args = args[1:]
			continue
		}
		if p := a.Value[0]; p.Ref != nil {
			one := !p.Ref.List() && (p.Quoted || p.Ref.Positional && plainWord(args[1:]))
			if len(a.Value) > 1 || one || len(args) == 1 && programLike(p.Ref) {
				s.Program, s.ProgramArgs = a, args[1:]
				return
			}
			// An unquoted variable may hold options, the program, or both.
			s.FlagsUnknown = true
			args = args[1:]
			continue
		}
		text := a.Text()
		if !strings.HasPrefix(text, "-") {
			s.Program, s.ProgramArgs = a, args[1:]
			return
		}
		args = args[1:]
		name, val, has := cutValue(a.Value)
		o := Option{Name: strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-"), Given: name, Value: val, Has: has, Line: a.Line}
		switch {
		case has:
		case o.Name == "m" || o.Name == "module":
			s.Module = true
		case slices.Contains(launcherSwitches, o.Name):
		case len(args) > 0 && !startsOption(args[0]) && (!strings.HasSuffix(args[0].Text(), ".py") || strings.Contains(o.Name, "config")):
			o.Value, o.Has, args = args[0].Value, true, args[1:]
		}
		s.Flags = append(s.Flags, o)
	}
}

// List reports whether r stands for all elements of an array or all positional parameters.
func (r *Ref) List() bool { return r.Index == "@" || r.Index == "*" || r.Name == "@" || r.Name == "*" }

// plainWord reports whether args begin with a word that is neither an option nor a
// file. Such a word is an argument of the program before it.
func plainWord(args []Arg) bool {
	if len(args) == 0 {
		return false
	}
	t, ok := args[0].Value.Literal()
	return ok && t != "" && t[0] != '-' && !strings.ContainsAny(t, "./")
}

func programLike(r *Ref) bool {
	n := strings.ToUpper(r.Name)
	return strings.Contains(n, "SCRIPT") || strings.Contains(n, "PROGRAM") || strings.Contains(n, "ENTRY")
}

func startsOption(a Arg) bool {
	return len(a.Value) > 0 && a.Value[0].Ref == nil && strings.HasPrefix(a.Value[0].Text, "--")
}

// Flag returns the last option of the launcher that has one of the names.
func (s *Start) Flag(names ...string) (Option, bool) { return s.Flags.Get(names...) }

// ProgramFlag returns the last option of the program that has one of the names, such
// as "--save".
func (s *Start) ProgramFlag(names ...string) (Option, bool) {
	for _, o := range slices.Backward(s.ProgramFlags()) {
		if slices.Contains(names, o.Given) {
			return o, true
		}
	}
	return Option{}, false
}

// ProgramFlags returns the program's options in the order of the command line.
func (s *Start) ProgramFlags() Options {
	var out Options
	for i, a := range s.ProgramArgs {
		name, val, has := cutValue(a.Value)
		if !strings.HasPrefix(name, "-") {
			continue
		}
		o := Option{Name: strings.TrimLeft(name, "-"), Given: name, Value: val, Has: has, Line: a.Line}
		if !has && i+1 < len(s.ProgramArgs) && !startsOption(s.ProgramArgs[i+1]) {
			o.Value, o.Has, o.Line = s.ProgramArgs[i+1].Value, true, s.ProgramArgs[i+1].Line
		}
		out = append(out, o)
	}
	return out
}

// Chain returns c and the commands that start it, innermost first.
func (c *Command) Chain() []*Command {
	var out []*Command
	for x := c; x != nil && len(out) < maxDepth; x = x.By {
		out = append(out, x)
	}
	return out
}

// NodesFlag returns the launcher's option for the number of nodes.
func (l Launcher) NodesFlag() string {
	switch l {
	case Accelerate:
		return "--num_machines"
	case DeepSpeed:
		return "--num_nodes"
	}
	return "--nnodes"
}
