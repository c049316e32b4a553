package scan

import (
	"strconv"
	"time"
)

// rendezvousDone is the message of torchelastic's agents that appears on all nodes at the same moment
// (torch/distributed/elastic/agent/server/api.py).
const rendezvousDone = "Rendezvous complete"

// maxCommon bounds the moments of one file that other nodes may have in common.
const maxCommon = 1024

// moment records the time of an event that all nodes log at the same moment.
func (s *scanner) moment(kind string, at time.Time) {
	if s.Moments == nil {
		s.Moments = map[string]time.Time{}
	}
	if len(s.Moments) < maxCommon {
		s.rendezvous++
		s.Moments[kind+strconv.Itoa(s.rendezvous)] = at
	}
}

// Shift adds d to all times of a file.
func (f *Facts) Shift(d time.Duration) {
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
	move(&f.LastTime)
	move(&f.Doing.At)
	for _, e := range f.Events {
		move(&e.Before)
		move(&e.After)
	}
	for _, ms := range f.Starts {
		for k := range ms {
			move(&ms[k].At)
		}
	}
	for _, m := range []*Mark{f.Finished, f.Failed} {
		if m != nil {
			move(&m.At)
		}
	}
	for k := range f.Last {
		move(&f.Last[k].At)
	}
}
