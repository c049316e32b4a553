package scan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// exception ends an open traceback with its last line. It reports whether text is that line.
func (s *scanner) exception(st *stream, t logline.Tag, text, raw string, off int64) bool {
	kind, message, ok := python.ParseException(text, true)
	if ok && st.open.Headless && !python.ExceptionKinds.MatchString(kind) && !ofModule.MatchString(kind) {
		return false
	}
	if !ok {
		// A labelled, unbuffered traceback arrives in pieces: first the name alone.
		if t.Label >= 0 && len(st.open.Frames) > 0 && bareName.MatchString(text) {
			st.pending, st.first, st.firstOff = text, raw, off
			return true
		}
		return false
	}
	if message == "" && t.Label >= 0 && !strings.HasSuffix(text, ".") {
		st.pending, st.first, st.firstOff = text, raw, off
		return true
	}
	s.raise(st, &Event{Off: off, Raw: raw, Text: text, Tag: t, Kind: kind, message: message})
	return true
}

// ofModule matches a class name with its module.
var ofModule = lazy.New(`^[a-z_]\w*(?:\.\w+)*\.[A-Z]\w*$`)

var bareName = lazy.New(`^[A-Za-z_][\w.]*$`)

// continuePending joins the pieces of an exception's last line. It reports whether text is such a
// piece.
func (s *scanner) continuePending(st *stream, t logline.Tag, text string) bool {
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

func (s *scanner) endPending(st *stream, t logline.Tag) {
	kind, message, _ := strings.Cut(st.pending, ":")
	e := &Event{Off: st.firstOff, Raw: st.first, Text: strings.TrimSpace(st.pending), Tag: t, Kind: kind, message: strings.TrimSpace(message)}
	st.pending = ""
	s.raise(st, e)
}

// addSource adds a line of code to the open traceback.
func (st *stream) addSource(text string, m Mark) {
	st.open.AddSource(text)
	st.source = m
}

// raiseTorn adds the exception of a traceback that was cut off behind the statement that raises it.
func (s *scanner) raiseTorn(st *stream, t logline.Tag) {
	if g := raising.FindStringSubmatch(st.source.Text); g != nil {
		kind := cmp.Or(g[1], "AssertionError")
		s.raise(st, &Event{Off: st.source.Off, Raw: st.source.Text, Text: kind + ": " + g[2], Tag: t, Kind: kind, message: g[2]})
	}
}

// raising matches the statements of Python that raise an exception.
var raising = lazy.New(`^\s+(?:raise (\w+(?:Error|Exception))\(|assert )(.+)`)

// raise adds an exception, which ends the open traceback.
func (s *scanner) raise(st *stream, e *Event) {
	if e.Stack = st.open; e.Stack != nil {
		e.Doubted = e.Stack.Chain == python.Unchained && e.Stack.Caught || e.outlived(st.above)
		warned := pattern.WarningLevel.MatchString(st.margin) && !e.Outermost() // a logger wrote it as a warning
		switch {
		case e.Stack.Logged, warned, e.Stack.Chain == python.Unchained && st.didWithout(e),
			e.Stack.Chain != python.Unchained && st.raised != nil && st.raised.Form == pattern.Report:
			e.Form = pattern.Report
		case e.Stack.InTracker():
			e.Form = pattern.Report
			s.unsay(e.Tag, st.openedAt)
		case st.ignored > 0:
			e.Form = pattern.Report
			st.ignored--
			s.unsay(e.Tag, st.openedAt)
			s.leftByWorkers(e)
		}
	}
	if strings.HasPrefix(e.message, Interrupt) {
		e.Kind = Interrupt // an extension in C++ wraps the Ctrl-C that met it
	}
	s.classify(e)
	e.ofOther()
	if e.Stack != nil {
		st.ofChild(e)
		st.byRecord(e)
		outer := st.raised
		st.raised = outweigh(e.Stack.Chain, outer, e)
		if e.Stack.Chain != python.Unchained && outer.Outermost() && s.Raised[e.Tag.Label] > 0 {
			s.Raised[e.Tag.Label]-- // the process ended by this one
		}
	} else {
		st.raised = e
	}
	s.add(e)
	if e.Outermost() && !strings.HasPrefix(e.Kind, "torch.distributed.elastic.") && len(s.Raised) < manyRows {
		s.Raised[e.Tag.Label]++
	}
	s.unready(e)
	if o := &s.opening; e.Tag == logline.NoTag && e.Counts() && e.Stack != nil && len(e.Stack.Frames) > 0 {
		o.raised, o.over = true, o.over || e.Stack.Frames[0].Function == "<module>"
	}
	if e.Kind == Interrupt {
		s.stopped(e)
	}
	st.open, st.previous, st.above, st.block = nil, e.Text, "", nil
}

// ignores counts the headings of exceptions that Python ignores, and removes them from the file's last lines.
func (s *scanner) ignores(st *stream, t logline.Tag, text string, off int64) {
	if strings.HasPrefix(text, python.Ignored) || text == python.LoggingFailed {
		st.ignored++ // several processes may write this before the first traceback ends
		s.unsay(t, Mark{Off: off, told: s.told - 1})
	}
}

// outlived reports whether an exception was caught, and a line right before or behind its traceback says that the program goes on.
func (e *Event) outlived(said string) bool {
	return e != nil && e.Stack != nil && e.Stack.Chain == python.Unchained && !e.Outermost() && pattern.GoesOn(said)
}

// behind returns a line, or nothing for one that belongs only to the traceback before it: a count of attempts also tells of the next.
func (st *stream) behind(text string) string {
	if e := st.raised; e != nil && !e.Doubted && e.Text == st.previous && e.outlived(text) {
		if e.Doubted = true; !pattern.OfAttempts.MatchString(text) {
			return ""
		}
	}
	return text
}

// unsay removes the lines of an irrelevant traceback from the file's last lines.
func (s *scanner) unsay(t logline.Tag, from Mark) {
	s.Last = slices.DeleteFunc(s.Last, func(m Mark) bool { return m.Tag == t && m.Off >= from.Off })
	s.told = from.told
}

// leftByWorkers passes over the last words of a data loader's workers that aborted while the loader was
// being taken down: the process ignores that.
func (s *scanner) leftByWorkers(e *Event) {
	if !strings.Contains(e.Text, "is killed by signal: Aborted") {
		return
	}
	for _, o := range s.Events {
		if o.Tag == e.Tag && strings.Contains(o.Text, "terminate called without an active exception") {
			o.Superseded = true
		}
	}
}

// didWithout reports whether a library caught and logged an exception while it was being imported: the
// exception's message precedes the traceback, and the outermost frame is the library's and not the
// program's.
func (st *stream) didWithout(e *Event) bool {
	if e.message == "" || !strings.HasSuffix(st.above, e.message) || len(e.Stack.Frames) == 0 {
		return false
	}
	outermost := e.Stack.Frames[0]
	return outermost.Function == "<module>" && python.InLibrary(outermost.File)
}

// groupless are the classes of what keeps a process group from being made.
var groupless = []string{outcome.PortInUse, outcome.Rendezvous, outcome.NCCLConnection, outcome.CUDADriver}

// unready finds the reason why the process group of all ranks is missing: an exception of the set-up
// that the program only logged.
func (s *scanner) unready(e *Event) {
	if !strings.Contains(e.message, "process group has not been initialized") {
		return
	}
	for _, o := range s.Events {
		if o.Tag == e.Tag && o.Form == pattern.Report && slices.Contains(groupless, o.Class) {
			o.Form, e.Superseded = pattern.Statement, true
			return
		}
	}
}

// formerly matches how PyTorch introduced CUDA's errors until version 1.4.
var formerly = lazy.On("cuda runtime error (", `cuda runtime error \(\d+\) : `)

// classify determines the class and weight of an exception.
func (s *scanner) classify(e *Event) *Event {
	said := e.Text
	if at := formerly.FindStringIndex(said); at != nil {
		said = said[:at[0]] + "CUDA error: " + said[at[1]:]
	}
	if e.Kind == Interrupt {
		said = Interrupt
	}
	best := s.table.Match(said)
	class, weight := python.Refine(e.Kind, e.message, e.Stack)
	if best != nil && (best.Weight < pattern.Generic && weight >= pattern.Specific && python.AsksServer(e.Kind) || python.OfNames(e.message)) {
		best = nil // words of the network between ranks, about a server; words in the names of arguments and variables
	}
	switch {
	case weight == pattern.Symptom: // another process is gone, whatever the words say
		e.Class, e.Weight = class, weight
	case best != nil && best.Class == outcome.CheckpointLoad && e.Stack.ReadsSample(): // a broken file of the data
		e.Class, e.Weight = outcome.DatasetMissing, pattern.Specific
	case best != nil && best.Class == outcome.DatasetMissing && class == outcome.CheckpointLoad && weight > best.Weight,
		best != nil && best.Class == outcome.DiskFull && class == outcome.ShmBusError:
		e.Class, e.Weight = class, weight // a checkpoint in a folder named after the data; the full disk is the memory's
	case best != nil && best.Class == outcome.DatasetMissing && python.FolderMissing(e.Kind, e.Stack):
		e.Class, e.Weight = class, weight // results in a folder named after the data
	case best != nil && best.Weight == pattern.Death:
		e.Class, e.Weight = best.Class, pattern.Generic
	case best != nil && (best.Weight < pattern.Generic || best.Weight >= pattern.Specific-2):
		e.Class, e.Weight = best.Class, best.Weight
	default:
		e.Class, e.Weight = class, weight
		if best != nil && best.Weight > e.Weight {
			e.Class, e.Weight = best.Class, best.Weight
		}
	}
	if e.Stack == nil && e.Class == outcome.UserException {
		e.Weight--
	}
	return e
}

// ofPeers are the classes of exceptions that tell of other ranks.
var ofPeers = []string{outcome.NCCLConnection, outcome.NCCLTimeout}

// outweigh marks one of two chained exceptions as superseded, and returns the other. The earlier
// exception holds the reason unless it is a consequence of something else or says much less.
func outweigh(c python.Chain, earlier, later *Event) *Event {
	if c == python.Unchained || earlier == nil {
		return later
	}
	first := c == python.RaisedFrom
	switch d := earlier.Weight - later.Weight; {
	case c == python.Handling && python.Outside.MatchString(earlier.Kind):
		first = true // failures of a process that was told to end say nothing
	case c == python.RaisedFrom && python.Waited.MatchString(earlier.Kind):
		first = false // what it waited for did not come, for the reason that the later one names
	case c == python.RaisedFrom && slices.Contains(ofPeers, earlier.Class) && later.Class == outcome.UserException:
		first = true // the later one says in the program's words that a peer was lost or did not come
	case c == python.RaisedFrom && strings.Contains(earlier.Text, "is killed by signal: "):
		first = true // the later one says only that the data loader's workers are gone
	case d >= 10 && c != python.Wrapping:
		first = true
	case d <= -10:
		first = false
	}
	if first {
		later.Superseded = true
		return earlier
	}
	earlier.Superseded = true
	return later
}

// sameShape reports whether a line begins with margin, where any digit matches any digit: loggers write
// a time and a process id before every line of a traceback.
func sameShape(line, margin string) bool {
	if len(line) < len(margin) {
		return false
	}
	for i := range len(margin) {
		a, b := line[i], margin[i]
		if logline.Digit(a) && logline.Digit(b) {
			continue
		}
		if a != b {
			return false
		}
	}
	return true
}

// underline reports whether a line only marks a part of the line above it.
func underline(text string) bool { return strings.Trim(text, " ^~\t") == "" }

func looksLikeCode(text string) bool {
	return strings.HasSuffix(text, "(") || strings.HasSuffix(text, ")") || strings.HasSuffix(text, ",") || strings.Contains(text, " = ")
}
