package diagnose

import (
	"hash/fnv"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Several runs may stand in one file: nohup appends to its own, a shell with >>,
// Slurm with --open-mode=append. The last one is judged. A launcher's restarts are
// attempts of one run, and none of these.

// An opening is how the run of a file began: what it says first, which another run
// says again in the same order and with the same numbers, where a loop counts. After
// the end of a process its first line is enough, whatever numbers are in it.
type opening struct {
	forms []said32 // of the first sentences
	since int      // sentences so far
	over  bool     // its process has ended
	next  int      // which of forms would come next, where some came again, one after the other
	from  int      // the first of these
	again mark     // where they began to
}

// said32 hashes a sentence: without any digits, and without those before its first
// letter, which tell the time.
type said32 struct{ loose, exact uint32 }

// opened is how much of a sentence is compared.
func opened(text string) string { return text[:min(len(text), 160)] }

func exactOf(text string) uint32 {
	h := fnv.New32a()
	io.WriteString(h, strings.TrimLeft(opened(text), "0123456789-/:.,[] "))
	return h.Sum32()
}

const (
	openingLines = 12 // that are kept
	enoughAgain  = 4  // that come again where no end is seen
	enoughAfter  = 3  // that come again where a launcher told of a failure
	leastOpening = 12 // bytes of a line that may open a run
)

// onlyTime is a line of date(1) and its like: scripts print it first and last.
var onlyTime = lazy.New(`^\W*(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,? )?[\w\p{Han} /.-]{0,24}\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?[AP]M)?` +
	`(?: ?[A-Z]{1,5}|[+-]\d{4})?(?: \d{4})?\W*$`)

// begins looks for the start of another run in an untagged line.
func (s *scanner) begins(text string, off int64) {
	if strings.HasPrefix(text, "nohup: ignoring input") && s.opening.since > 0 {
		s.another(mark{off: off, text: text, at: s.now, tag: noTag})
		return
	}
	o := &s.opening
	if o.since > openingLines && len(o.forms) == 0 {
		return // nothing can come again
	}
	loose := form32(noTag, opened(text))
	if o.since > 2*openingLines && o.next == 0 && !slices.ContainsFunc(o.forms, func(f said32) bool { return f.loose == loose }) {
		return // most lines, of most logs
	}
	if c := word0(text); len(text) < leastOpening || !digit(c) && (c < 'A' || c > 'z') && c < 0x80 {
		return
	}
	if onlyTime.MatchString(text) || agentLine(text) || new(usage).has(text) {
		return
	}
	if st := s.streams[noTag]; st != nil && st.open != nil {
		return // inside a traceback
	}
	o.since++
	if len(o.forms) == 0 && o.over {
		return // it ended before it had said anything
	}
	if o.next > 0 && o.next < len(o.forms) && exactOf(text) == o.forms[o.next].exact {
		// After the words of an end two lines are enough.
		if o.next++; o.next-o.from >= enoughAgain || o.from > 0 && o.next-o.from >= enoughAfter || s.whole != nil {
			s.another(o.again)
		}
		return
	}
	o.next = 0
	for i, f := range o.forms {
		switch {
		case f.loose != loose:
		case i == 0 && o.over:
			s.another(mark{off: off, text: text, at: s.now, tag: noTag})
			return
		case i == 0 && (o.since > 2*openingLines || s.whole != nil) && f.exact == exactOf(text):
			o.next, o.from, o.again = 1, 0, mark{off: off, text: text, at: s.now, tag: noTag}
			return
		case i > 0 && s.failed != nil && s.failed.off > s.lastStart && f.exact == exactOf(text): // a loop begins behind the script's first lines
			o.next, o.from, o.again = i+1, i, mark{off: off, text: text, at: s.now, tag: noTag}
			return
		case o.since <= 2*openingLines: // several ranks say it, or one does again and again
			o.forms = append(o.forms[:i], o.forms[i+1:]...)
			return
		}
	}
	if o.since <= openingLines && !o.over && formOf(text) < inert && !tallyForm.MatchString(text) && !strings.Contains(text, header) {
		o.forms = append(o.forms, said32{loose, exactOf(text)})
	}
}

// another begins a run: what the one before it came to counts no more.
func (s *scanner) another(m mark) {
	if len(s.starts[appended]) < 1024 {
		s.starts[appended] = append(s.starts[appended], m)
	}
	s.whole, s.synced, s.progress, s.recent, s.pending, s.last = nil, nil, nil, s.recent[:0], nil, nil
	s.counts = map[quota]int{}
	s.lastStart, s.plan = m.off, plan{}
	s.opening = opening{forms: s.opening.forms, since: openingLines}
}

// appended is the kind of the lines with which another run begins.
const appended = "run"

// programOf names the program that an event ended: the main one of a Python
// process, which is no launcher, or one that was called wrongly.
func programOf(e *event) string {
	if e.tag != noTag || !e.counts() {
		return ""
	}
	if g := complaint.FindStringSubmatch(e.text); g != nil {
		return g[1]
	}
	if e.stack == nil || len(e.stack.frames) == 0 {
		return ""
	}
	f := e.stack.frames[0]
	if f.Function != "<module>" || inLibrary(f.File) || strings.Contains(f.File, "/bin/") {
		return ""
	}
	return path.Base(f.File)
}

// complaint is argparse's.
var complaint = lazy.New(`^([\w.-]+\.py): error: `)

// manyProcesses reports whether the job has more processes than one that may write
// into a file: it says so, srun names a second task, or one has lost another.
func (j *job) manyProcesses() bool {
	return j.world > 1 || slices.ContainsFunc(j.files, func(f *facts) bool {
		return slices.ContainsFunc(f.events, func(e *event) bool {
			return slices.ContainsFunc(e.tasks, func(t int) bool { return t > 0 }) || e.class == NCCLConnection && e.weight < specific
		})
	})
}

// lastRun finds where the last run of a file begins whose runs each ended a
// process of one program, for different reasons, or that somebody interrupted
// after another program had ended; -1 where there is one run.
func (j *job) lastRun(i int) (from int64, runs int) {
	from, runs = -1, 1
	f := j.files[i]
	if len(f.ranks)+len(f.labels)+len(f.locals)+len(f.elastic) > 0 || j.manyProcesses() {
		return // what looks like runs may be ranks
	}
	var before *event
	for _, e := range f.events {
		program := programOf(e)
		if program == "" {
			continue
		}
		if before != nil && (programOf(before) == program && before.text != e.text || programOf(before) != program && outside.MatchString(e.kind)) {
			from, runs = before.off+1, runs+1
		}
		before = e
	}
	return from, runs
}
