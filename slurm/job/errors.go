package job

import (
	"errors"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A FieldError is one field that cannot be what was given. Fix says what would
// work.
type FieldError struct {
	Field string // the field's path, such as container.image
	Value string // as given; text from outside
	File  string // that gave it; empty where it came from no file
	Line  int    // of that text, from 1; 0 where that is not known
	Msg   lang.Text
	Fix   lang.Text
}

// Error names the field, the value, what is wrong and what would work, in
// English. The value is quoted, so that control characters show.
func (e *FieldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Field + ": ")
	if e.Value != "" {
		b.WriteString(strconv.QuoteToGraphic(shorten(e.Value)) + " ")
	}
	msg, fix := e.In(lang.EN)
	b.WriteString(msg)
	if fix != "" {
		b.WriteString("; " + fix)
	}
	return b.String()
}

// In returns what is wrong with the field, with the file and the line that gave
// it, and what would work, in language l.
func (e *FieldError) In(l lang.Lang) (msg, fix string) {
	msg = e.Msg.In(l)
	switch {
	case e.File != "" && e.Line > 0:
		msg = phrase("%s (%s, line %d)", "%s（%s 第 %d 行）", msg, e.File, e.Line).In(l)
	case e.File != "":
		msg = phrase("%s (%s)", "%s（%s）", msg, e.File).In(l)
	case e.Line > 0:
		msg = phrase("%s (line %d)", "%s（第 %d 行）", msg, e.Line).In(l)
	}
	return msg, e.Fix.In(l)
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

// AsFieldErrors returns the field errors inside err, which may hold none.
func AsFieldErrors(err error) FieldErrors {
	var many FieldErrors
	if errors.As(err, &many) {
		return many
	}
	var one *FieldError
	if errors.As(err, &one) {
		return FieldErrors{one}
	}
	return nil
}

// phrase says one thing in both languages, with values set into both.
func phrase(en, zh string, values ...any) lang.Text {
	t := lang.Text{EN: en, ZH: zh}
	if len(values) == 0 {
		return t
	}
	return t.With(values...)
}
