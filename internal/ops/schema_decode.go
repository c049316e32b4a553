package ops

import (
	"bytes"
	"cmp"
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

// Decode reads one JSON object into the struct that into points to, by the
// field names of its schema and by nothing looser: encoding/json alone would
// take "JOB" for "job", the last of two equal keys, and would say "cannot
// unmarshal number into Go struct field" to somebody who never saw a struct.
// Every mistake is told at once, each with the field's path. The names in own
// are arguments of the surface itself: strings that are not part of the struct,
// or, where nil, fields of the struct that this surface's callers may not give.
func Decode(raw []byte, into any, own map[string]*string) error {
	if text := bytes.TrimSpace(raw); len(text) > 0 {
		if err := validJSON(text); err != nil {
			return err
		}
	}
	return DecodeValid(raw, into, own)
}

// DecodeValid is Decode for a text that somebody has read as JSON before.
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
		return InputError("", `send an object such as {"name": "value"}`, "arguments are %s, not an object", kindOf(tree))
	}
	tree = slices.DeleteFunc(top, func(m member) bool {
		p, mine := own[m.key]
		switch {
		case mine && p == nil:
			d.bad(m.key, "leave it out", "is not an argument here")
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
	own  map[string]*string // the surface's arguments, see Decode
}

func (d *decoder) bad(path, fix, format string, args ...any) {
	d.errs = append(d.errs, InputError(path, fix, format, args...))
}

func (d *decoder) want(path, what, example string, got any) {
	d.bad(path, "give "+what+", such as "+example, "is %s, not %s", show(got), what)
}

func (d *decoder) value(path string, in any, v reflect.Value) {
	t := v.Type()
	if in == nil {
		return // null is the same as not given
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
				d.bad(path, "see the schema of this argument", "%v", err)
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
			d.want(path, "a string", quoted(in), in)
		}
	case reflect.Bool:
		b, ok := in.(bool)
		if word, isWord := in.(string); isWord && (word == "true" || word == "false") {
			b, ok = word == "true", true
		}
		if !ok {
			d.want(path, "a boolean", "true", in)
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := whole(in)
		if !ok || v.OverflowInt(n) {
			d.want(path, "a whole number", "8", in)
			return
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, ok := whole(in)
		if !ok || n < 0 || v.OverflowUint(uint64(n)) {
			d.want(path, "a whole number from 0 on", "8", in)
			return
		}
		v.SetUint(uint64(n))
	case reflect.Float32, reflect.Float64:
		n, ok := in.(json.Number)
		f, err := n.Float64()
		if !ok || err != nil {
			d.want(path, "a number", "1.5", in)
			return
		}
		v.SetFloat(f)
	case reflect.Slice:
		list, ok := in.([]any)
		if word, one := in.(string); one && t.Elem().Kind() == reflect.String && word != "" && !strings.ContainsAny(word, " \t\n") {
			list, ok = []any{word}, true // one word for a list of one
		}
		if !ok {
			d.want(path, "a list", `["a", "b"]`, in)
			return
		}
		out := reflect.MakeSlice(t, len(list), len(list))
		words := t.Elem() == stringType
		for i, e := range list {
			if word, ok := e.(string); words && ok { // a job's arguments: many, and never wrong
				out.Index(i).SetString(word)
				continue
			}
			d.value(fmt.Sprintf("%s[%d]", path, i), e, out.Index(i))
		}
		v.Set(out)
	case reflect.Map:
		o, ok := in.(object)
		if !ok {
			d.want(path, "an object", `{"NAME": "value"}`, in)
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
		d.bad(path, "leave it out", "cannot be given here")
	}
}

// spec reads a job specification as a file of it is read, so that an agent may
// write what a person may: 4 for "4" among the arguments, one word for a list
// of one. Its fields are named by the specification's own paths.
func (d *decoder) spec(in any, v reflect.Value) {
	// The usual case fits as it stands; the rest is read, or refused, in the
	// specification's own words.
	text, quoted := in.(string)
	if _, ok := in.(object); !ok && !(quoted && strings.HasPrefix(strings.TrimSpace(text), "{")) {
		d.want("spec", "an object", `{"nodes": 2, "args": ["--bf16"]}; text of a YAML file goes into yaml`, in)
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
		d.want(path, "an object", `{"name": "value"}`, in)
		return
	}
	fs := cachedFields(v.Type())
	for _, m := range o {
		f := fs.byName[m.key]
		if f == nil {
			d.bad(join(path, m.key), d.unknownFix(m.key, fs, path == ""), "is not an argument here")
			continue
		}
		before := len(d.errs)
		target := v.FieldByIndex(f.index)
		d.value(join(path, m.key), m.value, target)
		if len(d.errs) == before {
			d.check(join(path, m.key), f, target)
		} else if e := d.errs[before]; e.Field == join(path, m.key) && f.help.EN != "" && !strings.Contains(e.Fix, f.help.EN) {
			e.zh.fix = cmp.Or(e.zh.fix, Say(e.Fix, lang.ZH)) + "（" + f.help.In(lang.ZH) + "）"
			e.Fix += " (" + f.help.EN + ")"
		}
	}
	for _, f := range fs.unasked {
		if slices.ContainsFunc(o, func(m member) bool { return m.key == f.name && m.value != nil }) {
			continue
		}
		if f.required {
			d.bad(join(path, f.name), "give "+f.name+hint(f, lang.EN), "is missing")
			d.errs[len(d.errs)-1].zh.fix = "请给出 " + f.name + hint(f, lang.ZH)
			continue
		}
		setDefault(v.FieldByIndex(f.index), f.def)
	}
}

// check holds a value against the words that its tag allows.
func (d *decoder) check(path string, f *field, v reflect.Value) {
	if len(f.enum) == 0 {
		return
	}
	one := func(path string, v reflect.Value) {
		if v.Kind() == reflect.String && v.String() != "" && !slices.Contains(f.enum, v.String()) {
			d.bad(path, "use one of "+strings.Join(f.enum, ", "), "is %q, which is not one of the words known here", v.String())
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

func hint(f *field, l lang.Lang) string {
	if f.help.EN == "" {
		return ""
	}
	return lang.Text{EN: ": ", ZH: "："}.In(l) + f.help.In(l)
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

// structFields is a struct's fields as decoding wants them.
type structFields struct {
	list   []field
	byName map[string]*field
	// unasked are those that matter where they are not given: they are required,
	// or have a default.
	unasked []*field
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
			fs.unasked = append(fs.unasked, f)
		}
	}
	fieldCache.Store(t, fs)
	return fs
}

// unknownFix names the argument that was probably meant, or all of them. At the
// top there are also those of the surface, and fields of a specification that
// were not put into it.
func (d *decoder) unknownFix(word string, fs *structFields, top bool) string {
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
	if best := near.Word(plain, names, 3); best != "" {
		return "did you mean " + best + "?"
	}
	if spec := fs.byName["spec"]; spec != nil && spec.typ == specType && cachedFields(specType).byName[plain] != nil {
		return "put it into spec: {\"spec\": {\"" + plain + "\": …}}"
	}
	part := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return len(n) < 3 || !strings.HasPrefix(plain, n) && !strings.HasPrefix(n, plain) && !strings.HasSuffix(plain, "_"+n)
	})
	switch {
	case len(part) == 1:
		return "did you mean " + part[0] + "?"
	case len(names) == 0:
		return "this operation takes no arguments"
	case len(names) > 16:
		return "known here: " + strings.Join(names[:16], ", ") + ", …"
	}
	return "known here: " + strings.Join(names, ", ")
}

// whole reads a number that has no fraction; 8.0 is 8, and so is "8".
func whole(in any) (int64, bool) {
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

func kindOf(in any) string {
	switch in.(type) {
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case object:
		return "an object"
	}
	return "null"
}

// show is a short form of a wrong value: scalars as they are, the rest by kind.
func show(in any) string {
	switch v := in.(type) {
	case string:
		if len(v) > 40 {
			v = v[:40] + "…"
		}
		return "the string " + strconv.Quote(v)
	case json.Number:
		return "the number " + v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return kindOf(in)
}

// quoted is a scalar written as the string that was wanted.
func quoted(in any) string {
	if b, ok := in.(bool); ok {
		return strconv.Quote(strconv.FormatBool(b))
	}
	return `"text"`
}
