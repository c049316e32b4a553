package diagnose

import (
	"bytes"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// An event is one line of one rank that says something about a failure.
type event struct {
	file          int // index into the source
	off           int64
	text          string // without launchers' prefixes, clean, not redacted
	raw           string // the whole line, clean, not redacted
	tag           tag
	node          string
	class         string
	weight        int
	kind, message string // of an exception
	stack         *traceback
	before, after time.Time // the nearest times that the log names
	form          form      // of a line that is no exception
	doubted       bool      // words before its traceback say that the program goes on
	superseded    bool      // another exception of its chain says more
	ran           ranBefore // what had run before it in its file
	tasks         []int     // Slurm tasks that the line names
	rank          int       // resolved; -1 where no single rank is known
	dated         bool      // its own line names the time before
	agent         bool      // said by a launcher about a rank, not by the rank
	exit          int       // the exit code that it tells, as torchelastic has it
	pid           string    // the process of which a launcher tells it
	first         bool      // a launcher calls it the first failure that it saw
}

// counts reports whether an event may have been a failure at all.
func (e *event) counts() bool { return e.form < report && !e.doubted && !e.superseded }

// when is the best guess of the event's time.
func (e *event) when() time.Time {
	if !e.after.IsZero() && (e.before.IsZero() || e.agent || e.after.Sub(e.before) < 2*time.Minute) {
		return e.after
	}
	if !e.before.IsZero() {
		return e.before
	}
	return e.after
}

// A mark is a line that says where the run is.
type mark struct {
	off  int64
	text string
	at   time.Time
	tag  tag
	told int // lines of its file up to it, as facts counts them
}

// facts is what one log file tells.
type facts struct {
	events    []*event
	starts    map[string][]mark // lines that begin an attempt, by their kind
	finished  *mark             // the end of a run that went well
	whole     *ranBefore        // until a line that says that all is done
	wholeAt   time.Time         // when it was said
	torn      bool              // it ends within a traceback
	synced    *ranBefore        // until a tracker's last words on the run
	usage     *mark             // the head of a usage text with which the file ends
	failed    *mark             // a launcher or Slurm saying that a process failed
	progress  []mark            // the last iteration lines
	doing     mark              // the last line that names a phase: saving, evaluating
	last      []mark            // the last lines
	fitted    int               // how many lines had been told when Lightning's fit came to its last epoch
	epochs    epochCount        // how far the epochs have come
	fromZero  int               // what a count of epochs or steps goes to that began at 0
	plan      plan              // of iterations
	told      int               // lines other than Megatron's iterations
	rows      map[uint32]row    // what is said again and again, by its form
	lastTime  time.Time
	lastOff   int64 // of the last line that is not a launcher's
	args      map[string]string
	bases     map[tag]int       // tag without rank → the global rank seen with it
	local0    []int             // rank − local rank, as launchers' summaries pair them
	hosts     map[string]int    // nodes that lines name → how often
	ranks     map[int]bool      // ranks that spoke
	labels    map[int]bool      // srun tasks that spoke
	locals    map[int]bool      // local ranks that spoke
	hostOf    map[tag]string    // tag → node that its NCCL lines name
	lastBy    map[tag]mark      // the last words of each rank
	spied     []spied           // main threads' stacks
	missing   []namedRank       // ranks that others' errors say did not join
	nccl      map[int]*ncclRank // what watchdogs say of each rank
	nodeRank  map[string]string // node → the node rank its launcher printed
	addresses map[string]string // address → node that says it is its own

	nodeStarts []nodeStart // what nodes said of their start

	moments    map[string]time.Time // what all nodes see at once → when this one did
	rendezvous int                  // ended ones so far
	markers    map[string]string    // start markers: commit, argv, environment
	elastic    []elasticEntry
	lines      int
	bytes      int64
	ran        ranBefore   // until the end
	phasesBy   map[tag]int // phases of one tag alone
	reads      error
	cut        bool // parts in the middle were not read
}

// A stream is the text of one rank in one file.
type stream struct {
	open     *traceback // being read
	previous string     // the last line before it that was not empty
	pending  string     // an exception's name whose message has not come yet
	spying   int        // index+1 of the main thread whose frames come
	last     mark       // the line previous, as it stands
	first    string     // the raw line of pending
	firstOff int64
	usage    usage  // the usage text that it is in
	torn     string // the first part of a frame's line
	margin   string // what stands before each line of a traceback that is open
	raised   *event // the last exception
	block    *mark  // the first line since the last empty one
	told     *mark  // the first line of the block before it
	ignored  int    // exceptions that Python said it ignores, whose tracebacks have not ended
}

type scanner struct {
	*facts
	file       int
	table      *table
	streams    map[tag]*stream
	counts     map[quota]int
	buf        []int // of look
	recent     []span
	pending    []mark    // iteration lines of a digest
	keep       int       // iteration lines
	now        time.Time // the last time that the file named
	waiting    []*event  // events that wait for the next time
	summary    elasticEntry
	hostPrefix map[string]bool // nodes that stand before lines
	listing    int             // the last line that printed an argument
	opening    opening         // of the run that is read
	began      map[tag]*firstWords
	lastStart  int64  // of another attempt that processes showed
	begun      string // the kind of a start line that waits for a time
}

// A span is a line within a window.
type span struct {
	from, to int
	off      int64
}

type quota struct {
	tag   tag
	class string
}

// keepFirst and keepLast bound the events of one class and rank.
const keepFirst, keepLast = 4, 2

func newScanner(file, keep int) *scanner {
	return &scanner{
		file: file, keep: keep, table: loadTable(), hostPrefix: map[string]bool{}, streams: map[tag]*stream{}, counts: map[quota]int{},
		began: map[tag]*firstWords{},
		facts: &facts{
			starts:    map[string][]mark{},
			args:      map[string]string{},
			bases:     map[tag]int{},
			hosts:     map[string]int{},
			ranks:     map[int]bool{},
			labels:    map[int]bool{},
			locals:    map[int]bool{},
			hostOf:    map[tag]string{},
			nccl:      map[int]*ncclRank{},
			nodeRank:  map[string]string{},
			markers:   map[string]string{},
			addresses: map[string]string{},
			phasesBy:  map[tag]int{},
		},
	}
}

// scan reads one window.
func (s *scanner) scan(w window) {
	s.bytes += int64(len(w.data))
	for at := 0; at < len(w.data); {
		end := bytes.IndexByte(w.data[at:], '\n')
		next := at + end + 1
		if end < 0 {
			next = len(w.data)
			end = next - at
		}
		line := w.data[at : at+end]
		off := w.off + int64(at)
		at = next
		s.lines++
		if isProgress(line) {
			if len(s.recent) >= 2*s.keep {
				s.recent = append(s.recent[:0], s.recent[s.keep:]...)
			}
			s.recent = append(s.recent, span{int(off - w.off), int(off-w.off) + end, off})
			s.lastOff = off
		} else if len(line) > 0 {
			s.physical(bounded(line), off)
		}
	}
	for _, p := range s.recent[max(0, len(s.recent)-s.keep):] {
		s.note(&s.progress, mark{off: p.off, text: string(w.data[p.from:min(p.to, p.from+maxLineLength)])}, s.keep)
	}
	s.recent = s.recent[:0]
}

// Iteration lines are kept for spikes and intervals: so many of one file, and
// of all files together.
const (
	minProgress = 12
	maxProgress = 256
	allProgress = 16384
)

func (s *scanner) line(line []byte, off int64) {
	raw := string(line)
	if acts(line) {
		raw = redact.Clean(raw)
	}
	raw = strings.TrimRight(raw, " \r\t")
	t, text := s.untag(raw)
	if rank, lines, ok := structured(text); ok {
		if t.rank < 0 {
			t.rank = rank
		}
		prefix := strings.TrimSuffix(raw, text)
		for _, l := range lines {
			s.entry(t, l, prefix+l, off)
		}
		return
	}
	s.entry(t, text, raw, off)
}

// entry reads a line without its tag.
func (s *scanner) entry(t tag, text, raw string, off int64) {
	if strings.TrimSpace(text) == "" {
		if st := s.streams[t]; st != nil {
			st.blank()
		}
		return
	}
	at, dated := timestamp(text)
	if !dated && len(text) < len(raw) {
		at, dated = timestamp(raw)
	}
	if dated {
		s.tick(at)
	}
	if ofTracker(text) {
		s.tracked(text, off)
		return
	}
	if rest, ok := cutDaemonTime(text); ok {
		text = daemon + ": " + rest
	}
	h := s.table.look(text, s.buf)
	s.buf = h.rows
	s.seen(t, text, h)
	s.told++
	s.note(&s.last, mark{off: off, text: raw, at: s.now, tag: t}, 16)
	if h.ask&askDone != 0 {
		s.count(t, text)
	}
	if h.ask&askProgress != 0 {
		s.counted(t, text)
	}
	if h.ask&askWhole != 0 && fitted.MatchString(text) {
		s.fitted = s.told
	}
	if h.ask&askWhole != 0 && whole.MatchString(text) && !ofRound.MatchString(text) {
		ran := s.ran
		s.whole, s.wholeAt = &ran, s.now
	}
	if t == noTag {
		s.begins(text, off)
	}
	s.restarted(t, text, mark{off: off, text: raw, at: s.now, tag: t}, h)
	if s.marks(t, text, raw, off, h) {
		return
	}
	s.read(t, text, raw, off, h)
}

// untag splits the prefixes from a line. A node before it is believed once a
// line with that node left no doubt.
func (s *scanner) untag(raw string) (tag, string) {
	rest, host, sure, ok := cutHost(raw)
	if !ok || !sure && !s.hostPrefix[host] {
		return untag(raw)
	}
	if !s.hostPrefix[host] && len(s.hostPrefix) < 1<<14 {
		s.hostPrefix[host] = true
		s.hosts[host]++
	}
	t, text := untag(rest)
	t.host = host
	return t, text
}

// acts reports whether a line holds bytes that Clean would change.
func acts(line []byte) bool {
	for _, c := range line {
		if c >= 0x7f || c < 0x20 && c != '\t' {
			return true
		}
	}
	return false
}

// note appends to a list that keeps its last n.
func (s *scanner) note(list *[]mark, m mark, n int) {
	m.told = s.told
	if len(*list) >= 2*n {
		*list = append((*list)[:0], (*list)[n:]...)
	}
	*list = append(*list, m)
}

// tick takes a time that the log names: events that waited for one get it.
func (s *scanner) tick(at time.Time) {
	s.now, s.lastTime = at, at
	if s.begun != "" {
		ms := s.starts[s.begun]
		if s.failed == nil || s.failed.off < ms[len(ms)-1].off {
			ms[len(ms)-1].at = at
		} // a time after its end says nothing of when it began
		s.begun = ""
	}
	for _, e := range s.waiting {
		e.after = at
	}
	s.waiting = s.waiting[:0]
}

// read looks for exceptions and patterns in one line of one rank.
func (s *scanner) read(t tag, text, raw string, off int64, h hits) {
	line := text
	st := s.streams[t]
	if st == nil {
		st = &stream{}
		s.streams[t] = st
	}
	if strings.HasPrefix(text, hydraEnds) {
		s.refusal(st)
		return
	}
	switch {
	case st.block == nil:
		st.block = &mark{off: off, text: raw, tag: t}
	case strings.HasPrefix(text, "  ") && strings.Contains(st.block.text, "Warning:"):
		st.block = nil // Python's warning ends with the line that it is about
	}
	if strings.HasPrefix(text, ignored) {
		st.ignored++ // several processes may say so before the first traceback ends
	}
	if g := strings.TrimLeft(text, " "); strings.HasPrefix(g, "| ") && !strings.HasSuffix(g, "|") || strings.HasPrefix(g, "+ Exception Group") {
		text = g[2:] // the margin of an exception group
	}
	if st.margin != "" && sameShape(text, st.margin) {
		text = text[len(st.margin):]
		if text == "" {
			return
		}
	}
	if st.torn != "" {
		text, st.torn = st.torn+text, ""
	} else if head := strings.TrimLeft(text, " "); strings.HasPrefix(head, `File "`) && strings.Count(head, `"`) == 1 {
		st.torn = text // at the width of a terminal
		return
	}
	if s.spy(st, t, text) {
		return
	}
	if st.pending != "" && s.continuePending(st, t, text) {
		return
	}
	if i := strings.Index(text, header); i >= 0 {
		st.margin = ""
		if !strings.HasSuffix(text[:i], "Original ") && !strings.Contains(text[:i], "traceback :") && !notebook.MatchString(text[:i]) {
			st.margin = text[:i]
		}
		if st.open != nil && len(st.open.frames) > 0 && st.open.inset {
			st.open = nil
		}
		tied := chainAfter(st.previous, text[:i])
		if tied == unchained && st.raised != nil && strings.HasSuffix(st.raised.text, ":") && notebook.MatchString(text[:i]) {
			tied = wrapping
		}
		st.open = &traceback{
			caught: introducesCaught(st.previous),
			chain:  tied,
			inset:  strings.Contains(text[:i], "traceback :"),
			logged: i > 0 && lowLevel.MatchString(text[:i]),
		}
		return
	}
	if st.open == nil {
		if f, ok := frameOf(text); ok { // a log cut off at its head, or a header that another rank broke
			st.open = &traceback{headless: true, caught: introducesCaught(st.previous), chain: chainAfter(st.previous, "")}
			st.open.add(f)
			return
		}
	}
	if st.open != nil {
		if f, ok := frameOf(text); ok {
			st.open.add(f)
			return
		}
		inset := st.open.inset && strings.HasPrefix(text, "    ") && !strings.HasPrefix(text, "      ")
		if st.open.boxes(text) {
			return
		}
		if !inset && (text[0] == ' ' || text[0] == '\t') || underline(text) {
			return
		}
		if s.exception(st, t, strings.TrimSpace(text), raw, off) {
			return
		}
		if strings.HasPrefix(text, "The above exception was") || strings.HasPrefix(text, "During handling of") {
			return
		}
		if len(st.open.frames) > 0 && !looksLikeCode(text) {
			st.open = nil // interrupted by something else
		}
	} else if kind, message, ok := exceptionOf(strings.TrimSpace(text), false); ok && !st.usage.has(text) &&
		formOf(line) < report && !strings.HasPrefix(kind, "nccl") {
		e := s.classify(&event{off: off, raw: raw, text: text, tag: t, kind: kind, message: message})
		s.add(e)
		if st.raised != nil && st.raised.text == st.previous && carries(st.previous) {
			e = wrapping.outweigh(st.raised, e)
		}
		st.raised, st.previous = e, text
		return
	}
	if e := st.raised; e != nil && st.previous == e.text && strings.HasSuffix(e.message, severalRoots) && strings.HasPrefix(strings.TrimSpace(text), "(0) ") {
		_, e.message, _ = strings.Cut(text, ") ")
		e.text, e.raw, e.off = e.kind+": "+e.message, raw, off
		s.classify(e)
		return
	}
	s.plain(st, t, text, raw, off, h)
	st.previous, st.last = text, mark{off: off, text: raw, at: s.now, tag: t}
}

// sameShape reports whether a line begins with a margin, whatever its digits are:
// loggers put a time and a process before every line of a traceback.
func sameShape(line, margin string) bool {
	if len(line) < len(margin) {
		return false
	}
	for i := range len(margin) {
		a, b := line[i], margin[i]
		if digit(a) && digit(b) {
			continue
		}
		if a != b {
			return false
		}
	}
	return true
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// underline reports whether a line only points at the line above it.
func underline(text string) bool { return strings.Trim(text, " ^~\t") == "" }

func looksLikeCode(text string) bool {
	return strings.HasSuffix(text, "(") || strings.HasSuffix(text, ")") || strings.HasSuffix(text, ",") || strings.Contains(text, " = ")
}
