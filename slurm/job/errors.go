package job

import (
	"strconv"
	"strings"
)

// A FieldError is one field that cannot be what was given. Fix says what would
// work.
type FieldError struct {
	Field string // the field's path, such as container.image
	Value string // as given; text from outside
	Msg   string
	Fix   string
}

// Error names the field, the value, what is wrong and what would work. The
// value is quoted, so that control characters show.
func (e *FieldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Field + ": ")
	if e.Value != "" {
		b.WriteString(strconv.QuoteToGraphic(shorten(e.Value)) + " ")
	}
	b.WriteString(e.Msg)
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// shorten keeps a message readable whatever was given.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// FieldErrors are several fields at once, in the order of the specification.
type FieldErrors []*FieldError

// Error joins the messages, one a line.
func (es FieldErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each error to errors.As and errors.Is.
func (es FieldErrors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}
