package diagnose

import (
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// progressSince counts the reports of iterations after an event, by position in its file and by time in
// others. If launchers tag lines, or srun runs several tasks, they pass on whole lines, so all that a
// progress bar wrote comes at once when its line ends: such reports count once. If several ranks report
// each step, the count is that of the rank with the most reports, as the others only finish their
// current step. Untagged reports may all be of one step. It counts no further than to scan.Enough.
func (j *job) progressSince(e *scan.Event) (most int) {
	byLine := j.deathSeen() && j.manyProcesses()
	by := map[logline.Tag]int{}
	step := ""
	latest := e.Latest().Add(skew)
	for i, f := range j.files {
		if i != e.File && (e.Latest().IsZero() || !j.lastReports()[i].After(latest)) {
			continue // no report there is known to be later
		}
		for k, m := range f.Progress {
			if (m.Tag != logline.NoTag || byLine) && k > 0 && f.Progress[k-1].Off == m.Off {
				continue
			}
			after := m.Off > e.Off && !passedOnLate(f, e, m)
			if i != e.File {
				after = reportedAt(m).After(latest)
			}
			if after && byLine && m.Tag == logline.NoTag {
				n := m.Step()
				if n != "" && n == step { // another rank's report of the same step
					continue
				}
				step = n
			}
			if after {
				by[m.Tag]++
				if most = max(most, by[m.Tag]); most >= scan.Enough {
					return most
				}
			}
		}
	}
	return most
}

// passedOnLate reports whether a report of an iteration behind an event in its file is dated before it: no later than a
// launcher's summary between the two, which says when the processes had failed, or than a line before the event. Python and
// launchers write standard error at once, and standard output into a file in large pieces or when they end.
func passedOnLate(f *scan.Facts, e *scan.Event, m scan.Mark) bool {
	at := reportedAt(m)
	return f.Late(m, e) || !at.IsZero() && (at.Before(e.Before) || slices.ContainsFunc(f.Elastic, func(s scan.ElasticEntry) bool {
		return s.Off >= e.Off && s.Off < m.Off && at.Before(s.At.Add(time.Second))
	}))
}

// reportedAt returns the time in a report of an iteration, or zero.
func reportedAt(m scan.Mark) time.Time {
	if at, ok := logline.ParseTime(m.Text); ok && at.Year() != logline.Yearless {
		return at
	}
	return time.Time{}
}

// readLastReports returns for each file the latest time in its reports of iterations, or zero.
func (j *job) readLastReports() []time.Time {
	last := make([]time.Time, len(j.files))
	for i, f := range j.files {
		for _, m := range f.Progress {
			if at := reportedAt(m); at.After(last[i]) {
				last[i] = at
			}
		}
	}
	return last
}
