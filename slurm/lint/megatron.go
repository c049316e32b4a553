package lint

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

const connections = "CUDA_DEVICE_MAX_CONNECTIONS"

// megatronRules are the rules of Megatron-LM, for its own pretrain scripts.
var megatronRules = []Rule{
	{
		ID: "cdmc-missing", Severity: rules.Error, check: connectionsMissing,
		Why: lang.Text{
			EN: "before Blackwell, TP or CP above 1 needs CUDA_DEVICE_MAX_CONNECTIONS=1: Megatron stops with an assertion",
			ZH: "在 Blackwell 之前的 GPU 上，TP 或 CP 大于 1 时必须设置 CUDA_DEVICE_MAX_CONNECTIONS=1：否则 Megatron 启动时断言失败",
		},
		Fix: lang.Text{EN: "export CUDA_DEVICE_MAX_CONNECTIONS=1", ZH: "export CUDA_DEVICE_MAX_CONNECTIONS=1"},
	},
	{
		ID: "cdmc-wrong", Severity: rules.Error, check: connectionsWrong,
		Why: lang.Text{EN: "CUDA_DEVICE_MAX_CONNECTIONS has the wrong value for this layout", ZH: "CUDA_DEVICE_MAX_CONNECTIONS 的取值与并行方式不符"},
		Fix: lang.Text{
			EN: "1 for TP or CP above 1 before Blackwell, unset with FSDP, 32 with --overlap-moe-expert-parallel-comm",
			ZH: "Blackwell 之前 TP 或 CP 大于 1 时取 1；FSDP 时不设置；--overlap-moe-expert-parallel-comm 时取 32",
		},
	},
	{
		ID: "illegal-layout", Severity: rules.Error, check: illegalLayout,
		Why: lang.Text{EN: "Megatron refuses these arguments when it starts, after the wait in the queue", ZH: "Megatron 启动时会拒绝这组参数，而那时已经排完队"},
		Fix: lang.Text{EN: "change the arguments as the rule asks", ZH: "按规则修改参数"},
	},
	{
		ID: "unknown-megatron-flag", Severity: rules.Error, check: unknownFlag,
		Why: lang.Text{
			EN: "no release of Megatron-LM has this flag (abbreviations are off): unless your copy adds it, the parser exits",
			ZH: "Megatron-LM 各版本都没有这个参数（不支持缩写）：除非您的代码自行添加，否则解析器会直接退出",
		},
		Fix: lang.Text{EN: "remove it, or use its correct name", ZH: "删掉它，或改成正确的名字"},
	},
	{
		ID: "megatron-flag-type", Severity: rules.Error, check: flagType,
		Why: lang.Text{EN: "Megatron's parser refuses the value", ZH: "Megatron 的解析器会拒绝这个取值"},
		Fix: lang.Text{EN: "correct the value", ZH: "改正取值"},
	},
}

// run returns the known facts of a start as input of Megatron's rules. world is false
// if the world size is unknown.
func (c *checker) run(t megatronStart) (run megatron.Run, world bool) {
	run = megatron.Run{Entry: t.entry, Arch: 10, Env: map[string]string{}}
	if a, ok := c.arch(t.start); ok {
		run.Arch = a
	}
	for _, f := range t.flags {
		if f.ok && !f.valueUnknown() {
			run.Argv = append(append(run.Argv, f.name), f.values...)
		}
	}
	for _, n := range t.start.Env.Names() {
		if v, ok := t.start.Env.Env(n); ok {
			run.Env[n] = v.String()
		}
	}
	run.WorldSize, world = c.worldSize(t.start)
	return run, world
}

// worldSize returns the number of ranks of a start.
func (c *checker) worldSize(s *script.Start) (int, bool) {
	if s.Launcher == script.Python {
		n, ok := c.tasks(s.Command)
		return n, ok && s.Step != nil
	}
	nodes := 1
	if v, _, given := c.nodeFlag(s); given {
		n, ok := c.job.Int(v)
		if !ok {
			return 0, false
		}
		nodes = n
	} else if s.Step != nil && !hasFlag(s, "standalone") {
		n, exact, ok := c.job.Nodes()
		if !ok || !exact {
			return 0, false
		}
		nodes = n
	}
	per, auto, ok, _ := c.workers(s)
	if auto || !ok {
		if per, ok = c.gpusFor(s); !ok {
			return 0, false
		}
		if o, has := s.Flag("nproc-per-node"); has && !auto {
			if r := o.Value.Only(); r == nil || r.Name != "SLURM_GPUS_ON_NODE" && r.Kind != script.Output {
				return 0, false
			}
		}
	}
	return nodes * per, per > 0
}

// modelSize returns a number of ranks that fits the layout, for scripts that do not
// show the number.
func modelSize(c *megatron.Config) int {
	return max(1, c.TP) * max(1, c.PP) * max(1, c.CP) * max(1, c.EP)
}

// arch returns the major compute capability of the GPUs that the script names.
func (c *checker) arch(s *script.Start) (int, bool) {
	var words []string
	opts := c.job.Options
	if s.Step != nil {
		opts = append(slices.Clip(opts), s.Step.Options...)
	}
	for _, n := range []string{"gpus-per-node", "gres", "gpus", "gpus-per-task", "constraint", "partition", "prefer"} {
		if o, has := opts.Get(n); has {
			words = append(words, strings.FieldsFunc(strings.ToLower(o.Text()), func(r rune) bool { return strings.ContainsRune("|&,:[]()*", r) })...)
		}
	}
	found, arch := false, 0
	for _, w := range words {
		a, ok := gpuWord(w)
		if !ok {
			continue
		}
		if found && (a >= 10) != (arch >= 10) {
			return 0, false
		}
		found, arch = true, a
	}
	return arch, found
}

// gpuFamilies matches further names of GPUs and names of GPU families, by the major
// compute capability.
var gpuFamilies = map[int]*lazy.Pattern{
	7:  lazy.New(`(?:^|[^a-z])volta(?:$|\D)`),
	8:  lazy.New(`(?:^|[^a-z])(a800|a6000|a30|a5000|3090|4090|l20|ampere)(?:$|\D)`),
	9:  lazy.New(`(?:^|[^a-z])(hopper|h20)(?:$|\D)`),
	10: lazy.New(`(?:^|[^a-z])(b100|blackwell)(?:$|\D)`),
}

func gpuWord(w string) (int, bool) {
	if a, ok := megatron.GPUArch(w); ok {
		return a, true
	}
	for arch, names := range gpuFamilies {
		if names.MatchString(w) {
			return arch, true
		}
	}
	return 0, false
}

func illegalLayout(c *checker) {
	for _, t := range c.megatronStarts() {
		run, world := c.run(t)
		args, _ := megatron.Parse(run)
		if !world {
			run.WorldSize = modelSize(args.Effective())
		}
		verdict := rules.CheckIn(run, c.lang)
		if verdict.OK {
			continue
		}
		line := 0
		var messages, fixes []string
		for _, p := range verdict.Problems {
			rule, _ := rules.Explain(p.Rule)
			if p.Severity != rules.Error || p.Follows != "" || rule.Stage == "" && !strings.HasPrefix(p.Source, "megatron/") || !c.certain(t, rule.Flags, world) {
				continue
			}
			if t.old() && strings.HasSuffix(p.Rule, "-gone") {
				continue // the copy is older than the flag's end
			}
			if len(messages) == 0 {
				line = c.flagLine(t, append([]string{p.Field}, rule.Flags...))
			}
			messages, fixes = append(messages, strings.Join(strings.Fields(p.Message), " ")), append(fixes, p.Fix)
		}
		if len(messages) > 0 { // one finding for all: a user who fixes only one would wait in the queue again
			message := about.With(strings.Join(messages, "; "), c.rule.Why).In(c.lang)
			c.out = append(c.out, Finding{c.rule.ID, line, c.rule.Severity, message, strings.Join(fixes, "; ")})
		}
	}
}

// certain reports whether the script shows everything that a rule depends on.
func (c *checker) certain(t megatronStart, names []string, world bool) bool {
	if len(names) == 0 {
		return false
	}
	for _, n := range names {
		switch {
		case n == connections:
			return false
		case n == "WORLD_SIZE" || n == "DP":
			if !world {
				return false
			}
		case !strings.HasPrefix(n, "--"):
			if t.start.Sourced || t.partial {
				return false
			}
		default:
			for _, f := range t.flags {
				if f.ok && f.known.Name == n && f.valueUnknown() || !f.ok && f.means(n) {
					return false
				}
			}
			if t.partial && !t.given(n) {
				return false
			}
		}
	}
	// The number of replicas depends on every size of the layout.
	if t.partial && slices.Contains(names, "DP") && !(t.given("--tensor-model-parallel-size") && t.given("--pipeline-model-parallel-size")) {
		return false
	}
	return !slices.ContainsFunc(t.flags, func(f flagUse) bool {
		return f.ok && f.valueUnknown() && layoutFlags[f.known.Name] && (slices.Contains(names, "DP") || slices.Contains(names, "WORLD_SIZE"))
	})
}

// layoutFlags are the flags that divide the ranks into groups.
var layoutFlags = map[string]bool{
	"--tensor-model-parallel-size": true, "--pipeline-model-parallel-size": true, "--context-parallel-size": true,
	"--expert-model-parallel-size": true, "--expert-tensor-parallel-size": true,
}

// flagLine returns the line of the first of the flags that the start has, or else the
// line of the start.
func (c *checker) flagLine(t megatronStart, names []string) int {
	for _, n := range names {
		for _, f := range t.flags {
			if f.name == n || f.ok && f.known.Name == n {
				return f.line
			}
		}
	}
	return t.start.Line
}

// A layout has the facts that the value of CUDA_DEVICE_MAX_CONNECTIONS depends on.
type layout struct {
	parallel, fsdp, overlap bool
	line                    int
}

func (t megatronStart) layout() layout {
	l := layout{line: t.start.Line}
	for _, f := range t.flags {
		if !f.ok || f.hidden {
			continue
		}
		switch f.known.Name {
		case "--tensor-model-parallel-size", "--context-parallel-size":
			if len(f.values) == 1 && f.values[0] != "1" && f.values[0] != "0" {
				l.parallel, l.line = true, f.line
			}
		case "--use-torch-fsdp2", "--use-megatron-fsdp":
			l.fsdp = true
		case "--overlap-moe-expert-parallel-comm":
			l.overlap = true
		}
	}
	return l
}

func connectionsMissing(c *checker) {
	for _, t := range c.megatronStarts() {
		l := t.layout()
		arch, ok := c.arch(t.start)
		if !ok || arch >= 10 || !l.parallel || l.fsdp || l.overlap || t.start.Sourced || c.found("container-env-missing") {
			continue
		}
		if _, set := t.start.Env.Env(connections); set || t.start.Container != nil && t.start.Container.EnvFile {
			continue
		}
		c.report(l.line, connections)
		return
	}
}

func connectionsWrong(c *checker) {
	for _, t := range c.megatronStarts() {
		v, set := t.start.Env.Env(connections)
		value, shown := v.Literal()
		if !set || !shown {
			continue
		}
		l := t.layout()
		arch, known := c.arch(t.start)
		line := max(v.Line(), 1)
		switch {
		case l.overlap && !l.fsdp && value != "32":
			c.warn(line, connections+"="+value)
			return
		case l.fsdp && value == "1", l.parallel && !l.fsdp && !l.overlap && known && arch < 10 && value != "1":
			c.report(line, connections+"="+value)
			return
		}
	}
}
