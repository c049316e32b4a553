package lint

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// valueRules are about the values of variables and words.
var valueRules = []Rule{
	{
		ID: "unexported-variable", Severity: rules.Error, check: unexported,
		Why: lang.Text{EN: "the task uses a variable that the batch script sets without export: it is empty there", ZH: "任务里用到的变量在批处理脚本中没有 export：在任务里它是空的"},
		Fix: lang.Text{EN: "export it before srun", ZH: "在 srun 之前 export 这个变量"},
	},
	{
		ID: "unset-variable", Severity: rules.Error, check: unset,
		Why: lang.Text{
			EN: "nothing sets this variable: the flag before it swallows the next word, or the value is empty",
			ZH: "没有任何地方设置这个变量：它前面的参数会吞掉下一个词，或得到空值",
		},
		Fix: lang.Text{
			EN: "set it, or use a variable that Slurm always sets, such as SLURM_GPUS_ON_NODE",
			ZH: "先给它赋值，或改用 Slurm 一定会设置的变量，例如 SLURM_GPUS_ON_NODE",
		},
	},
	{
		ID: "heredoc-expansion", Severity: rules.Error, check: heredocExpansion,
		Why: lang.Text{
			EN: "the here-document is not quoted, so this is expanded while the file is written, mostly to nothing, and not when it runs",
			ZH: "here-document 没有加引号：变量在写文件时就被展开（多半为空），而不是在脚本运行时",
		},
		Fix: lang.Text{EN: `quote the word (<<'EOF'), or write \$ before what the file expands itself`, ZH: `给结束标记加引号（<<'EOF'），或把文件自己的变量写成 \$`},
	},
	{
		ID: "args-splitting", Severity: rules.Error, check: argsSplitting,
		Why: lang.Text{
			EN: "the list of arguments does not expand to its words: the program gets one giant argument, or only the first one",
			ZH: "参数列表没有展开成一个个参数：程序只得到一个巨大的参数，或只得到第一个",
		},
		Fix: lang.Text{
			EN: `"${ARGS[@]}" for an array, $ARGS without quotes for a string, "${ARGS[*]}" inside bash -c "…"`,
			ZH: `数组用 "${ARGS[@]}"，字符串用不带引号的 $ARGS，bash -c "…" 里用 ${ARGS[*]}`,
		},
	},
	{
		ID: "bad-assignment", Severity: rules.Error, check: badAssignment,
		Why: lang.Text{EN: "bash does not read this as an assignment: the variable stays unset", ZH: "这不是 bash 的赋值写法：变量不会被设置"},
		Fix: lang.Text{EN: "NAME=value, without blanks, $ or set", ZH: "写成 NAME=value：不要空格，不要 $，不要 set"},
	},
}

// reserved matches variables that bash, Slurm, the launcher or the site sets.
var reserved = lazy.New(`^(_|PATH|HOME|USER|LOGNAME|PWD|OLDPWD|HOSTNAME|HOSTTYPE|SHELL|SHLVL|LANG|LC_\w+|TERM|TZ|UID|EUID|PPID|RANDOM|SRANDOM|SECONDS|LINENO|EPOCHSECONDS|` +
	`EPOCHREALTIME|IFS|REPLY|OPTARG|OPTIND|BASH\w*|PIPESTATUS|FUNCNAME|DIRSTACK|GROUPS|TMPDIR|TMP|TEMP|EDITOR|MAIL|DISPLAY|SLURM\w*|SBATCH_\w+|SRUN_\w+|` +
	`CUDA_\w+|NVIDIA_\w+|NCCL_\w+|LD_\w+|PYTHON\w*|VIRTUAL_ENV|CONDA_\w+|MAMBA_\w+|LMOD_\w+|MODULE\w*|LOADEDMODULES|EBROOT\w*|EB\w+|OMPI_\w+|PMIX?_\w+|` +
	`MPI_\w+|I_MPI_\w+|PBS_\w+|LSB_\w+|SSH_\w+|XDG_\w+|HF_\w+|WANDB_\w+|PROXY|HTTPS?_PROXY|https?_proxy|no_proxy|NO_PROXY|RANK|LOCAL_RANK|` +
	`GPU_DEVICE_ORDINAL|ROCR_VISIBLE_DEVICES|HIP_\w+|\w*(WORK|SCRATCH|STORE|PROJECT|HOME|ROOT|FAST|LUSTRE|GPFS|DSDIR|JOBSCRATCH)\w*)$`)

// slurmNeeds maps variables to the options without which Slurm does not set them.
var slurmNeeds = map[string][]string{
	"SLURM_GPUS_PER_NODE":   {"gpus-per-node"},
	"SLURM_NTASKS_PER_NODE": {"ntasks-per-node"},
	"SLURM_CPUS_PER_TASK":   {"cpus-per-task"},
	"SLURM_GPUS":            {"gpus"},
	"SLURM_GPUS_PER_TASK":   {"gpus-per-task"},
	"SLURM_CPUS_PER_GPU":    {"cpus-per-gpu"},
	"SLURM_MEM_PER_GPU":     {"mem-per-gpu"},
	"SLURM_MEM_PER_CPU":     {"mem-per-cpu"},
}

// inTask reports whether x runs in a shell that srun or bash -c starts.
func inTask(x *script.Command) bool { return x.Shell.Kind != script.Batch && x.Remote == nil }

func unexported(c *checker) {
	seen := map[string]bool{}
	for _, x := range c.job.Commands {
		if !inTask(x) || x.Trap || x.Shell.Sourced && x.Shell.Step == nil {
			continue
		}
		if x.Container != nil && !x.Container.PassesEnv {
			continue // container-env-missing
		}
		for _, e := range x.Expansions {
			if e.Outer == nil || e.Var != nil || e.Guarded || e.Outer.Exported && c.job.Shell.Lookup(e.Name) == e.Outer {
				continue
			}
			if e.Outer.Array || reassigned(c, x, e.Name) {
				continue // args-splitting reports arrays; or this shell sets the variable elsewhere
			}
			if !seen[e.Name] {
				seen[e.Name] = true
				c.reportWithFix(e.Line, "$"+e.Name, lang.Text{EN: "export " + e.Name + " before srun", ZH: "在 srun 之前 export " + e.Name})
			}
		}
	}
}

// reassigned reports whether a shell with the text of x's shell assigns name.
func reassigned(c *checker, x *script.Command, name string) bool {
	return slices.ContainsFunc(c.job.Assignments, func(a script.Assignment) bool {
		return a.Name == name && a.Shell != c.job.Shell && a.Shell.Line == x.Shell.Line && a.Shell.Kind == x.Shell.Kind
	})
}

// launches reports whether x is one of the starts, directly or through other commands.
func launches(x *script.Command, starts []*script.Start) bool {
	return slices.ContainsFunc(starts, func(s *script.Start) bool { return slices.Contains(s.Chain(), x) })
}

var (
	textSetBy       = lang.Text{EN: "$%s, which Slurm sets only for --%s", ZH: "$%s（Slurm 只在有 --%s 时设置）"}
	textFromOutside = lang.Text{
		EN: "nothing here sets these variables: the script runs only if whoever submits it has set them",
		ZH: "脚本没有设置这些变量：只有提交者事先设置好，脚本才能运行",
	}
	textGiveThem = lang.Text{
		EN: "export them before sbatch, or give them defaults, such as ${NAME:?set NAME}",
		ZH: "在 sbatch 之前 export，或写成 ${NAME:?请设置 NAME} 之类",
	}
	textGiveOption = lang.Text{
		EN: "give --%s to sbatch, or use a variable that Slurm always sets, such as SLURM_GPUS_ON_NODE",
		ZH: "给 sbatch 加上 --%s，或改用 Slurm 一定会设置的变量，例如 SLURM_GPUS_ON_NODE",
	}
)

// fromOutside is the number of variables that nothing sets from which on a script
// obviously gets them from the program that submits it.
const fromOutside = 4

// neverSet returns the number of variables that the script uses and nothing sets.
func (c *checker) neverSet() int {
	names := map[string]bool{}
	for _, x := range c.job.Commands {
		for _, e := range x.Expansions {
			if _, slurm := slurmNeeds[e.Name]; e.Var == nil && !e.Guarded && e.Outer == nil && !slurm && !c.job.Assigned[e.Name] &&
				plainName.MatchString(e.Name) && !reserved.MatchString(e.Name) {
				names[e.Name] = true
			}
		}
	}
	return len(names)
}

func unset(c *checker) {
	seen := map[string]bool{}
	outside := c.neverSet() >= fromOutside
	var given []string // variables that come from outside
	first := 0
	for _, x := range c.job.Commands {
		if x.Trap || x.Remote != nil && x.Shell.Remote != nil || x.Container != nil && x.Shell.Container != nil {
			continue
		}
		launch := launches(x, c.job.Starts)
		for _, e := range x.Expansions {
			if e.Var != nil || e.Guarded || e.Outer != nil || e.Op == "length" || seen[e.Name] || c.job.Assigned[e.Name] || !plainName.MatchString(e.Name) {
				continue
			}
			needs, slurm := slurmNeeds[e.Name]
			switch {
			case slurm:
				if onlyPrints(x) && !e.Shell.NoUnset || !c.job.Batch() || c.job.Options.Has(needs...) || x.Step != nil && x.Step.Options.Has(needs...) ||
					e.Shell.Step != nil && e.Shell.Step.Options.Has(needs...) {
					continue
				}
				if e.Shell.Sourced || c.shownSubmission(lazy.New("--"+needs[0])) {
					continue
				}
			case !launch || reserved.MatchString(e.Name) || e.Shell.Sourced || c.job.Inner || !c.job.Batch() && len(c.job.Steps) == 0:
				continue
			case badlyAssigned(c, e.Name) || c.moduleImage(e.Name, x.Seq):
				continue
			default:
				if c.mentions(e.Name) || !valueOf(x, e.Name, 0) {
					continue // the script knows of the variable, or it may be a folder of the site
				}
			}
			seen[e.Name] = true
			switch {
			case slurm:
				c.reportWithFix(e.Line, textSetBy.With(e.Name, needs[0]).In(c.lang), textGiveOption.With(needs[0]))
			case outside:
				given, first = append(given, "$"+e.Name), cmp.Or(first, e.Line)
			default:
				c.report(e.Line, "$"+e.Name)
			}
		}
	}
	if len(given) > 0 {
		c.warnThat(first, strings.Join(given, ", "), textFromOutside)
		c.out[len(c.out)-1].Fix = textGiveThem.In(c.lang)
	}
}

// moduleImage reports whether the variable is the image of a container, and a module that was
// loaded before may set it, as the PyTorch modules of LUMI do.
func (c *checker) moduleImage(name string, seq int) bool {
	return c.commandBefore(seq, func(y *script.Command) bool { return y.Name() == "module" || y.Name() == "ml" }) &&
		slices.ContainsFunc(c.job.Containers, func(b *script.Container) bool {
			r := b.Image.Only()
			return r != nil && r.Name == name
		})
}

// mentions reports whether the script names the variable without expanding it, as in a
// list of required variables or a usage text, or checks that it is set.
func (c *checker) mentions(name string) bool {
	re := lazy.New(strings.ReplaceAll(`(^|[^$\w{])NAME\b|\s-[nz]\s+"?\$\{?NAME\b|\$\{NAME:?\?`, "NAME", regexp.QuoteMeta(name)))
	return slices.ContainsFunc(c.job.Script.Lines, func(l string) bool {
		return re.MatchString(l) && !strings.Contains(l, "--"+name)
	})
}

// valueOf reports whether the variable is a complete value in a word of x or of a
// command that x starts: $X, --flag=$X or $HOST:29500. A variable that is only a part
// of a path or of a list of mounts may be a folder that the user's environment sets.
func valueOf(x *script.Command, name string, depth int) bool {
	for _, a := range x.Args {
		i := slices.IndexFunc(a.Value, func(p script.Piece) bool { return p.Ref != nil && p.Ref.Name == name })
		if i >= 0 && (i == 0 || strings.HasSuffix(a.Value[i-1].Text, "=")) && (i+1 == len(a.Value) || port.MatchString(a.Value[i+1].Text)) {
			return true
		}
	}
	return depth < 6 && slices.ContainsFunc(x.Starts, func(y *script.Command) bool { return valueOf(y, name, depth+1) })
}

var port = lazy.New(`^:\d*$`)

// badlyAssigned reports whether the script tries to assign name in a form that is not
// an assignment in bash.
func badlyAssigned(c *checker, name string) bool {
	return slices.ContainsFunc(badAssignments(c), func(b badAssign) bool { return b.name == name })
}

// scriptName matches file names of scripts.
var scriptName = lazy.New(`\.(sh|bash|slurm|sbatch|job|run)$|^[\w/.-]*(run|entry|launch|train|job)[\w-]*$`)

func heredocExpansion(c *checker) {
	type doc struct {
		d       *script.Document
		submits bool
	}
	var docs []doc
	for _, w := range c.job.Written {
		if scriptName.MatchString(w.Name) || strings.HasPrefix(w.Document.Text(), "#!") {
			docs = append(docs, doc{w.Document, strings.Contains(w.Document.Text(), "#SBATCH")})
		}
	}
	for _, x := range c.job.Commands {
		switch x.Name() {
		case "sbatch", "bash", "sh", "ssh":
			for _, red := range x.Redirects {
				if red.Doc != nil && (x.Name() != "ssh" || len(x.Starts) > 0) {
					docs = append(docs, doc{red.Doc, x.Name() == "sbatch"})
				}
			}
		}
	}
	for _, d := range docs {
		if d.d.Quoted {
			continue
		}
		own := ownNames(d.d.Source)
		for _, e := range d.d.Expansions {
			if !e.HereDoc {
				continue
			}
			known := e.Var != nil || e.Guarded && e.Op != "" && e.Op != "!"
			late := scriptParameters[e.Name] || e.Name != "0" && isDigits(e.Name) && c.job.Batch()
			if own[e.Name] && !known || late && !known || d.submits && !c.job.Batch() && strings.HasPrefix(e.Name, "SLURM_") && !known {
				c.report(e.Line, "$"+e.Name)
				break
			}
		}
	}
}

// scriptParameters are the parameters that have a value only while the written script runs.
var scriptParameters = map[string]bool{"@": true, "*": true, "?": true, "!": true, "#": true}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

var ownName = lazy.New(`(?m)(?:^|;|&&|\b(?:export|local|declare|readonly)\s)\s*([A-Za-z_]\w*)\+?=|\bfor\s+([A-Za-z_]\w*)\s+in|` +
	`\bread\s+(?:-\w+\s+)*([A-Za-z_]\w*)`)

// ownNames returns the variables that the text of a script assigns.
func ownNames(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range ownName.FindAllStringSubmatch(text, -1) {
		for _, n := range m[1:] {
			if n != "" {
				out[n] = true
			}
		}
	}
	return out
}

// manyOptions reports whether v holds several options in one string: v has blanks, and
// one of its words is a flag.
func manyOptions(v script.Value) bool {
	var b strings.Builder
	for _, p := range v {
		if p.Ref != nil {
			b.WriteByte('x')
		}
		b.WriteString(p.Text)
	}
	s := strings.TrimSpace(b.String())
	return strings.Contains(s, " -") || strings.HasPrefix(s, "-") && strings.ContainsAny(s, " \t\n")
}

func argsSplitting(c *checker) {
	for _, x := range c.job.Commands {
		if x.Trap || !launches(x, c.job.Starts) {
			continue
		}
		text := commandText(x)
		for _, e := range x.Expansions {
			v := e.Var
			list := e.Index == "@"
			switch {
			case e.Word < 0 || e.Op != "":
			case v == nil && e.Outer != nil && e.Outer.Array && !c.declares(e):
				// Bash does not pass arrays to another shell.
				c.report(e.Line, "${"+e.Name+"[…]}")
			case v == nil:
			case v.Array && e.Index == "" && len(v.Elems) > 1:
				c.report(e.Line, "$"+e.Name)
			case v.Array && list && e.Quoted && !e.Whole && text == e.Word && len(v.Elems) > 1:
				c.report(e.Line, "${"+e.Name+"[@]}")
			case v.Array && e.Index == "*" && e.Quoted && e.Whole && len(v.Elems) > 1 && text != e.Word && x.Name() != "eval":
				c.report(e.Line, "${"+e.Name+"[*]}")
			case !v.Array && e.Quoted && e.Whole && text != e.Word && manyOptions(v.Value) && !isTextOption(x, e):
				c.report(e.Line, `"$`+e.Name+`"`)
			}
		}
	}
}

// declares reports whether the shell that expands the array also declares it.
func (c *checker) declares(e script.Expansion) bool {
	return slices.ContainsFunc(c.job.Assignments, func(a script.Assignment) bool {
		return a.Name == e.Name && a.Shell != nil && a.Shell.Line == e.Shell.Line && a.Shell.Kind == e.Shell.Kind && a.Shell.Kind != script.Batch
	})
}

// commandText returns the number, in the source, of the word that is a command text for
// another shell, as in bash -c TEXT and ssh host TEXT, or -1.
func commandText(x *script.Command) int {
	for i, a := range x.Args {
		t := a.Text()
		if len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.HasSuffix(t, "c") && i > 0 {
			for _, b := range x.Args[:i] {
				switch n := b.Text(); n[strings.LastIndexByte(n, '/')+1:] {
				case "bash", "sh", "zsh", "dash":
					if i+1 < len(x.Args) {
						return x.Args[i+1].Word
					}
				}
			}
		}
	}
	switch x.Name() {
	case "ssh", "pdsh", "clush", "eval":
		return x.Args[len(x.Args)-1].Word
	}
	return -1
}

// isTextOption reports whether the word of e is the value of an option that is text,
// such as --wrap or --comment.
func isTextOption(x *script.Command, e script.Expansion) bool {
	i := slices.IndexFunc(x.Args, func(a script.Arg) bool { return a.Word == e.Word })
	if i < 1 {
		return false
	}
	switch x.Args[i-1].Text() {
	case "--wrap", "--comment", "--prompt", "--notes", "--description", "--wandb-notes", "echo", "--export":
		return true
	}
	return false
}

type badAssign struct {
	name, text string
	line       int
}

var (
	setWord    = lazy.New(`^([A-Za-z_]\w*)=`)
	plainName  = lazy.New(`^[A-Za-z_]\w*$`)
	plainValue = lazy.New(`^(\d[\w.:-]*|true|false|localhost|[A-Z_]+)$`)
)

// takesEquals are commands that may have an argument that begins with =.
var takesEquals = strings.Fields("test expr export let declare local readonly typeset printf echo print grep egrep awk seq yes sed cut tr sort alias set eval env")

func badAssignments(c *checker) []badAssign {
	var out []badAssign
	for _, x := range c.job.Commands {
		t := script.Texts(x.Args)
		if len(t) == 0 {
			continue
		}
		add := func(name string) { out = append(out, badAssign{name, strings.Join(t, " "), x.Line}) }
		switch {
		case plainName.MatchString(t[0]) && len(t) > 1 && (t[1] == "=" || strings.HasPrefix(t[1], "=") && !strings.HasPrefix(t[1], "==")) &&
			!slices.Contains(takesEquals, t[0]):
			add(t[0])
		case dollarWord(x, 0) != "":
			add(dollarWord(x, 0))
		case t[0] == "export" || t[0] == "declare" || t[0] == "local" || t[0] == "readonly":
			for i := 1; i < len(t); i++ {
				if n := dollarWord(x, i); n != "" {
					add(n)
				}
				if t[i] == "=" || strings.HasPrefix(t[i], "=") {
					add(t[i-1])
				}
			}
		case t[0] == "set" && len(t) == 2 && setWord.MatchString(t[1]):
			name, _, _ := strings.Cut(t[1], "=")
			add(name)
		case t[0] == "setenv" && len(t) == 3, t[0] == "set" && len(t) == 4 && t[2] == "=" && plainName.MatchString(t[1]): // csh
			add(t[1])
		case len(t) == 1 && len(x.Assigns) == 1 && x.By == nil && x.Shell.Lookup(x.Assigns[0]) == nil &&
			emptyAssign(x) && plainValue.MatchString(t[0]):
			add(x.Assigns[0])
		}
	}
	return out
}

// emptyAssign reports whether the assignment before a command is empty, as in X= 1.
func emptyAssign(x *script.Command) bool {
	v := x.Env.Lookup(x.Assigns[0])
	if v == nil {
		return false
	}
	s, ok := v.Value.Literal()
	return ok && s == ""
}

// dollarWord returns NAME if word i of x is written as $NAME=value, else "".
func dollarWord(x *script.Command, i int) string {
	v := x.Args[i].Value
	if len(v) > 1 && v[0].Ref != nil && v[0].Ref.Kind == script.Variable &&
		v[0].Ref.Op == "" && !v[0].Ref.Loop && !v[0].Ref.Positional &&
		!v[0].Ref.Guarded && v[1].Ref == nil && strings.HasPrefix(v[1].Text, "=") &&
		!v[0].Quoted {
		return v[0].Ref.Name
	}
	// The variable has a value: with X=8, $X=1 runs "8=1", and with X=a "a=1".
	for _, e := range x.Expansions {
		if e.Word == x.Args[i].Word && e.Var != nil && !e.Quoted && !e.Var.Array && e.Op == "" {
			if s, ok := e.Var.Value.Literal(); ok && strings.HasPrefix(x.Args[i].Text(), s+"=") {
				return e.Name
			}
		}
	}
	return ""
}

func badAssignment(c *checker) {
	for _, b := range badAssignments(c) {
		c.report(b.line, b.text)
	}
}
