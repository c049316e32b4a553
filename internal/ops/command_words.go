package ops

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Words fills in, a pointer that NewIn returned, from the words that a person typed
// after the operation's name. The shell and Slack accept the same words and flags. The
// error is an *Error with the code BadInput.
//
// kong reads the words because it takes its grammar from struct tags: the struct that
// MCP and YAML fill is the one that flags fill.
func (o Op) Words(in any, words []string) error {
	parser, err := grammar(o.Name, in)
	if err != nil {
		return fmt.Errorf("ops: flags of %s: %w", o.Name, err)
	}
	given := joinQuotedValues(words)
	if i := slices.Index(words, "--"); i >= 0 {
		taker, ok := in.(interface{ AfterDashes([]string) })
		switch {
		case ok:
			taker.AfterDashes(words[i+1:])
			given = joinQuotedValues(words[:i])
		case freeText(parser.Model):
			given = endFlags(parser.Model, joinQuotedValues(words[:i]), words[i+1:])
		default:
			return &Error{Code: BadInput, Field: "--", Message: lang.Text{EN: "%s takes no arguments after --", ZH: "%s 在 -- 之后不接受参数"}.With(o.Name), Fix: lang.Text{EN: "leave them out", ZH: "请去掉"}}
		}
		words = words[:i]
	} else if last := len(given) - 1; last >= 0 && freeText(parser.Model) && dashedText(parser.Model, given[last]) {
		given = endFlags(parser.Model, given[:last], given[last:])
	}
	if err := switchBeforeValue(parser.Model, given); err != nil {
		return err
	}
	read, err := parser.Parse(given)
	if err != nil {
		return wordsError(o, parser.Model, words, err)
	}
	if o.Effect != Read {
		return emptyValue(in, read.Path)
	}
	return nil
}

// emptyValue returns an error if a flag or an argument was given an empty text, as by a script's unset variable.
// It would count as left out, and a change would go further than was said: all jobs end in place of a partition's.
// A specification's empty field is one that is not set, as sbatch's --exclude= is.
func emptyValue(in any, path []*kong.Path) error {
	spec := FieldNamed(in, "spec")
	empty := func(v reflect.Value) bool {
		return v.Kind() == reflect.String && v.Len() == 0 && !(spec.IsValid() && spec.Type() == specType && within(spec, v))
	}
	for _, at := range path {
		switch f, a := at.Flag, at.Positional; {
		case f != nil && empty(f.Target):
			return EmptyValueError("--" + f.Name)
		case a != nil && empty(a.Target):
			return EmptyValueError(a.Name)
		}
	}
	return nil
}

// within reports whether a value is a part of a struct.
func within(whole, part reflect.Value) bool {
	from, at := whole.Addr().Pointer(), part.Addr().Pointer()
	return from <= at && at < from+whole.Type().Size()
}

// EmptyValueError returns the error about a flag or an argument with an empty value.
func EmptyValueError(name string) *Error {
	return InputError(fieldOf(strings.TrimPrefix(name, "--")), lang.Text{EN: "%s was given an empty value", ZH: "%s 的值为空"}.With(name),
		lang.Text{EN: "give it a value, or leave it out", ZH: "请给出值，或省略它"})
}

// dashedText reports whether a word is a quoted text that begins with a dash but is not a
// flag, such as "--tp-comm-overlap is slow, why" or "--cpus-per-gpu=4 is refused".
func dashedText(model *kong.Application, word string) bool {
	name, _, blank := strings.Cut(word, " ")
	name, _, value := strings.Cut(name, "=")
	return blank && strings.HasPrefix(name, "-") && (!value || flagOf(model, name) == nil)
}

// freeText reports whether an argument of the operation accepts any text, such as a
// question, which may begin with a dash. Such a field has the tag "text".
func freeText(model *kong.Application) bool {
	return slices.ContainsFunc(model.Positional, func(p *kong.Positional) bool { return p.Tag.Has("text") })
}

// endFlags inserts the "--" that ends the flags where kong expects it: before the first
// word of an argument that takes several words, because kong would stop there. A word
// directly behind a flag may be the flag's value. An argument that accepts flags as
// words needs no "--".
func endFlags(model *kong.Application, before, after []string) []string {
	if slices.ContainsFunc(model.Positional, func(p *kong.Positional) bool { return p.Passthrough }) {
		return slices.Concat(before, after)
	}
	start := len(before)
	for start > 0 && !strings.HasPrefix(before[start-1], "-") {
		start--
	}
	if start > 0 && start < len(before) && takesValue(model, before[start-1]) {
		start++
	}
	return slices.Concat(before[:start], []string{"--"}, before[start:], after)
}

// takesValue reports whether the word behind flag may be its value.
func takesValue(model *kong.Application, flag string) bool {
	if strings.Contains(flag, "=") {
		return false
	}
	f := flagOf(model, flag)
	return f == nil || !f.IsBool()
}

// flagOf returns the flag with a name such as --lang or -f; nil for none.
func flagOf(model *kong.Application, name string) *kong.Flag {
	for _, group := range model.AllFlags(false) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

// switchBeforeValue returns an error if true or false follows a switch as a word of its
// own: it would be read as an argument, such as a file's name.
func switchBeforeValue(model *kong.Application, words []string) error {
	if freeText(model) {
		return nil
	}
	for i, value := range words {
		if i == 0 || value != "true" && value != "false" {
			continue
		}
		if flag := words[i-1]; strings.HasPrefix(flag, "--") && !strings.Contains(flag, "=") && !takesValue(model, flag) {
			return InputError(fieldOf(strings.TrimPrefix(flag, "--")),
				lang.Text{EN: "%q does not belong to %s: its value follows an equals sign", ZH: "%q 不会作为 %s 的值：值须写在等号之后"}.With(value, flag),
				lang.Same(flag+"="+value))
		}
	}
	return nil
}

// joinQuotedValues merges a flag and its value into "flag=value" where the value is a quoted text
// of several words that begins with a dash, such as Megatron's own command line. kong
// would take that text for a flag.
func joinQuotedValues(words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		if i+1 < len(words) && strings.HasPrefix(w, "--") && !strings.ContainsAny(w, "= ") &&
			strings.HasPrefix(words[i+1], "-") && strings.ContainsAny(words[i+1], " \t\n") {
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
		typedValues(),
	)
}

// A Param is one flag or argument of an operation, for help and docs.
type Param struct {
	// Name is the flag without its dashes, or the argument's name.
	Name string
	// Short is the one-letter form, 0 where the flag has none.
	Short    rune
	Arg      bool
	Required bool
	// Job reports that the value is a job's id, JobOrPath that the value may be one,
	// and Several that the argument takes all remaining words.
	Job, JobOrPath, Several bool
	Type                    string
	Enum                    []string
	Help                    lang.Text
}

// Params returns o's arguments and then its flags, each in the order of the struct.
func (o Op) Params() []Param {
	parser, err := grammar(o.Name, o.NewIn())
	if err != nil {
		panic(err) // a wrong struct tag; the first test that walks the table finds it
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
	p := Param{Name: v.Name, Short: short, Arg: arg, Required: v.Required, Help: lang.Text{EN: v.Help}}
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
