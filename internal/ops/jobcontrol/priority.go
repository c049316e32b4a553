package jobcontrol

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// PriorityOut shows how a waiting job's priority is made up.
type PriorityOut struct {
	JobID    slurm.JobID    `json:"job_id"`
	Name     string         `json:"name"`
	Priority int64          `json:"priority"`
	Parts    []PriorityPart `json:"parts"` // largest first
	Position int            `json:"position,omitempty"`
	InLine   int            `json:"in_line,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	// Line holds the first few jobs ahead of it.
	Line []Waiting `json:"ahead"`
}

// A PriorityPart is one summand of a priority.
type PriorityPart struct {
	Part  string `json:"part"`
	Value int64  `json:"value"`
	Most  int64  `json:"most,omitempty"` // the weight that the site gives this part
	Says  string `json:"says"`
}

// priorityParts are the summands of a priority (sprio(1), and "Multifactor Priority
// Plugin" in Slurm's documents).
var priorityParts = []struct {
	name string
	of   func(slurm.Priority) int64
	says lang.Text
}{
	{"age", func(p slurm.Priority) int64 { return p.Age }, lang.Text{EN: "grows while the job waits; hold and update keep it, cancelling loses it", ZH: "随等待时间增长；hold 与 update 会保留，取消则清零"}},
	{"fair share", func(p slurm.Priority) int64 { return p.FairShare }, lang.Text{EN: "lower the more your account used recently", ZH: "账户近期用量越多越低"}},
	{"job size", func(p slurm.Priority) int64 { return p.Size }, lang.Text{EN: "by the nodes or CPUs asked for; most sites favour large jobs", ZH: "取决于申请的节点或 CPU 数；多数站点偏向大作业"}},
	{"partition", func(p slurm.Priority) int64 { return p.Partition }, lang.Text{EN: "the partition's own", ZH: "由分区决定"}},
	{"QOS", func(p slurm.Priority) int64 { return p.QOS }, lang.Text{EN: "the QOS's own: another QOS changes it at once", ZH: "由 QOS 决定：更换 QOS 立即改变"}},
	{"association", func(p slurm.Priority) int64 { return p.Account }, lang.Text{EN: "what the operators gave your account", ZH: "管理员赋予账户的值"}},
	{"nice", func(p slurm.Priority) int64 { return -p.Nice }, lang.Text{EN: "what --nice takes off", ZH: "通过 --nice 主动降低的值"}},
}

// fewAhead is how many of the jobs ahead are listed.
const fewAhead = 5

// Priority returns the operation priority.
func Priority() ops.Op {
	return ops.Define(ops.Op{
		Name: "priority", Effect: ops.Read, Toolset: ops.JobsSet,
		Summary: lang.Text{EN: "what a waiting job's priority is made of, and who is ahead", ZH: "排队作业的优先级构成，以及排在前面的作业"},
		Help:    lang.Text{EN: "Use for: why is mine behind others?", ZH: "用于回答：为什么我的作业排在后面？"},
		Example: "priority 4711",
	}, priority)
}

// A prioritizer is a cluster that tells what its jobs' priorities are made of.
type prioritizer interface {
	Priorities(context.Context, slurm.JobID) ([]slurm.Priority, error)
	PriorityWeights(context.Context) (slurm.Priority, error)
}

func priority(ctx context.Context, c *ops.Call, in JobIn) (PriorityOut, error) {
	out := PriorityOut{JobID: in.Job, Parts: []PriorityPart{}, Line: []Waiting{}}
	cl, j, err := c.Job(ctx, in.Cluster, in.Job)
	if err != nil {
		return out, err
	}
	out.Name, out.Reason = j.Name, j.Reason
	if j.State != slurm.Pending {
		return out, &ops.Error{Code: ops.Failed, Field: "job", Message: lang.Text{EN: "job %s is %s: only a waiting job has a priority that counts", ZH: "作业 %s 处于 %s：只有排队中的作业优先级才有意义"}.With(j.ID, j.State), Fix: lang.Text{EN: "see: `status %s`", ZH: "请查看：`status %s`"}.With(j.ID)}
	}
	p, err := ops.Capable[prioritizer](cl, lang.Text{EN: "say what a priority is made of", ZH: "说明优先级的构成"})
	if err != nil {
		return out, err
	}
	all, err := p.Priorities(ctx, in.Job)
	if err != nil {
		return out, c.SlurmError(err, in.Job)
	}
	most, _ := p.PriorityWeights(ctx)
	if j.Priority != nil {
		out.Priority = *j.Priority
	}
	if len(all) > 0 {
		out.Priority = all[0].Total
		for _, part := range priorityParts {
			v, top := part.of(all[0]), max(part.of(most), 0)
			if v != 0 || top > 0 {
				out.Parts = append(out.Parts, PriorityPart{part.name, v, top, part.says.In(c.Lang)})
			}
		}
		slices.SortStableFunc(out.Parts, func(a, b PriorityPart) int { return int(b.Value - a.Value) })
	}
	waiting, err := c.LookAll(ctx, cl, slurm.Filter{States: []slurm.State{slurm.Pending}})
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	for _, w := range inLine(waiting) {
		if w.ID.Array() == in.Job.Array() {
			out.Position, out.InLine = w.Position, w.InLine
			break
		}
		if w.Position > 0 && w.Partition == j.Partition && len(out.Line) < fewAhead {
			out.Line = append(out.Line, w)
		}
	}
	if out.Position == 0 {
		out.Line = []Waiting{} // it is not in line
	}
	return out, nil
}

// View shows the priority, its parts, and the jobs ahead.
func (o PriorityOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Title: fmt.Sprintf(lang.Text{EN: "%s %s: priority %d", ZH: "%s %s：优先级 %d"}.In(l), o.JobID, o.Name, o.Priority)}
	s := view.Section{}
	if o.Position > 0 {
		s.Text = fmt.Sprintf(lang.Text{EN: "Place %d of %d in its partition.", ZH: "在所属分区中排第 %d，共 %d 个。"}.In(l), o.Position, o.InLine)
	} else {
		m := slurm.ExplainReason(o.Reason)
		s.Text = lang.Text{EN: "Not in line: ", ZH: "未参与排位："}.In(l) + m.Says.In(l)
	}
	if len(o.Parts) > 0 {
		s.Table = &view.Table{Header: view.Columns(l, "part|counts|at most|what it is", "组成|分值|上限|含义")}
	}
	for _, p := range o.Parts {
		most := "-"
		if p.Most > 0 {
			most = strconv.FormatInt(p.Most, 10)
		}
		s.Table.Rows = append(s.Table.Rows, []string{p.Part, strconv.FormatInt(p.Value, 10), most, p.Says})
	}
	d.Sections = append(d.Sections, s)
	if len(o.Line) > 0 {
		ahead := view.Section{Heading: lang.Text{EN: "ahead of it", ZH: "排在前面的作业"}.In(l)}
		for _, w := range o.Line {
			ahead.Items = append(ahead.Items, fmt.Sprintf("%s %s (%s): %d", w.ID, w.Name, w.User, priorityOf(w.Job)))
		}
		d.Sections = append(d.Sections, ahead)
	}
	return d
}
