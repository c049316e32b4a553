package python

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Chain is how an exception came of the one before it in its process.
type Chain uint8

// The ways in which an exception comes of another.
const (
	Unchained  Chain = iota
	RaisedFrom       // raise … from: the earlier one is the reason
	Handling         // raised while the earlier one was handled: the program had gone on
	Wrapping         // the earlier one only carries this one out of a worker or thread
)

// ChainAfter tells how a traceback is tied to the exception before it, by the
// line before it and by what stands before the words of its own header.
func ChainAfter(before, head string) Chain {
	switch {
	case strings.HasPrefix(before, "The above exception was the direct cause"):
		return RaisedFrom
	case strings.HasPrefix(before, "During handling of"):
		return Handling
	case strings.Contains(head, "Original "), Carries(before):
		return Wrapping
	}
	return Unchained
}

// Notebook is what IPython writes before the words of a traceback's header: the
// exception's name and a column of blanks. Where a notebook runs as a script, it
// stands in the message of the exception that ends the script.
var Notebook = lazy.New(`^[A-Za-z_]\w* {2,}$`)

// Carries reports whether an exception's line says that it brings another one
// out of a worker, a replica or a remote process.
func Carries(line string) bool {
	if _, message, ok := ParseException(line, false); ok && strings.HasSuffix(message, ":") { // the traceback that follows is the rest of its message
		return true
	}
	if strings.Contains(line, "CheckpointException ranks:") { // torch.distributed.checkpoint gathers those of all ranks
		return true
	}
	if strings.HasPrefix(line, "-- Process ") && strings.HasSuffix(line, " terminated with the following error:") { // torch.multiprocessing.spawn's
		return true
	}
	_, rest, ok := strings.Cut(line, "Caught ")
	return ok && strings.Contains(rest, " in ") && strings.ContainsAny(rest, "0123456789")
}

// SeveralRoots is how TensorFlow ends the first line of a message whose next ones
// are the reasons, each behind its number: "  (0) Not found: …".
const SeveralRoots = "root error(s) found."

// Outside are the exceptions that a signal or a person raises in a process.
var Outside = lazy.New(`(?:^|\.)(?:SignalException|KeyboardInterrupt)$`)
