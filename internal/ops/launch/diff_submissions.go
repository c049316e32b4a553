package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// DiffIn names two submissions that were made here.
type DiffIn struct {
	Job  slurm.JobID `json:"job" arg:"" help:"job id of a submission" zh:"一次提交的作业号"`
	From slurm.JobID `json:"from,omitempty" arg:"" optional:"" help:"the job to compare it with; the one before of the same name where left out" zh:"与之比较的作业号；省略时为同名的上一次提交"`
	ops.OnCluster
}

// DiffOut holds what changed from the first submission to the second.
type DiffOut struct {
	From    slurm.JobID  `json:"from"`
	To      slurm.JobID  `json:"to"`
	Changes []job.Change `json:"changes"`
	Script  string       `json:"script"` // changed lines of the script, with - and + in front
}

// Diff returns the operation diff.
func Diff() ops.Op {
	return ops.Define(ops.Op{
		Name: "diff", Effect: ops.Read, Toolset: ops.JobsSet,
		Summary: lang.Text{EN: "what changed between two submissions of a run", ZH: "同一训练两次提交之间的变化"},
		Help: lang.Text{
			EN: "Use first after a failure: what is different from the run that worked? It compares specification and script.",
			ZH: "失败后先看这里：与之前成功的那次相比改了什么？比较规格与脚本。",
		},
		Example: "diff 4711 4698",
	}, diff)
}

func diff(ctx context.Context, c *ops.Call, in DiffIn) (DiffOut, error) {
	out := DiffOut{Changes: []job.Change{}}
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	after, err := OwnSubmission(ctx, c, cl, in.Job)
	if err != nil {
		return out, err
	}
	var before store.Submission
	if in.From != "" {
		before, err = OwnSubmission(ctx, c, cl, in.From)
	} else {
		before, err = submittedBefore(ctx, c, after)
	}
	if err != nil {
		return out, err
	}
	var old, next job.Spec
	if err := json.Unmarshal(before.Spec, &old); err != nil {
		return out, err
	}
	if err := json.Unmarshal(after.Spec, &next); err != nil {
		return out, err
	}
	out.From, out.To = before.JobID, after.JobID
	out.Changes = append(out.Changes, job.Diff(old, next)...)
	out.Script = job.DiffText(before.Script, after.Script)
	return out, nil
}

// OwnSubmission returns the submission that a job came from.
func OwnSubmission(ctx context.Context, c *ops.Call, cl ops.Cluster, id slurm.JobID) (store.Submission, error) {
	if !slurm.IsJobID(string(id)) {
		return store.Submission{}, ops.NoJobIDError(id, lang.Text{EN: "a job id such as 4711", ZH: "作业号，例如 4711"})
	}
	sub, err := c.FindSubmission(ctx, cl.Name(), id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return sub, ops.NotFoundError("job",
			lang.Text{EN: "job %s was not submitted through megatron-ops", ZH: "作业 %s 不是通过 megatron-ops 提交的"}.With(id),
			lang.Text{EN: "only jobs that were submitted here are kept", ZH: "只保存通过这里提交的作业"})
	case err != nil:
		return sub, unreadableNow(id, err)
	}
	return sub, nil
}

// submittedBefore returns the previous submission of the same name.
func submittedBefore(ctx context.Context, c *ops.Call, sub store.Submission) (store.Submission, error) {
	st, err := c.Store()
	if err != nil {
		return store.Submission{}, err
	}
	all, err := st.Submissions(ctx, sub.Owner, sub.Name, 100)
	if err != nil {
		return store.Submission{}, err
	}
	for _, s := range all { // newest first
		if s.CreatedAt.Before(sub.CreatedAt) && s.State == store.Submitted {
			return s, nil
		}
	}
	return store.Submission{}, ops.NotFoundError("from",
		lang.Text{EN: "there is no earlier submission of %s", ZH: "%s 没有更早的提交记录"}.With(sub.Name),
		lang.Text{EN: "name the job to compare with", ZH: "请给出要对比的作业号"})
}

// View shows the changed fields and then the changed lines of the script.
func (o DiffOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Title: fmt.Sprintf("%s → %s", o.From, o.To)}
	if len(o.Changes) == 0 {
		d.Sections = []view.Section{{Text: lang.Text{EN: "the specifications are the same", ZH: "规格没有变化"}.In(l)}}
		return d
	}
	t := &view.Table{Header: view.Columns(l, "field|before|after", "字段|之前|之后")}
	for _, ch := range o.Changes {
		t.Rows = append(t.Rows, []string{ch.Field, ch.Old, ch.New})
	}
	d.Sections = []view.Section{{Table: t}}
	d.Add(view.Section{Heading: lang.Text{EN: "script", ZH: "脚本"}.In(l), Code: o.Script, Fold: true})
	return d
}
