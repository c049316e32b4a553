package diagnose

import (
	"slices"
	"strconv"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// timeBetweenSteps returns the median time of an iteration by the times of the reports, which may come every ten
// iterations. Reports without a number count as one iteration each.
func (j *job) timeBetweenSteps() time.Duration {
	var all []time.Duration
	for _, f := range j.files {
		var prev time.Time
		last := 0
		for _, m := range f.Progress {
			at, ok := logline.ParseTime(m.Text)
			if !ok {
				continue
			}
			n, _ := strconv.Atoi(m.Step())
			if !prev.IsZero() && at.After(prev) {
				all = append(all, at.Sub(prev)/time.Duration(max(1, n-last)))
			}
			prev, last = at, n
		}
	}
	if len(all) == 0 {
		usual, _ := j.pace()
		return usual
	}
	slices.Sort(all)
	return all[len(all)/2]
}
