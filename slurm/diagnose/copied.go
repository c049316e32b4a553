package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// copied returns the latest time at which the last line of a copy can have been written; zero for a file
// that need not be one. The modification time of a copy is that of copying: its last lines tell of an
// earlier time, in whatever zone. A job that Slurm knows to run has no copies.
func (j *job) copied(i int) time.Time {
	if _, known := j.given.running(); known || i >= len(j.files) {
		return time.Time{}
	}
	at, ok := logline.ParseTime(lastLine(j.files[i]).Text)
	later := widest
	if !ok {
		at, ok = datedLines(j.files[i])
		later += undatedFor
	}
	if at = at.Add(later); !ok || at.Year() <= logline.Yearless || !at.Before(j.src.Logs[i].Modified) {
		return time.Time{}
	}
	return at
}

// undatedFor is how long the few lines without a date may take that end a log whose lines have dates.
const undatedFor = 12 * time.Hour

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
