package bot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// What a shell shows in Slurm's own short forms, a chat says in words.

var (
	textHadEnded  = lang.Text{EN: "%s had ended already: %s", ZH: "%s 此前已结束：%s"}
	textNodesCol  = lang.Text{EN: "nodes", ZH: "节点"}
	textNodesAll  = lang.Text{EN: "%d in all", ZH: "共 %d 个"}
	nodeCountWord = []struct {
		of   func(slurm.Partition) int
		word lang.Text
	}{
		{func(p slurm.Partition) int { return p.Idle }, lang.Text{EN: "%d idle", ZH: "%d 个空闲"}},
		{func(p slurm.Partition) int { return p.Allocated }, lang.Text{EN: "%d in use", ZH: "%d 个使用中"}},
		{func(p slurm.Partition) int { return p.Other }, lang.Text{EN: "%d out of service", ZH: "%d 个不可用"}},
	}
)

// cancelDoc says of a job that had ended by itself how it did.
func cancelDoc(o jobcontrol.CancelOut, l lang.Lang) view.Doc {
	doc := o.View(l)
	if o.State.Ended() && !o.Cancelled && len(o.Jobs) == 0 {
		doc.Title = fmt.Sprintf(textHadEnded.In(l), o.JobID, card.State(o.State, l))
	}
	return doc
}

// nodeCounts are how many of a partition's nodes are in which state.
func nodeCounts(p slurm.Partition, l lang.Lang) string {
	var parts []string
	for _, w := range nodeCountWord {
		if n := w.of(p); n > 0 {
			parts = append(parts, fmt.Sprintf(w.word.In(l), n))
		}
	}
	if len(parts) != 1 || p.Idle+p.Allocated+p.Other != p.Total {
		parts = append(parts, fmt.Sprintf(textNodesAll.In(l), p.Total))
	}
	return strings.Join(parts, " · ")
}

// partitionsDoc has the counts of nodes in words, and no legend that explains them.
func partitionsDoc(o fleet.PartitionsOut, l lang.Lang) view.Doc {
	const counts = 2 // the column that a shell has as 3/60/1/64
	doc := o.View(l)
	doc.Sections = slices.Clone(doc.Sections)
	first := &doc.Sections[0]
	first.Text = ""
	table := view.Table{Header: slices.Clone(first.Table.Header)}
	table.Header[counts] = textNodesCol.In(l)
	for i, row := range first.Table.Rows {
		row = slices.Clone(row)
		row[counts] = nodeCounts(o.Partitions[i].Partition, l)
		table.Rows = append(table.Rows, row)
	}
	first.Table = &table
	return doc
}

// nothingIn reports whether an answer shows nothing that somebody would share.
func nothingIn(result any) bool {
	switch r := result.(type) {
	case jobcontrol.ListOut:
		return len(r.Jobs) == 0
	case jobcontrol.QueueOut:
		return len(r.Jobs) == 0
	}
	return false
}
