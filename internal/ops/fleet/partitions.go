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
)

// PartitionsIn names one partition; empty means all.
type PartitionsIn struct {
	Partition string `json:"partition,omitempty" arg:"" optional:"" help:"only this one" zh:"只看该分区"`
	ops.OnCluster
}

// PartitionsOut holds the partitions with their limits.
type PartitionsOut struct {
	Partitions []PartitionOut `json:"partitions"`
}

// A PartitionOut is a partition with its limits, where the cluster reports them.
type PartitionOut struct {
	slurm.Partition
	Limits *slurm.PartitionLimits `json:"limits"`
}

// Partitions returns the operation partitions.
func Partitions() ops.Op {
	return ops.Define(ops.Op{
		Name: "partitions", Effect: ops.Read, Toolset: ops.NodesSet,
		Summary: lang.Text{EN: "partitions: limits, features, nodes allocated, idle, other, total", ZH: "分区：限制、特性，以及已分配、空闲、其他、总节点数"},
		Help:    lang.Text{EN: "Use before choosing one. What is free: nodes.", ZH: "选择分区前查看。空闲情况用 nodes。"},
		Example: "partitions dev",
	}, partitions)
}

func partitions(ctx context.Context, c *ops.Call, in PartitionsIn) (PartitionsOut, error) {
	out := PartitionsOut{Partitions: []PartitionOut{}}
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	all, err := cl.Partitions(ctx)
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	var limits []slurm.PartitionLimits
	if l, ok := cl.(interface {
		PartitionLimits(context.Context) ([]slurm.PartitionLimits, error)
	}); ok {
		if limits, err = l.PartitionLimits(ctx); err != nil {
			return out, c.SlurmError(err, "")
		}
	}
	for _, p := range all {
		if in.Partition != "" && in.Partition != p.Name {
			continue
		}
		one := PartitionOut{Partition: p}
		if i := slices.IndexFunc(limits, func(l slurm.PartitionLimits) bool { return l.Name == p.Name }); i >= 0 {
			one.Limits = &limits[i]
		}
		out.Partitions = append(out.Partitions, one)
	}
	if in.Partition != "" && len(out.Partitions) == 0 {
		return out, noPartitionError(in.Partition, all)
	}
	return out, nil
}

// noPartitionError returns the error about a partition that is not among known.
func noPartitionError(name string, known []slurm.Partition) error {
	var names []string
	for _, p := range known {
		names = append(names, p.Name)
	}
	return ops.NotFoundError("partition",
		lang.Text{EN: "there is no partition %q", ZH: "没有分区 %q"}.With(name),
		lang.Text{EN: "partitions here: %s", ZH: "现有分区：%s"}.With(strings.Join(names, ", ")))
}

// View shows one line for each partition. A single partition is shown with all its
// limits.
func (o PartitionsOut) View(l lang.Lang) view.Doc {
	t := &view.Table{Header: view.Columns(l, "partition|state|nodes A/I/O/T|time limit|default time|nodes per job|GPUs per node|features", "分区|状态|节点 A/I/O/T|时限|默认时限|每作业节点|每节点 GPU|特性"), Spare: []int{4, 1, 5}}
	for _, p := range o.Partitions {
		name, limit, usual, nodes := p.Name, "-", "-", "-"
		if p.Default {
			name += "*"
		}
		if p.TimeLimitS != nil {
			limit = ops.Duration(*p.TimeLimitS)
		}
		if p.MaxNodes > 0 {
			nodes = fmt.Sprintf("≤ %d", p.MaxNodes)
		}
		if p.Limits != nil && p.Limits.DefaultTimeS != nil {
			usual = ops.Duration(*p.Limits.DefaultTimeS)
		}
		t.Rows = append(t.Rows, []string{
			name, p.State, fmt.Sprintf("%d/%d/%d/%d", p.Allocated, p.Idle, p.Other, p.Total), limit, usual, nodes,
			strconv.Itoa(p.GPUs), strings.Join(p.Features, ","),
		})
	}
	d := view.Doc{Sections: []view.Section{{Table: t, Text: lang.Text{
		EN: "A/I/O/T: nodes allocated, idle, other (down, drained), in total",
		ZH: "A/I/O/T：已分配、空闲、其他（下线、排空）、总数",
	}.In(l)}}}
	for _, p := range o.Partitions {
		d.Sections = append(d.Sections, standInNote(p.Partition, l)...)
	}
	if len(o.Partitions) == 1 && o.Partitions[0].Limits != nil {
		d.Sections = append(d.Sections, view.Section{Facts: limitFacts(o.Partitions[0], l)})
	}
	return d
}

// standInNote explains that the nodes of an embedded partition are stand-ins on one
// machine.
func standInNote(p slurm.Partition, l lang.Lang) []view.Section {
	if !slices.Contains(p.Features, slurm.Embedded) {
		return nil
	}
	return []view.Section{{Text: fmt.Sprintf(lang.Text{
		EN: "%s is this machine, by the embedded back end: no Slurm. Its %d nodes are stand-ins that share this machine's processors and GPUs; a job is told that it has the GPUs it asks for.",
		ZH: "%s 就是本机（内置后端，没有 Slurm）：%d 个节点只是替身，共用本机的处理器与 GPU；作业申请多少 GPU，就被告知有多少。",
	}.In(l), p.Name, p.Total)}}
}

func limitFacts(p PartitionOut, l lang.Lang) (fs view.Facts) {
	add := func(en, zh, value string) { fs.Add(l, en, zh, value) }
	yes := func(on bool) string {
		if on {
			return lang.Text{EN: "yes", ZH: "是"}.In(l)
		}
		return ""
	}
	add("nodes", "节点", p.Nodes)
	if p.Limits.MinNodes > 1 {
		add("minimum nodes", "最少节点数", strconv.Itoa(p.Limits.MinNodes))
	}
	add("default memory", "默认内存", p.Limits.DefMemory)
	add("maximum memory", "内存上限", p.Limits.MaxMemory)
	add("allowed accounts", "允许的账户", strings.Join(p.Limits.Accounts, ", "))
	add("allowed groups", "允许的用户组", strings.Join(p.Limits.Groups, ", "))
	add("allowed QOS", "允许的 QOS", strings.Join(p.Limits.QOS, ", "))
	add("extra limits of QOS", "附加限制所属 QOS", p.Limits.OwnQOS)
	add("preemption", "抢占方式", p.Limits.Preempt)
	add("whole nodes only", "仅整节点", yes(p.Limits.Exclusive))
	add("operators only", "仅管理员", yes(p.Limits.RootOnly))
	return fs
}
