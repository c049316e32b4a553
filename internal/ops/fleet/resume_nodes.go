package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// ResumeIn selects drained nodes.
type ResumeIn struct {
	Nodes  string `json:"nodes,omitempty" arg:"" optional:"" help:"hostlist" zh:"节点列表（hostlist）"`
	Reason string `json:"reason,omitempty" placeholder:"TEXT" help:"those whose drain reason holds this text" zh:"下线原因含该文字的节点"`
	Yes    bool   `json:"yes,omitempty" help:"do not ask before" zh:"不再询问"`
	ops.OnCluster
}

// ResumeOut lists the nodes that accept jobs again.
type ResumeOut struct {
	Nodes   []slurm.Node `json:"nodes"` // in their state before the operation
	Resumed bool         `json:"resumed"`
}

// Resume returns the operation resume.
func Resume() ops.Op {
	return ops.Define(ops.Op{
		Name: "resume", Effect: ops.Write, Toolset: ops.AdminSet, Idempotent: true,
		Summary: lang.Text{EN: "give drained nodes back to the scheduler (operators)", ZH: "让已排空的节点恢复接收作业（管理员）"},
		Help:    lang.Text{EN: "Use once the cause of the drain is fixed.", ZH: "排除下线原因之后使用。"},
		Example: `resume --reason "Kill task failed"`,
	}, resume)
}

func resume(ctx context.Context, c *ops.Call, in ResumeIn) (ResumeOut, error) {
	out := ResumeOut{Nodes: []slurm.Node{}}
	if in.Nodes == "" && in.Reason == "" {
		return out, ops.InputError("nodes",
			lang.Text{EN: "neither nodes nor a reason is given", ZH: "既没有给出节点，也没有给出原因"},
			lang.Text{EN: "for example: `resume --reason \"Kill task failed\"`", ZH: "例如：`resume --reason \"Kill task failed\"`"})
	}
	if !c.OwnHands() && !c.Who.Operator {
		return out, &ops.Error{Code: ops.NotAllowed, Message: lang.Text{EN: "nodes are the operators'", ZH: "节点由管理员管理"}, Fix: lang.Text{EN: "tell an operator; `nodes --drained` has the list", ZH: "请告知管理员；`nodes --drained` 可列出这些节点"}}
	}
	var only []string
	var err error
	if in.Nodes != "" {
		if only, err = nodeNames(in.Nodes); err != nil {
			return out, err
		}
	}
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	s, err := ops.Capable[interface {
		ResumeNodes(context.Context, []string) error
	}](cl, lang.Text{EN: "give nodes back to a scheduler", ZH: "把节点交还调度器"})
	if err != nil {
		return out, err
	}
	all, err := cl.Nodes(ctx)
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	var names []string
	for _, n := range all {
		if n.Usable() || only != nil && !slices.Contains(only, n.Name) ||
			!strings.Contains(strings.ToLower(n.Reason), strings.ToLower(in.Reason)) {
			continue
		}
		out.Nodes = append(out.Nodes, n)
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return out, ops.NotFoundError("nodes",
			lang.Text{EN: "no such node is out of service", ZH: "没有这样的停用节点"},
			lang.Text{EN: "`nodes --drained` lists those that take no jobs", ZH: "`nodes --drained` 可列出不接收作业的节点"})
	}
	if !in.Yes && !c.Confirmed {
		var why []string
		for _, n := range out.Nodes {
			why = append(why, fmt.Sprintf("%s (%s: %s)", n.Name, n.State, n.Reason))
		}
		return out, &ops.Error{
			Code: ops.NotAllowed, Confirm: true,
			Message: lang.Text{EN: "this lets jobs start again on %s", ZH: "将允许作业再次在 %s 上启动"}.With(strings.Join(why, ", ")),
			Fix:     lang.Text{EN: "see first that nothing hangs there, then say yes: --yes", ZH: "请先确认节点上没有卡住的进程，再加 --yes 确认"},
		}
	}
	if err := s.ResumeNodes(ctx, names); err != nil {
		return out, c.SlurmError(err, "")
	}
	out.Resumed = true
	return out, nil
}

// View lists the nodes, and why they were out of service.
func (o ResumeOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Title: lang.Text{EN: "in service again", ZH: "恢复接收作业的节点"}.In(l), Tone: view.Good}
	if !o.Resumed {
		d = view.Doc{Title: lang.Text{EN: "out of service", ZH: "不可用的节点"}.In(l), Tone: view.Warn}
	}
	s := view.Section{}
	for _, n := range o.Nodes {
		s.Items = append(s.Items, fmt.Sprintf("%s (%s): %s", n.Name, n.State, n.Reason))
	}
	d.Sections = []view.Section{s}
	return d
}
