package ops

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Words fills in, a pointer that NewIn returned, from what a person typed after
// the operation's name, in a shell or in Slack: the same words and flags in
// both. The error is an *Error with the code BadInput.
//
// kong reads the words because it takes its grammar from struct tags: the
// struct that MCP and YAML fill is the one that flags fill.
func (o Op) Words(in any, words []string) error {
	parser, err := grammar(o.Name, in)
	if err != nil {
		return fmt.Errorf("ops: flags of %s: %w", o.Name, err)
	}
	given := joined(words)
	if i := slices.Index(words, "--"); i >= 0 {
		taker, ok := in.(interface{ AfterDashes([]string) })
		switch {
		case ok:
			taker.AfterDashes(words[i+1:])
			given = joined(words[:i])
		case freeText(parser.Model):
			given = endFlags(parser.Model, joined(words[:i]), words[i+1:])
		default:
			return &Error{Code: BadInput, Field: "--", Message: lang.Text{EN: "%s takes no arguments after --", ZH: "%s 在 -- 之后不接受参数"}.With(o.Name), Fix: lang.Text{EN: "leave them out", ZH: "请去掉"}}
		}
		words = words[:i]
	}
	if _, err := parser.Parse(given); err != nil {
		return wordsError(o, parser.Model, words, err)
	}
	return nil
}

// freeText reports whether an argument of the operation is any text, such as a
// question, which may well begin with a dash: its field has the tag "text".
func freeText(model *kong.Application) bool {
	return slices.ContainsFunc(model.Positional, func(p *kong.Positional) bool { return p.Tag.Has("text") })
}

// endFlags puts the end of the flags where kong wants it: before the first word of
// an argument of several, which stops there. A word right behind a flag may be the
// flag's. An argument that takes flags for words needs no such end.
func endFlags(model *kong.Application, before, after []string) []string {
	if slices.ContainsFunc(model.Positional, func(p *kong.Positional) bool { return p.Passthrough }) {
		return slices.Concat(before, after)
	}
	start := len(before)
	for start > 0 && !strings.HasPrefix(before[start-1], "-") {
		start--
	}
	if start > 0 && start < len(before) {
		start++
	}
	return slices.Concat(before[:start], []string{"--"}, before[start:], after)
}

// joined writes a flag and a value of several words as one: a quoted text that
// begins with a dash, such as Megatron's own command line, is no flag.
func joined(words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		if i+1 < len(words) && strings.HasPrefix(w, "--") && !strings.ContainsAny(w, "= ") && strings.HasPrefix(words[i+1], "-") && strings.ContainsAny(words[i+1], " \t\n") {
			i++
			w += "=" + words[i]
		}
		out = append(out, w)
	}
	return out
}

func grammar(name string, in any) (*kong.Kong, error) {
	return kong.New(in,
		kong.Name(name),
		kong.NoDefaultHelp(),
		kong.Writers(io.Discard, io.Discard),
		kong.Exit(func(int) {}),
	)
}

var (
	unknownFlag = regexp.MustCompile(`unknown flag (--?[^\s,]+)`)
	wrongValue  = regexp.MustCompile(`^--([a-z0-9-]+): expected (?:a valid )?(.+?)(?: value)? but got "(.*?)"`)
	wrongChoice = regexp.MustCompile(`^--([a-z0-9-]+) must be one of (.+) but got "(.*?)"`)
	flagInError = regexp.MustCompile(`(--[a-z][a-z0-9-]*)`)
	extraWord   = regexp.MustCompile(`unexpected argument (.+?)(, did you mean|$)`)
	missingArgs = regexp.MustCompile(`expected "(.+)"`)
)

// DidYouMean is the fix of a word that is nearly one that is known.
var DidYouMean = lang.Text{EN: "did you mean %s?", ZH: "是否想写 %s？"}

var forExample = lang.Text{EN: "for example: %s", ZH: "例如：%s"}

// wordsError says what kong found in the contract's form.
func wordsError(o Op, model *kong.Application, words []string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	msg := err.Error()
	e := &Error{Code: BadInput, Message: Said(err), Fix: lang.Text{EN: "see: megatron-ops help %s", ZH: "用法见：megatron-ops help %s"}.With(o.Name)}
	switch {
	case unknownFlag.MatchString(msg):
		flag := unknownFlag.FindStringSubmatch(msg)[1]
		e.Field = flag
		e.Message = lang.Text{EN: "%s has no flag %s", ZH: "%s 没有选项 %s"}.With(o.Name, flag)
		if _, takes := o.NewIn().(interface{ MegatronArgs() }); takes {
			if fix := megatronsOwn(o, flag, words); fix.EN != "" {
				e.Fix = fix
				break
			}
		}
		if meant := near.Word(strings.TrimLeft(flag, "-"), flagNames(model), len(flag)/3+2); meant != "" {
			e.Fix = DidYouMean.With("--" + meant)
		} else if freeText(model) {
			e.Fix = lang.Text{
				EN: "what begins with a dash and is no flag goes after --, as: megatron-ops %s %s",
				ZH: "以短横线开头而又不是选项的内容请写在 -- 之后，例如：megatron-ops %s %s",
			}.With(o.Name, behindDashes(words, flag))
		}
	case extraWord.MatchString(msg):
		word := extraWord.FindStringSubmatch(msg)[1]
		e.Field = word
		e.Message = lang.Text{EN: "%s does not know what to do with %q", ZH: "%s 不知道如何处理 %q"}.With(o.Name, word)
	case missingArgs.MatchString(msg):
		what := strings.Trim(missingArgs.FindStringSubmatch(msg)[1], "<>. ")
		e.Field = strings.Trim(strings.Fields(what)[0], "<>")
		e.Message = lang.Text{EN: "%s needs a %s", ZH: "%s 需要给出 %s"}.With(o.Name, what)
		e.Fix = forExample.With("megatron-ops " + o.Example)
	case wrongValue.MatchString(msg):
		m := wrongValue.FindStringSubmatch(msg)
		e.Field = fieldOf(m[1])
		e.Message = lang.Text{EN: "%q is not %s", ZH: "%q 不是%s"}.With(m[3], kindWords(m[2]))
		if m[3] == "EOL" {
			e.Message = lang.Text{EN: "--%s needs a value", ZH: "--%s 需要一个值"}.With(m[1])
		}
		e.Fix = forExample.With("--" + m[1] + " " + exampleOf(model, m[1]))
	case wrongChoice.MatchString(msg):
		m := wrongChoice.FindStringSubmatch(msg)
		e.Field, e.Message = fieldOf(m[1]), lang.Text{EN: "%q is not among its choices", ZH: "%q 不在可选值之列"}.With(m[3])
		e.Fix = lang.Text{EN: "one of %s", ZH: "以下之一：%s"}.With(strings.TrimPrefix(m[2], `"",`))
	case flagInError.MatchString(msg):
		e.Field = fieldOf(strings.TrimPrefix(flagInError.FindString(msg), "--"))
	}
	return e
}

// behindDashes are words, for a shell, with the end of the flags before flag.
func behindDashes(words []string, flag string) string {
	at := slices.IndexFunc(words, func(w string) bool { return w == flag || strings.HasPrefix(w, flag+"=") })
	var out []string
	for i, w := range words {
		if i == max(at, 0) {
			out = append(out, "--")
		}
		out = append(out, shellword.POSIX(w))
	}
	return strings.Join(out, " ")
}

// megatronsOwn says how to give a flag that is Megatron's, under whichever
// name it was asked for, or nothing where it is none of Megatron's.
func megatronsOwn(o Op, flag string, words []string) lang.Text {
	name, why := flag, lang.Text{}
	if to, ok := megatron.Renamed(flag); ok {
		name, why = to, lang.Text{EN: " (%s is not its name there)", ZH: "（在那里不叫 %s）"}.With(flag)
	}
	f, ok := megatron.LookupFlag(name)
	if !ok {
		return lang.Text{}
	}
	argv := []string{f.Name}
	for i, w := range words {
		value, joined := strings.CutPrefix(w, flag+"=")
		if !joined && w == flag && i+1 < len(words) && f.Action == megatron.Store && !strings.HasPrefix(words[i+1], "-") {
			value = words[i+1]
		}
		if value != "" && value != w {
			argv = append(argv, value)
			break
		}
	}
	return lang.Text{
		EN: "it is a flag of Megatron's%s: give it after --, as megatron-ops %s … -- %s, or in the specification's args: [%s]",
		ZH: "这是 Megatron 的参数%s：请写在 -- 之后，即 megatron-ops %s … -- %s，或写入规格的 args: [%s]",
	}.With(why, o.Name, strings.Join(argv, " "), strings.Join(argv, ", "))
}

// fieldOf is the specification's path that a flag fills.
func fieldOf(flag string) string {
	for _, nested := range []string{"container", "rdzv", "artifact", "retry"} {
		if rest, ok := strings.CutPrefix(flag, nested+"-"); ok {
			return nested + "." + strings.ReplaceAll(rest, "-", "_")
		}
	}
	return strings.ReplaceAll(flag, "-", "_")
}

func kindWords(kind string) lang.Text {
	switch kind {
	case "int", "64 bit int":
		return lang.Text{EN: "a number of 0 or more", ZH: "大于等于 0 的数"}
	case "bool":
		return lang.Text{EN: "yes or no", ZH: "yes 或 no"}
	case "duration":
		return lang.Text{EN: "a duration", ZH: "时长"}
	case "float":
		return lang.Text{EN: "a float", ZH: "小数"}
	}
	return lang.Text{EN: "a %s", ZH: " %s"}.With(kind)
}

// exampleOf is what a flag's tag shows, or its placeholder.
func exampleOf(model *kong.Application, name string) string {
	for _, group := range model.AllFlags(false) {
		for _, f := range group {
			if f.Name != name {
				continue
			}
			if ex := f.Tag.Get("ex"); ex != "" {
				return ex
			}
			return f.FormatPlaceHolder()
		}
	}
	return "…"
}

func flagNames(model *kong.Application) []string {
	var names []string
	for _, group := range model.AllFlags(false) {
		for _, f := range group {
			names = append(names, f.Name)
		}
	}
	return names
}

// A Param is one flag or argument of an operation, as help and docs show it.
type Param struct {
	// Name is the flag without dashes, or the argument's name.
	Name string
	// Short is the one-letter form, 0 where there is none.
	Short    rune
	Arg      bool
	Required bool
	// Job says that the value is a job's id, JobOrPath that it may be one, and
	// Several that the argument takes all words that are left.
	Job, JobOrPath, Several bool
	Type                    string
	Enum                    []string
	Default                 string
	Help                    lang.Text
}

// Params are o's flags and arguments, arguments first, as the struct has them.
func (o Op) Params() []Param {
	parser, err := grammar(o.Name, o.NewIn())
	if err != nil {
		panic(err) // a wrong tag: found by the first test that walks the table
	}
	var ps []Param
	for _, a := range parser.Model.Positional {
		ps = append(ps, param(a, 0, true))
	}
	for _, group := range parser.Model.AllFlags(true) {
		for _, f := range group {
			ps = append(ps, param(f.Value, f.Short, false))
		}
	}
	return ps
}

func param(v *kong.Value, short rune, arg bool) Param {
	p := Param{Name: v.Name, Short: short, Arg: arg, Required: v.Required, Default: v.Default, Help: lang.Text{EN: v.Help}}
	if v.Tag != nil {
		p.Help.ZH = v.Tag.Get("zh")
		if v.Tag.Enum != "" {
			p.Enum = slices.DeleteFunc(strings.Split(v.Tag.Enum, ","), func(s string) bool { return s == "" })
		}
	}
	if v.Target.IsValid() {
		t := v.Target.Type()
		p.Type = typeWord(t)
		p.Several = t.Kind() == reflect.Slice
		p.Job = t == reflect.TypeFor[slurm.JobID]() || t == reflect.TypeFor[[]slurm.JobID]()
		p.JobOrPath = arg && !p.Job && v.Tag != nil && v.Tag.Has("jobs")
	}
	return p
}

func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeWord(t.Elem())
	case reflect.Bool:
		return "switch"
	case reflect.Int, reflect.Int64:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "NAME=value"
	}
	return "text"
}
