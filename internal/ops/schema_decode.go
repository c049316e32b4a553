package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Decode reads one JSON object into the struct that into points to, and accepts exactly
// the field names of its schema: encoding/json alone would accept "JOB" for "job" and
// the last of two equal keys, and would report "cannot unmarshal number into Go struct
// field" to somebody who never saw a struct. Decode reports all mistakes at once, each
// with the field's path. The names in own are arguments of the surface itself: strings
// that are not part of the struct, or, where the pointer is nil, fields of the struct
// that callers on this surface may not give.
func Decode(raw []byte, into any, own map[string]*string) error {
	if text := bytes.TrimSpace(raw); len(text) > 0 {
		if err := validJSON(text); err != nil {
			return err
		}
	}
	return DecodeValid(raw, into, own)
}

// DecodeValid is Decode for a text that is already known to be valid JSON.
func DecodeValid(raw []byte, into any, own map[string]*string) error {
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		raw = []byte("{}")
	}
	tree, err := parseTree(raw)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(into).Elem()
	d := decoder{own: own}
	top, ok := tree.(object)
	if !ok {
		return InputError("",
			lang.Text{EN: "arguments are %s, not an object", ZH: "参数是%s，而不是对象"}.With(kindOf(tree)),
			lang.Text{EN: "send an object such as {\"name\": \"value\"}", ZH: "请发送对象，例如 {\"name\": \"value\"}"})
	}
	tree = slices.DeleteFunc(top, func(m member) bool {
		p, mine := own[m.key]
		switch {
		case mine && p == nil:
			d.addError(m.key, noArgument, leaveOut)
		case mine:
			d.value(m.key, m.value, reflect.ValueOf(p).Elem())
		}
		return mine
	})
	d.value("", tree, v)
	if len(d.errs) == 0 {
		return nil
	}
	first := *d.errs[0]
	first.More = d.errs[1:]
	return &first
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

var (
	specType   = reflect.TypeFor[job.Spec]()
	stringType = reflect.TypeFor[string]()
)

type decoder struct {
	errs []*Error
	own  map[string]*string // the surface's arguments; see Decode
}

// mostErrors is how many errors one answer reports: who gives thousands of wrong words
// gave something else, and each takes time to compare with the right ones.
const mostErrors = 20

func (d *decoder) addError(path string, message, fix lang.Text) {
	if len(d.errs) >= mostErrors {
		return
	}
	d.errs = append(d.errs, InputError(path, message, fix))
}

func (d *decoder) addTypeError(path string, what lang.Text, example any, got any) {
	d.addError(path, lang.Text{EN: "is %s, not %s", ZH: "是%s，而不是%s"}.With(describeValue(got), what), lang.Text{EN: "give %s, such as %s", ZH: "请给出%s，例如 %s"}.With(what, example))
}

// The kinds of arguments, in words.
var (
	aString     = lang.Text{EN: "a string", ZH: "字符串"}
	aBoolean    = lang.Text{EN: "a boolean", ZH: "布尔值"}
	aNumber     = lang.Text{EN: "a number", ZH: "数字"}
	wholeNumber = lang.Text{EN: "a whole number", ZH: "整数"}
	fromZeroOn  = lang.Text{EN: "a whole number from 0 on", ZH: "大于等于 0 的整数"}
	aList       = lang.Text{EN: "a list", ZH: "列表"}
	anObject    = lang.Text{EN: "an object", ZH: "对象"}
)

var (
	noArgument = lang.Text{EN: "is not an argument here", ZH: "不是这里的参数"}
	leaveOut   = lang.Text{EN: "leave it out", ZH: "请去掉"}
)

func (d *decoder) value(path string, in any, v reflect.Value) {
	t := v.Type()
	if in == nil {
		return // null means "not given"
	}
	if t.Kind() == reflect.Pointer {
		v.Set(reflect.New(t.Elem()))
		d.value(path, in, v.Elem())
		return
	}
	if t == specType {
		d.spec(in, v)
		return
	}
	if t.Kind() != reflect.Struct || t == timeType {
		pt := reflect.PointerTo(t)
		if pt.Implements(unmarshaler) || pt.Implements(textUnmarshal) || t == rawMessageType {
			if err := json.Unmarshal(encodeTree(in), v.Addr().Interface()); err != nil {
				d.addError(path, lang.Said(err), lang.Text{EN: "see the schema of this argument", ZH: "请查看该参数的 schema"})
			}
			return
		}
	}
	switch t.Kind() {
	case reflect.String:
		switch s := in.(type) {
		case string:
			v.SetString(s)
		case json.Number: // clients and models write a job's id as a number
			v.SetString(s.String())
		default:
			d.addTypeError(path, aString, inQuotes(in), in)
		}
	case reflect.Bool:
		b, ok := in.(bool)
		if word, isWord := in.(string); isWord && (word == "true" || word == "false") {
			b, ok = word == "true", true
		}
		if !ok {
			d.addTypeError(path, aBoolean, "true", in)
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := parseWhole(in)
		if !ok || v.OverflowInt(n) {
			d.addTypeError(path, wholeNumber, "8", in)
			return
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, ok := parseWhole(in)
		if !ok || n < 0 || v.OverflowUint(uint64(n)) {
			d.addTypeError(path, fromZeroOn, "8", in)
			return
		}
		v.SetUint(uint64(n))
	case reflect.Float32, reflect.Float64:
		n, ok := in.(json.Number)
		f, err := n.Float64()
		if !ok || err != nil {
			d.addTypeError(path, aNumber, "1.5", in)
			return
		}
		v.SetFloat(f)
	case reflect.Slice:
		list, ok := in.([]any)
		if word, one := in.(string); one && t.Elem().Kind() == reflect.String && word != "" && !strings.ContainsAny(word, " \t\n") {
			list, ok = []any{word}, true // a single word stands for a list of one
		}
		if !ok {
			d.addTypeError(path, aList, `["a", "b"]`, in)
			return
		}
		out := reflect.MakeSlice(t, len(list), len(list))
		words := t.Elem() == stringType
		for i, e := range list {
			if word, ok := e.(string); words && ok { // fast path for a job's arguments, which are many and never wrong
				out.Index(i).SetString(word)
				continue
			}
			d.value(fmt.Sprintf("%s[%d]", path, i), e, out.Index(i))
		}
		v.Set(out)
	case reflect.Map:
		o, ok := in.(object)
		if !ok {
			d.addTypeError(path, anObject, `{"NAME": "value"}`, in)
			return
		}
		out := reflect.MakeMapWithSize(t, len(o))
		for _, m := range o {
			e := reflect.New(t.Elem()).Elem()
			d.value(join(path, m.key), m.value, e)
			out.SetMapIndex(reflect.ValueOf(m.key).Convert(t.Key()), e)
		}
		v.Set(out)
	case reflect.Struct:
		d.structure(path, in, v)
	default:
		if t.Kind() == reflect.Interface {
			v.Set(reflect.ValueOf(plain(in)))
			return
		}
		d.addError(path, lang.Text{EN: "cannot be given here", ZH: "不能在这里给出"}, leaveOut)
	}
}

// spec reads a job specification the way a file is read, so that an agent may write
// what a person may write: 4 for "4" among the arguments, one word for a list of one.
// Errors name the fields by their paths in the specification.
func (d *decoder) spec(in any, v reflect.Value) {
	// The usual specification decodes directly. Otherwise job.Decode reads it, and
	// reports what is wrong in the specification's own terms.
	text, quoted := in.(string)
	if _, ok := in.(object); !ok && !(quoted && strings.HasPrefix(strings.TrimSpace(text), "{")) {
		d.addTypeError("spec", anObject, lang.Text{
			EN: `{"nodes": 2, "args": ["--bf16"]}; text of a YAML file goes into yaml`,
			ZH: `{"nodes": 2, "args": ["--bf16"]}；YAML 文件的文本请放入 yaml`,
		}, in)
		return
	}
	var plain decoder
	if !quoted {
		if plain.structure("", in, v); len(plain.errs) == 0 {
			return
		}
		v.SetZero()
		text = string(encodeTree(in))
	}
	s, err := job.Decode([]byte(text))
	if err != nil {
		e := AsError(FieldErrors(err))
		d.errs = append(append(d.errs, e), e.More...)
		e.More = nil
		return
	}
	v.Set(reflect.ValueOf(s))
}

func (d *decoder) structure(path string, in any, v reflect.Value) {
	o, ok := in.(object)
	if !ok {
		d.addTypeError(path, anObject, `{"name": "value"}`, in)
		return
	}
	fs := cachedFields(v.Type())
	for _, m := range o {
		f := fs.byName[m.key]
		if f == nil {
			if len(d.errs) >= mostErrors {
				break
			}
			d.addError(join(path, m.key), noArgument, d.unknownFix(m.key, fs, path == ""))
			continue
		}
		before := len(d.errs)
		target := v.FieldByIndex(f.index)
		d.value(join(path, m.key), m.value, target)
		if len(d.errs) == before {
			d.checkEnum(join(path, m.key), f, target)
		} else if e := d.errs[before]; e.Field == join(path, m.key) && f.help.EN != "" && !strings.Contains(e.Fix.EN, f.help.EN) {
			e.Fix = lang.Text{EN: "%s (%s)", ZH: "%s（%s）"}.With(e.Fix, f.help)
		}
	}
	for _, f := range fs.whenAbsent {
		if i := slices.IndexFunc(o, func(m member) bool { return m.key == f.name && m.value != nil }); i >= 0 {
			if list, ok := o[i].value.([]any); ok && f.required && len(list) == 0 {
				d.addError(join(path, f.name), lang.Text{EN: "is empty", ZH: "为空"}, lang.Text{EN: "give %s%s", ZH: "请给出 %s%s"}.With(f.name, hint(f)))
			}
			continue
		}
		if f.required {
			d.addError(join(path, f.name), lang.Text{EN: "is missing", ZH: "缺失"}, lang.Text{EN: "give %s%s", ZH: "请给出 %s%s"}.With(f.name, hint(f)))
			continue
		}
		setDefault(v.FieldByIndex(f.index), f.def)
	}
}

// checkEnum reports a value that is not among the words that its tag allows.
func (d *decoder) checkEnum(path string, f *field, v reflect.Value) {
	if len(f.enum) == 0 {
		return
	}
	one := func(path string, v reflect.Value) {
		if v.Kind() == reflect.String && v.String() != "" && !slices.Contains(f.enum, v.String()) {
			d.addError(path, lang.Text{EN: "is %q, which is not one of the words known here", ZH: "是 %q，不在可选值之列"}.With(v.String()),
				lang.Text{EN: "use one of %s", ZH: "请使用其中之一：%s"}.With(strings.Join(f.enum, ", ")))
		}
	}
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			one(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
		return
	}
	one(path, v)
}

func hint(f *field) lang.Text {
	if f.help.EN == "" {
		return lang.Text{}
	}
	return lang.Text{EN: ": %s", ZH: "：%s"}.With(f.help)
}

// setDefault fills a field from its tag, as the shell's flags do.
func setDefault(v reflect.Value, word string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(word)
	case reflect.Bool:
		v.SetBool(word == "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			v.SetInt(n)
		} else if p := v.Addr(); p.Type().Implements(textUnmarshal) || p.Type().Implements(unmarshaler) {
			_ = json.Unmarshal([]byte(strconv.Quote(word)), p.Interface())
		}
	case reflect.Float32, reflect.Float64:
		if f, err := strconv.ParseFloat(word, 64); err == nil {
			v.SetFloat(f)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			for w := range strings.SplitSeq(word, ",") {
				v.Set(reflect.Append(v, reflect.ValueOf(w).Convert(v.Type().Elem())))
			}
		}
	}
}

var fieldCache sync.Map // reflect.Type → *structFields

// structFields is a struct's fields, prepared for decoding.
type structFields struct {
	list   []field
	byName map[string]*field
	// whenAbsent holds the fields that matter when the input does not give them:
	// required fields and fields with a default.
	whenAbsent []*field
}

func cachedFields(t reflect.Type) *structFields {
	if fs, ok := fieldCache.Load(t); ok {
		return fs.(*structFields)
	}
	fs := &structFields{list: fieldsOf(t), byName: map[string]*field{}}
	for i := range fs.list {
		f := &fs.list[i]
		if _, hidden := fs.byName[f.name]; !hidden {
			fs.byName[f.name] = f
		}
		if f.required || f.def != "" {
			fs.whenAbsent = append(fs.whenAbsent, f)
		}
	}
	fieldCache.Store(t, fs)
	return fs
}

// unknownFix suggests the argument that was probably meant, or lists all of them. At
// the top level the list includes the surface's own arguments, and a field of a
// specification that was given outside of spec is pointed to its place.
func (d *decoder) unknownFix(word string, fs *structFields, top bool) lang.Text {
	var names []string
	for _, f := range fs.list {
		if p, own := d.own[f.name]; !top || !own || p != nil {
			names = append(names, f.name)
		}
	}
	if top {
		for _, name := range slices.Sorted(maps.Keys(d.own)) {
			if d.own[name] != nil && fs.byName[name] == nil {
				names = append(names, name)
			}
		}
	}
	plain := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	if spec := fs.byName["spec"]; spec != nil && spec.typ == specType && cachedFields(specType).byName[plain] != nil {
		return lang.Text{EN: "put it into spec: %s", ZH: "请放入 spec：%s"}.With(`{"spec": {"` + plain + `": …}}`)
	}
	if best := near.Word(plain, names, 3); best != "" {
		return DidYouMean.With(best)
	}
	part := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return len(n) < 3 || !strings.HasPrefix(plain, n) && !strings.HasPrefix(n, plain) && !strings.HasSuffix(plain, "_"+n)
	})
	switch {
	case len(part) == 1:
		return DidYouMean.With(part[0])
	case len(names) == 0:
		return lang.Text{EN: "this operation takes no arguments", ZH: "该操作不接受参数"}
	case len(names) > 16:
		names = append(names[:16:16], "…")
	}
	return lang.Text{EN: "known here: %s", ZH: "这里可用的参数：%s"}.With(strings.Join(names, ", "))
}

// parseWhole reads a number without a fraction; 8.0 is 8, and so is "8".
func parseWhole(in any) (int64, bool) {
	if word, isWord := in.(string); isWord {
		n, err := strconv.ParseInt(word, 10, 64)
		return n, err == nil
	}
	n, ok := in.(json.Number)
	if !ok {
		return 0, false
	}
	if i, err := n.Int64(); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func kindOf(in any) lang.Text {
	switch in.(type) {
	case string:
		return aString
	case json.Number:
		return aNumber
	case bool:
		return aBoolean
	case []any:
		return aList
	case object:
		return anObject
	}
	return lang.Text{EN: "null", ZH: " null"}
}

// describeValue describes a wrong value: scalars as they are, everything else by its kind.
func describeValue(in any) lang.Text {
	switch v := in.(type) {
	case string:
		if len(v) > 40 {
			v = v[:40] + "…"
		}
		return lang.Text{EN: "the string %q", ZH: "字符串 %q"}.With(v)
	case json.Number:
		return lang.Text{EN: "the number %s", ZH: "数字 %s"}.With(v.String())
	case bool:
		return lang.Text{EN: "%t", ZH: " %t"}.With(v)
	}
	return kindOf(in)
}

// inQuotes returns an example of a string: a boolean in quotes, "text" for anything
// else.
func inQuotes(in any) string {
	if b, ok := in.(bool); ok {
		return strconv.Quote(strconv.FormatBool(b))
	}
	return `"text"`
}
