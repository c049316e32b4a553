package diagnose

import (
	"sort"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// nodeStarts returns the nodes' start lines of the last attempt, in order of ranks.
func (j *job) nodeStarts() (last []scan.NodeStart) {
	newest := 0
	for _, f := range j.files {
		for _, n := range f.NodeStarts {
			newest = max(newest, n.Attempt)
		}
	}
	seen := map[string]bool{}
	for _, f := range j.files {
		for _, n := range f.NodeStarts {
			if n.Attempt == newest && !seen[n.Host] {
				seen[n.Host] = true
				last = append(last, n)
			}
		}
	}
	sort.Slice(last, func(a, b int) bool { return last[a].First < last[b].First })
	return last
}

// startedOn returns the node of each rank, by the start lines.
func (j *job) startedOn() map[int]string {
	nodes := map[int]string{}
	for _, n := range j.nodeStarts() {
		for r := n.First; r <= n.Last && len(nodes) < 1<<16; r++ {
			nodes[r] = n.Host
		}
	}
	return nodes
}
