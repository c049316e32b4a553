package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// launchRules are about the number of workers and the nodes that they run on.
var launchRules = []Rule{
	{
		ID: "missing-srun", Severity: rules.Error, check: missingSrun,
		Why: lang.Text{
			EN: "the batch shell runs on the first node only; the other nodes stay idle and the rendezvous waits for ever",
			ZH: "批处理 shell 只在第一个节点上运行；其余节点空闲，rendezvous 会一直等待",
		},
		Fix: lang.Text{
			EN: "put srun --nodes=$SLURM_NNODES --ntasks=$SLURM_NNODES --ntasks-per-node=1 before the command",
			ZH: "在命令前加上 srun --nodes=$SLURM_NNODES --ntasks=$SLURM_NNODES --ntasks-per-node=1",
		},
	},
	{
		ID: "tasks-per-node", Severity: rules.Error, check: tasksPerNode,
		Why: lang.Text{
			EN: "several tasks on a node each start a launcher that forks a worker for every GPU: too many workers, and EADDRINUSE on the port",
			ZH: "每个节点有多个任务，每个任务又各起一个 launcher、为每张 GPU fork 一个 worker：worker 数成倍增加，端口报 EADDRINUSE",
		},
		Fix: lang.Text{EN: "use --ntasks-per-node=1", ZH: "改为 --ntasks-per-node=1"},
	},
	{
		ID: "bare-torchrun", Severity: rules.Warning, check: bareTorchrun,
		Why: lang.Text{
			EN: "torchrun is taken from the PATH and may use a Python that does not see the project's environment",
			ZH: "torchrun 从 PATH 中查找，用到的 Python 可能看不到项目的虚拟环境",
		},
		Fix: lang.Text{
			EN: "uv run python -m torch.distributed.run (or python -m torch.distributed.run in the right environment)",
			ZH: "改用 uv run python -m torch.distributed.run（或目标环境里的 python -m torch.distributed.run）",
		},
	},
	{
		ID: "early-rank-interpolation", Severity: rules.Error, check: earlyRank,
		Why: lang.Text{
			EN: "the batch shell expands this before the tasks start, so every node gets rank 0 and the rendezvous hangs",
			ZH: "它在任务启动之前就被批处理 shell 展开，所有节点都得到 rank 0，rendezvous 会卡住",
		},
		Fix: lang.Text{
			EN: `let a shell in the task expand it: srun bash -c '…' in single quotes, or a backslash before the $ within bash -c "…"`,
			ZH: `让任务里的 shell 展开：srun bash -c '…'（单引号），或在 bash -c "…" 里的 $ 前加反斜杠`,
		},
	},
	{
		ID: "nnodes-mismatch", Severity: rules.Error, check: nnodesMismatch,
		Why: lang.Text{
			EN: "the hard-coded number of nodes differs from the allocation: the launch waits for nodes that never come, or leaves some out",
			ZH: "写死的节点数与申请的节点数不一致：要么一直等待不存在的节点，要么有节点被漏掉",
		},
		Fix: lang.Text{EN: "use $SLURM_NNODES", ZH: "改用 $SLURM_NNODES"},
	},
	{
		ID: "nproc-mismatch", Severity: rules.Error, check: nprocMismatch,
		Why: lang.Text{
			EN: "workers per node and GPUs per node differ: more workers fail with an invalid device ordinal, fewer leave GPUs idle",
			ZH: "每节点 worker 数与 GPU 数不一致：多了会报 invalid device ordinal，少了会有 GPU 闲置",
		},
		Fix: lang.Text{EN: "make both the same, or use --nproc-per-node=$SLURM_GPUS_ON_NODE", ZH: "使两者一致，或使用 --nproc-per-node=$SLURM_GPUS_ON_NODE"},
	},
	{
		ID: "world-size-from-ntasks", Severity: rules.Error, check: worldSize,
		Why: lang.Text{
			EN: "this counts tasks or nodes, not ranks: with one task per node the world size is too small by the number of GPUs per node",
			ZH: "这里数的是任务数或节点数而不是 rank 数：每节点一个任务时，world size 会少一个“每节点 GPU 数”的倍数",
		},
		Fix: lang.Text{EN: "use $((SLURM_NNODES * GPUS_PER_NODE))", ZH: "改为 $((SLURM_NNODES * GPUS_PER_NODE))"},
	},
}

// reachesNodes reports whether the launcher starts its workers on other nodes without
// srun.
func (c *checker) reachesNodes(s *script.Start) bool {
	if s.Launcher == script.DeepSpeed && hasFlag(s, "hostfile", "H") || s.Launcher == script.Accelerate && hasFlag(s, "deepspeed-hostfile") {
		return true
	}
	return c.anyCommand(func(x *script.Command) bool { return x.Name() == "ray" })
}

func missingSrun(c *checker) {
	if !c.job.Several() {
		return
	}
	steps := slices.ContainsFunc(c.starts, func(s *script.Start) bool { return s.Step != nil || s.Remote != nil })
	for _, s := range c.starts {
		switch {
		case s.Step != nil, s.Remote != nil, s.Launcher == script.Wrapper, c.reachesNodes(s):
			continue
		case slices.ContainsFunc(c.starts, func(o *script.Start) bool { return o.Step != nil && exclusive(o.Command, s.Command) }):
			continue // another branch uses srun, so this branch is for a case without it
		case steps && (!s.Launcher.Forks() || c.singleNode(s)):
			continue // a helper next to the training
		}
		c.report(s.Line, s.Args[0].Text())
	}
}

// writtenNodes returns the number of nodes in the launcher's flags, or 0.
func (c *checker) writtenNodes(s *script.Start) int {
	if o, has := s.Flag("nnodes", "num-machines", "num-nodes"); has {
		n, _ := c.job.Int(o.Value)
		return n
	}
	return 0
}

func tasksPerNode(c *checker) {
	for _, s := range c.starts {
		if s.Step == nil || s.Remote != nil || !s.Launcher.Forks() {
			continue
		}
		per, ok := c.tasksPerNode(s.Command)
		if !ok || per < 2 {
			continue
		}
		if n, auto, ok, _ := c.workers(s); ok && !auto && n <= 1 {
			continue
		}
		line := s.Line
		if o, has := c.job.Options.Get("ntasks-per-node"); has && !s.Step.Options.Has("ntasks-per-node", "ntasks") {
			line = o.Line
		}
		c.report(line, fmt.Sprintf("--ntasks-per-node=%d", per))
	}
}

// environments are commands that run another command in a Python environment.
var environments = []string{"uv", "poetry", "pixi", "conda", "mamba", "micromamba", "rye", "hatch", "pipenv"}

func bareTorchrun(c *checker) {
	for _, s := range c.job.Starts {
		if s.Launcher != script.Torchrun || s.Args[0].Text() != "torchrun" || s.Container != nil {
			continue
		}
		if slices.ContainsFunc(s.Chain(), func(x *script.Command) bool { return slices.Contains(environments, x.Name()) }) {
			continue
		}
		if c.commandBefore(s.Seq, activates) {
			continue
		}
		c.report(cmp.Or(s.Args[0].Value.Line(), s.Line), "torchrun")
	}
}

// activates reports whether x puts the programs of an environment on the PATH.
func activates(x *script.Command) bool {
	switch x.Name() {
	case "source", ".":
		return len(x.Args) > 1 && strings.HasSuffix(strings.TrimRight(x.Args[1].Text(), "/"), "activate")
	case "conda", "mamba", "micromamba", "pyenv", "workon":
		return len(x.Args) > 1 && x.Args[1].Text() == "activate"
	case "export":
		return len(x.Args) > 1 && strings.HasPrefix(x.Args[1].Text(), "PATH=")
	}
	return slices.Contains(x.Assigns, "PATH")
}

func nnodesMismatch(c *checker) {
	n, exact, ok := c.job.Nodes()
	if !ok || !exact || c.comparesNodes() {
		return
	}
	say := func(line int, what string) { c.report(line, fmt.Sprintf("%s, --nodes=%d", what, n)) }
	for _, s := range c.starts {
		if s.Step != nil && otherComponent(s.Step.Options) {
			continue
		}
		value, line, given := c.nodeFlag(s)
		if lo, hi, isRange := strings.Cut(value.String(), ":"); isRange {
			a, errA := strconv.Atoi(lo)
			b, errB := strconv.Atoi(hi)
			if errA == nil && errB == nil && (n < a || n > b) {
				say(line, s.Launcher.NodesFlag()+"="+value.String())
			}
			continue
		}
		on, onKnown := c.nodesOf(s.Command)
		if said, ok := c.job.Int(value); given && ok && said != n && said > 1 {
			per, _ := c.tasksPerNode(s.Command)
			if t, ok := c.tasks(s.Command); ok && t == said && per > 1 {
				continue // the launcher counts every task as a node
			}
			if onKnown && on == said && on < n && len(c.starts) > 1 {
				continue // a helper step, or one of several steps that share the nodes
			}
			say(line, s.Launcher.NodesFlag()+"="+strconv.Itoa(said))
			continue
		}
		if s.Step == nil || len(c.starts) > 1 {
			continue
		}
		if o, has := s.Step.Options.Get("nodes"); has && onKnown && on != n && (on > n || s.Launcher != script.Wrapper) && on > 1 {
			say(o.Line, "srun --nodes="+strconv.Itoa(on))
		}
	}
	for _, a := range c.job.Assignments {
		lit, _ := a.Var.Value.Literal()
		// The rule independent-groups reports a single node.
		if said, err := strconv.Atoi(lit); err == nil && said != n && said > 1 && nodeCountName.MatchString(a.Name) && len(a.Branch) == 0 {
			say(a.Line, a.Name+"="+lit)
		}
	}
}

// otherComponent reports whether a step runs in another component of a heterogeneous job than
// the first, whose options the job's are.
func otherComponent(step script.Options) bool {
	o, has := step.Get("het-group", "pack-group")
	return has && o.Text() != "0"
}

var nodeCountName = lazy.New(`^(NNODES|N_NODES|NUM_NODES|NUM_MACHINES|PET_NNODES)$`)

// nodeFlag returns the value from which the launcher takes the number of nodes, and its
// line.
func (c *checker) nodeFlag(s *script.Start) (script.Value, int, bool) {
	if o, has := s.Flag("nnodes", "num-machines", "num-nodes"); has && o.Has {
		return o.Value, cmp.Or(o.Value.Line(), o.Line), true
	}
	if v, has := s.Env.Env("PET_NNODES"); has && s.Launcher.Elastic() {
		return v, v.Line(), true
	}
	return nil, 0, false
}

// comparesNodes reports whether the script itself compares a number with the number of
// allocated nodes.
func (c *checker) comparesNodes() bool {
	return c.anyCommand(func(x *script.Command) bool {
		n := x.Name()
		return (n == "[" || n == "[[" || n == "test") && slices.ContainsFunc(x.Args, func(a script.Arg) bool { return isNodeCount(a.Value) }) &&
			!slices.ContainsFunc(x.Args, func(a script.Arg) bool { return a.Text() == "1" })
	})
}

func nprocMismatch(c *checker) {
	type found struct {
		s          *script.Start
		n, g, line int
	}
	var bad []found
	full := false
	background := 0
	for _, s := range c.starts {
		g, ok := c.gpusFor(s)
		if !ok || g == 0 || s.Step != nil && otherComponent(s.Step.Options) {
			continue
		}
		n, auto, ok, line := c.workers(s)
		if s.Launcher == script.Python {
			n, ok = c.tasksPerNode(s.Command)
			if s.Step == nil || n < 2 {
				continue
			}
			if o, has := c.job.Options.Get("ntasks-per-node"); has {
				line = o.Line
			}
		} else if s.Launcher.Forks() {
			if per, okT := c.tasksPerNode(s.Command); okT && per > 1 {
				continue // the rule tasks-per-node reports it, or there is one worker per task
			}
		}
		if o, has := s.Flag("num-processes"); has && isCount(o.Value) {
			continue // the rule world-size-from-ntasks reports it
		}
		if auto || !ok || s.Launcher == script.Wrapper {
			full = full || auto
			continue
		}
		if n == g {
			full = true
			continue
		}
		if o, has := s.Flag("nproc-per-node", "num-processes", "num-gpus"); has && n < g && subtracts(o.Value) {
			continue // the rest of the GPUs is for another program
		}
		if chainBackground(s.Command) {
			background += n
		}
		bad = append(bad, found{s, n, g, line})
	}
	for _, f := range bad {
		if f.n < f.g && (full || background > 0 && background <= f.g && len(bad) > 1 || f.s.Loop != nil && chainBackground(f.s.Command)) {
			continue
		}
		c.report(f.line, fmt.Sprintf("%d workers per node, %d GPUs per node", f.n, f.g))
	}
}

// subtracts reports whether v is a difference, such as the number of GPUs less one.
func subtracts(v script.Value) bool {
	r := v.Only()
	return r != nil && r.Expr != nil && r.Expr.Op == "-"
}

// chainBackground reports whether cmd, or a command that starts it, runs in the
// background.
func chainBackground(cmd *script.Command) bool {
	return slices.ContainsFunc(cmd.Chain(), func(x *script.Command) bool { return x.Background > 0 })
}

// gpusFor returns the number of GPUs per node that a start can use.
func (c *checker) gpusFor(s *script.Start) (int, bool) {
	if v, has := s.Env.Env("CUDA_VISIBLE_DEVICES"); has {
		lit, ok := v.Literal()
		return len(strings.Split(strings.Trim(lit, ","), ",")), ok && lit != ""
	}
	if s.Step != nil {
		for _, name := range []string{"gpus-per-node", "gres", "tres-per-node", "gpus", "gpus-per-task"} {
			o, has := s.Step.Options.Get(name)
			if !has {
				continue
			}
			n, ok := gpuCount(o.Text())
			nodes, okN := c.nodesOf(s.Command)
			switch name {
			case "gpus":
				return n / max(nodes, 1), ok && okN && nodes > 0 && n%max(nodes, 1) == 0
			case "gpus-per-task":
				per, okT := c.tasksPerNode(s.Command)
				return n * per, ok && okT
			}
			return n, ok
		}
	}
	n, _, ok := c.job.GPUs()
	return n, ok
}

// gpuCount parses gpu:type:8, type:8 or 8.
func gpuCount(s string) (int, bool) {
	s, _, _ = strings.Cut(s, "(")
	n, err := strconv.Atoi(s[strings.LastIndexByte(s, ':')+1:])
	return n, err == nil
}

func worldSize(c *checker) {
	for _, s := range c.starts {
		per, ok := c.tasksPerNode(s.Command)
		if ok && per > 1 {
			continue
		}
		if o, has := s.Flag("num-processes"); has && s.Launcher == script.Accelerate && isCount(o.Value) {
			c.report(o.Line, o.Given+" "+o.Text())
			continue
		}
		n, auto, okW, _ := c.workers(s)
		o, has := s.ProgramFlag("--world-size", "--world_size")
		if !has || !s.Launcher.Forks() || okW && !auto && n <= 1 {
			continue
		}
		nodes, exact, okN := c.job.Nodes()
		size, okS := c.job.Int(o.Value)
		if isCount(o.Value) || okS && okN && exact && okW && !auto && size < nodes*n {
			c.report(o.Line, o.Given+" "+o.Text())
		}
	}
	forks := func(s *script.Start) bool { return s.Launcher.Forks() }
	for _, a := range c.job.Assignments {
		if a.Name == "WORLD_SIZE" && isCount(a.Var.Value) && !c.worldSizeIsNodes() && slices.ContainsFunc(c.starts, forks) {
			c.report(a.Line, "WORLD_SIZE="+a.Var.Value.String())
			return
		}
	}
}

var nodesNamedWorld = lazy.New(`(nnodes|num[-_]machines|num_nodes)[= ]"?\\?\$\{?WORLD_SIZE\b`)

// worldSizeIsNodes reports whether the script uses WORLD_SIZE as the launcher's number
// of nodes. The name is unusual, but the value is right.
func (c *checker) worldSizeIsNodes() bool {
	return slices.ContainsFunc(c.job.Sources, func(x script.Source) bool { return nodesNamedWorld.MatchString(x.Text()) }) ||
		c.anyCommand(func(x *script.Command) bool { return slices.Contains(x.Assigns, "NNODES") })
}
