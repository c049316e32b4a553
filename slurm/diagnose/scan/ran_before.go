package scan

import (
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// ranBefore counts lines, up to some line of a file, that show that a program runs.
type ranBefore struct {
	Phases    int // the run's messages about its progress: arguments, phases, starts
	Programs  int // lines of programs that the script started
	Sentences int // lines that do not look like a table, setting or echo
	Tagged    int // lines that launchers label as a task's
}

// logfmt begins the lines of programs that log names and values.
const logfmt = `time="`

// shows counts a line that shows that a program runs.
func (s *scanner) shows(t logline.Tag, text string, phase bool) {
	if phase {
		s.Ran.Phases++
		if t != logline.NoTag && len(s.PhasesBy) < 1<<14 {
			s.PhasesBy[t]++
		}
	}
	if (t.Label >= 0 || t.Local >= 0) && !pattern.AgentLine(text) {
		s.Ran.Tagged++
	}
	word, _, _ := strings.Cut(text, " ")
	c := word0(word)
	warns := strings.HasPrefix(word, "WARNING") || c == 'W' && len(word) == 5 && logline.Digit(word[1]) && logline.Digit(word[4])
	if !warns && (logline.Digit(c) || len(word) > 8 && c == '[' && logline.Digit(word[1]) && logline.Digit(word[4]) ||
		c == '/' && strings.Contains(word, ".py:") || // a Python warning
		c >= 'A' && (!strings.Contains(word, "=") || strings.HasPrefix(word, logfmt)) || word == "" && numbers(text)) &&
		!dumped.MatchString(text) && !transfer.MatchString(text) {
		s.Ran.Sentences++
	}
	if phase || t != logline.NoTag || strings.Contains(text, ".py") || strings.Contains(text, " NCCL INFO ") || strings.Contains(text, python.Header) {
		s.Ran.Programs++
	}
}

// dumped matches the stacks that Python's fault handler writes when a signal ends its process, even if the
// lines of several processes are mixed. They are many, and no program runs that wrote them.
var dumped = lazy.On("hread 0x|File |File,|xtension modules: ", `[Tt]hread 0x[0-9a-f,]|(?:^|  )File ?[,"]|^Extension modules: `)

// numbers reports whether an indented line is a row of numbers, as simulations print for each step. A row
// that ends with a comma is a part of one tensor.
func numbers(text string) bool {
	if strings.HasSuffix(text, ",") {
		return false
	}
	other := func(r rune) bool { return r > ':' && r != 'e' && r != 'E' || r < '+' && r != ' ' && r != '\t' }
	return !strings.ContainsFunc(text, other) && len(strings.Fields(text)) >= 3
}

// word0 returns a word's first byte, or 0.
func word0(word string) byte {
	if word == "" {
		return 0
	}
	return word[0]
}

// Iterated counts the reports of iterations between two events.
func (f *Facts) Iterated(from, to *Event) (n int) {
	for _, m := range f.Progress {
		if from.Off < m.Off && m.Off < to.Off {
			n++
		}
	}
	return n
}

// IteratedOnlyUntil reports whether iterations were reported up to a place, and none after it.
func (f *Facts) IteratedOnlyUntil(off int64) bool {
	n := len(f.Progress)
	return n > 0 && f.Progress[n-1].Off <= off
}

// NextRunAfter reports whether the lines after Slurm's message about the end of a job are another
// run's, as after a requeue: there are too many, or they extend over too long a time.
func (f *Facts) NextRunAfter(e *Event) bool {
	const while = 15 * time.Minute
	return f.Ran.Sentences-e.Ran.Sentences >= NextRun || !e.After.IsZero() && f.LastTime.Sub(e.After) > while
}

// NextRun is a number of lines after a program's end that only another run or program can have written.
const NextRun = 1000

// Latest returns a time before which the event certainly happened, or zero.
func (e *Event) Latest() time.Time {
	if e.Dated {
		return e.Before
	}
	return e.After
}

// LongTail is a number of lines after a file's last event which shows that the event did not end the
// job.
const LongTail = 50

// LongAfter is the time after an exception from which on a file's lines are another program's: a
// process that waits for a dead one gives up earlier.
const LongAfter = time.Hour

// Enough is how many lines of a kind count as proof. Ranks that do not know yet that another rank died
// write one or two.
const Enough = 3
