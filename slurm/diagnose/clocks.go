package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// fixClocks aligns the clocks of nodes by events that all of them log at the same moment: the end of a
// rendezvous, and iterations that several nodes report. It leaves differences below skew alone.
func (j *job) fixClocks() {
	seen := map[string]map[string]time.Time{} // moment → node → its time
	for i, f := range j.files {
		node := j.fileNode[i]
		if node == "" {
			continue
		}
		note := func(what string, at time.Time) {
			at = withYear(at, j.year)
			if seen[what] == nil {
				seen[what] = map[string]time.Time{}
			}
			if old, ok := seen[what][node]; !ok || at.Before(old) {
				seen[what][node] = at
			}
		}
		for what, at := range f.Moments {
			note(what, at)
		}
		for _, m := range f.Progress {
			g := iterationNumber.FindStringSubmatch(m.Text)
			if at, ok := logline.ParseTime(m.Text); ok && g != nil {
				note("iteration "+g[1], at)
			}
		}
	}
	ahead := clocksAhead(seen)
	for i, f := range j.files {
		if d := ahead[j.fileNode[i]]; d != 0 {
			f.Shift(-d)
		}
	}
	for node, d := range ahead {
		j.clocks = append(j.clocks, report.Clock{Node: logline.Show(node), AheadS: int64(d.Round(time.Second).Seconds())})
	}
	slices.SortFunc(j.clocks, func(a, b report.Clock) int { return cmp.Compare(a.Node, b.Node) })
}

// clocksAhead returns how far each node's clock is ahead of the median clock, if all moments that the
// node shares with others agree on that.
func clocksAhead(seen map[string]map[string]time.Time) map[string]time.Duration {
	offsets := map[string][]time.Duration{}
	for _, by := range seen {
		if len(by) < 2 {
			continue
		}
		var all []time.Time
		for _, at := range by {
			all = append(all, at)
		}
		slices.SortFunc(all, time.Time.Compare)
		middle := all[(len(all)-1)/2]
		for node, at := range by {
			offsets[node] = append(offsets[node], at.Sub(middle))
		}
	}
	ahead := map[string]time.Duration{}
	for node, ds := range offsets {
		slices.Sort(ds)
		if d := ds[len(ds)/2]; (d > skew || d < -skew) && ds[len(ds)-1]-ds[0] <= skew {
			ahead[node] = d
		}
	}
	return ahead
}
