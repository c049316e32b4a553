package scan

import (
	"cmp"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

type quota struct {
	tag   logline.Tag
	class string
}

// keepFirst bounds the events of one class and tag: the first ones are kept, and the newest.
const keepFirst = 5

// add keeps an event, within the quota of its class and rank.
func (s *scanner) add(e *Event) {
	e.File, e.Before, e.Rank, e.Ran = s.file, s.now, -1, s.Ran
	if e.Tag != logline.NoTag {
		e.Ran.Phases = s.PhasesBy[e.Tag]
	}
	said := e.Text
	if strings.HasPrefix(said, logline.Daemon) {
		said = e.Raw // the time replaces the daemon's name
	}
	_, e.Dated = logline.ParseTime(said)
	if e.Node == "" {
		e.Node = cmp.Or(e.Tag.Host, NodeIn(e.Text))
	}
	s.catches(e)
	key := quota{e.Tag, e.Class}
	if e.Form != pattern.Statement || e.Doubted {
		key.class += "?"
	}
	n := s.counts[key]
	s.counts[key]++
	if n > keepFirst {
		// The newest event replaces the one before it.
		for i := len(s.Events) - 1; i >= 0; i-- {
			if o := s.Events[i]; o.Tag == e.Tag && o.Class == e.Class &&
				(o.Form == pattern.Statement && !o.Doubted) == (e.Form == pattern.Statement && !e.Doubted) {
				copy(s.Events[i:], s.Events[i+1:])
				s.Events[len(s.Events)-1] = e
				break
			}
		}
	} else {
		s.Events = append(s.Events, e)
	}
	s.waiting = append(s.waiting, e)
}
