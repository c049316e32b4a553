package diagnose

import (
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// ofAll returns a verdict without its rank if most of the run's ranks raised the same error, but for numbers, and so did each one that
// failed by itself: then chance decides which one writes first. If they are on several nodes, no node is at fault either.
func (j *job) ofAll(v verdict) verdict {
	cause := v.event
	if cause.Agent || cause.Quoted || cause.Weight >= pattern.Fact-1 || cause.Kind == "" && !scan.Complaint.MatchString(cause.Text) {
		return v
	}
	said, nodes, unnamed, others := map[int]bool{}, map[string]bool{}, 0, v.others[:0:0]
	for _, e := range j.events {
		if e.Superseded || e.Agent || e.Kind != cause.Kind || logline.Template(e.Text) != logline.Template(cause.Text) {
			continue
		}
		if nodes[e.Node] = true; e.Rank >= 0 {
			said[e.Rank] = true
		} else {
			unnamed++
		}
		if e.File != cause.File || e.Off != cause.Off {
			others = append(others, e)
		}
	}
	_, top := j.reportedRanks()
	missing, ranks := 0, max(j.ranks(), top+1)
	for r := range j.leftByThemselves() {
		if ranks = max(ranks, r+1); !said[r] {
			missing++
		}
	}
	if all := len(said) + missing; missing > unnamed || all < 2 || 2*all <= ranks {
		return v
	}
	e := *cause
	e.Rank = -1
	v.event, v.others, v.laggard = &e, others, &laggard{-1, nil, "all"}
	v.noneAtFault = v.noneAtFault || len(nodes) > 1
	return v
}

// leftByThemselves returns the ranks that failed without being told to end, by launchers' reports and by their own exceptions.
func (j *job) leftByThemselves() map[int]bool {
	left := map[int]bool{}
	for i, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank >= 0 && !scan.ToldToEnd(e.Exit) && !j.old[i] {
				left[e.Rank] = true
			}
		}
	}
	for _, e := range j.events {
		for _, r := range j.exitedRanks(e) {
			if r >= 0 && !e.Superseded && (e.Stack != nil || e.Agent && e.Exit != 0 && !scan.ToldToEnd(e.Exit)) {
				left[r] = true
			}
		}
	}
	return left
}
