package job

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A FieldError reports that one field has an unacceptable value. Fix says what would
// work.
type FieldError struct {
	Field string // the field's path, such as container.image
	Value string // as given; untrusted text
	File  string // file that set the field; empty if it did not come from a file
	Line  int    // line of the text, from 1; 0 if unknown
	Msg   lang.Text
	Fix   lang.Text
}

// Error returns the field, the value, what is wrong and what would work, in English.
// The value is quoted, which makes control characters visible.
func (e *FieldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Field + ": ")
	if e.Value != "" {
		b.WriteString(strconv.QuoteToGraphic(e.Given()) + " ")
	}
	msg, fix := e.In(lang.EN)
	b.WriteString(msg)
	if fix != "" {
		b.WriteString("; " + fix)
	}
	return b.String()
}

// In returns, in language l, what is wrong with the field, including its file and
// line, and what would work.
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

// Given returns the value, cut where it is so long that a message with it would be hard
// to read.
func (e *FieldError) Given() string { return shorten(e.Value) }

func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// NotYAML returns the error of the YAML parser as one about a field whose text is not
// YAML. It has the line and the text there in the reader's language, and quotes the
// parser, whose own words are English.
func NotYAML(field string, err error) *FieldError {
	e := &FieldError{
		Field: field,
		Fix:   phrase("mend it there; lines are name: value, indented with spaces, not with tabs", "请修改该处；每行应为 name: value，缩进用空格，不用制表符"),
	}
	e.Msg = phrase("is not YAML: %s", "不符合 YAML 语法，解析器的原文：%s", firstLine(err.Error()))
	syntax, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok || syntax.Token == nil {
		return e
	}
	e.Line, e.Msg = syntax.Token.Position.Line, phrase("is not YAML: %s", "不符合 YAML 语法，解析器的原文：%s", syntax.Message)
	if near := firstLine(strings.TrimSpace(syntax.Token.Value)); near != "" {
		e.Msg = phrase("is not YAML near %s: %s", "%s 附近不符合 YAML 语法，解析器的原文：%s", strconv.QuoteToGraphic(shorten(near)), syntax.Message)
	}
	return e
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// FieldErrors are the errors of several fields, in the order of the specification.
type FieldErrors []*FieldError

// Error joins the messages, one per line.
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

// AsFieldErrors returns the field errors inside err, or nil if it has none.
func AsFieldErrors(err error) FieldErrors {
	if many, ok := errors.AsType[FieldErrors](err); ok {
		return many
	}
	if one, ok := errors.AsType[*FieldError](err); ok {
		return FieldErrors{one}
	}
	return nil
}

// phrase returns a text in both languages. values are formatted into both.
func phrase(en, zh string, values ...any) lang.Text {
	t := lang.Text{EN: en, ZH: zh}
	if len(values) == 0 {
		return t
	}
	return t.With(values...)
}
