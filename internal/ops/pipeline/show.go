package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// brokenAt returns the first step whose newest job ended without completing.
func brokenAt(steps []Step) string {
	if i := slices.IndexFunc(steps, Step.BrokenNow); i >= 0 {
		return steps[i].Name
	}
	return ""
}

// broken returns the step at which the pipeline broke; the zero step where it did not.
func (o Out) broken() (step Step) {
	if i := slices.IndexFunc(o.Steps, func(s Step) bool { return s.Name == o.BrokenAt }); i >= 0 {
		return o.Steps[i]
	}
	return step
}

// BrokenNow reports whether the step's newest job ended without completing.
func (s Step) BrokenNow() bool { return s.State.Ended() && s.State != slurm.Completed }

// ListIn selects pipelines by name.
type ListIn struct {
	Name string `json:"name,omitempty" arg:"" optional:"" help:"only the pipeline of this name" zh:"只看该名称的流水线"`
}

// ListOut holds pipelines, newest first.
type ListOut struct {
	Pipelines []Out `json:"pipelines"`
	one       bool
}

// List returns the operation pipelines.
func List() ops.Op {
	return ops.Define(ops.Op{
		Name: "pipelines", Effect: ops.Read, Toolset: ops.JobsSet,
		Summary: lang.Text{EN: "pipelines with the state of each step, what is handed on, and where one broke", ZH: "各流水线每一步的状态、传递的数值，以及在哪一步中断"},
		Help: lang.Text{
			EN: "Use for how far a pipeline is. It goes on by the command in its answer, in the shell, which submits nothing twice.",
			ZH: "查看流水线进度。在 shell 中执行答复里的命令即可继续，不会重复提交。",
		},
		Example:  "pipelines nightly",
		Examples: []string{"pipelines"},
	}, list)
}

func list(ctx context.Context, c *ops.Call, in ListIn) (ListOut, error) {
	out := ListOut{Pipelines: []Out{}, one: in.Name != ""}
	records, err := newest(ctx, c, in.Name, mostListed)
	if err != nil {
		return out, err
	}
	for _, r := range records {
		out.Pipelines = append(out.Pipelines, r.Answer(c))
	}
	if len(records) == 0 && in.Name != "" {
		return out, notFound(in.Name)
	}
	return out, nil
}

// mostListed is the most pipelines in one answer.
const mostListed = 20

func notFound(name string) error {
	return ops.NotFoundError("name", lang.Text{EN: "there is no pipeline %q of yours", ZH: "您没有流水线 %q"}.With(name), lang.Text{EN: "pipelines lists them; pipeline FILE submits one", ZH: "pipelines 可列出；pipeline 文件 可提交"})
}

// newest returns the caller's pipelines in their current state, newest first. An
// operator sees everybody's.
func newest(ctx context.Context, c *ops.Call, name string, most int) (all []Record, err error) {
	all, err = ops.ListDocs[Record](ctx, c.Docs(), document, c.Now())
	all = slices.DeleteFunc(all, func(r Record) bool {
		return r.Owner != c.Who.User && !c.Who.Operator || name != "" && r.Name != name
	})
	slices.SortStableFunc(all, func(a, b Record) int { return b.At.Compare(a.At) })
	all = all[:min(most, len(all))]
	for i, r := range all {
		if all[i], err = Show(ctx, c, r.Owner, r.Name); err != nil {
			return nil, err
		}
	}
	return all, err
}

// newestNamed returns one pipeline in its current state; the newest where name is
// empty.
func newestNamed(ctx context.Context, c *ops.Call, name string) (Out, error) {
	all, err := newest(ctx, c, name, 1)
	switch {
	case err != nil:
		return Out{}, err
	case len(all) == 0 && name == "":
		return Out{}, ops.NotFoundError("name", lang.Text{EN: "no pipeline was submitted from here", ZH: "没有从这里提交过流水线"}, lang.Text{EN: "pipeline FILE submits one", ZH: "pipeline 文件 可提交"})
	case len(all) == 0:
		return Out{}, notFound(name)
	}
	return all[0].Answer(c), nil
}

// Answer returns the pipeline as an operation's output.
func (r Record) Answer(c *ops.Call) Out {
	out := Out{Name: r.Name, Owner: r.Owner, File: r.File, Page: c.PipelinePage(r.Owner, r.Name), Steps: []Step{}, shown: true}
	for _, s := range r.Steps {
		step := Step{
			Name: s.Name, Needs: append([]string{}, s.Needs...), Attempt: max(1, len(s.Jobs)), Handed: s.Handed, Problems: []rules.Problem{},
			elsewhere: c.Elsewhere(s.Cluster),
		}
		if last := len(s.Jobs) - 1; last >= 0 {
			step.JobID, step.Earlier = &s.Jobs[last], s.Jobs[:last]
		}
		if s.Job != nil {
			step.State, step.Reason = s.Job.State, s.Job.Reason
		}
		out.Steps = append(out.Steps, step)
	}
	out.BrokenAt = brokenAt(out.Steps)
	return out
}

// Done counts the completed steps.
func (o Out) Done() (n int) {
	for _, s := range o.Steps {
		if s.State == slurm.Completed {
			n++
		}
	}
	return n
}

// Says describes in one line how far the pipeline is.
func (o Out) Says() lang.Text {
	switch done := o.Done(); {
	case done == len(o.Steps):
		return lang.Text{EN: "%s: all steps are completed", ZH: "%s：全部步骤已完成"}.With(o.Name)
	case o.BrokenAt != "":
		return lang.Text{EN: "%s: broke at %s (%s), %d of %d steps completed", ZH: "%s：在 %s 中断（%s），已完成 %d/%d 步"}.With(o.Name, o.BrokenAt, o.broken().State, done, len(o.Steps))
	default:
		return lang.Text{EN: "%s: %d of %d steps completed", ZH: "%s：已完成 %d/%d 步"}.With(o.Name, done, len(o.Steps))
	}
}

// View shows one line for each pipeline, or the whole pipeline that the call names.
func (o ListOut) View(l lang.Lang) view.Doc {
	if o.one && len(o.Pipelines) == 1 {
		return o.Pipelines[0].View(l)
	}
	d := view.Doc{Title: lang.Text{EN: "no pipeline was submitted from here", ZH: "没有从这里提交过流水线"}.In(l)}
	if len(o.Pipelines) == 0 {
		return d
	}
	d.Title = lang.Text{EN: "pipelines, the newest first", ZH: "流水线，最新的在前"}.In(l)
	var items []string
	for _, p := range o.Pipelines {
		items = append(items, p.Says().In(l))
	}
	d.Sections = []view.Section{{Items: items}}
	d.Next = []string{"pipelines " + o.Pipelines[0].Name}
	return d
}

// next returns the commands to run where the pipeline broke: one to see why, one to
// continue.
func (o Out) next() (commands []string) {
	if broken := o.broken(); broken.last() != "" {
		commands = append(commands, "diagnose "+string(broken.last())+broken.elsewhere)
	}
	if again := (Record{File: o.File}).Resume(); o.File != "" && again != "" {
		commands = append(commands, strings.TrimPrefix(again, "megatron-ops "))
	}
	return commands
}

// last returns the step's newest job.
func (s Step) last() slurm.JobID {
	switch {
	case s.JobID != nil:
		return *s.JobID
	case len(s.Earlier) > 0:
		return s.Earlier[len(s.Earlier)-1]
	}
	return ""
}

// View shows one line for each step, and then the problems of the steps.
func (o Out) View(l lang.Lang) view.Doc {
	d := view.Doc{Title: o.Name}
	made := 0
	t := &view.Table{Header: view.Columns(l, "step|after|job|state|attempt", "步骤|依赖|作业|状态|第几次"), Spare: []int{4}}
	for _, s := range o.Steps {
		id, attempt := cmp.Or(string(s.last()), "-"), ""
		if s.New {
			made++
		}
		n := s.Attempt
		if s.JobID == nil && len(s.Earlier) > 0 { // the job in the row is that of the attempt before
			n = len(s.Earlier)
		}
		if n > 1 {
			attempt = fmt.Sprint(n)
		}
		t.Rows = append(t.Rows, []string{s.Name, strings.Join(s.Needs, ", "), id, cmp.Or(string(s.State), "-"), attempt})
	}
	d.Sections = []view.Section{{Table: t}}
	if o.Page != "" && !o.dry {
		d.Sections = append(d.Sections, view.Section{Facts: []view.Fact{{Name: lang.Text{EN: "page", ZH: "网页"}.In(l), Value: o.Page}}})
	}
	var takes []string
	for _, s := range o.Steps {
		for _, h := range s.Handed {
			says := lang.Text{EN: "%s takes %s = %s", ZH: "%s 取得 %s = %s"}.With(s.Name, h.Ref, h.Value)
			if h.Value == "" {
				says = lang.Text{EN: "%s takes %s, which is known once that job is submitted", ZH: "%s 取得 %s，其值在该作业提交后才知道"}.With(s.Name, h.Ref)
			}
			takes = append(takes, says.In(l))
		}
	}
	d.Add(view.Section{Heading: lang.Text{EN: "handed on", ZH: "传递的数值"}.In(l), Items: takes})
	for _, s := range o.Steps {
		for _, p := range s.Problems {
			if p.Severity == rules.Error {
				d.Sections = append(d.Sections, view.Section{Items: []string{l.Named(s.Name, l.Named(p.Field, p.Message)) + "\n" + p.Fix}})
			}
		}
	}
	switch {
	case o.Found():
		d.Tone, d.Title = view.Bad, lang.Text{EN: "%s: nothing was submitted: fix the errors, or use --force", ZH: "%s：没有提交：请先修复错误，或使用 --force"}.With(o.Name).In(l)
		if made > 0 {
			d.Title = lang.Text{EN: "%s: stopped after %s", ZH: "%s：提交 %s 后停止"}.With(o.Name, ops.Counted(made, "job")).In(l)
		}
	case o.dry:
		d.Title = lang.Text{EN: "%s: dry run, nothing was submitted", ZH: "%s：试运行，没有提交"}.With(o.Name).In(l)
	case o.Done() == len(o.Steps):
		d.Tone, d.Title = view.Good, o.Says().In(l)
	case o.shown || made == 0:
		if d.Title = o.Says().In(l); o.BrokenAt != "" {
			d.Tone = view.Bad
			d.Next = o.next()
		}
	default:
		d.Tone, d.Title = view.Good, lang.Text{EN: "%s: %s submitted", ZH: "%s：已提交 %s"}.With(o.Name, ops.Counted(made, "job")).In(l)
	}
	return d
}
