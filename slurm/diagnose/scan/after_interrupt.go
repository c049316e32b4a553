package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// A sequel is what the lines behind a Ctrl-C are, by their forms. A program that was stopped leaves only lines that
// it, or its data loader's workers, had been writing until then. A program that is started again says what it said at its
// first start, and long ago by the time of the Ctrl-C.
type sequel struct {
	interrupt *Event
	at        int // the value of Facts.told at the Ctrl-C
}

// read takes in the told-th line, of whose form r is what came before.
func (q sequel) read(text string, r row, seen bool) {
	switch {
	case q.interrupt == nil, text[0] == ' ', strings.HasPrefix(text, python.Header):
	case !seen:
		q.interrupt.Fresh++
	case r.last <= q.at && q.at-r.last > Farewell:
		q.interrupt.Again++
	}
}

// StartedAgain reports whether another run of the program was started behind its Ctrl-C.
func (e *Event) StartedAgain() bool {
	return e.Kind == Interrupt && e.Tag == logline.NoTag && e.Again >= Enough
}

// Interrupt is Python's name for a Ctrl-C.
const Interrupt = "KeyboardInterrupt"
