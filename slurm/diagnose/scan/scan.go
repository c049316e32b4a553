// Package scan reads the lines of a job's logs and gathers, file by file, what they
// tell: events that may be a cause, how far the run came, which rank and node spoke,
// and the words with which it ended. It gives no verdict.
package scan

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// An Event is one line of one rank that says something about a failure.
type Event struct {
	File          int // index into the source
	Off           int64
	Text          string // without launchers' prefixes, clean, not redacted
	Raw           string // the whole line, clean, not redacted
	Tag           logline.Tag
	Node          string
	Class         string
	Weight        int
	Kind, message string // of an exception
	Stack         *python.Traceback
	Before, After time.Time    // the nearest times that the log names
	Form          pattern.Form // of a line that is no exception
	Doubted       bool         // words before its traceback say that the program goes on
	Superseded    bool         // another exception of its chain says more
	Ran           ranBefore    // what had run before it in its file
	Tasks         []int        // Slurm tasks that the line names
	Rank          int          // resolved; -1 where no single rank is known
	Dated         bool         // its own line names the time before
	Agent         bool         // said by a launcher about a rank, not by the rank
	Exit          int          // the exit code that it tells, as torchelastic has it
	Pid           string       // the process of which a launcher tells it
	First         bool         // a launcher calls it the first failure that it saw
	Quoted        bool         // by another rank than its own, whose file and node say nothing of it
	Writer        string       // the rank that the record above names as its writer's; empty: none
	World         int          // of how many ranks that is one, where the record says so
	Child         bool         // its local rank is a number among the children of torch.multiprocessing.spawn
}

// Counts reports whether an event may have been a failure at all.
func (e *Event) Counts() bool { return e.Form < pattern.Report && !e.Doubted && !e.Superseded }

// When is the best guess of the event's time.
func (e *Event) When() time.Time {
	if !e.After.IsZero() && (e.Before.IsZero() || e.Agent || e.After.Sub(e.Before) < 2*time.Minute) {
		return e.After
	}
	if !e.Before.IsZero() {
		return e.Before
	}
	return e.After
}

// A Mark is a line that says where the run is.
type Mark struct {
	Off  int64
	Text string
	At   time.Time
	Tag  logline.Tag
	told int // lines of its file up to it, as facts counts them
}

// Facts is what one log file tells.
type Facts struct {
	Events    []*Event
	Starts    map[string][]Mark // lines that begin an attempt, by their kind
	Finished  *Mark             // the end of a run that went well
	whole     *ranBefore        // until a line that says that all is done
	wholeAt   time.Time         // when it was said
	wholeTold int               // how many lines had been told by then
	torn      bool              // it ends within a traceback
	synced    *ranBefore        // until a tracker's last words on the run
	Usage     *Mark             // the head of a usage text with which the file ends
	Failed    *Mark             // a launcher or Slurm saying that a process failed
	Progress  []Mark            // the last iteration lines
	Doing     Mark              // the last line that names a phase: saving, evaluating
	Last      []Mark            // the last lines
	fitted    int               // how many lines had been told when Lightning's fit came to its last epoch
	epochs    epochCount        // how far the epochs have come
	fromZero  int               // what a count of epochs or steps goes to that began at 0
	plan      plan              // of iterations
	drawn     int               // how many of the told lines were bars on their way
	told      int               // lines other than Megatron's iterations
	clockedIn int               // how many lines had been told at a date alone with which it began
	rError    *Mark             // the last error that R told
	rows      map[uint32]row    // how often each line is said, by its form
	reports   bool              // iterations or bars stand in it
	reported  int               // how many lines had been told at the last of these
	LastTime  time.Time
	lastOff   int64 // of the last line that is not a launcher's
	Args      map[string]string
	Bases     map[logline.Tag]int    // tag without rank → the global rank seen with it
	RankOfPid map[string]int         // process → rank, as lines name both; -1: of several
	Came      map[int]int            // ranks that said so when they joined the others → of how many
	Local0    []int                  // rank − local rank, as launchers' summaries pair them
	Hosts     map[string]int         // nodes that lines name → how often
	Ranks     map[int]bool           // ranks that spoke
	Labels    map[int]bool           // srun tasks that spoke
	Locals    map[int]bool           // local ranks that spoke
	HostOf    map[logline.Tag]string // tag → node that its NCCL lines name
	LastBy    map[logline.Tag]Mark   // the last words of each rank
	Spied     []spied                // main threads' stacks
	Missing   []NamedRank            // ranks that others' errors say did not join
	NCCL      map[int]*NCCLRank      // what watchdogs say of each rank
	NodeRank  map[string]string      // node → the node rank its launcher printed
	Addresses map[string]string      // address → node that says it is its own

	NodeStarts []NodeStart // what nodes said of their start

	Moments    map[string]time.Time // what all nodes see at once → when this one did
	rendezvous int                  // ended ones so far
	Markers    map[string]string    // start markers: commit, argv, environment
	Elastic    []ElasticEntry
	Lines      int
	bytes      int64
	Ran        ranBefore           // until the end
	PhasesBy   map[logline.Tag]int // phases of one tag alone
	Reads      error
	cut        bool // parts in the middle were not read
	frame      logline.Frame
}

// A stream is the text of one rank in one file.
type stream struct {
	open     *python.Traceback // being read
	openedAt Mark              // its head
	previous string            // the last line before it that was not empty
	pending  string            // an exception's name whose message has not come yet
	spying   int               // index+1 of the main thread whose frames come
	last     Mark              // the line previous, as it stands
	first    string            // the raw line of pending
	firstOff int64
	usage    usage  // the usage text that it is in
	torn     string // the first part of a frame's line
	margin   string // what stands before each line of a traceback that is open
	above    string // the line above the header of the last traceback
	raised   *Event // the last exception
	block    *Mark  // the first line since the last empty one
	told     *Mark  // the first line of the block before it
	called   int64  // where Hydra said that the program which it called raised something
	ignored  int    // exceptions that Python said it ignores, whose tracebacks have not ended
}

type scanner struct {
	*Facts
	file       int
	speaker    string // whom the frame of the line names
	table      *pattern.Table
	streams    map[logline.Tag]*stream
	counts     map[quota]int
	deepSpeed  map[logline.Tag]int // the first rank of the node of whose launcher the lines are
	buf        []int               // of look
	window     []byte              // that is read
	recent     []span              // iteration lines in it
	pending    []Mark              // iteration lines of a digest
	keep       int                 // iteration lines
	now        time.Time           // the last time that the file named
	waiting    []*Event            // events that wait for the next time
	summary    ElasticEntry
	forced     []string        // processes that their launcher killed
	hostPrefix map[string]bool // nodes that stand before lines
	listing    int             // the last line that printed an argument
	opening    opening         // of the run that is read
	before     *runBefore      // this one, where one was read
	began      map[logline.Tag]*firstWords
	lastStart  int64 // of another attempt that processes showed
	// mpirunFirst is the rank whose exit code mpirun tells next.
	mpirunFirst []int
	begun       string // the kind of a start line that waits for a time
}

// A span is a line within a window.
type span struct {
	from, to int
	off      int64
}

type quota struct {
	tag   logline.Tag
	class string
}

// keepFirst bounds the events of one class and rank: the first ones are kept, and the
// newest.
const keepFirst = 5

func newScanner(file, keep int) *scanner {
	return &scanner{
		file: file, keep: keep, table: pattern.LoadTable(), hostPrefix: map[string]bool{}, streams: map[logline.Tag]*stream{}, counts: map[quota]int{},
		deepSpeed: map[logline.Tag]int{},
		began:     map[logline.Tag]*firstWords{},
		Facts: &Facts{
			Starts:    map[string][]Mark{},
			Args:      map[string]string{},
			Bases:     map[logline.Tag]int{},
			RankOfPid: map[string]int{}, Came: map[int]int{},
			Hosts:     map[string]int{},
			Ranks:     map[int]bool{},
			Labels:    map[int]bool{},
			Locals:    map[int]bool{},
			HostOf:    map[logline.Tag]string{},
			NCCL:      map[int]*NCCLRank{},
			NodeRank:  map[string]string{},
			Markers:   map[string]string{},
			Addresses: map[string]string{},
			PhasesBy:  map[logline.Tag]int{},
		},
	}
}

// scan reads one window.
func (s *scanner) scan(w logfile.Window) {
	s.bytes += int64(len(w.Data))
	s.window = w.Data
	for at := 0; at < len(w.Data); {
		end := bytes.IndexByte(w.Data[at:], '\n')
		next := at + end + 1
		if end < 0 {
			next = len(w.Data)
			end = next - at
		}
		line := w.Data[at : at+end]
		off := w.Off + int64(at)
		at = next
		s.Lines++
		if s.frame.Framed() {
			s.framedLine(line, off)
			continue
		}
		if IsProgress(line) {
			if len(s.recent) >= 2*s.keep {
				s.recent = append(s.recent[:0], s.recent[s.keep:]...)
			}
			s.recent = append(s.recent, span{int(off - w.Off), int(off-w.Off) + end, off})
			s.lastOff = off
			s.reported, s.reports = s.told, true
		} else {
			s.physical(bounded(line), off) // an empty one too: it ends what stands before it
		}
	}
	s.noteRecent()
}

// noteRecent keeps the last of the window's iteration lines.
func (s *scanner) noteRecent() {
	for _, p := range s.recent[max(0, len(s.recent)-s.keep):] {
		s.note(&s.Progress, Mark{Off: p.off, Text: string(s.window[p.from:min(p.to, p.from+logfile.MaxLineLength)])}, s.keep)
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
		if t.Rank < 0 {
			t.Rank = rank
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
func (s *scanner) entry(t logline.Tag, text, raw string, off int64) {
	if strings.TrimSpace(text) == "" {
		if st := s.streams[t]; st != nil {
			st.blank()
		}
		return
	}
	at, dated := logline.ParseTime(text)
	if !dated && len(text) < len(raw) {
		at, dated = logline.ParseTime(raw)
	}
	if dated {
		s.tick(at)
	}
	if ofTracker(text) {
		s.tracked(text, off)
		return
	}
	if nativeStack(text) {
		return
	}
	if rest, ok := logline.CutDaemonTime(text); ok {
		text = logline.Daemon + ": " + rest
	}
	h := s.table.Look(text, s.buf)
	s.buf = h.Rows
	s.seen(t, text, h)
	s.told++
	s.ends(Mark{Off: off, Text: raw, At: s.now, Tag: t}, text)
	if h.Ask&pattern.AskProgress == 0 || !s.counted(t, text) {
		s.count(t, text)
	}
	if h.Ask&pattern.AskWhole != 0 && fitted.MatchString(text) {
		s.fitted = s.told
	}
	if h.Ask&pattern.AskWhole != 0 && whole.MatchString(text) && !ofRound.MatchString(text) {
		ran := s.Ran
		s.whole, s.wholeAt, s.wholeTold = &ran, s.now, s.told
	}
	if t == logline.NoTag {
		s.begins(text, off)
	}
	s.restarted(t, text, Mark{Off: off, Text: raw, At: s.now, Tag: t}, h)
	if s.marks(t, text, raw, off, h) {
		return
	}
	s.rLanguage(t, text, raw, off)
	s.read(t, text, raw, off, h)
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
func (s *scanner) note(list *[]Mark, m Mark, n int) {
	m.told = s.told
	if len(*list) >= 2*n {
		*list = append((*list)[:0], (*list)[n:]...)
	}
	*list = append(*list, m)
}

// tick takes a time that the log names: events that waited for one get it.
func (s *scanner) tick(at time.Time) {
	if at.Year() == logline.Yearless && s.now.Year() > 1 {
		at = at.AddDate(s.now.Year(), 0, 0)
	}
	s.now, s.LastTime = at, at
	if s.begun != "" {
		ms := s.Starts[s.begun]
		if s.Failed == nil || s.Failed.Off < ms[len(ms)-1].Off {
			ms[len(ms)-1].At = at
		} // a time after its end says nothing of when it began
		s.begun = ""
	}
	for _, e := range s.waiting {
		e.After = at
	}
	s.waiting = s.waiting[:0]
}

// read looks for exceptions and patterns in one line of one rank.
func (s *scanner) read(t logline.Tag, text, raw string, off int64, h pattern.Hits) {
	line := text
	st := s.streams[t]
	if st == nil {
		st = &stream{}
		s.streams[t] = st
	}
	switch {
	case strings.HasPrefix(text, hydraEnds):
		s.refusal(st)
		return
	case strings.HasPrefix(text, hydraCalled):
		st.called = off
	}
	switch {
	case st.block == nil:
		st.block = &Mark{Off: off, Text: raw, Tag: t}
	case strings.HasPrefix(text, "  ") && strings.Contains(st.block.Text, "Warning:"):
		st.block = nil // Python's warning ends with the line that it is about
	}
	if strings.HasPrefix(text, python.Ignored) {
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
	if said, ok := ofErrorFile(st.previous, text); ok {
		text, line = said, said
	}
	if s.spy(st, t, text) || s.inCompiled(st, text, off) {
		return
	}
	if st.pending != "" && s.continuePending(st, t, text) {
		return
	}
	if i := strings.Index(text, python.Header); i >= 0 {
		st.margin = ""
		if !strings.HasSuffix(text[:i], "Original ") && !strings.Contains(text[:i], "traceback :") && !python.Notebook.MatchString(text[:i]) {
			st.margin = text[:i]
		}
		st.above, st.openedAt = st.previous, Mark{Off: off, told: s.told - 1}
		tied := python.ChainAfter(st.previous, text[:i])
		if tied == python.Unchained && st.raised != nil && strings.HasSuffix(st.raised.Text, ":") && python.Notebook.MatchString(text[:i]) {
			tied = python.Wrapping
		}
		st.open = &python.Traceback{
			Caught: pattern.IntroducesCaught(st.previous),
			Chain:  tied,
			Inset:  strings.Contains(text[:i], "traceback :"),
			Logged: i > 0 && pattern.LowLevel.MatchString(text[:i]),
			Of:     python.RankOf(text[i:]),

			Uncaught: t.Rank >= 0 && strings.HasSuffix(raw, "[rank"+strconv.Itoa(t.Rank)+"]: "+python.Header+":"),
		}
		if st.open.Inset && s.summary.Rank >= 0 {
			st.open.Of = strconv.Itoa(s.summary.Rank)
		}
		return
	}
	if st.open == nil {
		if f, ok := python.ParseFrame(text); ok { // a log cut off at its head, or a header that another rank broke
			st.open = &python.Traceback{Headless: true, Caught: pattern.IntroducesCaught(st.previous), Chain: python.ChainAfter(st.previous, "")}
			st.open.Add(f)
			return
		}
	}
	if st.open != nil {
		if f, ok := python.ParseFrame(text); ok {
			st.open.Add(f)
			return
		}
		inset := st.open.Inset && strings.HasPrefix(text, "  ") && !strings.HasPrefix(text, "      ")
		if st.open.Boxes(text) {
			return
		}
		if !inset && (text[0] == ' ' || text[0] == '\t') || underline(text) {
			return
		}
		if s.exception(st, t, strings.TrimSpace(text), raw, off) {
			return
		}
		if len(st.open.Frames) > 0 && !looksLikeCode(text) {
			st.open = nil // interrupted by something else
		}
	} else if kind, message, ok := python.ParseException(strings.TrimSpace(text), false); ok && !st.usage.has(text) && !st.amidNote() &&
		pattern.FormOf(line) < pattern.Report && !strings.HasPrefix(kind, "nccl") {
		e := s.classify(&Event{Off: off, Raw: raw, Text: text, Tag: t, Kind: kind, message: message})
		s.add(e)
		if st.raised != nil && st.raised.Text == st.previous && python.Carries(st.previous) {
			e = outweigh(python.Wrapping, st.raised, e)
		}
		st.raised, st.previous = e, text
		return
	}
	if e := st.raised; e != nil && st.previous == e.Text && strings.HasSuffix(e.message, python.SeveralRoots) &&
		strings.HasPrefix(strings.TrimSpace(text), "(0) ") {
		_, e.message, _ = strings.Cut(text, ") ")
		e.Text, e.Raw, e.Off = e.Kind+": "+e.message, raw, off
		s.classify(e)
		return
	}
	s.plain(st, t, text, raw, off, h)
	st.previous, st.last = text, Mark{Off: off, Text: raw, At: s.now, Tag: t}
}

// tail is the last n of some marks.
func tail(all []Mark, n int) []Mark { return all[max(0, len(all)-n):] }
