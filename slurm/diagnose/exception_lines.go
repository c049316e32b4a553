package diagnose

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// exception ends an open traceback with its last line.
func (s *scanner) exception(st *stream, t tag, text, raw string, off int64) bool {
	kind, message, ok := exceptionOf(text, true)
	if ok && st.open.headless && !exceptionKinds.MatchString(kind) && !ofModule.MatchString(kind) {
		return false
	}
	if !ok {
		// A labelled, unbuffered traceback comes in pieces: the name alone first.
		if len(st.open.frames) > 0 && bareName.MatchString(text) {
			st.pending, st.first, st.firstOff = text, raw, off
			return true
		}
		return false
	}
	if message == "" && t.label >= 0 && !strings.HasSuffix(text, ".") {
		st.pending, st.first, st.firstOff = text, raw, off
		return true
	}
	s.raise(st, &event{off: off, raw: raw, text: text, tag: t, kind: kind, message: message})
	return true
}

// ofModule is a class with the module that it comes from.
var ofModule = lazy.New(`^[a-z_]\w*(?:\.\w+)*\.[A-Z]\w*$`)

var bareName = lazy.New(`^[A-Za-z_][\w.]*$`)

// continuePending joins the pieces of an exception's last line.
func (s *scanner) continuePending(st *stream, t tag, text string) bool {
	var joined string
	switch {
	case strings.HasPrefix(text, ":"):
		st.pending += text + " "
		if strings.Trim(text, ": ") == "" {
			return true
		}
		joined = strings.TrimSpace(st.pending)
	case strings.HasSuffix(strings.TrimSpace(st.pending), ":"):
		joined = strings.TrimSpace(st.pending) + " " + strings.TrimSpace(text)
	default:
		s.endPending(st, t)
		return false
	}
	st.pending = joined
	s.endPending(st, t)
	return true
}

func (s *scanner) endPending(st *stream, t tag) {
	kind, message, _ := strings.Cut(st.pending, ":")
	e := &event{off: st.firstOff, raw: st.first, text: strings.TrimSpace(st.pending), tag: t, kind: kind, message: strings.TrimSpace(message)}
	st.pending = ""
	s.raise(st, e)
}

// raise adds an exception that ends an open traceback.
func (s *scanner) raise(st *stream, e *event) {
	if e.stack = st.open; e.stack != nil {
		e.doubted = e.stack.caught && e.stack.chain == unchained
		switch {
		case e.stack.logged, e.stack.chain != unchained && st.raised != nil && st.raised.form == report:
			e.form = report
		case st.ignored > 0:
			e.form = report
			st.ignored--
		}
	}
	s.classify(e)
	if e.stack != nil {
		st.raised = e.stack.chain.outweigh(st.raised, e)
	} else {
		st.raised = e
	}
	s.add(e)
	s.unready(e)
	if e.tag == noTag && e.counts() && e.stack != nil && len(e.stack.frames) > 0 && e.stack.frames[0].Function == "<module>" {
		s.opening.over = true
	}
	st.open, st.previous = nil, e.text
}

// unready finds why a process misses the group of all ranks: the exception of its
// set-up, which the program only logged.
func (s *scanner) unready(e *event) {
	if !strings.Contains(e.message, "process group has not been initialized") {
		return
	}
	for _, o := range s.events {
		if o.tag == e.tag && o.form == report && (o.class == PortInUse || o.class == Rendezvous || o.class == NCCLConnection) {
			o.form, e.superseded = statement, true
			return
		}
	}
}

// classify gives an exception its class.
func (s *scanner) classify(e *event) *event {
	best := s.table.match(e.text)
	class, weight := refine(e.kind, e.message, e.stack)
	switch {
	case weight == symptom: // another process is gone, whatever the words are
		e.class, e.weight = class, weight
	case best != nil && best.weight == death:
		e.class, e.weight = best.class, generic
	case best != nil && (best.weight < generic || best.weight >= specific-2):
		e.class, e.weight = best.class, best.weight
	default:
		e.class, e.weight = class, weight
		if best != nil && best.weight > e.weight {
			e.class, e.weight = best.class, best.weight
		}
	}
	if e.stack == nil && e.class == UserException {
		e.weight--
	}
	return e
}
