package diagnose

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// ofAll returns a verdict that says so if most of the run's ranks raised the cause, and so did each one that failed by itself: then
// chance decides which one writes first. The rank and the node stay those of the line that is shown.
func (j *job) ofAll(v verdict) verdict {
	cause := v.event
	if cause.Agent || cause.Quoted || cause.Weight >= pattern.Fact-1 || cause.Kind == "" && !scan.Complaint.MatchString(cause.Text) {
		return v
	}
	ranks, _, unnamed := saidBy(j.events, func(e *scan.Event) bool { return !e.Superseded && sameError(e, cause) && j.after(e) != wentOn })
	if j.rankOf(cause.File, cause.Tag) >= 0 {
		unnamed = 0 // where lines name their ranks, one without is a copy
	}
	_, top := j.reportedRanks()
	missing, world := 0, max(j.ranks(), top+1)
	for r := range j.leftByThemselves() {
		if world = max(world, r+1); !ranks[r] {
			missing++
		}
	}
	if all := len(ranks) + missing; missing > unnamed || all < 2 || 2*all <= world {
		return v
	}
	v.laggard = &laggard{-1, nil, "all"}
	return v
}

// sameError reports whether two exceptions say the same but for numbers, or are of the same line of code if they say nothing.
func sameError(a, b *scan.Event) bool {
	if a.Kind != b.Kind || logline.Template(a.Text) != logline.Template(b.Text) {
		return false
	}
	in, _ := a.Stack.Innermost()
	also, _ := b.Stack.Innermost()
	return in == also || strings.Trim(a.Text, ": ") != a.Kind
}

// saidBy returns the ranks and nodes that wrote such lines themselves, and the number of such lines without a rank.
func saidBy(events []*scan.Event, such func(*scan.Event) bool) (ranks map[int]bool, nodes map[string]bool, unnamed int) {
	ranks, nodes = map[int]bool{}, map[string]bool{}
	for _, e := range events {
		if e.Agent || !such(e) {
			continue
		}
		if nodes[e.Node] = true; e.Rank >= 0 {
			ranks[e.Rank] = true
		} else {
			unnamed++
		}
	}
	return ranks, nodes, unnamed
}

// ofClass returns a filter of events by their class.
func ofClass(class string) func(*scan.Event) bool {
	return func(e *scan.Event) bool { return e.Class == class }
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
