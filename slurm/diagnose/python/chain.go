package python

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Chain says how an exception is related to the one printed before it in the same process.
type Chain uint8

// The relations between two exceptions.
const (
	Unchained  Chain = iota
	RaisedFrom       // raise … from: the earlier exception is the reason
	Handling         // raised while the earlier exception was being handled: the program had gone on
	Wrapping         // the earlier exception only carries this one out of a worker or thread
)

// ChainAfter returns how a traceback is related to the exception before it. before is the line before
// the traceback, and head is the text in front of the traceback's own header.
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

// Notebook matches what IPython writes in front of a traceback's header: the exception's name and
// blanks. When a notebook runs as a script, this traceback stands in the message of the exception that
// ends the script.
var Notebook = lazy.New(`^[A-Za-z_]\w* {2,}$`)

// Carries reports whether an exception's line says that it carries another exception out of a worker, a
// replica or a remote process.
func Carries(line string) bool {
	if _, message, ok := ParseException(line, false); ok && strings.HasSuffix(message, ":") { // the message continues with a traceback
		return true
	}
	if strings.Contains(line, "CheckpointException ranks:") { // torch.distributed.checkpoint collects the exceptions of all ranks
		return true
	}
	if strings.HasPrefix(line, "-- Process ") && strings.HasSuffix(line, " terminated with the following error:") { // written by torch.multiprocessing.spawn
		return true
	}
	_, rest, ok := strings.Cut(line, "Caught ")
	return ok && strings.Contains(rest, " in ") && strings.ContainsAny(rest, "0123456789")
}

// SeveralRoots ends the first line of a TensorFlow message. Its next lines are numbered reasons: " (0)
// Not found: …".
const SeveralRoots = "root error(s) found."

// Outside matches the exceptions that a signal or a person causes in a process.
var Outside = lazy.New(`(?:^|\.)(?:SignalException|KeyboardInterrupt)$`)

// Waited matches the exceptions that say only that nothing came for as long as a queue was asked.
var Waited = lazy.New(`(?:^|\.)_?queue\.Empty$`)
