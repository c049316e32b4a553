package lint

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// directiveRules are about the #SBATCH lines and the first line.
var directiveRules = []Rule{
	{
		ID: "sbatch-ignored", Severity: rules.Error, check: sbatchIgnored,
		Why: lang.Text{EN: "sbatch never reads this directive", ZH: "sbatch 不会读取这条指令"},
		Fix: lang.Text{EN: "move it above the first command and begin the line with #SBATCH", ZH: "把它移到第一条命令之前，并让该行以 #SBATCH 开头"},
	},
	{
		ID: "sbatch-variable", Severity: rules.Error, check: sbatchVariable,
		Why: lang.Text{EN: "sbatch does not expand variables in a directive: it uses the text literally", ZH: "sbatch 不会展开指令中的变量：文本原样使用"},
		Fix: lang.Text{EN: "use %u, %j or %x in file names, or give the option on the sbatch command line", ZH: "文件名中用 %u、%j、%x，或在 sbatch 命令行上给出该选项"},
	},
	{
		ID: "bad-directive", Severity: rules.Error, check: badDirective,
		Why: lang.Text{EN: "sbatch refuses the script", ZH: "sbatch 会拒绝这个脚本"},
		Fix: lang.Text{EN: "correct the directive (man sbatch lists the options)", ZH: "改正这条指令（选项见 man sbatch）"},
	},
	{
		ID: "no-shebang", Severity: rules.Error, check: noShebang,
		Why: lang.Text{
			EN: `the first line does not begin with #!: sbatch says "This does not look like a batch script"`,
			ZH: "第一行不是以 #! 开头：sbatch 会报 “This does not look like a batch script”",
		},
		Fix: lang.Text{
			EN: "make #!/bin/bash the very first line, without a byte order mark or a blank line before it",
			ZH: "让 #!/bin/bash 成为第一行，前面不能有 BOM 或空行",
		},
	},
	{
		ID: "crlf", Severity: rules.Error, check: crlf,
		Why: lang.Text{
			EN: `DOS line ends: sbatch refuses the script, and bash reads \r as part of words`,
			ZH: `文件是 DOS 换行：sbatch 会拒绝它，bash 会把 \r 当作单词的一部分`,
		},
		Fix: lang.Text{EN: "dos2unix the file", ZH: "用 dos2unix 转换该文件"},
	},
	{
		ID: "no-time-limit", Severity: rules.Warning, check: noTimeLimit,
		Why: lang.Text{
			EN: "no --time: the partition's default applies, so the job is killed early or scheduled late",
			ZH: "没有 --time：会使用分区的默认时限，作业可能被提前终止或排队更久",
		},
		Fix: lang.Text{EN: "#SBATCH --time=D-HH:MM:SS", ZH: "加上 #SBATCH --time=D-HH:MM:SS"},
	},
	{
		ID: "no-gpu-request", Severity: rules.Warning, check: noGPURequest,
		Why: lang.Text{EN: "no option requests GPUs: if Slurm schedules GPUs, the training sees none", ZH: "没有申请 GPU 的选项：在由 Slurm 调度 GPU 的集群上，训练看不到任何 GPU"},
		Fix: lang.Text{EN: "#SBATCH --gpus-per-node=N", ZH: "加上 #SBATCH --gpus-per-node=N"},
	},
	{
		ID: "array-without-limit", Severity: rules.Warning, check: arrayLimit,
		Why: lang.Text{
			EN: "the parts of this array continue one training and all run at once on the same checkpoint",
			ZH: "这个数组作业的各部分是同一次训练的接力，却会同时运行、写同一个检查点",
		},
		Fix: lang.Text{EN: "add %1 to --array, such as --array=1-10%1", ZH: "在 --array 末尾加 %1，例如 --array=1-10%1"},
	},
	{
		ID: "dependency-bare-id", Severity: rules.Warning, check: dependencyBareID,
		Why: lang.Text{EN: "a dependency without a type means afterany: the job starts after a failure too", ZH: "不带类型的依赖等于 afterany：前一个作业失败了也会启动"},
		Fix: lang.Text{EN: "--dependency=afterok:ID", ZH: "改为 --dependency=afterok:作业号"},
	},
	{
		ID: "export-none", Severity: rules.Error, check: exportNone,
		Why: lang.Text{EN: "--export without ALL: PATH and the variables set here do not reach the tasks", ZH: "--export 没有包含 ALL：PATH 和脚本中设置的变量都传不到任务里"},
		Fix: lang.Text{EN: "--export=ALL,… (or srun --export=ALL)", ZH: "改为 --export=ALL,…（或 srun --export=ALL）"},
	},
}

func sbatchIgnored(c *checker) {
	for _, d := range c.job.Directives {
		if d.Ignored == "" || d.Text == "" {
			continue
		}
		given, fix := strings.TrimSpace(c.job.Script.Lines[d.Line-1]), lang.Text{}
		if d.Ignored != script.Late {
			fix = lang.Text{EN: "begin the line with #SBATCH, without blanks before it", ZH: "让该行以 #SBATCH 开头，前面不要有空白"}
		}
		c.reportWithFix(d.Line, given+" ("+string(d.Ignored)+")", fix)
	}
}

// uncommented returns a directive's text without the comment at its end.
func uncommented(s string) string {
	s, _, _ = strings.Cut(s, " #")
	return s
}

var variable = lazy.New("\\$[A-Za-z_{(]|`")

func sbatchVariable(c *checker) {
	for _, d := range c.job.Directives {
		if d.Ignored == "" && variable.MatchString(uncommented(d.Text)) {
			c.report(d.Line, d.Text)
		}
	}
}

func badDirective(c *checker) {
	for _, d := range c.job.Directives {
		if d.Ignored == "" && d.Fault.EN != "" && !variable.MatchString(uncommented(d.Text)) {
			c.report(d.Line, d.Fault.In(c.lang))
			if d.Misread { // nothing refuses it: the log, the name or the folder is another one
				c.out[len(c.out)-1].Message = d.Fault.In(c.lang)
			}
		}
	}
}

func noShebang(c *checker) {
	if c.job.Batch() && (c.job.Shebang == "" || !c.job.Inner && c.job.Script.BOM) {
		c.report(c.job.FirstLine, "")
	}
}

func crlf(c *checker) {
	if n := c.job.Script.CRLF; n > 0 && !c.job.Inner {
		c.report(n, "")
	}
}

// shownSubmission reports whether a comment shows an sbatch command line that matches
// options.
func (c *checker) shownSubmission(options *lazy.Pattern) bool {
	return slices.ContainsFunc(c.job.Comments, func(comment string) bool {
		return strings.Contains(comment, "sbatch ") && options.MatchString(comment)
	})
}

var timeOption = lazy.New(`\s(--time[= ]|-t\s*\d)`)

func noTimeLimit(c *checker) {
	if !c.job.Batch() || c.job.Options.Has("time", "deadline") || c.shownSubmission(timeOption) {
		return
	}
	for _, d := range c.job.Directives {
		if near, _ := slurm.NearestOption(d.FaultOption); d.Options.Has("time") || d.FaultOption == "time" || near == "time" {
			return // the limit is given; another rule reports that the directive is ignored or wrong
		}
	}
	c.report(c.headLine(), "")
}

var (
	gpuOptions = []string{"gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres", "tres-per-node", "tres-per-task", "tres-per-job", "tres-per-socket", "ntasks-per-gpu", "cpus-per-gpu", "mem-per-gpu", "exclusive"}
	gpuOption  = lazy.New(`--gpus|--gres|--tres-per|--exclusive|\s-G\s*\d`)
	cpuOnly    = lazy.New(`(?i)--device[= ]cpu|--use[-_]cpu|--cpu\b|gloo|--no[-_]cuda|cpu[-_ ]only`)
)

func noGPURequest(c *checker) {
	if !c.job.Batch() || c.job.Options.Has(gpuOptions...) || c.shownSubmission(gpuOption) {
		return
	}
	for _, d := range c.job.Directives {
		if strings.Contains(d.FaultOption, "gpu") || strings.Contains(d.FaultOption, "gres") || d.Ignored != "" && d.Options.Has(gpuOptions...) {
			return
		}
	}
	for _, n := range []string{"partition", "account", "constraint", "qos"} {
		if o, has := c.job.Options.Get(n); has && strings.Contains(strings.ToLower(o.Text()), "cpu") {
			return
		}
	}
	for _, st := range c.job.Steps {
		if st.Options.Has(gpuOptions...) || st.OptionsUnknown {
			return
		}
	}
	for _, s := range c.starts {
		words := strings.Join(script.Texts(append(slices.Clip(s.Args), s.ProgramArgs...)), " ")
		if s.Launcher == script.Wrapper && !pretrains(programName(s)) && !withGPUs(s.Container) || cpuOnly.MatchString(words) {
			continue
		}
		if cpuOnly.MatchString(c.comments()) {
			return
		}
		c.report(c.headLine(), "")
		return
	}
}

// withGPUs reports whether a container is started with the node's GPUs.
func withGPUs(box *script.Container) bool {
	if box == nil {
		return false
	}
	o, asked := box.Get("gpus", "nv", "rocm")
	return asked && !slices.Contains([]string{"0", "none", "false"}, o.Text())
}

// checkpointFlag matches arguments that name a checkpoint or an output folder.
var checkpointFlag = lazy.New(`(?i)^--?(save|load|resume|ckpt|checkpoint|output[-_]dir|restore|from[-_]checkpoint)`)

func arrayLimit(c *checker) {
	o, has := c.job.Options.Get("array")
	if !has {
		return
	}
	text := o.Text()
	indexes, limit, limited := strings.Cut(text, "%")
	if limited && limit == "1" || !strings.ContainsAny(indexes, "-,") || c.usesIndex() {
		return
	}
	for _, s := range c.starts {
		if slices.ContainsFunc(script.Texts(s.ProgramArgs), checkpointFlag.MatchString) {
			c.report(o.Line, "--array="+text)
			return
		}
	}
}

// usesIndex reports whether the script uses the index of its array task, other than to
// print it.
func (c *checker) usesIndex() bool {
	const index = "SLURM_ARRAY_TASK"
	if c.anyCommand(func(x *script.Command) bool {
		return slices.ContainsFunc(x.Expansions, func(e script.Expansion) bool { return strings.HasPrefix(e.Name, index) }) && !onlyPrints(x)
	}) {
		return true
	}
	return slices.ContainsFunc(c.job.Assignments, func(a script.Assignment) bool {
		return slices.ContainsFunc(a.Var.Value.Refs(), func(r *script.Ref) bool { return strings.HasPrefix(r.Name, index) })
	})
}

// bareID matches one or several job ids, or a word that stands for a job id.
var bareID = lazy.New(`(?i)^\d+([,:?]\d+)*$|^\w*job_?id\w*$`)

func dependencyBareID(c *checker) {
	bare := func(v script.Value) bool {
		if s, ok := v.Literal(); ok {
			return bareID.MatchString(s)
		}
		r := v[0].Ref
		if r == nil {
			return len(v) > 1 && bareID.MatchString(strings.Trim(v[0].Text, ":,"))
		}
		return submits(r)
	}
	if o, has := c.job.Options.Get("dependency"); has && o.Has && len(o.Value) > 0 && bare(o.Value) {
		c.report(o.Line, "--dependency="+o.Text())
	}
	for _, s := range c.job.Submissions {
		if o, has := s.Options.Get("dependency"); has && s.Job == nil && (len(o.Value) > 0 && bare(o.Value) || c.laterID(s, o)) {
			c.report(max(o.Line, s.Command.Line), "--dependency="+o.Text())
		}
	}
}

// laterID reports whether the dependency is a variable that is still empty here, and
// that holds a job id from the second round of its loop on.
func (c *checker) laterID(s *script.Submission, o script.Option) bool {
	if o.Value.Only() == nil && o.Text() != "" {
		return false
	}
	return slices.ContainsFunc(s.Command.Expansions, func(e script.Expansion) bool {
		return slices.ContainsFunc(c.job.Assignments, func(a script.Assignment) bool {
			r := a.Var.Value.Only()
			return a.Name == e.Name && r != nil && submits(r)
		})
	})
}

// submits reports whether r is the job id in the output of an sbatch.
func submits(r *script.Ref) bool {
	if slices.ContainsFunc(r.Commands, func(x *script.Command) bool { return x.Name() == "sbatch" }) {
		return true
	}
	all := append(slices.Clone(r.Alt), r.Of)
	return slices.ContainsFunc(all, func(v script.Value) bool {
		return len(v) > 0 && v[0].Ref != nil && v[0].Ref != r && submits(v[0].Ref)
	})
}

// withoutAll reports whether v is a value of --export that does not include ALL.
func withoutAll(v string) bool {
	return v != "" && !strings.HasPrefix(v, "$") && !slices.Contains(strings.Split(strings.ToUpper(v), ","), "ALL")
}

func exportNone(c *checker) {
	if o, has := c.job.Options.Get("export"); has && withoutAll(o.Text()) && !c.restoresEnv() {
		for _, st := range c.job.Steps {
			if e, has := st.Options.Get("export"); has && !withoutAll(e.Text()) {
				continue
			}
			if len(st.Command.Starts) > 0 {
				c.report(o.Line, "--export="+o.Text())
				break
			}
		}
	}
	for _, s := range c.job.Starts {
		if s.Step == nil {
			continue
		}
		needs := s.Container == nil || len(c.job.Shell.Names()) > 0 // an image has its own PATH
		if e, has := s.Step.Options.Get("export"); has && withoutAll(e.Text()) && needs {
			c.report(e.Line, "srun --export="+e.Text())
		}
	}
}

// restoresEnv reports whether the script undoes the effect of --export=NONE on srun.
func (c *checker) restoresEnv() bool {
	return c.anyCommand(func(x *script.Command) bool {
		return x.Name() == "unset" && slices.Contains(script.Texts(x.Args), "SLURM_EXPORT_ENV")
	}) || c.job.Assigned["SLURM_EXPORT_ENV"]
}
