// Package scan reads the lines of a job's logs and collects the facts of each file: events that may be
// a cause, the progress of the run, the ranks and nodes that wrote, and the words at its end. It gives
// no verdict.
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

// A Mark is a line of interest, with its place, time and origin.
type Mark struct {
	Off  int64
	Text string
	At   time.Time
	Tag  logline.Tag
	told int // the value of Facts.told at the line
}

// Facts is what one log file tells.
type Facts struct {
	Events       []*Event
	Starts       map[string][]Mark // by kind, lines that begin an attempt
	Finished     *Mark             // the message of a run that completed
	whole        *ranBefore        // counts at the last message that all work is done
	wholeAt      time.Time         // the time of that message
	wholeTold    int               // the value of told at that message
	wholeOff     int64             // the place of that message
	accounted    bool              // that message is a batch system's account of the job
	torn         bool              // the file ends within a traceback
	late         int64             // the place of a launcher's last words, if its processes' output reached the file after them
	synced       *ranBefore        // counts at an experiment tracker's last message about the run
	Usage        *Mark             // the first line of a usage text at the end of the file
	Failed       *Mark             // a launcher's or Slurm's report of a failed process
	Commands     []Mark            // the shell's commands that start a program, with "set -x"
	Progress     []Mark            // the last iteration lines
	Doing        Mark              // the last line that names a phase, such as saving or evaluating
	Last         []Mark            // the last lines
	fitted       int               // the value of told when Lightning's fit reached its last epoch
	summedAt     int               // the value of told at the summary of transformers' Trainer
	summed       int               // the same without unfinished bars
	losses       losses            // what the program's lines say of its loss
	accounts     accounts          // what Slurm's accounting says of jobs
	epochs       epochCount        // the progress in epochs
	fromZero     int               // the end of a count of epochs or steps that began at 0
	plan         plan              // the announced iterations
	full         fullBars          // the bars that reached their end
	drawn        int               // how many of the lines in told were unfinished progress bars
	told         int               // lines so far, without Megatron's iteration lines
	trap         trap              // the command that the script runs at its end
	served       int               // the value of told behind the last line of a server
	clockedIn    int               // the value of told at a line at the beginning that is only a date
	scriptError  *Mark             // the last error of R or Julia
	complaint    *Mark             // the last error that a program logged
	said         Mark              // the last statement, and its text without a rank's tag
	saidText     string
	previous     Mark // the line before, and its text without a rank's tag
	previousText string
	Departures   []Departure    // processes that ended by themselves
	Raised       map[int]int    // exceptions that ended a process, by the label of srun's task
	rows         map[uint32]row // how often each form of line occurs
	fresh        int            // forms that came up since the last line of a loop
	between      [32]int        // how often so many of them came up between two lines of a loop
	sequel       sequel         // what followed the last Ctrl-C
	reports      bool           // the file has iterations or progress bars
	reported     int            // the value of told at the last of these
	LastTime     time.Time
	OwnDates     OwnDates // the dates with a year of lines that report no iteration
	lastOff      int64    // offset of the last line that is not a launcher's
	Args         map[string]string
	Bases        map[logline.Tag]int    // tag without rank → the global rank that occurred with it
	RankOfPid    map[string]int         // process id → rank; -1 for an id of several ranks
	TagOfPid     map[string]logline.Tag // node and process id, as in NCCL's lines → the tag of the lines
	Came         map[int]int            // ranks that reported that they joined → the world size that they reported
	Local0       []int                  // rank − local rank, for each entry of launchers' summaries
	Hosts        map[string]int         // nodes in lines → how often
	Ranks        map[int]bool           // global ranks that wrote
	Labels       map[int]bool           // srun tasks that wrote
	Locals       map[int]bool           // local ranks that wrote
	HostOf       map[logline.Tag]string // tag → node in its NCCL lines
	LastBy       map[logline.Tag]Mark   // the last line of each tag
	Spied        []spied                // stacks of main threads
	Missing      []NamedRank            // ranks that others' errors name as missing
	NCCL         map[int]*NCCLRank      // rank → its watchdog's messages
	NodeRank     map[string]string      // node → the node rank that its launcher printed
	Addresses    map[string]string      // IP address → the node that has it

	NodeStarts []NodeStart // the nodes' start lines

	Moments    map[string]time.Time // event that all nodes log at once → its time in this file
	rendezvous int                  // how many rendezvous were completed
	Markers    map[string]string    // start markers: commit, argv, environment
	Elastic    []ElasticEntry
	Launched   int // how many processes a launcher certainly had: the one whose exit it reports, and those that it then told to end
	Lines      int
	bytes      int64
	Ran        ranBefore           // counts at the end of the file
	PhasesBy   map[logline.Tag]int // phases by tag
	Reads      error
	frame      logline.Frame
}

// A stream is the state of reading one tag's lines in one file.
type stream struct {
	open     *python.Traceback // the traceback being read; nil for none
	openedAt Mark              // the traceback's header
	previous string            // the last line that was not empty
	pending  string            // an exception's name whose message is still missing
	spying   int               // index+1 in Spied of the thread whose frames follow; 0 for none
	last     Mark              // previous as a Mark
	first    string            // the raw line of pending
	firstOff int64
	usage    usage  // the usage text being read
	source   Mark   // the last line of code in the open traceback
	torn     string // the first part of a frame that was broken in two lines
	margin   string // the text before each line of the open traceback
	above    string // the line above the last traceback's header
	raised   *Event // the last exception
	block    *Mark  // the first line after the last empty line
	told     *Mark  // the first line of the block before that
	called   int64  // offset behind the beginning of Hydra's line that the program it called failed; 0 for none
	ignored  int    // exceptions that Python ignores, whose tracebacks have not ended
}

type scanner struct {
	*Facts
	file       int
	speaker    string // the host in the line's frame
	table      *pattern.Table
	streams    map[logline.Tag]*stream
	counts     map[quota]int
	caught     map[catcher]caught
	deepSpeed  map[logline.Tag]int // tag of a launcher → the first rank of its node
	buf        []int               // for pattern.Table.Look
	window     []byte              // the window being read
	recent     []span              // iteration lines in window
	pending    []Mark              // iteration lines of a digest
	keep       int                 // how many iteration lines to keep
	now        time.Time           // the last time in the file
	waiting    []*Event            // events that wait for the next time
	summary    ElasticEntry
	agents     agents
	hostPrefix map[string]bool // nodes that certainly occur as line prefixes
	ranked     ranked          // the field of a rank that stands before every line
	listing    int             // number of the last line that printed an argument
	opening    opening         // of the run being read
	before     *runBefore      // the run before it in the file; nil for none
	began      map[logline.Tag]*firstWords
	lastStart  int64   // offset of the last restart that processes showed
	reborn     []int64 // offsets of all of them
	// mpirunFirst are the ranks whose exit code mpirun's next line gives.
	mpirunFirst []int
	begun       string // the kind of a start line that waits for a time
	form        uint64 // of the line of entry, with every digit as 0
	matched     map[formMatch]bool
	attempt     int // the newest of the nodes' start lines
	epilogueTo  int // the number of the line to which a site's epilogue may extend
}

// A span is a line within a window.
type span struct {
	from, to int
	off      int64
}

func newScanner(file, keep int) *scanner {
	return &scanner{
		file: file, keep: keep, table: pattern.LoadTable(), hostPrefix: map[string]bool{}, streams: map[logline.Tag]*stream{}, counts: map[quota]int{},
		caught: map[catcher]caught{}, deepSpeed: map[logline.Tag]int{}, began: map[logline.Tag]*firstWords{}, matched: map[formMatch]bool{},
		Facts: &Facts{
			Starts:    map[string][]Mark{},
			Args:      map[string]string{},
			Bases:     map[logline.Tag]int{},
			RankOfPid: map[string]int{}, TagOfPid: map[string]logline.Tag{}, Came: map[int]int{},
			Hosts:     map[string]int{},
			Ranks:     map[int]bool{},
			Labels:    map[int]bool{},
			Locals:    map[int]bool{},
			Raised:    map[int]int{},
			HostOf:    map[logline.Tag]string{},
			NCCL:      map[int]*NCCLRank{},
			NodeRank:  map[string]string{},
			Markers:   map[string]string{},
			Addresses: map[string]string{},
			PhasesBy:  map[logline.Tag]int{},
		},
	}
}

// scan scans one window.
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
			s.lastOff, s.previous.Text = off, ""
			s.reported, s.reports = s.told, true
		} else {
			s.physical(bounded(line), off) // an empty line too, because it ends a block
		}
	}
	s.noteRecent()
}

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

// entry scans a line after its tag was removed.
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
		s.OwnDates.add(at, off)
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
	if h.Ask&(pattern.AskProgress|pattern.AskWhole) != 0 {
		s.form = logline.DigitsAsZeros(text)
	}
	s.account(text, off)
	if s.inEpilogue(text) {
		s.allDone(t, text, off, h)
		s.read(t, text, raw, off, h)
		return
	}
	s.told++
	m, drawn := Mark{Off: off, Text: raw, At: s.now, Tag: t}, s.drawn
	s.losses.read(m, text, s.rows)
	s.ends(m, text)
	if h.Ask&pattern.AskProgress == 0 || !s.counted(t, text) {
		s.count(t, text)
	}
	if transfer.MatchString(text) {
		s.drawn = drawn + 1
	}
	s.allDone(t, text, off, h)
	s.serving(t, text, h)
	if t == logline.NoTag {
		s.command(text, off)
		s.begins(text, off)
	}
	s.complains(m, text, h)
	s.departs(m, text)
	s.restarted(t, text, m, h)
	if s.marks(t, text, raw, off, h) {
		if s.said.Text != "" {
			s.sentences(m, text)
		}
		return
	}
	s.otherLanguages(t, text, raw, off)
	s.read(t, text, raw, off, h)
}

// note appends to a list that keeps about its last n marks, and never fewer.
func (s *scanner) note(list *[]Mark, m Mark, n int) {
	m.told = s.told
	if len(*list) >= 2*n {
		*list = append((*list)[:0], (*list)[n:]...)
	}
	*list = append(*list, m)
}

// read looks for exceptions and patterns in a line.
func (s *scanner) read(t logline.Tag, text, raw string, off int64, h pattern.Hits) {
	line := text
	st := s.streams[t]
	if st == nil {
		st = &stream{margin: s.ranked.margin}
		s.streams[t] = st
	}
	switch {
	case strings.HasPrefix(text, hydraEnds):
		s.refusal(st)
		return
	case strings.HasPrefix(text, hydraCalled):
		st.called = off + 1
	}
	switch {
	case st.block == nil:
		st.block = &Mark{Off: off, Text: raw, Tag: t}
	case strings.HasPrefix(text, "  ") && strings.Contains(st.block.Text, "Warning:"):
		st.block = nil // the source line after a Python warning ends the warning
	}
	s.ignores(st, t, text, off)
	if g := strings.TrimLeft(text, " "); strings.HasPrefix(g, "| ") && !strings.HasSuffix(g, "|") || strings.HasPrefix(g, "+ Exception Group") {
		text = g[2:] // the margin of an exception group
	}
	margin := ""
	if st.margin != "" && sameShape(text, st.margin) {
		margin, text = text[:len(st.margin)], text[len(st.margin):]
		if text == "" {
			return
		}
		st, t = s.rankEveryLine(st, t, margin, text)
	}
	if st.torn != "" {
		text, st.torn = st.torn+text, ""
	} else if head := strings.TrimLeft(text, " "); strings.HasPrefix(head, `File "`) && strings.Count(head, `"`) == 1 {
		st.torn = text // wrapped at the width of a terminal
		return
	}
	if said, ok := ofErrorFile(st.previous, text); ok {
		text, line = said, said
	} else if said, ok = ofErrorPanel(st.previous, text); ok {
		text, line, h = said, said, s.table.Look(said, nil)
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
			st.margin = margin + text[:i]
		}
		st.above, st.openedAt = st.previous, Mark{Off: off, Text: raw, told: s.told - 1}
		tied := python.ChainAfter(st.previous, text[:i])
		if tied == python.Unchained && st.raised != nil && strings.HasSuffix(st.raised.Text, ":") && python.Notebook.MatchString(text[:i]) {
			tied = python.Wrapping
		}
		st.open = &python.Traceback{
			Caught: pattern.IntroducesCaught(st.previous),
			Chain:  tied,
			Inset:  strings.Contains(text[:i], "traceback :"),
			Logged: pattern.LowLevel.MatchString(margin + text[:i]),
			Of:     python.RankOf(text[i:]),

			Uncaught: t.Rank >= 0 && strings.HasSuffix(raw, "[rank"+strconv.Itoa(t.Rank)+"]: "+python.Header+":"),
		}
		if st.open.Inset && s.summary.Rank >= 0 {
			st.open.Of = strconv.Itoa(s.summary.Rank)
		}
		return
	}
	if st.open == nil {
		if f, ok := python.ParseFrame(text); ok { // the log's beginning is missing, or another rank's line broke the header
			st.open = &python.Traceback{Headless: true, Caught: pattern.IntroducesCaught(st.previous), Chain: python.ChainAfter(st.previous, "")}
			st.open.Add(f)
			return
		}
	}
	if st.open != nil {
		if f, ok := python.ParseFrame(text); ok {
			st.open.Add(f)
			st.source = Mark{}
			return
		}
		inset := st.open.Inset && strings.HasPrefix(text, "  ") && !strings.HasPrefix(text, "      ")
		if st.open.Boxes(text) {
			return
		}
		if !inset && (text[0] == ' ' || text[0] == '\t') || underline(text) {
			st.addSource(text, Mark{Off: off, Text: raw})
			return
		}
		if s.exception(st, t, strings.TrimSpace(text), raw, off) {
			return
		}
		if len(st.open.Frames) > 0 && !looksLikeCode(text) {
			st.open = nil // another line interrupted the traceback
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
	s.sentences(Mark{Off: off, Text: raw, At: s.now, Tag: t}, text)
	n := len(s.Events)
	s.plain(st, t, text, raw, off, h)
	if e := st.raised; e != nil && e.Text == st.previous && e.Text == e.Kind+":" && len(s.Events) == n && strings.Trim(text, drawn) != "" {
		e.Text, e.Raw = e.Text+" "+strings.TrimSpace(text), e.Raw+" "+strings.TrimSpace(text) // the message begins on its own line
	}
	st.previous, st.last = st.behind(text), Mark{Off: off, Text: raw, At: s.now, Tag: t}
}
