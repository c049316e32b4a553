package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// A sequel is what the lines behind a Ctrl-C are, by their forms. A program that was stopped leaves only lines that
// it, or its data loader's workers, had been writing until then, and what ends each of its rounds. A program that is started
// again says what it said once, at its first start, and long ago by the time of the Ctrl-C.
type sequel struct {
	interrupt  *Event
	at, worked int // the values of Facts.told at the Ctrl-C, and where the lines of a loop began
}

// stopped begins to look at what follows a Ctrl-C.
func (f *Facts) stopped(e *Event) {
	f.sequel = sequel{e, f.told, f.told}
	for _, r := range f.rows {
		if r.tells {
			f.sequel.worked = min(f.sequel.worked, r.first)
		}
	}
}

// read takes in the told-th line, of whose form r is what came before.
func (q sequel) read(text string, r row, seen bool) {
	switch {
	case q.interrupt == nil, text[0] == ' ', strings.HasPrefix(text, python.Header):
	case !seen || r.first > q.at:
		q.interrupt.Fresh++
	case r.times == 1 && r.first < q.worked && q.at-r.last > Farewell:
		q.interrupt.Again++
	}
}

// StartedAgain reports whether another run of the program was started behind its Ctrl-C.
func (e *Event) StartedAgain() bool {
	return e.Kind == Interrupt && e.Tag == logline.NoTag && e.Again >= Enough
}

// Interrupt is Python's name for a Ctrl-C.
const Interrupt = "KeyboardInterrupt"
