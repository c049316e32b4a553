package diagnose

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// stacks groups ranks by the stacks of their main threads, smallest group first: the others may be
// waiting for a rank that stands alone.
func (j *job) stacks() (groups []report.StackGroup) {
	byFrames := map[string]*report.StackGroup{}
	var order []string
	for i, f := range j.files {
		for _, s := range f.Spied {
			if len(s.Frames) == 0 {
				continue
			}
			key := strings.Join(s.Frames, "\n")
			if byFrames[key] == nil {
				byFrames[key] = &report.StackGroup{}
				order = append(order, key)
				for _, frame := range s.Frames {
					byFrames[key].Frames = append(byFrames[key].Frames, logline.Show(frame))
				}
			}
			byFrames[key].Ranks = append(byFrames[key].Ranks, j.rankOf(i, s.Tag))
		}
	}
	for _, key := range order {
		g := byFrames[key]
		slices.Sort(g.Ranks)
		groups = append(groups, *g)
	}
	slices.SortStableFunc(groups, func(a, b report.StackGroup) int { return len(a.Ranks) - len(b.Ranks) })
	return groups
}
