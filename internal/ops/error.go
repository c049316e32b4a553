package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A Code tells a program what kind of error it is.
type Code string

// The codes, as the contract names them.
const (
	BadInput   Code = "bad_input"
	Failed     Code = "failed"
	NotAllowed Code = "not_allowed"
	NotFound   Code = "not_found"
	Preflight  Code = "preflight"
)

// ExitCode returns the shell's exit code for c.
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

// An Error says what was given, what is wrong and what would work, in both
// languages.
type Error struct {
	Code Code
	// Field is the field's path in the specification, such as "container.image". It is
	// empty where no field is to blame.
	Field string
	// Message says what is wrong, and Fix what would work.
	Message lang.Text
	Fix     lang.Text
	// Confirm marks a refusal that a confirmation would lift: the surface asks its
	// person and calls again.
	Confirm bool
	// Shown identifies what the question shows besides a script, such as the files that
	// would be changed. A yes applies to that alone, and comes back as Call.Shown.
	Shown string
	// Details list what the message is about, one line each, such as the files that
	// would be changed.
	Details []lang.Text
	// More holds further errors of the same input.
	More []*Error
}

// Error returns the field and the message in English, for logs.
func (e *Error) Error() string { return e.Line(lang.EN) }

// Said returns e in both languages.
func (e *Error) Said() lang.Text { return lang.Text{EN: e.Line(lang.EN), ZH: e.Line(lang.ZH)} }

// Line returns the message in l, with the field in front.
func (e *Error) Line(l lang.Lang) string {
	said := e.Message.In(l)
	if e.Field == "" || strings.HasPrefix(said, e.Field) {
		return said
	}
	return l.Named(e.Field, said)
}

// A SpokenError is an error for a program: in one language, under the names of the
// contract.
type SpokenError struct {
	Code    Code          `json:"code"`
	Field   string        `json:"field,omitempty"`
	Message string        `json:"message"`
	Fix     string        `json:"fix,omitempty"`
	Details []string      `json:"details,omitempty"`
	More    []SpokenError `json:"more,omitempty"`
}

// In returns e in l, for a program.
func (e *Error) In(l lang.Lang) SpokenError {
	s := SpokenError{Code: e.Code, Field: e.Field, Message: e.Message.In(l), Fix: e.Fix.In(l)}
	for _, d := range e.Details {
		s.Details = append(s.Details, d.In(l))
	}
	for _, x := range e.More {
		s.More = append(s.More, x.In(l))
	}
	return s
}

// MarshalJSON writes e in English.
func (e *Error) MarshalJSON() ([]byte, error) { return json.Marshal(e.In(lang.EN)) }

// AsError returns err as an *Error. An error of another type becomes one with the code
// Failed.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Failed, Message: lang.Said(err)}
}

// InputError returns an error about the input: its field, what is wrong, and what would
// work.
func InputError(field string, message, fix lang.Text) *Error {
	return &Error{Code: BadInput, Field: field, Message: message, Fix: fix}
}

// NegativeError returns an error about a negative number in a field. fix says what would
// work.
func NegativeError(field string, n int, fix lang.Text) *Error {
	return InputError(field, lang.Text{EN: "%d is negative", ZH: "%d 是负数"}.With(n), fix)
}

// ConfirmError returns the refusal of what a person must confirm first. would says what
// would happen.
func ConfirmError(would lang.Text) *Error {
	return &Error{Code: NotAllowed, Confirm: true, Message: would, Fix: lang.Text{EN: "say yes: --yes", ZH: "确认请加 --yes"}}
}

// NotFoundError returns an error about something that does not exist.
func NotFoundError(field string, message, fix lang.Text) *Error {
	return &Error{Code: NotFound, Field: field, Message: message, Fix: fix}
}

// FieldErrors turns the errors that the job package found in a specification's fields
// into one *Error: the first field's, with the others in More.
func FieldErrors(err error) error {
	var all []*Error
	for _, f := range job.AsFieldErrors(err) {
		value := ""
		if f.Value != "" {
			value = fmt.Sprintf("%q ", f.Given())
		}
		e := &Error{Code: BadInput, Field: f.Field}
		e.Message.EN, e.Fix.EN = f.In(lang.EN)
		e.Message.ZH, e.Fix.ZH = f.In(lang.ZH)
		e.Message = lang.Text{EN: "%s%s", ZH: "%s%s"}.With(value, e.Message)
		all = append(all, e)
	}
	if len(all) == 0 {
		return &Error{Code: BadInput, Message: lang.Said(err)}
	}
	all[0].More = all[1:]
	return all[0]
}
