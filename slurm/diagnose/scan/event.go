package scan

import (
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// An Event is a line, or an exception of several lines, that may have to do with a failure.
type Event struct {
	File          int // index into the source
	Off           int64
	Text          string // without launchers' prefixes and control characters, but not redacted
	Raw           string // the whole line, without control characters, but not redacted
	Tag           logline.Tag
	Node          string
	Class         string
	Weight        int
	Kind, message string // of an exception; else empty
	Stack         *python.Traceback
	Before, After time.Time    // the nearest times in the log
	Form          pattern.Form // of a line that is not an exception
	Doubted       bool         // the traceback's introduction says that the program goes on
	Superseded    bool         // another exception of the chain says more
	Ran           ranBefore    // what had run before it, in its file
	Tasks         []int        // Slurm tasks named in the line
	Rank          int          // filled by package diagnose; -1 if no single rank is known
	Dated         bool         // Before is the time in the line itself
	Agent         bool         // a launcher's line about a rank, not the rank's own
	Exit          int          // the exit code in the line, as torchelastic writes it; 0 without one
	Pid           string       // the process that a launcher's line is about
	First         bool         // a launcher calls it the first failure that it observed
	Quoted        bool         // another rank quotes it, so the file and its node are not its own
	Writer        string       // the rank that the log record above names as its writer; empty without one
	World         int          // the world size in that record; 0 without one
	Caught        int          // how often the same exception came before, with a line after each
	Answered      bool         // right behind it, a server answered that the request was wrong
	Fresh, Again  int          // behind a Ctrl-C, lines of new forms, and of forms that only a start has
	Child         bool         // its local rank is the index of a child of torch.multiprocessing.spawn
}

// Counts reports whether an event may be a failure.
func (e *Event) Counts() bool { return e.Form < pattern.Report && !e.Doubted && !e.Superseded }

// When returns the best estimate of the event's time.
func (e *Event) When() time.Time {
	if !e.After.IsZero() && (e.Before.IsZero() || e.Agent || e.After.Sub(e.Before) < 2*time.Minute) {
		return e.After
	}
	if !e.Before.IsZero() {
		return e.Before
	}
	return e.After
}
