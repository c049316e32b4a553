package scan

import (
	"hash/fnv"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// Several runs may stand in one file: nohup appends to its own, a shell with >>,
// Slurm with --open-mode=append. The last one is judged. A launcher's restarts are
// attempts of one run, and none of these.

// An opening is how the run of a file began: what it says first, which another run
// says again in the same order and with the same numbers, where a loop counts. After
// the end of a process its first line is enough, whatever numbers are in it.
type opening struct {
	forms  []said32  // of the first sentences
	since  int       // sentences so far
	over   bool      // its process has ended
	raised bool      // it raised an exception, after which its process may have ended
	repeat repeat    // what came again of forms
	looked int       // untagged lines before the first step
	at     time.Time // of the first of them
	first  []uint32  // their sentences, whoever says them, without their digits
	back   []uint32  // those of them that came again after a launcher told of a failure
	begun  Mark      // where these began to
}

// A repeat is how much of an opening came again, in its order.
type repeat struct {
	next   int  // which of the sentences would come next; 0 while none came
	from   int  // the first that came
	met    int  // how many did
	others int  // lines since the last of these
	twice  bool // the last of these was said twice
	begun  Mark // where they began to
}

// said32 hashes a sentence: without any digits, and without those before its first
// letter, which tell the time. It may be said twice, one right after the other.
type said32 struct {
	loose, exact uint32
	twice        bool
}

// opened is how much of a sentence is compared.
func opened(text string) string { return text[:min(len(text), 160)] }

func exactOf(text string) uint32 {
	h := fnv.New32a()
	io.WriteString(h, strings.TrimLeft(opened(text), "0123456789-/:.,[] "))
	return h.Sum32()
}

const (
	openingLines = 12              // that are kept
	enoughAgain  = 4               // that come again where no end is seen
	enoughAfter  = 3               // that come again where a launcher told of a failure
	apart        = 5 * time.Minute // ranks of one run begin within it
	leastOpening = 12              // bytes of a line that may open a run

	lookedFirst = 512 // untagged lines that are looked at before the first step
	keptFirst   = 32  // the last of their sentences
	enoughFirst = 2   // of these, come again after steps and a failure
)

// onlyTime is a line of date(1) and its like: scripts print it first and last.
var onlyTime = lazy.New(`^\W*(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,? )?[\w\p{Han} /.-]{0,24}\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?[AP]M)?` +
	`(?: ?[A-Z]{1,5}|[+-]\d\d:?\d\d)?(?: \d{4})?[^\w:]*$`) // with a colon it is the start of a line that was cut off

// ofTorch is a warning or an error of PyTorch's C++ code or of torchelastic, which come
// again and again within one run.
var ofTorch = lazy.New(`^\[?[WE]\d{4} \d\d:.*(?:\.cpp:\d+\] \[c10d\]|torch/distributed/elastic/)`)

// begins looks for the start of another run in an untagged line.
func (s *scanner) begins(text string, off int64) {
	m := Mark{Off: off, Text: text, At: s.now, Tag: logline.NoTag}
	if strings.HasPrefix(text, "nohup: ignoring input") && s.opening.since > 0 {
		s.another(m)
		s.before = nil // it leaves no doubt
		return
	}
	o, r := &s.opening, &s.opening.repeat
	loose := form32(logline.NoTag, opened(text))
	if b := s.before; b != nil {
		again := b.kind != Appended && slices.Contains(o.first, loose) || slices.ContainsFunc(o.forms, func(f said32) bool { return f.loose == loose })
		if b.untagged++; !again && b.own <= afterTraining && pattern.FormOf(text) < pattern.Inert {
			b.own++
		}
	}
	s.beginsOver(text, loose, m)
	if o.since > 2*openingLines && r.next == 0 && !slices.ContainsFunc(o.forms, func(f said32) bool { return f.loose == loose }) {
		return // most lines, of most logs
	}
	if c := word0(text); len(text) < leastOpening || !logline.Digit(c) && (c < 'A' || c > 'z') && c < 0x80 {
		return
	}
	if onlyTime.MatchString(text) || pattern.AgentLine(text) || ofTorch.MatchString(text) || Complaint.MatchString(text) {
		return
	}
	st := s.streams[logline.NoTag]
	if st == nil {
		st = &stream{}
	}
	if u := st.usage; st.open != nil || u.has(text) {
		return // inside a traceback or a usage text
	}
	o.since++
	failed := o.raised && len(s.Starts[Restarted]) == 0 && (s.Failed == nil || s.Failed.Off <= s.lastStart) // and no launcher starts it again
	if r.next > 0 {
		exact := exactOf(text)
		switch k := slices.IndexFunc(o.forms[r.next:], func(f said32) bool { return f.exact == exact }); {
		case exact == o.forms[r.next-1].exact:
			if !o.forms[r.next-1].twice || r.twice {
				r.next = 0 // several ranks say it
			}
			r.twice = true
			return
		case k == 0, k > 0 && !s.metFailure():
			*r = repeat{next: r.next + k + 1, from: r.from, met: r.met + 1, begun: r.begun}
			// After the words of an end or an exception two lines are enough.
			if r.met >= enoughAgain || r.from > 0 && r.met >= enoughAfter || s.whole != nil || failed {
				s.another(r.begun)
			}
			return
		case r.others < openingLines && !s.metFailure() && !slices.ContainsFunc(o.forms, func(f said32) bool { return f.loose == loose }):
			r.others++ // it does something otherwise; after what went wrong it may be another rank's, or the next part's
			return
		}
	}
	r.next = 0
	for i, f := range o.forms {
		switch {
		case f.loose != loose:
		case i == 0 && o.over:
			s.another(m)
			return
		case i == 0 && (o.since > 2*openingLines || s.whole != nil || failed || s.now.Sub(o.at) > apart) && f.exact == exactOf(text):
			*r = repeat{next: 1, met: 1, begun: m}
			return
		case i > 0 && s.Failed != nil && s.Failed.Off > s.lastStart && f.exact == exactOf(text): // a loop begins behind the script's first lines
			*r = repeat{next: i + 1, from: i, met: 1, begun: m}
			return
		case o.since <= 2*openingLines && i > 0 && i == len(o.forms)-1 && !f.twice && f.exact == exactOf(text):
			o.forms[i].twice = true
			return
		case o.since <= 2*openingLines: // several ranks say it, or one does again and again
			o.forms = append(o.forms[:i], o.forms[i+1:]...)
			return
		}
	}
	if len(o.forms) == 0 {
		o.at = s.now
	}
	if o.since <= openingLines && !o.over && !o.raised && !fails.MatchString(text) &&
		pattern.FormOf(text) < pattern.Inert && !tallyForm.MatchString(text) && !strings.Contains(text, python.Header) {
		o.forms = append(o.forms, said32{loose: loose, exact: exactOf(text)})
	}
}

// beginsOver looks for the start of another attempt in an untagged line. Every rank had
// begun before a step was reported: who says then what was said before the first step,
// after a launcher told of a failure, begins over.
func (s *scanner) beginsOver(text string, loose uint32, m Mark) {
	o := &s.opening
	known := slices.Index(o.first, loose)
	switch {
	case !s.stepped():
		if o.looked++; known < 0 && o.looked <= lookedFirst && len(text) >= leastOpening && text[0] > ' ' &&
			!pattern.AgentLine(text) && !ofTorch.MatchString(text) && !fails.MatchString(text) && pattern.FormOf(text) < pattern.Inert {
			o.first = append(o.first[max(0, len(o.first)-keptFirst+1):], loose)
		}
	case known < 0:
	case s.Failed == nil || s.Failed.Off <= s.lastStart:
		o.first = slices.Delete(o.first, known, known+1) // said amid the steps, it begins nothing
	case !slices.Contains(o.back, loose):
		if len(o.back) == 0 {
			o.begun = m
		}
		if o.back = append(o.back, loose); len(o.back) == enoughFirst {
			s.keepBefore(o.begun, Restarted)
			s.Starts[Restarted] = append(s.Starts[Restarted], o.begun)
			s.lastStart, s.counts, o.back = m.Off, map[quota]int{}, nil
		}
	}
}

// metFailure reports whether the run has an event that may be a failure.
func (s *scanner) metFailure() bool {
	return slices.ContainsFunc(s.Events, func(e *Event) bool { return e.Off >= s.lastStart && e.Counts() })
}

// stepped reports whether a step was reported.
func (s *scanner) stepped() bool { return len(s.Progress)+len(s.recent) > 0 }

// another begins a run: what the one before it came to counts no more.
func (s *scanner) another(m Mark) {
	s.keepBefore(m, Appended)
	if len(s.Starts[Appended]) < 1024 {
		s.Starts[Appended] = append(s.Starts[Appended], m)
	}
	s.whole, s.synced, s.Progress, s.recent, s.pending, s.Last = nil, nil, nil, s.recent[:0], nil, nil
	s.counts = map[quota]int{}
	s.rows, s.reported, s.reports, s.clockedIn = nil, 0, false, 0
	s.lastStart, s.plan = m.Off, plan{}
	s.opening = opening{forms: s.opening.forms, since: 2 * openingLines}
}

// A runBefore is what a run came to, kept until the next one shows that it is one: a
// script may say at its end what it said first.
type runBefore struct {
	next                    Mark // where the next one began
	kind                    string
	runs, attempts          int // that had begun by then, as Starts has both
	told                    int // lines by then
	untagged, own           int // lines since, and those of them that no run began with
	whole, synced           *ranBefore
	progress, pending, last []Mark
}

// How many lines of its own a script may say at its end, where a run may be so short, and
// behind one that reported steps: another would, too.
const (
	farewell      = 3
	afterTraining = 24
)

// keepBefore keeps what the run came to behind which m begins another, unless that run
// itself has shown nothing.
func (s *scanner) keepBefore(m Mark, kind string) {
	if s.before != nil && !s.shown() {
		return
	}
	s.noteRecent()
	s.before = &runBefore{
		next: m, kind: kind, runs: len(s.Starts[Appended]), attempts: len(s.Starts[Restarted]), told: s.told,
		whole: s.whole, synced: s.synced, progress: s.Progress, pending: s.pending, last: s.Last,
	}
}

// shown reports whether the last run has shown that it is one: by a step, by what went
// wrong, or by words of its own or a rank's.
func (s *scanner) shown() bool {
	b := s.before
	since := func(off int64) bool { return off >= b.next.Off }
	short := farewell
	if len(b.progress) > 0 {
		short = afterTraining
	}
	return b.own > short || s.told-b.told > b.untagged || len(s.recent) > 0 ||
		slices.ContainsFunc(s.Progress, func(m Mark) bool { return since(m.Off) }) ||
		slices.ContainsFunc(s.Events, func(e *Event) bool { return since(e.Off) && e.Counts() })
}

// onlyFarewell takes the last run back where it was the end of the one before.
func (s *scanner) onlyFarewell() {
	b := s.before
	if b == nil || s.shown() {
		return
	}
	if len(s.Starts[Appended]) > b.runs { // what the one before came to was forgotten
		s.whole, s.synced, s.Progress, s.pending = b.whole, b.synced, b.progress, b.pending
		s.Last = append(b.last, s.Last...)
	}
	for kind, n := range map[string]int{Appended: b.runs, Restarted: b.attempts} {
		if s.Starts[kind] = s.Starts[kind][:n]; n == 0 {
			delete(s.Starts, kind)
		}
	}
}

// What a line of Facts.Starts begins: another run in the same file, another attempt of the
// launcher or of its processes, or the job again that Slurm put back into the queue.
const (
	Appended  = "run"
	Restarted = "elastic"
	Requeued  = "requeue"
)

// ProgramOf is Program for an event whose line has no tag, so that it is no rank's.
func ProgramOf(e *Event) string {
	if e.Tag != logline.NoTag {
		return ""
	}
	return e.Program()
}

// Program names the program that an event ended: the main one of a Python
// process, which is no launcher, or one that was called wrongly.
func (e *Event) Program() string {
	if !e.Counts() {
		return ""
	}
	if g := Complaint.FindStringSubmatch(e.Text); g != nil {
		return g[1]
	}
	if e.Stack == nil || len(e.Stack.Frames) == 0 {
		return ""
	}
	f := e.Stack.Frames[0]
	if f.Function != "<module>" || python.InLibrary(f.File) || strings.Contains(f.File, "/bin/") {
		return ""
	}
	return path.Base(f.File)
}

// Complaint is argparse's.
var Complaint = lazy.New(`^([\w.-]+\.py): error: `)
