package slurm

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Node is a cluster's information on one node.
type Node struct {
	Name       string     `json:"node"`
	State      string     `json:"state"` // as sinfo %T prints it, such as "mixed" or "drained*"
	Partitions []string   `json:"partitions"`
	GPUs       int        `json:"gpus"`
	GPUType    string     `json:"gpu_type,omitempty"`
	GPUsUsed   int        `json:"gpus_used"`
	CPUs       int        `json:"cpus"`
	CPUsUsed   int        `json:"cpus_used"`
	MemoryMB   int64      `json:"memory_mb"`
	Features   []string   `json:"features,omitempty"`
	Reason     string     `json:"reason,omitempty"` // why it is down or drained
	ReasonBy   string     `json:"reason_by,omitempty"`
	ReasonAt   *time.Time `json:"reason_at,omitempty"`
}

// Embedded is the feature of the embedded back end's nodes, which one machine without
// Slurm simulates.
const Embedded = "embedded"

// A Partition is a cluster's information on one partition. Its nodes are counted as
// sinfo counts them: allocated, idle, other (down, drained), total.
type Partition struct {
	Name       string   `json:"partition"`
	Default    bool     `json:"default"`
	Up         bool     `json:"up"`
	State      string   `json:"state"`
	TimeLimitS *int64   `json:"time_limit_s"` // nil: none
	MaxNodes   int      `json:"max_nodes,omitempty"`
	Allocated  int      `json:"allocated"`
	Idle       int      `json:"idle"`
	Other      int      `json:"other"`
	Total      int      `json:"total"`
	GPUs       int      `json:"gpus_per_node"`
	Features   []string `json:"features,omitempty"`
	Nodes      string   `json:"nodes"` // hostlist
}

// nodeFields are the columns of a node listing by sinfo. Free text comes last.
var nodeFields = []column[Node]{
	{"%N", func(n *Node, v string) { n.Name = v }},
	{"%T", func(n *Node, v string) { n.State = v }},
	{"%R", func(n *Node, v string) { n.Partitions = []string{v} }},
	{"%G", func(n *Node, v string) { n.GPUs, n.GPUType = gpusPerNode(v), gpuType(v) }},
	{"%C", func(n *Node, v string) {
		if f := strings.Split(v, "/"); len(f) == 4 {
			n.CPUsUsed, n.CPUs = parseCount(f[0]), parseCount(f[3])
		}
	}},
	{"%m", func(n *Node, v string) { n.MemoryMB, _ = strconv.ParseInt(strings.TrimSuffix(v, "+"), 10, 64) }},
	{"%f", func(n *Node, v string) { n.Features = features(v) }},
	{"%H", func(n *Node, v string) { n.ReasonAt = ParseTime(v) }},
	{"%u", func(n *Node, v string) { n.ReasonBy = emptyIfNone(v) }},
	{"%E", func(n *Node, v string) {
		if v != "none" {
			n.Reason = v
		}
	}},
}

// NodeFormat returns the value of sinfo --Node --format that ParseNodes expects.
func NodeFormat(sep string) string { return columnFormat(nodeFields, sep) }

// ParseNodes reads the output of sinfo --noheader --Node --format=NodeFormat(sep). A
// node of several partitions comes once.
func ParseNodes(out, sep string) ([]Node, error) {
	rows, err := parseColumns(nodeFields, out, sep)
	if err != nil {
		return nil, lang.Text{EN: "sinfo's answer: %s", ZH: "sinfo 的输出：%s"}.Err(err)
	}
	var nodes []Node
	at := map[string]int{}
	for _, n := range rows {
		if n.State == "" || n.Name == "" {
			continue
		}
		if i, seen := at[n.Name]; seen {
			nodes[i].Partitions = append(nodes[i].Partitions, n.Partitions...)
			continue
		}
		at[n.Name] = len(nodes)
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// AddGPUsUsed sets GPUsUsed of each node from the output of sinfo
// --Format=NodeList:128,GresUsed:256.
func AddGPUsUsed(nodes []Node, out string) {
	used := map[string]int{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 2 {
			used[f[0]] = gpusPerNode(f[1])
		}
	}
	for i := range nodes {
		nodes[i].GPUsUsed = used[nodes[i].Name]
	}
}

var partitionFields = []column[Partition]{
	{"%P", func(p *Partition, v string) {
		p.Name, p.Default = strings.TrimSuffix(v, "*"), strings.HasSuffix(v, "*")
	}},
	{"%a", func(p *Partition, v string) { p.State, p.Up = v, v == "up" }},
	{"%l", func(p *Partition, v string) { p.TimeLimitS = parseLimit(v) }},
	{"%s", func(p *Partition, v string) { // "1-2", "1-infinite"
		_, most, _ := strings.Cut(v, "-")
		p.MaxNodes, _ = strconv.Atoi(most)
	}},
	{"%F", func(p *Partition, v string) {
		if f := strings.Split(v, "/"); len(f) == 4 {
			p.Allocated, p.Idle, p.Other, p.Total = parseCount(f[0]), parseCount(f[1]), parseCount(f[2]), parseCount(f[3])
		}
	}},
	{"%G", func(p *Partition, v string) { p.GPUs = gpusPerNode(v) }},
	{"%f", func(p *Partition, v string) { p.Features = features(v) }},
	{"%N", func(p *Partition, v string) { p.Nodes = v }},
}

// PartitionFormat returns the value of sinfo --format that ParsePartitions expects.
func PartitionFormat(sep string) string { return columnFormat(partitionFields, sep) }

// ParsePartitions reads the output of sinfo --noheader --format=PartitionFormat(sep).
// sinfo prints one line for each kind of node of a partition; ParsePartitions adds
// these up.
func ParsePartitions(out, sep string) ([]Partition, error) {
	rows, err := parseColumns(partitionFields, out, sep)
	if err != nil {
		return nil, lang.Text{EN: "sinfo's answer: %s", ZH: "sinfo 的输出：%s"}.Err(err)
	}
	var all []Partition
	at := map[string]int{}
	for _, p := range rows {
		i, seen := at[p.Name]
		if !seen {
			at[p.Name] = len(all)
			all = append(all, p)
			continue
		}
		q := &all[i]
		q.Allocated += p.Allocated
		q.Idle += p.Idle
		q.Other += p.Other
		q.Total += p.Total
		q.GPUs = max(q.GPUs, p.GPUs)
		q.Nodes += "," + p.Nodes
		for _, f := range p.Features {
			if !slices.Contains(q.Features, f) {
				q.Features = append(q.Features, f)
			}
		}
	}
	return all, nil
}

// gpuType returns the GPU type in a GRES list such as "gpu:h100:8(S:0-1)", or "".
func gpuType(gres string) string {
	for item := range strings.SplitSeq(gres, ",") {
		item, _, _ = strings.Cut(item, "(")
		if f := strings.Split(item, ":"); len(f) == 3 && f[0] == "gpu" {
			return f[1]
		}
	}
	return ""
}

func features(v string) []string {
	if emptyIfNone(v) == "" {
		return nil
	}
	return strings.Split(v, ",")
}
