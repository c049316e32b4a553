package slurm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// An ErrorKind says what sort of no a cluster gave.
type ErrorKind string

// The kinds of error. Unknown is the answer of a command that was cut off: what
// it should have done may have happened.
const (
	Rejected    ErrorKind = "rejected"
	Denied      ErrorKind = "denied"
	NotFound    ErrorKind = "not found"
	Unreachable ErrorKind = "unreachable"
	RateLimited ErrorKind = "rate limited"
	Unknown     ErrorKind = "unknown"
	Unsupported ErrorKind = "not supported"
	Broken      ErrorKind = "broken" // an answer that cannot be read, or a missing command
)

// Errors to compare with errors.Is; every *Error of the kind matches.
var (
	ErrNotFound    = &Error{Kind: NotFound, Msg: "not known to Slurm"}
	ErrUnreachable = &Error{Kind: Unreachable, Msg: "the cluster does not answer"}
	ErrDenied      = &Error{Kind: Denied, Msg: "not allowed by Slurm"}
	ErrRejected    = &Error{Kind: Rejected, Msg: "refused by Slurm"}
	ErrUnsupported = &Error{Kind: Unsupported, Msg: "not supported by this kind of cluster"}
	ErrUnknown     = &Error{Kind: Unknown, Msg: "the outcome is not known"}
)

// An Error is a cluster's refusal, or that it could not be asked.
type Error struct {
	Op   string // what was tried, such as "submit" or "cancel 4711"
	Msg  string // Slurm's own words
	Kind ErrorKind
	Fix  lang.Text // what to do about it; may be empty
}

// Error gives what was tried and Slurm's own words.
func (e *Error) Error() string {
	if e.Op == "" {
		return e.Msg
	}
	return e.Op + ": " + e.Msg
}

// Is reports whether target is an *Error of the same kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind
}

// Retryable reports whether asking again later may help with no one doing
// anything. It is false for Unknown, where asking again may do a thing twice.
func (e *Error) Retryable() bool { return e.Kind == Unreachable || e.Kind == RateLimited }

// FixOf returns what to do about err where a cluster said so.
func FixOf(err error) lang.Text {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fix
	}
	return lang.Text{}
}

// JobNotFound is the error for a job that no part of a cluster knows.
func JobNotFound(id JobID) *Error {
	return &Error{
		Op: fmt.Sprintf("job %s", id), Msg: "not known to Slurm", Kind: NotFound,
		Fix: lang.Text{
			EN: "check the number with `list`; a job that ended long ago may have left the accounting too",
			ZH: "用 `list` 核对作业号；结束很久的作业可能已不在记账数据库中",
		},
	}
}

// FromStderr reads what a Slurm command said on standard error. It gives the
// kind and the advice of the first row of Rejections that matches.
func FromStderr(op, stderr string) *Error {
	e := &Error{Op: op, Msg: tidyStderr(stderr), Kind: Rejected}
	for _, r := range Rejections() {
		if r.Match(stderr) {
			e.Kind, e.Fix = r.Kind, r.Fix
			return e
		}
	}
	return e
}

// tidyStderr keeps the message and leaves out what only shells need: the
// command's name before each line, and lines that are only usage.
func tidyStderr(stderr string) string {
	var said []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "Try \"") {
			continue
		}
		for _, command := range []string{"sbatch", "scancel", "squeue", "sacct", "scontrol", "sinfo", "srun", "salloc", "sprio", "sshare", "sacctmgr"} {
			line = strings.TrimPrefix(line, command+": ")
		}
		for _, word := range []string{"error: ", "fatal: ", "Batch job submission failed: "} {
			line = strings.TrimPrefix(line, word)
		}
		said = append(said, line)
	}
	return strings.Join(said, "; ")
}

// Words are an error in Slurm's own words, kept as Slurm writes them so that
// FromStderr knows them again.
type Words string

// Error gives the words.
func (w Words) Error() string { return string(w) }

// Sayf is an error in Slurm's own words.
func Sayf(format string, args ...any) error { return Words(fmt.Sprintf(format, args...)) }
