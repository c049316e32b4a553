// Package fleet shows the nodes and takes care of them: what is free, tests of suspect
// nodes, nodes that retries leave out, and processes that ended jobs left behind.
package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// NodesIn selects nodes.
type NodesIn struct {
	Partition string `json:"partition,omitempty" short:"p" help:"only this partition's" zh:"只看该分区"`
	Drained   bool   `json:"drained,omitempty" help:"only nodes that take no jobs, with the reason" zh:"只列出不可用的节点及原因"`
	Reason    string `json:"reason,omitempty" placeholder:"TEXT" help:"only nodes whose drain reason holds this text" zh:"只列出原因中含该文字的节点"`
	Nodes     string `json:"nodes,omitempty" arg:"" optional:"" help:"only these nodes, a hostlist" zh:"只看这些节点（hostlist）"`
	Check     bool   `json:"check,omitempty" help:"with drained or reason: look for processes left there, by ssh" zh:"配合 drained 或 reason：经 ssh 检查是否有遗留进程"`
	Avoided   bool   `json:"avoided,omitempty" help:"also the nodes that retries leave out, and spares" zh:"也列出重试时排除的节点与备用节点"`
	ops.OnCluster
}

// NodesOut holds the free GPUs of each partition, and the selected nodes.
type NodesOut struct {
	Partitions []PartitionFree `json:"partitions"`
	Nodes      []NodeOut       `json:"nodes"`
	Avoided    []Avoided       `json:"avoided,omitempty"`
	// Listed reports that the nodes are shown one by one, because the call selects some
	// or there are few.
	Listed    bool `json:"-"`
	reason    string
	mayResume bool
}

// A PartitionFree is a partition with its free and total GPUs.
type PartitionFree struct {
	slurm.Partition
	FreeGPUs  int `json:"free_gpus"`
	TotalGPUs int `json:"total_gpus"`
}

// A NodeOut is a node with the meaning of its state.
type NodeOut struct {
	slurm.Node
	Meaning string `json:"meaning,omitempty"`
	// Blamed lists the failures that diagnoses blame on the node.
	Blamed []Blame `json:"blamed,omitempty"`
	// Left lists the leftover processes that were found on the node, where the call
	// asked for them. Unseen says why the node could not be checked.
	Left    []slurm.Process `json:"left,omitempty"`
	Unseen  string          `json:"unseen,omitempty"`
	checked bool
}

// fewNodes is up to how many nodes are listed without being selected.
const fewNodes = 16

// Nodes returns the operation nodes.
func Nodes() ops.Op {
	return ops.Define(ops.Op{
		Name: "nodes", Effect: ops.Read, Toolset: ops.NodesSet, Core: true,
		Summary: lang.Text{EN: "what is free by partition, and nodes with their states and drain reasons", ZH: "各分区的空闲情况，以及节点状态与下线原因"},
		Help:    lang.Text{EN: "Use for: what is free, which partition, which nodes are drained.", ZH: "用于查看哪里有空闲、选哪个分区、哪些节点下线及原因。"},
		Example: "nodes --drained",
	}, nodes)
}

// noNodeError is the error of a call that names a node that the cluster does not have.
func noNodeError(name string) error {
	return ops.NotFoundError("nodes",
		lang.Text{EN: "there is no node %s", ZH: "没有节点 %s"}.With(name),
		lang.Text{EN: "`nodes` lists them", ZH: "`nodes` 可列出全部"})
}

func nodes(ctx context.Context, c *ops.Call, in NodesIn) (NodesOut, error) {
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return NodesOut{}, err
	}
	var only []string
	if in.Nodes != "" {
		if only, err = nodeNames(in.Nodes); err != nil {
			return NodesOut{}, err
		}
	}
	all, err := cl.Nodes(ctx)
	if err != nil {
		return NodesOut{}, c.SlurmError(err, "")
	}
	if unknown := slices.DeleteFunc(slices.Clone(only), func(name string) bool {
		return slices.ContainsFunc(all, func(n slurm.Node) bool { return n.Name == name })
	}); len(unknown) > 0 {
		return NodesOut{}, noNodeError(hostlist.Compress(unknown))
	}
	parts, err := cl.Partitions(ctx)
	if err != nil {
		return NodesOut{}, c.SlurmError(err, "")
	}
	out := NodesOut{Partitions: []PartitionFree{}, Nodes: []NodeOut{}}
	for _, p := range parts {
		if in.Partition != "" && p.Name != in.Partition {
			continue
		}
		out.Partitions = append(out.Partitions, freeIn(p, all))
	}
	if in.Partition != "" && len(out.Partitions) == 0 {
		return out, noPartitionError(in.Partition, parts)
	}
	for _, n := range all {
		if in.selects(n, only) {
			m := slurm.ExplainNode(n.State)
			out.Nodes = append(out.Nodes, NodeOut{Node: n, Meaning: m.Says.In(c.Lang)})
		}
	}
	if in.Avoided {
		if out.Avoided, err = AvoidedNodes(ctx, c.Service, cl.Name(), c.Who.User); err != nil {
			return out, err
		}
	}
	if len(only) > 0 && c.Store != nil {
		for i := range out.Nodes {
			out.Nodes[i].Blamed = BlamesOf(ctx, c.Service, cl.Name(), out.Nodes[i].Name)
		}
	}
	if in.Check {
		if !in.Drained && in.Reason == "" {
			return out, ops.InputError("check",
				lang.Text{EN: "check looks at nodes that are out of service", ZH: "check 只用于检查停用的节点"},
				lang.Text{EN: "for example: `nodes --reason 'Kill task failed' --check`", ZH: "例如：`nodes --reason 'Kill task failed' --check`"})
		}
		if err := checkLeftovers(ctx, c, cl, out.Nodes); err != nil {
			return out, err
		}
	}
	out.reason, out.mayResume = in.Reason, c.OwnHands() || c.Who.Operator
	out.Listed = in.Drained || in.Reason != "" || len(only) > 0 || len(out.Nodes) <= fewNodes
	return out, nil
}

// freeIn counts the GPUs of a partition's nodes. A stand-in has only the GPUs that its
// job is told it has, so it is never full and does not count.
func freeIn(p slurm.Partition, nodes []slurm.Node) PartitionFree {
	free := PartitionFree{Partition: p}
	for _, n := range nodes {
		standIn := slices.Contains(n.Features, slurm.Embedded) && n.GPUs == n.GPUsUsed
		if !slices.Contains(n.Partitions, p.Name) || standIn {
			continue
		}
		free.TotalGPUs += n.GPUs
		if n.Free() {
			free.FreeGPUs += n.GPUs - n.GPUsUsed
		}
	}
	return free
}

// selects reports whether the call asks for a node. only holds the nodes that it names;
// empty: it names none.
func (in NodesIn) selects(n slurm.Node, only []string) bool {
	return (in.Partition == "" || slices.Contains(n.Partitions, in.Partition)) &&
		(len(only) == 0 || slices.Contains(only, n.Name)) &&
		!(in.Drained && n.Usable()) &&
		strings.Contains(strings.ToLower(n.Reason), strings.ToLower(in.Reason))
}

// View shows the partitions and then the selected nodes.
func (o NodesOut) View(l lang.Lang) (d view.Doc) {
	if len(o.Partitions) > 0 {
		t := &view.Table{Header: view.Columns(l, "partition|free GPUs|nodes A/I/O/T|time limit|GPUs per node", "分区|空闲 GPU|节点 A/I/O/T|时限|每节点 GPU")}
		for _, p := range o.Partitions {
			name, limit, free := p.Name, "-", "-"
			if p.Default {
				name += "*"
			}
			if p.TimeLimitS != nil {
				limit = ops.Duration(*p.TimeLimitS)
			}
			if p.TotalGPUs > 0 {
				free = fmt.Sprintf("%d / %d", p.FreeGPUs, p.TotalGPUs)
			}
			t.Rows = append(t.Rows, []string{
				name, free,
				fmt.Sprintf("%d/%d/%d/%d", p.Allocated, p.Idle, p.Other, p.Total), limit, strconv.Itoa(p.GPUs),
			})
		}
		d.Sections = append(d.Sections, view.Section{Table: t})
		for _, p := range o.Partitions {
			d.Sections = append(d.Sections, standInNote(p.Partition, l)...)
		}
	}
	if len(o.Avoided) > 0 {
		defer func() { d.Sections = append(d.Sections, avoidSection(o.Avoided, l)) }()
	}
	if !o.Listed {
		return d
	}
	if len(o.Nodes) == 0 {
		d.Title = lang.Text{EN: "no node is like that", ZH: "没有这样的节点"}.In(l)
		return d
	}
	t := &view.Table{Header: view.Columns(l, "node|state|GPUs used|CPUs used|why", "节点|状态|已用 GPU|已用 CPU|说明")}
	for _, n := range o.Nodes {
		why := n.Meaning
		if n.Reason != "" {
			why = n.Reason
			if n.ReasonBy != "" {
				why += " (" + n.ReasonBy + ")"
			}
		}
		why += n.leftoverText(l)
		t.Rows = append(t.Rows, []string{n.Name, n.State, fmt.Sprintf("%d/%d", n.GPUsUsed, n.GPUs), fmt.Sprintf("%d/%d", n.CPUsUsed, n.CPUs), why})
	}
	d.Sections = append(d.Sections, view.Section{Table: t})
	if o.reason != "" && o.mayResume {
		d.Next = []string{"resume --reason " + strconv.Quote(o.reason)}
	}
	for _, n := range o.Nodes {
		if len(n.Blamed) > 0 {
			s := view.Section{Heading: fmt.Sprintf(lang.Text{EN: "%s was blamed for", ZH: "%s 被判定导致"}.In(l), n.Name)}
			for _, b := range n.Blamed {
				s.Items = append(s.Items, b.says(l))
			}
			d.Sections = append(d.Sections, s)
		}
	}
	return d
}
