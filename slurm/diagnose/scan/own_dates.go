package scan

import (
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// OwnDates are the dates of a file's lines, as far as they have a year.
type OwnDates struct {
	Newest time.Time
	Off    int64 // the place of the line with the last date
	N      int   // how many lines have one
}

func (d *OwnDates) add(at time.Time, off int64) {
	if at.Year() > logline.Yearless {
		d.Off, d.N = off, d.N+1
		if at.After(d.Newest) {
			d.Newest = at
		}
	}
}

// tick records a time in the log, also for the events that wait for one.
func (s *scanner) tick(at time.Time) {
	if at.Year() == logline.Yearless && s.now.Year() > 1 {
		at = at.AddDate(s.now.Year(), 0, 0)
	}
	s.now, s.LastTime = at, at
	if s.begun != "" {
		ms := s.Starts[s.begun]
		if s.Failed == nil || s.Failed.Off < ms[len(ms)-1].Off {
			ms[len(ms)-1].At = at
		} // a time after the attempt's end is not that of its start
		s.begun = ""
	}
	for _, e := range s.waiting {
		e.After = at
	}
	s.waiting = s.waiting[:0]
}
