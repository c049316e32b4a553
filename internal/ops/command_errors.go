package ops

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// DidYouMean is the fix for a word that is similar to a known one.
var DidYouMean = lang.Text{EN: "did you mean %s?", ZH: "是否想写 %s？"}

var forExample = lang.Text{EN: "for example: %s", ZH: "例如：%s"}

// wordsError turns an error of kong's into an *Error with the contract's code and
// field. kong has no types for its errors: typedValue finds a wrong value, and for
// everything else the context of the *kong.ParseError tells at which word kong stopped.
func wordsError(o Op, model *kong.Application, words []string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Code: BadInput, Message: lang.Said(err), Fix: lang.Text{EN: "see: megatron-ops help %s", ZH: "用法见：megatron-ops help %s"}.With(o.Name)}
	stopped, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return e
	}
	path := stopped.Context.Path
	missing := slices.IndexFunc(model.Positional, func(p *kong.Positional) bool {
		return p.Required && !slices.ContainsFunc(path, func(at *kong.Path) bool { return at.Positional == p })
	})
	switch rest := path[len(path)-1].Remainder(); {
	case len(rest) > 0 && strings.HasPrefix(rest[0], "-"):
		flag, _, _ := strings.Cut(rest[0], "=")
		if !strings.HasPrefix(flag, "--") && !slices.Contains(flagNames(model), flag[1:]) {
			flag = flag[:min(2, len(flag))]
		}
		e.Field = flag
		e.Message = lang.Text{EN: "%s has no flag %s", ZH: "%s 没有选项 %s"}.With(o.Name, flag)
		e.Fix = unknownFlagFix(o, model, words, flag, e.Fix)
	case len(rest) > 0:
		e.Field = rest[0]
		e.Message = lang.Text{EN: "%s does not know what to do with %q", ZH: "%s 不知道如何处理 %q"}.With(o.Name, rest[0])
	case missing >= 0:
		e.Field = model.Positional[missing].Name
		e.Message = lang.Text{EN: "%s needs <%s>", ZH: "%s 需要给出 <%s>"}.With(o.Name, e.Field)
		e.Fix = forExample.With("megatron-ops " + o.Example)
	}
	return e
}

// unknownFlagFix returns what would work instead of a flag that o does not have.
func unknownFlagFix(o Op, model *kong.Application, words []string, flag string, otherwise lang.Text) lang.Text {
	name := strings.TrimLeft(flag, "-")
	if slices.Contains(flagNames(model), name) { // with one dash
		return DidYouMean.With("--" + name)
	}
	if _, takes := o.NewIn().(interface{ MegatronArgs() }); takes {
		if fix := megatronFlagFix(o, flag, words); fix.EN != "" {
			return fix
		}
	}
	if own := strings.ReplaceAll(job.FieldOf(name), "_", "-"); slices.Contains(flagNames(model), own) {
		return lang.Text{EN: "what sbatch calls --%s is --%s here", ZH: "sbatch 的 --%s 在这里是 --%s"}.With(name, own)
	}
	if name == "model" && slices.Contains(flagNames(model), "recipe") { // as recommend calls it
		return DidYouMean.With("--recipe")
	}
	if meant := near.Word(name, flagNames(model), len(name)/3+2); meant != "" {
		return DidYouMean.With("--" + meant)
	}
	if name == "json" || name == "yaml" { // as other programs call it
		return DidYouMean.With("--output " + name)
	}
	if freeText(model) {
		return lang.Text{
			EN: "what begins with a dash and is no flag goes after --, as: megatron-ops %s %s",
			ZH: "以短横线开头而又不是选项的内容请写在 -- 之后，例如：megatron-ops %s %s",
		}.With(o.Name, withDashesBefore(words, flag))
	}
	if all := flagNames(model); len(all) > 0 && len(all) <= fewFlags {
		return lang.Text{EN: "%s takes --%s", ZH: "%s 可用：--%s"}.With(o.Name, strings.Join(all, ", --"))
	}
	return otherwise
}

// fewFlags is how many flags an error lists at most.
const fewFlags = 8

// A typedValue reads a value as kong does, and describes a wrong value as an *Error.
type typedValue struct{ mappers *kong.Registry }

// A typedSwitch is a typedValue for a flag that needs no value.
type typedSwitch struct{ typedValue }

// IsBool tells kong that the flag may stand alone.
func (typedSwitch) IsBool() bool { return true }

// typedValues makes kong read every value with a typedValue.
func typedValues() kong.Option {
	mappers := kong.NewRegistry().RegisterDefaults().RegisterType(reflect.TypeFor[Seconds](), kong.MapperFunc(decodeSeconds))
	value := typedValue{mappers}
	options := []kong.Option{kong.TypeMapper(reflect.TypeFor[time.Duration](), value), kong.KindMapper(reflect.Bool, typedSwitch{value})}
	for _, kind := range []reflect.Kind{reflect.String, reflect.Int, reflect.Int64, reflect.Float64, reflect.Slice, reflect.Map} {
		options = append(options, kong.KindMapper(kind, value))
	}
	return kong.OptionFunc(func(k *kong.Kong) error {
		for _, o := range options {
			if err := o.Apply(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// Seconds is a length of time: in JSON a number of seconds, as a word also a duration.
type Seconds int

// Duration returns s as a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// decodeSeconds reads 90, 90s or 1m30s.
func decodeSeconds(ctx *kong.DecodeContext, target reflect.Value) error {
	var word string
	if err := ctx.Scan.PopValueInto("seconds", &word); err != nil {
		return err
	}
	if n, err := strconv.Atoi(word); err == nil {
		target.SetInt(int64(n))
		return nil
	}
	d, err := time.ParseDuration(word)
	target.SetInt(int64(d.Round(time.Second) / time.Second))
	return err
}

// Decode reads the next word into target.
func (v typedValue) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	given, names := ctx.Scan.Peek(), 0
	if target.Kind() == reflect.Map {
		names = target.Len()
	}
	err := v.mappers.ForValue(target).Decode(ctx, target)
	if err == nil && target.Kind() == reflect.Map && target.Len() == names {
		name, _, _ := strings.Cut(given.String(), "=")
		return InputError(fieldOf(ctx.Value.Name)+"."+name, lang.Text{EN: "is given twice", ZH: "重复给出"}, lang.Text{EN: "give it once", ZH: "请只给出一次"})
	}
	if err == nil {
		return checkChoice(ctx.Value, target)
	}
	name, example := ctx.Value.Name, ctx.Value.Tag.Get("ex")
	if f := ctx.Value.Flag; f != nil {
		name = "--" + name
		if target.Type() == reflect.TypeFor[Seconds]() {
			example = "10m"
		}
		if number := map[reflect.Kind]string{reflect.Int: "8", reflect.Float64: "2.5"}[target.Kind()]; example == "" {
			example = number
		}
		if example = flagExample(name, cmp.Or(example, f.PlaceHolder, strings.ToUpper(ctx.Value.Name))); f.IsBool() {
			example = name
		}
	}
	e := &Error{Code: BadInput, Field: fieldOf(ctx.Value.Name), Fix: forExample.With(cmp.Or(example, name))}
	text := given.String()
	switch {
	case given.IsEOL(), target.Kind() != reflect.String && strings.HasPrefix(text, "--"):
		e.Message = lang.Text{EN: "%s needs a value", ZH: "%s 需要一个值"}.With(name)
	case target.Kind() == reflect.String:
		e.Message = lang.Text{EN: "%s needs a value, and %q reads as a flag", ZH: "%s 需要一个值，而 %q 会被当作选项"}.With(name, text)
		e.Fix = lang.Same(name + "=" + shellword.POSIX(text))
	default:
		e.Message = lang.Text{EN: "%q is not %s", ZH: "%q 不是%s"}.With(text, kindWords(target.Type()))
	}
	return e
}

// flagExample returns a flag with an example value from the specification: the first element
// of a list, and NAME=value of a map.
func flagExample(name, example string) string {
	switch {
	case strings.HasPrefix(example, "["):
		example, _, _ = strings.Cut(strings.Trim(example, "[]"), ", ")
		example = strings.Trim(example, `"`)
	case strings.HasPrefix(example, "{"):
		example = strings.Replace(strings.Trim(example, "{}"), ": ", "=", 1)
	}
	if strings.Contains(example, " ") {
		example = shellword.POSIX(example)
	}
	if strings.HasPrefix(example, "-") {
		return name + "=" + example
	}
	return name + " " + example
}

// checkChoice refuses a value that is not among the choices of its flag.
func checkChoice(v *kong.Value, target reflect.Value) error {
	if v.Tag.Enum == "" {
		return nil
	}
	if target.Kind() == reflect.Slice {
		for i := range target.Len() {
			if err := checkChoice(v, target.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	choices := v.EnumSlice()
	if slices.Contains(choices, target.String()) {
		return nil
	}
	known := slices.DeleteFunc(choices, func(c string) bool { return c == "" })
	e := &Error{
		Code: BadInput, Field: fieldOf(v.Name), Message: lang.Text{EN: "%q is not among its choices", ZH: "%q 不在可选值之列"}.With(target),
		Fix: lang.Text{EN: "one of %s", ZH: "以下之一：%s"}.With(strings.Join(known, ", ")),
	}
	if verb := v.Tag.Get("verb"); verb != "" { // the choice that was probably left out before the word
		e.Fix = lang.Text{EN: "%s; for example: %s", ZH: "%s；例如：%s"}.With(e.Fix, verb+" "+shellword.POSIX(target.String()))
	}
	return e
}

// withDashesBefore returns words, quoted for a shell, with "--" in front of flag.
func withDashesBefore(words []string, flag string) string {
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

// megatronFlagFix returns how to give a flag that belongs to Megatron, also under a former
// name of the flag, and "" for a flag that Megatron does not have.
func megatronFlagFix(o Op, flag string, words []string) lang.Text {
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

// fieldOf returns the path in the specification that a flag fills.
func fieldOf(flag string) string {
	for _, nested := range []string{"container", "rdzv", "artifact", "retry"} {
		if rest, ok := strings.CutPrefix(flag, nested+"-"); ok {
			return nested + "." + strings.ReplaceAll(rest, "-", "_")
		}
	}
	return strings.ReplaceAll(flag, "-", "_")
}

// kindWords describes the values of a type in words.
func kindWords(t reflect.Type) lang.Text {
	switch {
	case t == reflect.TypeFor[Seconds]():
		return lang.Text{EN: "a number of seconds, nor a duration such as 10m", ZH: "秒数，也不是 10m 这样的时长"}
	case t == reflect.TypeFor[time.Duration]():
		return lang.Text{EN: "a duration", ZH: "时长"}
	case t.Kind() == reflect.Bool:
		return lang.Text{EN: "yes or no", ZH: " yes 或 no"}
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return lang.Text{EN: "a number of 0 or more", ZH: "大于等于 0 的数"}
	case t.Kind() == reflect.Float64:
		return lang.Text{EN: "a number", ZH: "数字"}
	case t.Kind() == reflect.Map:
		return lang.Text{EN: "NAME=value", ZH: " NAME=value"}
	}
	return lang.Text{EN: "a value for it", ZH: "可用的值"}
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
