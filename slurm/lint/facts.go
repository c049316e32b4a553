package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// trainings returns the starts of trainings, except those in the handlers of traps and
// in command substitutions.
func trainings(j *script.Job) []*script.Start {
	var out, others, beside []*script.Start
	for _, s := range j.Starts {
		switch {
		case s.Trap || s.Subst:
		case training(s):
			out = append(out, s)
		case s.Launcher != script.Python || s.Step != nil && noGPUs(s.Step.Options):
		case helps(programName(s)):
			beside = append(beside, s)
		default:
			others = append(others, s)
		}
	}
	if len(others) == 0 {
		others = beside
	}
	if _, _, gpus := j.GPUs(); gpus && len(out) == 0 && len(others) == 1 {
		return others // the job requests GPUs, and only this program can use them
	}
	return out
}

var (
	trainingName = lazy.New(`(?i)train|finetun|fine_tun|sft|main|run_|ddp|dist|gpt|llama|bert|t5|dpo|ppo|grpo|rlhf|lora|fsdp|deepspeed|megatron`)
	sideName     = lazy.New(`(?i)preproc|prepare|convert|download|tokenize|check|plot|merge|monitor|watch|collect|summar|upload|export|build|` +
		`install|diagnos|bench|nccl|test|parse|report|clean|copy|stage|hostlist|config_gen|gen_|make_|server|serve|` +
		`router|infer|generat|chat|demo|setup|create_|_env`)
)

// training reports whether s is a training. A launcher always starts one; plain Python
// does if the program's name suggests it.
func training(s *script.Start) bool {
	name := programName(s)
	switch s.Launcher {
	case script.Python:
		return trainingName.MatchString(name) && !helps(name)
	case script.Wrapper:
		mpi := s.Remote != nil && s.Remote.Name() != "ssh" && s.Remote.Name() != "pdsh"
		return (s.Step != nil || mpi) && !helps(name)
	}
	return true
}

// helps reports whether a program has the name of one that runs beside a training. Even the
// tests that begin as Megatron's trainings do, such as pretrain_gpt_test.sh, train.
func helps(name string) bool { return sideName.MatchString(name) && !pretrains(name) }

func pretrains(name string) bool { return strings.HasPrefix(name, "pretrain_") }

// programName returns the program's path without its folder.
func programName(s *script.Start) string {
	t := s.Program.Text()
	return t[strings.LastIndexByte(t, '/')+1:]
}

// nodesOf returns the number of nodes that cmd runs on; ok is false if the script does
// not tell.
func (c *checker) nodesOf(cmd *script.Command) (int, bool) {
	if cmd.Step == nil {
		return 1, cmd.Remote == nil
	}
	o := cmd.Step.Options
	if x, has := o.Get("nodes"); has {
		if n, ok := c.job.Int(x.Value); ok {
			return n, true
		}
		if isNodeCount(x.Value) {
			n, _, ok := c.job.Nodes()
			return n, ok
		}
		return 0, false
	}
	if x, has := o.Get("ntasks"); has {
		if n, ok := c.job.Int(x.Value); ok && n == 1 {
			return 1, true
		}
	}
	if o.Has("nodelist", "relative") {
		return 1, true
	}
	if cmd.Step.OptionsUnknown {
		return 0, false
	}
	n, _, ok := c.job.Nodes()
	return n, ok
}

// isNodeCount reports whether v is a variable in which Slurm sets the number of nodes.
func isNodeCount(v script.Value) bool {
	r := v.Only()
	return r != nil && (r.Name == "SLURM_NNODES" || r.Name == "SLURM_JOB_NUM_NODES")
}

// isCount reports whether v is a variable in which Slurm sets a number of nodes or tasks.
func isCount(v script.Value) bool {
	r := v.Only()
	return r != nil && slices.Contains(slurmCounts, r.Name)
}

// tasksPerNode returns the number of tasks per node of the step that runs cmd.
func (c *checker) tasksPerNode(cmd *script.Command) (int, bool) {
	if cmd.Step == nil {
		return 1, true
	}
	o := cmd.Step.Options
	if x, has := o.Get("ntasks-per-node"); has {
		return c.job.Int(x.Value)
	}
	if x, has := o.Get("ntasks"); has {
		if isNodeCount(x.Value) {
			return 1, true
		}
		n, ok := c.job.Int(x.Value)
		nodes, okN := c.nodesOf(cmd)
		if ok && okN && nodes > 0 {
			return max(1, n/nodes), true
		}
		return 0, false
	}
	if cmd.Step.OptionsUnknown {
		return 0, false
	}
	if n, ok := c.job.TasksPerNode(c.job.Options); ok {
		return n, true
	}
	if c.job.Batch() && !c.job.Options.Has("ntasks", "ntasks-per-gpu", "ntasks-per-socket", "ntasks-per-core", "gpus-per-task") {
		return 1, true
	}
	return 0, false
}

// tasks returns the number of tasks of the step that runs cmd.
func (c *checker) tasks(cmd *script.Command) (int, bool) {
	if cmd.Step == nil {
		return 1, true
	}
	if x, has := cmd.Step.Options.Get("ntasks"); has {
		return c.job.Int(x.Value)
	}
	per, ok := c.tasksPerNode(cmd)
	nodes, okN := c.nodesOf(cmd)
	return per * nodes, ok && okN
}

// workers returns the number of workers n that a launcher forks on each node, and the
// line that sets it. auto is true if the launcher counts the GPUs itself; ok is false
// if the script does not tell.
func (c *checker) workers(s *script.Start) (n int, auto, ok bool, line int) {
	line = s.Line
	read := func(v script.Value, l int) (int, bool, bool, int) {
		l = cmp.Or(v.Line(), l, s.Line)
		switch t := v.String(); t {
		case "gpu", "auto", "cpu":
			return 0, true, true, l
		}
		n, ok := c.job.Int(v)
		return n, false, ok, l
	}
	switch {
	case s.Launcher.Elastic():
		if o, has := s.Flag("nproc-per-node"); has {
			return read(o.Value, o.Line)
		}
		if v, has := s.Env.Env("PET_NPROC_PER_NODE"); has {
			return read(v, v.Line())
		}
		if s.FlagsUnknown {
			return 0, false, false, line
		}
		return 1, false, true, line
	case s.Launcher == script.Accelerate:
		if o, has := s.Flag("num-processes"); has {
			total, ok := c.job.Int(o.Value)
			machines := 1
			if m, has := s.Flag("num-machines"); has {
				x, okM := c.job.Int(m.Value)
				ok, machines = ok && okM, x
			} else if nodes, _, okN := c.job.Nodes(); okN {
				machines = nodes
			}
			if ok && machines > 0 {
				return total / machines, false, total%machines == 0, o.Line
			}
			return 0, false, false, o.Line
		}
		return 0, true, true, line
	case s.Launcher == script.DeepSpeed:
		if o, has := s.Flag("num-gpus"); has {
			return read(o.Value, o.Line)
		}
		return 0, true, true, line
	case s.Launcher == script.Composer:
		if o, has := s.Flag("n", "nproc"); has {
			return read(o.Value, o.Line)
		}
		return 0, true, true, line
	}
	return 0, false, false, line
}

func hasFlag(s *script.Start, names ...string) bool {
	_, ok := s.Flag(names...)
	return ok
}

// commandBefore reports whether a command that matches runs before seq.
func (c *checker) commandBefore(seq int, match func(*script.Command) bool) bool {
	return slices.ContainsFunc(c.job.Commands, func(x *script.Command) bool { return x.Seq < seq && match(x) })
}

// anyCommand reports whether the job has a command that matches.
func (c *checker) anyCommand(match func(*script.Command) bool) bool {
	return slices.ContainsFunc(c.job.Commands, match)
}

// comments returns the text of all comments in small letters, one per line.
func (c *checker) comments() string { return strings.ToLower(strings.Join(c.job.Comments, "\n")) }

// headLine returns the line at which to report an option that the script lacks.
func (c *checker) headLine() int {
	for _, d := range c.job.Directives {
		if d.Ignored == "" {
			return d.Line
		}
	}
	return c.job.FirstLine
}
