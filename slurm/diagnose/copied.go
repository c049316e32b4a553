package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// copied returns the latest time at which the last line of a copy can have been written; zero for a file
// that need not be one. The modification time of a copy is that of copying: its lines tell of an earlier
// time, in whatever zone. A job that Slurm knows to run has no copies.
func (j *job) copied(i int) time.Time {
	if _, known := j.given.running(); known || i >= len(j.files) {
		return time.Time{}
	}
	f, modified := j.files[i], j.src.Logs[i].Modified
	by := func(at time.Time, later time.Duration) time.Time {
		if at = at.Add(later); at.Year() > logline.Yearless+1 && at.Before(modified) {
			return at
		}
		return time.Time{}
	}
	if at, ok := logline.ParseTime(lastLine(f).Text); ok {
		return by(at, widest)
	}
	at, mostly := datedLines(f)
	if mostly {
		return by(at, widest+undatedFor)
	}
	if f.OwnDates.N < scan.Farewell { // one may be that of a file or a commit
		return time.Time{}
	}
	if f.OwnDates.Newest.After(at) {
		at = f.OwnDates.Newest
	}
	steps := 0
	for _, m := range f.Progress {
		if m.Off > f.OwnDates.Off {
			steps++
		}
	}
	usual, _ := j.pace()
	if usual > 0 && steps > 0 && steps < scan.Farewell { // so many are kept of each file, so there are no more
		if last := by(at, widest+undatedFor+time.Duration(2*(steps+1))*usual); !last.IsZero() {
			return last
		}
	}
	return by(at, longestJob)
}

const (
	// undatedFor is how long the few lines without a date may take that end a log whose lines have dates.
	undatedFor = 12 * time.Hour
	// longestJob is how long a job may run that writes dates only while it starts.
	longestJob = 60 * 24 * time.Hour
)

// datedLines returns the newest date in the last lines of a log, if most of them have one. A program that
// wrote dates only while it started may run for days after that.
func datedLines(f *scan.Facts) (newest time.Time, mostly bool) {
	const looked = 16
	last := slices.Clone(f.Last)
	for _, m := range f.Progress { // Megatron's iterations are not among the last lines
		if !slices.ContainsFunc(f.Last, func(o scan.Mark) bool { return o.Off == m.Off }) {
			last = append(last, m)
		}
	}
	slices.SortStableFunc(last, func(a, b scan.Mark) int { return cmp.Compare(a.Off, b.Off) })
	last = last[max(0, len(last)-looked):]
	dated := 0
	for _, m := range last {
		if at, ok := logline.ParseTime(m.Text); ok && at.Year() > logline.Yearless {
			dated++
			if at.After(newest) {
				newest = at
			}
		}
	}
	return newest, dated >= scan.Enough && 4*dated >= 3*len(last)
}
