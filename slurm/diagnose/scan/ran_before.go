package scan

import (
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// ranBefore counts, up to some line of a file, the lines by which a program
// shows that it runs.
type ranBefore struct {
	Phases    int // the run's own account of where it is: arguments, phases, starts
	Programs  int // lines of programs that the script started
	Sentences int // lines that are no table, setting or echo at first sight
	Tagged    int // lines that launchers mark as those of a task
}

// logfmt begins the lines of programs that log in names and values.
const logfmt = `time="`

// shows notes what a line tells of a program that runs.
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
		c == '/' && strings.Contains(word, ".py:") || // a warning
		c >= 'A' && (!strings.Contains(word, "=") || strings.HasPrefix(word, logfmt)) || word == "" && numbers(text)) {
		s.Ran.Sentences++
	}
	if phase || t != logline.NoTag || strings.Contains(text, ".py") || strings.Contains(text, " NCCL INFO ") || strings.Contains(text, python.Header) {
		s.Ran.Programs++
	}
}

// numbers reports whether an indented line is a row of numbers: a simulation reports its
// steps so.
func numbers(text string) bool {
	other := func(r rune) bool { return r > ':' && r != 'e' && r != 'E' || r < '+' && r != ' ' && r != '\t' }
	return !strings.ContainsFunc(text, other) && len(strings.Fields(text)) >= 3
}

// word0 is a word's first byte, or 0.
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

// NextRunAfter reports whether so many lines, or lines over so long, come after
// Slurm's word on the end of a job that another run writes into the same file: a
// job that was requeued does.
func (f *Facts) NextRunAfter(e *Event) bool {
	const while = 15 * time.Minute
	return f.Ran.Sentences-e.Ran.Sentences >= NextRun || !e.After.IsZero() && f.LastTime.Sub(e.After) > while
}

// NextRun is how many lines only another run or program writes after what ends one.
const NextRun = 1000

// Latest is the time before which an event surely happened, or zero.
func (e *Event) Latest() time.Time {
	if e.Dated {
		return e.Before
	}
	return e.After
}

// LongTail is how many lines after the last event of a file show that whatever
// it was did not end the job.
const LongTail = 50

// LongAfter is how long after an exception a file's lines are another program's:
// whoever waits for a dead process gives up before.
const LongAfter = time.Hour

// Enough is how many lines of the kind are believed: ranks that do not know yet
// that another one died write one or two.
const Enough = 3
