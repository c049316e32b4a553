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
// it should have done may have happened. Missing is a command that is not there:
// nothing was started.
const (
	Rejected    ErrorKind = "rejected"
	Denied      ErrorKind = "denied"
	NotFound    ErrorKind = "not found"
	Unreachable ErrorKind = "unreachable"
	RateLimited ErrorKind = "rate limited"
	Unknown     ErrorKind = "unknown"
	Unsupported ErrorKind = "not supported"
	Missing     ErrorKind = "missing"
	Broken      ErrorKind = "broken" // an answer that cannot be read
)

// Errors to compare with errors.Is; every *Error of the kind matches.
var (
	ErrNotFound    = &Error{Kind: NotFound, Msg: lang.Text{EN: "not known to Slurm", ZH: "Slurm 中没有该作业"}}
	ErrUnreachable = &Error{Kind: Unreachable, Msg: lang.Text{EN: "the cluster does not answer", ZH: "集群没有响应"}}
	ErrDenied      = &Error{Kind: Denied, Msg: lang.Text{EN: "not allowed by Slurm", ZH: "Slurm 不允许"}}
	ErrRejected    = &Error{Kind: Rejected, Msg: lang.Text{EN: "refused by Slurm", ZH: "被 Slurm 拒绝"}}
	ErrUnsupported = &Error{Kind: Unsupported, Msg: lang.Text{EN: "not supported by this kind of cluster", ZH: "此类集群不支持该操作"}}
	ErrMissing     = &Error{Kind: Missing, Msg: lang.Text{EN: "the command is not there", ZH: "没有该命令"}}
	ErrUnknown     = &Error{Kind: Unknown, Msg: lang.Text{EN: "the outcome is not known", ZH: "结果尚不确定"}}
)

// An Error is a cluster's refusal, or that it could not be asked.
type Error struct {
	Op   string    // what was tried, such as "submit" or "cancel 4711"
	Msg  lang.Text // Slurm's own words as they came, alike in both languages, or ours
	Kind ErrorKind
	Fix  lang.Text // what to do about it; may be empty
}

// Error gives what was tried and Slurm's own words.
func (e *Error) Error() string { return e.Said().EN }

// Said is e in both languages. What is alike in both is Slurm's or the system's:
// the Chinese quotes it.
func (e *Error) Said() lang.Text {
	theirs := e.Msg.ZH == e.Msg.EN && lang.Of(e.Msg.EN) == lang.EN
	switch tried := attempt(e.Op); {
	case theirs && tried.ZH == "":
		return lang.Text{EN: "%s", ZH: "操作失败，原文：“%s”"}.With(e.Msg)
	case theirs:
		return lang.Text{EN: "%s: %s", ZH: "%s失败，原文：“%s”"}.With(tried, e.Msg)
	case tried.ZH == "":
		return e.Msg
	default:
		tried.ZH = strings.TrimSpace(tried.ZH)
		return lang.Text{EN: "%s: %s", ZH: "%s：%s"}.With(tried, e.Msg)
	}
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
		Op: "job " + string(id), Msg: lang.Text{EN: "not known to Slurm", ZH: "Slurm 中没有该作业"}, Kind: NotFound,
		Fix: lang.Text{
			EN: "check the number with `list`; a job that ended long ago may have left the accounting too",
			ZH: "用 `list` 核对作业号；结束很久的作业可能已不在记账数据库中",
		},
	}
}

// FromStderr reads what a Slurm command said on standard error. It gives the
// kind and the advice of the first row of Rejections that matches.
func FromStderr(op, stderr string) *Error {
	e := &Error{Op: op, Msg: lang.Same(tidyStderr(stderr)), Kind: Rejected}
	for _, r := range Rejections() {
		if r.Match(stderr) {
			e.Kind, e.Fix = r.Kind, r.Fix
			return e
		}
	}
	return e
}

// Refused is the error of a request that Slurm would refuse as err says: its kind
// and advice are those of the same words from Slurm.
func Refused(op string, err error) *Error {
	e := FromStderr(op, err.Error())
	if said := lang.Said(err); said.ZH != said.EN { // words of ours
		e.Msg = said
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
