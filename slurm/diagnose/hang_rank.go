package diagnose

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// whoIsBehind finds the ranks for which others wait if no line reports a failure. It looks at flight
// recorder dumps, at each rank's own iterations, at the watchdogs' messages, and at py-spy's stacks.
func (j *job) whoIsBehind() *report.Behind {
	b := j.behindBy()
	if b != nil {
		b.Node = j.nodeByRank(b.Ranks[0], j.nodesOfRanks())
	}
	return b
}

func (j *job) behindBy() *report.Behind {
	if m := j.missed; m != nil {
		return &report.Behind{Ranks: []int{m.Rank}, By: "recorder", Others: fmt.Sprintf("%s #%d", logline.Show(m.Op), m.Seq)}
	}
	if ranks, at := ranksBehind(j.iterationsByRank()); ranks != nil {
		return &report.Behind{Ranks: ranks, By: "iterations", Others: strconv.Itoa(at)}
	}
	if l, ok := behind(j.nccl, j.world); ok {
		return &report.Behind{Ranks: []int{l.rank}, By: "watchdog"}
	}
	if groups := j.stacks(); len(groups) > 0 {
		few, all := groups[0], 0
		for _, g := range groups {
			all += len(g.Ranks)
		}
		if len(few.Ranks)*2 < all && !slices.Contains(few.Ranks, -1) {
			return &report.Behind{Ranks: few.Ranks, By: "stacks", Others: few.Frames[0]}
		}
	}
	return nil
}

// iterationsByRank returns the last iteration of each rank, if ranks report their own.
func (j *job) iterationsByRank() map[int]int {
	last := map[int]int{}
	for i, f := range j.files {
		for _, m := range f.Progress {
			t, text := logline.CutTag(m.Text)
			rank := j.rankOf(i, t)
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

// ranksBehind returns the ranks, fewer than half, that stopped before the iteration that the others
// reached.
func ranksBehind(last map[int]int) (ranks []int, at int) {
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
