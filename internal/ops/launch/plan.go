// Package launch turns a specification into a submission: it reads, judges, renders and
// submits it, and changes the specification of a job that failed or was submitted
// before.
package launch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/preflight"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// PlanIn is the specification to judge.
type PlanIn struct {
	SpecIn
	Against    string `json:"against,omitempty" name:"against" placeholder:"VERSION" help:"also judge by this release, such as 0.19.0" zh:"同时按该版本判断，例如 0.19.0"`
	CheckFiles bool   `json:"check_files,omitempty" name:"check-files" help:"also look, from here, at the files that the job will open, and at your rights and limits" zh:"同时在本机检查作业将要打开的文件，以及你的权限与限额"`
}

// PlanOut is what the rules say about a job.
type PlanOut struct {
	// OK is false exactly where Megatron itself would refuse to start.
	OK bool `json:"ok"`
	// Ready reports that submit accepts the job as it is: there is no error, and
	// nothing that the job needs is missing.
	Ready    bool            `json:"ready"`
	Problems []rules.Problem `json:"problems"`
	Derived  map[string]any  `json:"derived"`
	// Name, Nodes and WorldSize identify what was judged.
	Name      string `json:"name"`
	Nodes     int    `json:"nodes"`
	WorldSize int    `json:"world_size"`
	// Read lists the assumptions made in reading a script: values that the script does
	// not show, and values that depend on the environment or on a branch.
	Read []job.Note `json:"read,omitempty"`
	// Megatron is the release by which the arguments were judged.
	Megatron *Judged `json:"megatron,omitempty"`
	// Against is what another release says about the same arguments.
	Against *Upgrade `json:"against,omitempty"`

	judged bool // Megatron's rules were applied, because the program takes its flags
}

// Found reports whether submit would be stopped.
func (o PlanOut) Found() bool { return rules.Blocking(o.Problems) }

// Plan returns the operation plan.
func Plan() ops.Op {
	return ops.Define(ops.Op{
		Name: "plan", Effect: ops.Read, Toolset: ops.PlanSet, Core: true,
		Summary: lang.Text{
			EN: "judge a job by Megatron's own rules before it queues, with a fix for each problem",
			ZH: "排队之前按 Megatron 自身的规则检查作业，并给出每个问题的修复办法",
		},
		Help: lang.Text{
			EN: "Use before submit, and when a layout or flag is in doubt. It reports all at once: what Megatron would refuse (ok false), what the documents warn of, what Megatron changes silently.",
			ZH: "提交之前使用，或在不确定并行配置、参数时使用。一次列出全部问题：Megatron 会拒绝的（ok 为 false）、文档提醒的、Megatron 会悄悄改动的。不会提交任何作业。",
		},
		Example: "plan -f job.yaml",
		Batch:   ops.ByLine(rules.Batch),
	}, plan)
}

func plan(ctx context.Context, c *ops.Call, in PlanIn) (PlanOut, error) {
	name, text, err := readInput(c, in.SpecIn)
	if err != nil {
		return PlanOut{}, err
	}
	s, notes, err := draftOf(c, in.SpecIn, name, text)
	if err != nil {
		return PlanOut{}, err
	}
	// A missing worktree is one more problem in the answer, because the arguments can
	// be judged without it. The same holds for values that a script hides.
	faults := s.Validate()
	if _, err := c.Cluster(s.Cluster); err == nil { // the presets of other clusters are unknown here
		faults = append(faults, c.SiteOf(s).PresetFaults(s)...)
	}
	whole := len(faults) == 0
	errs := slices.DeleteFunc(faults, func(e *job.FieldError) bool {
		return e.Value == "" && (e.Field == "worktree" || isScript(name, text))
	})
	if len(errs) > 0 {
		return PlanOut{}, ops.FieldErrors(job.Locate(job.FieldErrors(errs), name, text))
	}
	out, err := JudgeSpec(c, s)
	out.Problems = preflight.Stopped(s.WithDefaults(), out.Problems)
	if err == nil && in.Against != "" {
		out.Against, err = judgeAgainst(c, s, in.Against)
	}
	out.Read = slices.DeleteFunc(notes, func(n job.Note) bool { return n.Kind == "" })
	if err == nil && isScript(name, text) {
		out.Problems = append(out.Problems, preflight.Written(c, name, text)...)
	}
	if err == nil && in.CheckFiles {
		if !preflight.SharesFiles(c, s) {
			return out, ops.InputError("check_files",
				lang.Text{EN: "files can be looked at only on this machine's own clusters", ZH: "只能检查本机集群上的文件"},
				lang.Text{EN: "run it where the files are, on a login node", ZH: "请在文件所在处（登录节点）执行"})
		}
		if !c.OwnHands() {
			return out, ops.InputError("check_files",
				lang.Text{EN: "files are looked at as the one who asks, and this process is %s", ZH: "检查文件须以提问者的身份进行，而当前进程属于 %s"}.With(c.Self),
				lang.Text{EN: "run it in a shell of your own", ZH: "请在自己的 shell 中执行"})
		}
		cl, err := c.Cluster(s.Cluster)
		if err != nil {
			return out, err
		}
		// A job that cannot be rendered yet is judged without asking Slurm.
		sc, _ := job.Render(s, job.Options{Version: c.Version, Site: c.SiteOf(s)})
		out.Problems = preflight.OnCluster(ctx, c, cl, s, fullSpec(c, s), sc, out.Problems)
	}
	out.Ready = err == nil && whole && !out.Found()
	return out, err
}

// JudgeSpec applies Megatron's rules and the documents' rules to s. It judges each
// point of a sweep; a problem of several points is reported once, in the words of the
// first.
func JudgeSpec(c *ops.Call, s job.Spec) (PlanOut, error) {
	points := s.Points()
	if len(points) == 0 {
		return judgeRun(c, s)
	}
	var out PlanOut
	type fault struct{ rule, field string }
	times, first := map[fault]int{}, map[fault]string{}
	all := []rules.Problem{}
	for i, p := range points {
		one, err := judgeRun(c, p.Spec)
		if err != nil {
			return one, err
		}
		if i == 0 {
			out = one
		}
		out.OK = out.OK && one.OK
		for _, x := range one.Problems {
			key := fault{x.Rule, x.Field}
			if times[key]++; times[key] == 1 {
				first[key], all = p.String(), append(all, x)
			}
		}
	}
	for i, x := range all {
		key := fault{x.Rule, x.Field}
		if n := times[key]; n < len(points) {
			all[i].Message = fmt.Sprintf(lang.Text{EN: "%s (%d of %d points): %s", ZH: "%s（%d/%d 个点）：%s"}.In(c.Lang), first[key], n, len(points), x.Message)
		}
	}
	out.Problems = all
	return out, nil
}

// judgeRun is JudgeSpec for a single run.
func judgeRun(c *ops.Call, s job.Spec) (PlanOut, error) {
	full, found := withRelease(c, s.WithDefaults())
	out := PlanOut{OK: true, Problems: []rules.Problem{}, Derived: map[string]any{}, Name: full.Name, Nodes: *full.Nodes, WorldSize: full.WorldSize()}
	run := MegatronRun(full)
	if Trains(full) {
		out.Megatron, out.judged = found, true
		v := rules.CheckIn(run, c.Lang)
		out.OK, out.Derived = v.OK, v.Derived
		if !megatron.KnownEntry(run.Entry) {
			v.Problems = givenOnly(run, v.Problems)
			out.OK = !rules.Blocking(v.Problems)
		}
		out.Problems = append(out.Problems, v.Problems...)
	}
	out.Problems = append(out.Problems, preflight.Surroundings(c, full)...)
	return out, nil
}

// givenOnly keeps the problems of flags and variables that were given explicitly to
// somebody's own program. A missing flag may have a default there, and a word without a
// flag may have a meaning: what is unknown is not a fault.
func givenOnly(run megatron.Run, ps []rules.Problem) []rules.Problem {
	args, _ := megatron.Parse(run)
	return slices.DeleteFunc(slices.Clone(ps), func(p rules.Problem) bool {
		return p.Field != connections && !args.Given(p.Field) && !slices.ContainsFunc(run.Argv, func(a string) bool {
			name, _, _ := strings.Cut(a, "=")
			return name == p.Field
		})
	})
}

// Trains reports whether the job runs a program that takes Megatron's flags.
func Trains(s job.Spec) bool { return s.Launcher != job.Custom && *s.GPUsPerNode > 0 && s.Train == "" }

// MegatronRun returns the launch that the rendered script would make. Its environment
// is the one that the script sets; the specification's own variables take precedence.
func MegatronRun(s job.Spec) megatron.Run {
	run := s.Run()
	if _, own := run.Env[connections]; !own {
		if v := job.RecommendedConnections(s).Value; v != "" {
			run.Env[connections] = v
		}
	}
	return run
}

const connections = "CUDA_DEVICE_MAX_CONNECTIONS"

// warnings counts the warnings.
func (o PlanOut) warnings() (n int) {
	for _, p := range o.Problems {
		if p.Severity == rules.Warning {
			n++
		}
	}
	return n
}

// View shows every problem, the most severe first.
func (o PlanOut) View(l lang.Lang) view.Doc {
	size := lang.Text{EN: "%s, %s", ZH: "%s，%s"}.With(ops.Counted(o.Nodes, "node"), ops.Counted(o.WorldSize, "rank")).In(l)
	d := view.Doc{Tone: view.Good, Title: fmt.Sprintf(lang.Text{EN: "%s: %s: Megatron would start it", ZH: "%s：%s：Megatron 可以启动"}.In(l), o.Name, size)}
	switch {
	case !o.judged && o.OK && !o.Found():
		verdict := lang.Text{EN: "no problems found", ZH: "没有发现问题"}
		if o.warnings() > 0 {
			verdict = lang.Text{EN: "no errors", ZH: "没有错误"}
		}
		d.Title = fmt.Sprintf(lang.Text{EN: "%s: %s: %s; Megatron's rules do not apply to its arguments", ZH: "%s：%s：%s；其参数不由 Megatron 的规则检查"}.In(l), o.Name, size, verdict.In(l))
	case !o.OK:
		d.Tone = view.Bad
		d.Title = fmt.Sprintf(lang.Text{EN: "%s: %s: Megatron would refuse it", ZH: "%s：%s：Megatron 会拒绝启动"}.In(l), o.Name, size)
	case o.Found():
		d.Tone = view.Bad
		d.Title = fmt.Sprintf(lang.Text{EN: "%s: %s: not ready to submit", ZH: "%s：%s：还不能提交"}.In(l), o.Name, size)
	}
	if n := o.warnings(); n > 0 && d.Tone == view.Good {
		d.Tone = view.Warn
		d.Title += lang.Text{EN: "; %s", ZH: "；%s"}.With(ops.Counted(n, "warning")).In(l)
	}
	d.Sections = append(d.Sections, problemSections(o.Problems, l)...)
	if o.Against != nil {
		d.Sections = append(d.Sections, o.Against.section(l))
	}
	d.Add(view.Section{Heading: lang.Text{EN: "how the script was read", ZH: "对脚本的读法"}.In(l), Items: noteLines(o.Read, l)})
	if facts := derivedFacts(o.Derived); len(facts) > 0 && o.OK {
		d.Sections = append(d.Sections, view.Section{Heading: lang.Text{EN: "what follows from it", ZH: "由此得出"}.In(l), Facts: facts})
	}
	if o.Megatron != nil {
		d.Sections = append(d.Sections, o.Megatron.section(l))
	}
	return d
}

var severityWords = map[rules.Severity]lang.Text{
	rules.Error:   {EN: "errors", ZH: "错误"},
	rules.Warning: {EN: "warnings", ZH: "警告"},
	rules.Note:    {EN: "notes", ZH: "说明"},
}

// problemSections returns one section for each severity that occurs.
func problemSections(ps []rules.Problem, l lang.Lang) []view.Section {
	var out []view.Section
	for _, sev := range []rules.Severity{rules.Error, rules.Warning, rules.Note} {
		s := view.Section{Heading: severityWords[sev].In(l), Fold: sev == rules.Note}
		for _, p := range ps {
			if p.Severity != sev {
				continue
			}
			s.Items = append(s.Items, problemItem(p, l))
		}
		if len(s.Items) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// warned returns what a person who is asked to go on should know first: the warnings, and the errors
// that --force overrules.
func warned(ps []rules.Problem) (lines []lang.Text) {
	for _, p := range ps {
		switch p.Severity {
		case rules.Error:
			lines = append(lines, lang.Text{EN: "error: %s: %s", ZH: "错误：%s：%s"}.With(p.Field, p.Message))
		case rules.Warning:
			lines = append(lines, lang.Text{EN: "warning: %s: %s", ZH: "警告：%s：%s"}.With(p.Field, p.Message))
		}
	}
	return lines
}

// problemItem formats a problem, its fix and its source.
func problemItem(p rules.Problem, l lang.Lang) string {
	item := l.Named(p.Field, p.Message)
	if p.Fix != "" {
		item += "\n" + fixWords(p, l) + p.Fix
	}
	where := p.Rule
	if p.Source != "" {
		where += "  " + p.Source
	}
	if p.Follows != "" {
		where += lang.Text{EN: "  (follows from ", ZH: "（由 "}.In(l) + p.Follows + lang.Text{EN: ")", ZH: " 引起）"}.In(l)
	}
	return item + "\n[" + where + "]"
}

// fixWords introduces a fix with what it does to the run.
func fixWords(p rules.Problem, l lang.Lang) string {
	switch p.Effect {
	case rules.PerformanceOnly:
		return lang.Text{EN: "fix (the results stay the same): ", ZH: "修复（不改变实验结果）："}.In(l)
	case rules.ChangesExperiment:
		return lang.Text{EN: "fix (changes the experiment): ", ZH: "修复（会改变实验结果）："}.In(l)
	}
	return lang.Text{EN: "fix: ", ZH: "修复："}.In(l)
}

// derivedFacts returns the derived values that people ask for most.
func derivedFacts(derived map[string]any) []view.Fact {
	var fs []view.Fact
	for _, name := range []string{
		"data_parallel_size", "global_batch_size", "micro_batch_size", "num_microbatches",
		"virtual_pipeline_model_parallel_size", "cuda_device_max_connections",
	} {
		if v, ok := derived[name]; ok && v != nil {
			fs = append(fs, view.Fact{Name: name, Value: fmt.Sprint(v)})
		}
	}
	return fs
}
