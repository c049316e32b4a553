package ops

import (
	"errors"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A Code says, for machines, what kind of error it is.
type Code string

// The codes, in the words of the contract.
const (
	BadInput   Code = "bad_input"
	Failed     Code = "failed"
	NotAllowed Code = "not_allowed"
	NotFound   Code = "not_found"
	Preflight  Code = "preflight"
)

// ExitCode is the shell's exit code for c.
func (c Code) ExitCode() int {
	switch c {
	case BadInput:
		return 2
	case Preflight:
		return 3
	case NotAllowed:
		return 4
	case NotFound:
		return 5
	}
	return 1
}

// An Error says what was given, what is wrong and what would work, in English;
// In gives it in Chinese.
type Error struct {
	Code Code `json:"code"`
	// Field is the specification's path, such as "container.image"; empty where no
	// field is to blame.
	Field string `json:"field,omitempty"`
	// Message says what is wrong, Fix what would work.
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// Confirm marks a refusal that a confirmation would lift: the caller's surface
	// asks its person.
	Confirm bool `json:"-"`
	// More are further errors of the same input.
	More []*Error `json:"more,omitempty"`

	zh chinese
}

// Error puts the field before the message.
func (e *Error) Error() string {
	if e.Field != "" && !strings.HasPrefix(e.Message, e.Field) {
		return e.Field + ": " + e.Message
	}
	return e.Message
}

// AsError returns err as an *Error; one that is not becomes Failed.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Code: Failed, Message: err.Error()}
	if s, ok := errors.AsType[*slurm.Error](err); ok && s.Error() == e.Message {
		e.zh.op, e.zh.words = s.Op, s.Msg
	}
	return e
}

// InputError is an error of what was given: its field, what would work, and what
// is wrong.
func InputError(field, fix, format string, args ...any) *Error {
	return &Error{Code: BadInput, Field: field, Message: fmt.Sprintf(format, args...), Fix: fix}
}

// NotFoundError is an error of something that is not there.
func NotFoundError(field, fix, format string, args ...any) *Error {
	return &Error{Code: NotFound, Field: field, Message: fmt.Sprintf(format, args...), Fix: fix}
}

// FieldErrors turns what the specification says of its fields into one error:
// the first field, and the others with it.
func FieldErrors(err error) error {
	var all []*Error
	for _, f := range job.AsFieldErrors(err) {
		value := ""
		if f.Value != "" {
			value = fmt.Sprintf("%q ", f.Value)
		}
		e := &Error{Code: BadInput, Field: f.Field}
		e.Message, e.Fix = f.In(lang.EN)
		e.Message = value + e.Message
		e.zh.message, e.zh.fix = f.In(lang.ZH)
		e.zh.message = value + e.zh.message
		all = append(all, e)
	}
	if len(all) == 0 {
		return &Error{Code: BadInput, Message: err.Error()}
	}
	all[0].More = all[1:]
	return all[0]
}
