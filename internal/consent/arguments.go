package consent

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// sizeText says how much one run of a specification takes, how many runs there may be, and what
// all of them may use; use is empty if that is not known.
func sizeText(s job.Spec, use policy.Use) lang.Text {
	var said, parts lang.Text
	for i, p := range s.Parts() {
		one := lang.Text{EN: "%s × %s", ZH: "%s × %s"}.With(ops.Counted(*p.Nodes, "node"), ops.Counted(*p.GPUsPerNode, "GPU"))
		if parts = (lang.Text{EN: "%s + %s", ZH: "%s + %s"}).With(parts, one); i == 0 {
			parts = one
		}
	}
	if len(s.Components) > 0 {
		parts = lang.Text{EN: "(%s)", ZH: "（%s）"}.With(parts)
	}
	limit, known := slurm.ParseDuration(s.Time)
	name, runs, limited := strconv.Quote(s.Name), repeats(s), false
	switch {
	case s.Time == "":
		said = lang.Text{EN: "%s: %s for as long as the partition allows", ZH: "%s：%s，时长为分区上限"}.With(name, parts)
	case !known || limit <= 0:
		said = lang.Text{EN: "%s: %s WITHOUT A TIME LIMIT", ZH: "%s：%s，没有时间限制"}.With(name, parts)
	default:
		said, limited = lang.Text{EN: "%s: %s × %s", ZH: "%s：%s × %s"}.With(name, parts, ops.Duration(int64(limit.Seconds()))), true
	}
	for _, r := range runs {
		said = lang.Text{EN: "%s, %s", ZH: "%s，%s"}.With(said, r)
	}
	total := ops.CountedHours(use.GPUHours, true)
	switch {
	case slices.ContainsFunc(use.Unknown, func(u policy.Unknown) bool { return u != policy.PartitionUnknown }):
		return lang.Text{EN: "%s%s", ZH: "%s%s"}.With(said, unknown(use))
	case !limited || math.IsInf(use.GPUHours, 0) || use.Hours == 0:
		return said
	case len(runs) == 0:
		return lang.Text{EN: "%s = %s", ZH: "%s = %s"}.With(said, total)
	}
	return lang.Text{EN: "%s: at most %s in all", ZH: "%s：合计最多 %s"}.With(said, total)
}

// repeats says what makes a specification take more than its nodes for its time once.
func repeats(s job.Spec) (all []lang.Text) {
	for _, r := range []struct {
		is   bool
		said lang.Text
	}{
		{slices.ContainsFunc(s.Parts(), func(p job.Spec) bool { return p.Exclusive != nil && *p.Exclusive }), lang.Text{EN: "whole nodes", ZH: "独占整个节点"}},
		{s.Array != "", lang.Text{EN: "for each task of the array %s", ZH: "作业数组 %s 的每个任务"}.With(printable(s.Array))},
		{s.Chain != nil, lang.Text{EN: "%s one after another", ZH: "%s依次运行"}.With(ops.Counted(*cmp.Or(s.Chain, new(int)), "job"))},
		{s.Retry.Limit() > 0, lang.Text{EN: "again after a failure (retry.max: %d)", ZH: "失败后再次运行（retry.max：%d）"}.With(s.Retry.Limit())},
		{s.Every != "", lang.Text{EN: "AGAIN WITHOUT END (%s)", ZH: "无限次重复（%s）"}.With(printable(s.Every))},
	} {
		if r.is {
			all = append(all, r.said)
		}
	}
	return all
}

// An argument is one value of a call: its field, what the field means, and the value in full.
type argument struct {
	field, value string
	means        lang.Text
}

// said shows an argument in words, and its field for whoever knows it. A field without a
// meaning, a flag or a variable, is its own name.
func (a argument) said() lang.Text {
	if a.means.EN == "" {
		a.means = lang.Text{EN: "%s: %s", ZH: "%s：%s"}
	}
	return a.means.With(a.field, lang.Same(a.value))
}

// arguments returns a call's arguments other than the specification, each in full, and with the
// old value if the job has one.
func arguments(in any, now *slurm.Job) (all []lang.Text) {
	old := map[string]string{}
	if now != nil {
		old = map[string]string{"nodes": strconv.Itoa(now.NumNodes), "partition": printable(now.Partition), "qos": printable(now.QOS), "time": "no limit"}
		if now.TimeLimitS != nil {
			old["time"] = ops.Duration(*now.TimeLimitS)
		}
	}
	_, update := in.(*jobcontrol.UpdateIn)
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		if _, spec := reflect.TypeAssert[launch.SpecIn](v.Field(i)); spec {
			continue
		}
		for _, a := range field("", v.Type().Field(i), v.Field(i)) {
			switch before, known := old[a.field]; {
			case a.field == "job" && now != nil || a.field == "idempotency_key" || a.field == "yes":
				continue
			case update && known:
				a.value = before + " → " + a.value
			}
			all = append(all, a.said())
		}
	}
	return all
}

// fields returns the fields of a struct that are set, each in full.
func fields(prefix string, v reflect.Value) (all []argument) {
	for i := range v.NumField() {
		all = append(all, field(prefix, v.Type().Field(i), v.Field(i))...)
	}
	return all
}

func field(prefix string, f reflect.StructField, v reflect.Value) []argument {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" || v.IsZero() {
		return nil
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		if name != "" {
			prefix += name + "."
		}
		return fields(prefix, v)
	}
	return []argument{{field: prefix + name, value: fullValue(v), means: meaning(f)}}
}

// meaning returns the form in which a field and its value are shown: with what the field means,
// by its help up to the first aside. It is empty if that is only a list of values.
func meaning(f reflect.StructField) lang.Text {
	short := func(help, asides string) string {
		if i := strings.IndexAny(help, asides); i >= 0 {
			help = help[:i]
		}
		return strings.ReplaceAll(help, "%", "%%")
	}
	en, zh := short(f.Tag.Get("help"), ",;:("), short(f.Tag.Get("zh"), "，；：（、")
	if zh == "" || !strings.Contains(en, " ") || strings.Contains(en, " or ") {
		return lang.Text{}
	}
	return lang.Text{EN: lang.Capital(en) + " (%s): %s", ZH: zh + "（%s）：%s"}
}

// specMeanings are the meanings of the specification's fields by path.
var specMeanings = sync.OnceValue(func() map[string]lang.Text {
	all := map[string]lang.Text{}
	var walk func(prefix string, t reflect.Type)
	walk = func(prefix string, t reflect.Type) {
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if all[prefix+name] = meaning(f); f.Type.Kind() == reflect.Struct {
				walk(prefix+name+".", f.Type)
			}
		}
	}
	walk("", reflect.TypeFor[job.Spec]())
	return all
})

// fullValue formats a value so that no part of it can hide: lists and maps as shell
// words, and unprintable characters as escapes.
func fullValue(v reflect.Value) string {
	var words []string
	switch value := v.Interface().(type) {
	case []string:
		for _, w := range value {
			words = append(words, shellWord(w))
		}
		return strings.Join(words, " ")
	case map[string]string:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			words = append(words, printable(name)+"="+shellWord(value[name]))
		}
		return strings.Join(words, " ")
	}
	if v.Kind() == reflect.String {
		return printable(v.String())
	}
	raw, _ := json.Marshal(v.Interface()) // a number, a boolean or a list of them
	return string(raw)
}

// shellWord returns w as a word for a shell, or with escapes if parts of it do not
// print.
func shellWord(w string) string {
	if e := printable(w); e != w {
		return e
	}
	return shellword.POSIX(w)
}

// printable returns s if all of it prints, else s with escapes.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// withBool returns a copy of in with that field set, or nil if in has no such field.
func withBool(in any, name string, value bool) any {
	c := reflect.New(reflect.TypeOf(in).Elem())
	c.Elem().Set(reflect.ValueOf(in).Elem())
	f := ops.FieldNamed(c.Interface(), name)
	if f.Kind() != reflect.Bool {
		return nil
	}
	f.SetBool(value)
	return c.Interface()
}

// IsSet reports whether in has a boolean field with that JSON name which is true.
func IsSet(in any, name string) bool {
	f := ops.FieldNamed(in, name)
	return f.Kind() == reflect.Bool && f.Bool()
}
