package diagnose

import (
	"cmp"
	"strings"
)

// add keeps an event, within its class's and rank's bounds.
func (s *scanner) add(e *event) {
	e.file, e.before, e.rank, e.ran = s.file, s.now, -1, s.ran
	if e.tag != noTag {
		e.ran.phases = s.phasesBy[e.tag]
	}
	said := e.text
	if strings.HasPrefix(said, daemon) {
		said = e.raw // the time stands in the place of the name
	}
	_, e.dated = timestamp(said)
	if e.node == "" {
		e.node = cmp.Or(e.tag.host, nodeIn(e.text))
	}
	key := quota{e.tag, e.class}
	if e.form != statement || e.doubted {
		key.class += "?"
	}
	n := s.counts[key]
	s.counts[key]++
	if n >= keepFirst+keepLast {
		// Keep the newest in place of the oldest of the last ones.
		for i := len(s.events) - 1; i >= 0; i-- {
			if o := s.events[i]; o.tag == e.tag && o.class == e.class && (o.form == statement && !o.doubted) == (e.form == statement && !e.doubted) {
				copy(s.events[i:], s.events[i+1:])
				s.events[len(s.events)-1] = e
				break
			}
		}
	} else {
		s.events = append(s.events, e)
	}
	s.waiting = append(s.waiting, e)
}
