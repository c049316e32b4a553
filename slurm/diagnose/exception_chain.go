package diagnose

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A chain is how an exception came of the one before it in its process.
type chain uint8

const (
	unchained  chain = iota
	raisedFrom       // raise … from: the earlier one is the reason
	handling         // raised while the earlier one was handled: the program had gone on
	wrapping         // the earlier one only carries this one out of a worker or thread
)

// chainAfter tells how a traceback is tied to the exception before it, by the
// line before it and by what stands before the words of its own header.
func chainAfter(before, head string) chain {
	switch {
	case strings.HasPrefix(before, "The above exception was the direct cause"):
		return raisedFrom
	case strings.HasPrefix(before, "During handling of"):
		return handling
	case strings.Contains(head, "Original "), carries(before):
		return wrapping
	}
	return unchained
}

// notebook is what IPython writes before the words of a traceback's header: the
// exception's name and a column of blanks. Where a notebook runs as a script, it
// stands in the message of the exception that ends the script.
var notebook = lazy.New(`^[A-Za-z_]\w* {2,}$`)

// carries reports whether an exception's line says that it brings another one
// out of a worker, a replica or a remote process.
func carries(line string) bool {
	if _, message, ok := exceptionOf(line, false); ok && strings.HasSuffix(message, ":") { // the traceback that follows is the rest of its message
		return true
	}
	if strings.Contains(line, "CheckpointException ranks:") { // torch.distributed.checkpoint gathers those of all ranks
		return true
	}
	_, rest, ok := strings.Cut(line, "Caught ")
	return ok && strings.Contains(rest, " in ") && strings.ContainsAny(rest, "0123456789")
}

// severalRoots is how TensorFlow ends the first line of a message whose next ones
// are the reasons, each behind its number: "  (0) Not found: …".
const severalRoots = "root error(s) found."

// outside are the exceptions that a signal or a person raises in a process.
var outside = lazy.New(`(?:^|\.)(?:SignalException|KeyboardInterrupt)$`)

// outweigh marks, of two chained exceptions, the one that says less, and
// returns the other. Innermost is where the reason lies, unless it is a
// consequence of something else or says much less.
func (c chain) outweigh(earlier, later *event) *event {
	if c == unchained || earlier == nil {
		return later
	}
	first := c == raisedFrom
	switch d := earlier.weight - later.weight; {
	case c == handling && outside.MatchString(earlier.kind):
		first = true // what fails while a process is told to end says nothing
	case d >= 10 && c != wrapping:
		first = true
	case d <= -10:
		first = false
	}
	if first {
		later.superseded = true
		return earlier
	}
	earlier.superseded = true
	return later
}
