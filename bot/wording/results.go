package wording

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// The shell shows Slurm's abbreviations; a chat spells them out.

var (
	textHadEnded   = lang.Text{EN: "%s had ended already: %s", ZH: "%s 此前已结束：%s"}
	textPartitions = lang.Text{EN: "Partitions", ZH: "分区"}
	textNodesTitle = lang.Text{EN: "Nodes by partition", ZH: "各分区节点"}
	textDefault    = lang.Text{EN: "the default", ZH: "默认"}
	textDown       = lang.Text{EN: "takes no jobs", ZH: "不接受作业"}
	textFreeHere   = lang.Text{EN: "%d of %s free", ZH: "%d / %s 空闲"}
	textGPUsANode  = lang.Text{EN: "%s a node", ZH: "每节点 %s"}
	textAtMost     = lang.Text{EN: "at most %s", ZH: "时限 %s"}
	textNodesAJob  = lang.Text{EN: "at most %s a job", ZH: "每作业最多 %s"}
	nodeCountWord  = []struct {
		of   func(slurm.Partition) int
		word lang.Text
	}{
		{func(p slurm.Partition) int { return p.Idle }, lang.Text{EN: "%s idle", ZH: "%s空闲"}},
		{func(p slurm.Partition) int { return p.Allocated }, lang.Text{EN: "%s in use", ZH: "%s使用中"}},
		{func(p slurm.Partition) int { return p.Other }, lang.Text{EN: "%s out of service", ZH: "%s不可用"}},
	}
)

// cancelDoc says how a job ended that had ended before it was cancelled.
func cancelDoc(o jobcontrol.CancelOut, l lang.Lang) view.Doc {
	doc := o.View(l)
	if o.State.Ended() && !o.Cancelled && len(o.Jobs) == 0 {
		doc.Title = fmt.Sprintf(textHadEnded.In(l), o.JobID, card.State(o.State, l))
	}
	return doc
}

// nodeCounts says how many of a partition's nodes are in which state.
func nodeCounts(p slurm.Partition, l lang.Lang) string {
	var parts []string
	for _, w := range nodeCountWord {
		if n := w.of(p); n > 0 {
			parts = append(parts, w.word.With(ops.Counted(n, "node")).In(l))
		}
	}
	if len(parts) == 0 {
		return ops.Counted(p.Total, "node").In(l)
	}
	return strings.Join(parts, ", ")
}

// partitionLine describes a partition in a line that fits a phone: what is free, and what a job
// may ask for.
func partitionLine(p slurm.Partition, free string, l lang.Lang) string {
	parts := []string{"`" + p.Name + "`"}
	add := func(said string, when bool) {
		if when {
			parts = append(parts, said)
		}
	}
	add(textDefault.In(l), p.Default)
	add(textDown.In(l), !p.Up)
	add(free, free != "")
	add(nodeCounts(p, l), true)
	add(textGPUsANode.With(ops.Counted(p.GPUs, "GPU")).In(l), p.GPUs > 0)
	if p.TimeLimitS != nil {
		add(fmt.Sprintf(textAtMost.In(l), lang.Span(time.Duration(*p.TimeLimitS)*time.Second).In(l)), true)
	}
	add(textNodesAJob.With(ops.Counted(p.MaxNodes, "node")).In(l), p.MaxNodes > 0)
	add(strings.Join(p.Features, ", "), len(p.Features) > 0)
	return strings.Join(parts, " · ")
}

// inLines replaces the table of partitions, which is the first section, by lines.
func inLines(doc view.Doc, title lang.Text, lines []string, l lang.Lang) view.Doc {
	if len(lines) == 0 || len(doc.Sections) == 0 {
		return doc
	}
	doc.Title = title.In(l)
	doc.Sections = slices.Clone(doc.Sections)
	doc.Sections[0] = view.Section{Items: lines}
	return doc
}

func partitionsDoc(o fleet.PartitionsOut, l lang.Lang) view.Doc {
	var lines []string
	for _, p := range o.Partitions {
		lines = append(lines, partitionLine(p.Partition, "", l))
	}
	return inLines(o.View(l), textPartitions, lines, l)
}

// nodesDoc has a line for each partition, and below them the table of single nodes.
func nodesDoc(o fleet.NodesOut, l lang.Lang) view.Doc {
	var lines []string
	for _, p := range o.Partitions {
		free := ""
		if p.TotalGPUs > 0 {
			free = textFreeHere.With(p.FreeGPUs, ops.Counted(p.TotalGPUs, "GPU")).In(l)
		}
		lines = append(lines, partitionLine(p.Partition, free, l))
	}
	return inLines(o.View(l), textNodesTitle, lines, l)
}

// NothingIn reports whether a result shows nothing that somebody would share.
func NothingIn(result any) bool {
	switch r := result.(type) {
	case jobcontrol.ListOut:
		return len(r.Jobs) == 0
	case jobcontrol.QueueOut:
		return len(r.Jobs) == 0
	}
	return false
}

var (
	// Failures is the heading of failed jobs by cause.
	Failures = lang.Text{EN: "Recent failures by cause", ZH: "近期失败原因"}
	// NotKnown stands for an unknown cause of a failure.
	NotKnown = lang.Text{EN: "cause not known", ZH: "原因未知"}
)

// Doc draws a result for a chat.
func Doc(result view.Viewer, l lang.Lang) view.Doc {
	switch r := result.(type) {
	case joblogs.DiagnoseOut:
		return Diagnosis(r, l)
	case joblogs.LogsOut:
		return logsDoc(r, l)
	case jobcontrol.ListOut, jobcontrol.QueueOut:
		doc := result.View(l)
		doc.Title = lang.Capital(doc.Title)
		return doc
	case jobcontrol.CancelOut:
		return cancelDoc(r, l)
	case fleet.NodesOut:
		return nodesDoc(r, l)
	case fleet.PartitionsOut:
		return partitionsDoc(r, l)
	case jobcontrol.StatusOut:
		doc := r.View(l)
		doc.Title, doc.Tone = card.Title(r.Job, l), view.Plain // the same title as that of the job's card
		return doc
	}
	return result.View(l)
}

// CauseWords returns a failure class in words, followed by its id.
func CauseWords(class string, l lang.Lang) string {
	if class == "" {
		return NotKnown.In(l)
	}
	return fmt.Sprintf(answer.Named.In(l), ClassName(class, l), class)
}
