package diagnose

import "strings"

// A launcher that starts its processes again does not always say so: torchrun tells it
// at a level that is seldom shown, and a loop in a script in words of its own. The
// processes show it: one of them says its first two sentences once more after the
// launcher's word that one of them failed.

// firstWords is how the process of one tag began.
type firstWords struct {
	forms [2]uint32
	n     int  // of forms, or more: it says them over and over
	said  int  // sentences so far
	again mark // where the first of them was said again
	half  bool // it was, by the line before this one
}

// restarted looks for the start of another attempt in a line that a launcher tagged
// and that complains of nothing.
func (s *scanner) restarted(t tag, text string, m mark, h hits) {
	if t == noTag || len(h.rows) > 0 || agentLine(text) || text[0] == ' ' || strings.HasPrefix(text, header) {
		return
	}
	w := s.began[t]
	if w == nil {
		if len(s.began) >= 1<<14 {
			return
		}
		w = &firstWords{}
		s.began[t] = w
	}
	if w.said++; w.said > openingLines && (s.failed == nil || s.failed.off <= s.lastStart) {
		return // most lines, of most logs
	}
	form := exactOf(text)
	switch {
	case w.n < len(w.forms):
		if w.n == 0 || form != w.forms[0] {
			w.forms[w.n] = form
			w.n++
		}
	case w.n > len(w.forms):
	case s.failed == nil || s.failed.off <= s.lastStart:
		if form == w.forms[0] || form == w.forms[1] {
			w.n++
		}
	case form == w.forms[0]:
		w.half, w.again = true, m
	case w.half && form == w.forms[1]:
		s.starts["elastic"] = append(s.starts["elastic"], w.again)
		s.lastStart, s.counts = m.off, map[quota]int{}
		w.half = false
	default:
		w.half = false
	}
}
