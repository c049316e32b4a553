package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Behind is the ranks that the others of a hanging job wait for, and how that
// is known.
type Behind struct {
	Ranks []int  `json:"ranks"`
	Node  string `json:"node,omitempty"` // of the first of them
	// By is recorder, iterations, stacks or watchdog.
	By string `json:"by"`
	// Others is what the other ranks reached, such as an iteration.
	Others string `json:"others,omitempty"`
}

// whoIsBehind looks for the ranks that others wait for where no line reports a
// failure: in flight recorder dumps, in the iterations that ranks report of
// themselves, in what watchdogs print, and in py-spy's stacks.
func (j *job) whoIsBehind() *Behind {
	b := j.behindBy()
	if b != nil {
		b.Node = j.nodeByRank(b.Ranks[0], j.nodesOfRanks())
	}
	return b
}

func (j *job) behindBy() *Behind {
	if m := j.missed; m != nil {
		return &Behind{Ranks: []int{m.rank}, By: "recorder", Others: fmt.Sprintf("%s #%d", show(m.op), m.seq)}
	}
	if ranks, at := behindOf(j.iterationsByRank()); ranks != nil {
		return &Behind{Ranks: ranks, By: "iterations", Others: strconv.Itoa(at)}
	}
	if l, ok := behind(j.nccl, j.world); ok {
		return &Behind{Ranks: []int{l.rank}, By: "watchdog"}
	}
	if groups := j.stacks(); len(groups) > 1 {
		few, all := groups[0], 0
		for _, g := range groups {
			all += len(g.Ranks)
		}
		if len(few.Ranks)*2 < all && !slices.Contains(few.Ranks, -1) && len(few.Frames) > 0 {
			return &Behind{Ranks: few.Ranks, By: "stacks", Others: few.Frames[0]}
		}
	}
	return nil
}

// iterationsByRank is the last iteration that each rank reported, where ranks
// report their own.
func (j *job) iterationsByRank() map[int]int {
	last := map[int]int{}
	for i, f := range j.files {
		for _, m := range f.progress {
			t, text := untag(m.text)
			rank := j.rankOf(i, t, nil)
			g := iterationNumber.FindStringSubmatch(text)
			if rank < 0 || g == nil {
				continue
			}
			n, _ := strconv.Atoi(g[1])
			last[rank] = max(last[rank], n)
		}
	}
	return last
}

// behindOf returns the ranks, fewer than half of them, that stopped before the
// iteration that all others reached.
func behindOf(last map[int]int) (ranks []int, at int) {
	for _, n := range last {
		at = max(at, n)
	}
	for rank, n := range last {
		if n < at {
			ranks = append(ranks, rank)
		}
	}
	if len(ranks) == 0 || 2*len(ranks) >= len(last) {
		return nil, 0
	}
	slices.Sort(ranks)
	return ranks, at
}

// Says names the ranks and how they are known to be behind.
func (b Behind) Says() lang.Text {
	list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(b.Ranks)), ", "), "[]")
	en, zh := "rank "+list, "rank "+list
	if len(b.Ranks) > 1 {
		en = "ranks " + list
	}
	if b.Node != "" {
		en += " (node " + b.Node + ")"
		zh += "（节点 " + b.Node + "）"
	}
	switch b.By {
	case "iterations":
		return said("Behind the others: "+en+"; they reached iteration "+b.Others+".", "落后的是 "+zh+"；其他 rank 已到第 "+b.Others+" 次迭代。")
	case "recorder":
		return said("Behind the others: "+en+", by the flight recorder never in "+b.Others+".", "落后的是 "+zh+"：flight recorder 显示它从未进入 "+b.Others+"。")
	case "stacks":
		return said("Apart from the others: "+en+", in "+b.Others+".", "与其他 rank 不同的是 "+zh+"，位于 "+b.Others+"。")
	}
	return said("Behind the others: "+en+", by the watchdogs' sequence numbers.", "落后的是 "+zh+"（依据 watchdog 的序号）。")
}
