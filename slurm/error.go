package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// An ErrorKind classifies a cluster's refusal or failure.
type ErrorKind string

// The kinds of error. Unknown means that a command was cut off, so its effect may have
// happened. Missing means that the command or its configuration does not exist on this
// machine, so nothing was asked of the cluster.
const (
	Rejected    ErrorKind = "rejected"
	Denied      ErrorKind = "denied"
	NotFound    ErrorKind = "not found"
	Unreachable ErrorKind = "unreachable"
	RateLimited ErrorKind = "rate limited"
	Unknown     ErrorKind = "unknown"
	Unsupported ErrorKind = "not supported"
	Missing     ErrorKind = "missing"
	Broken      ErrorKind = "broken" // the answer cannot be read
)

// Errors to compare with errors.Is; every *Error of the kind matches.
var (
	ErrNotFound    = &Error{Kind: NotFound, Msg: lang.Text{EN: "not known to Slurm", ZH: "Slurm 中没有该作业"}}
	ErrUnreachable = &Error{Kind: Unreachable, Msg: lang.Text{EN: "the cluster does not answer", ZH: "集群没有响应"}}
	ErrDenied      = &Error{Kind: Denied, Msg: lang.Text{EN: "not allowed by Slurm", ZH: "Slurm 不允许"}}
	ErrRejected    = &Error{Kind: Rejected, Msg: lang.Text{EN: "refused by Slurm", ZH: "被 Slurm 拒绝"}}
	ErrUnsupported = &Error{
		Kind: Unsupported, Msg: lang.Text{EN: "not supported by this kind of cluster", ZH: "此类集群不支持该操作"},
		Fix: lang.Text{EN: "use a cluster of kind cli or ssh for it", ZH: "请使用 cli 或 ssh 类型的集群执行此操作"},
	}
	ErrMissing = &Error{Kind: Missing, Msg: lang.Text{EN: "the command is not there", ZH: "没有该命令"}}
	ErrUnknown = &Error{Kind: Unknown, Msg: lang.Text{EN: "the outcome is not known", ZH: "结果尚不确定"}}
)

// An Error is a cluster's refusal, or a failure to reach the cluster.
type Error struct {
	Op   string    // the operation, such as "submit" or "cancel 4711"
	Msg  lang.Text // Slurm's own words, the same in both languages, or a text of this program
	Kind ErrorKind
	Fix  lang.Text // what the person can do; may be empty
}

// Error returns the operation and the message in English.
func (e *Error) Error() string { return e.Said().EN }

// Said returns e in both languages. A message that is the same English in both
// languages comes from Slurm or from the operating system; the Chinese text quotes it.
func (e *Error) Said() lang.Text {
	quoted := e.Msg.ZH == e.Msg.EN && lang.Of(e.Msg.EN) == lang.EN
	switch op := operationName(e.Op); {
	case quoted && op.ZH == "":
		return lang.Text{EN: "%s", ZH: "操作失败，原文：“%s”"}.With(e.Msg)
	case quoted:
		return lang.Text{EN: "%s: %s", ZH: "%s失败，原文：“%s”"}.With(op, e.Msg)
	case op.ZH == "":
		return e.Msg
	default:
		op.ZH = strings.TrimSpace(op.ZH)
		return lang.Text{EN: "%s: %s", ZH: "%s：%s"}.With(op, e.Msg)
	}
}

// Is reports whether target is an *Error of the same kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind
}

// Retryable reports whether a later retry may help without anybody doing anything. It
// is false for Unknown, where a retry may repeat an effect.
func (e *Error) Retryable() bool { return e.Kind == Unreachable || e.Kind == RateLimited }

// FixOf returns the Fix of err where err is an *Error.
func FixOf(err error) lang.Text {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fix
	}
	return lang.Text{}
}

// JobNotFound returns the error for a job that neither the queue nor the accounts know.
func JobNotFound(id JobID) *Error {
	return &Error{
		Op: "job " + string(id), Msg: lang.Text{EN: "not known to Slurm", ZH: "Slurm 中没有该作业"}, Kind: NotFound,
		Fix: lang.Text{
			EN: "check the number with `list`; a job that ended long ago may have left the accounting too",
			ZH: "用 `list` 核对作业号；结束很久的作业可能已不在记账数据库中",
		},
	}
}

// FromStderr turns the standard error of a Slurm command into an *Error, with the kind
// and the advice of the first row of Rejections that matches.
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

// Refused returns the error of a request that this program refuses because Slurm would
// refuse it. err holds Slurm's words, which determine the kind and the advice.
func Refused(op string, err error) *Error {
	e := FromStderr(op, err.Error())
	if said := lang.Said(err); said.ZH != said.EN { // a text of this program
		e.Msg = said
	}
	return e
}

// tidyStderr keeps the message and drops what only a shell user needs: the command's
// name before each line, usage lines, and a line that says again what one before it says, as
// "slurm_suspend error: Job has already finished" behind "Job has already finished for job 25".
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
		_, what, named := strings.Cut(line, " error: ")
		if !named {
			what = line
		}
		if !slices.ContainsFunc(said, func(before string) bool { return strings.Contains(before, what) }) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

// Words is an error in Slurm's own words, spelled as Slurm spells them so that
// FromStderr recognizes them.
type Words string

// Error returns the words.
func (w Words) Error() string { return string(w) }

// Sayf returns a formatted error in Slurm's own words.
func Sayf(format string, args ...any) error { return Words(fmt.Sprintf(format, args...)) }
