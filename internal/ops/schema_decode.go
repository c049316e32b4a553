package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/tree"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Decode reads one JSON object into the struct that into points to, and accepts exactly
// the field names of its schema: encoding/json alone would accept "JOB" for "job" and
// the last of two equal keys, and would report "cannot unmarshal number into Go struct
// field" to somebody who never saw a struct. Decode reports all mistakes at once, each
// with the field's path. The names in own are arguments of the surface itself: strings
// that are not part of the struct, or, where the pointer is nil, fields of the struct
// that callers on this surface may not give.
func Decode(raw []byte, into any, own map[string]*string) error { return decode(raw, into, own, false) }

// Decode is Decode for an input of o. An operation that changes something takes no empty text for an
// argument that may be left out: it would count as left out, and the change go further than was said.
func (o Op) Decode(raw []byte, into any, own map[string]*string) error {
	return decode(raw, into, own, o.Effect != Read)
}

func decode(raw []byte, into any, own map[string]*string, nonempty bool) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("null")
	}
	if err := validJSON(raw); err != nil {
		return err
	}
	r := treeReader{json.NewDecoder(bytes.NewReader(raw))}
	r.UseNumber()
	root, err := r.node("", 0)
	if err != nil {
		return err
	}
	if root.Kind != tree.Map && root.Kind != tree.Null {
		return InputError("",
			lang.Text{EN: "arguments are %s, not an object", ZH: "参数是%s，而不是对象"}.With(describeValue(root)),
			lang.Text{EN: "send an object such as {\"name\": \"value\"}", ZH: "请发送对象，例如 {\"name\": \"value\"}"})
	}
	d := decoder{own: own, nonempty: nonempty}
	d.Decoder = tree.Decoder{Wrong: d.wrong, Unknown: d.unknown, After: d.after, Lenient: true, Typed: true}
	d.Types = map[reflect.Type]func(string, tree.Node, reflect.Value, reflect.StructTag){specType: d.spec}
	top := tree.Node{Kind: tree.Map}
	for i, key := range root.Keys {
		switch p, mine := own[key]; {
		case !mine:
			top.Keys, top.List = append(top.Keys, key), append(top.List, root.List[i])
		case p == nil:
			d.addError(key, noArgument, leaveOut)
		case root.List[i].Kind != tree.Null:
			d.Read(key, root.List[i], reflect.ValueOf(p).Elem(), "")
		}
	}
	d.Read("", top, reflect.ValueOf(into).Elem(), "")
	if len(d.errs) == 0 {
		return nil
	}
	if d.left > 0 {
		d.errs = append(d.errs, InputError("", lang.Text{EN: "errors not listed here: %d", ZH: "另有 %d 处错误未列出"}.With(d.left), lang.Text{}))
	}
	first := *d.errs[0]
	first.More = d.errs[1:]
	return &first
}

var specType = reflect.TypeFor[job.Spec]()

type decoder struct {
	tree.Decoder
	errs     []*Error
	left     int                // errors beyond mostErrors
	own      map[string]*string // the surface's arguments; see Decode
	nonempty bool               // an empty text is an error
}

// mostErrors is how many errors one answer reports: who gives thousands of wrong words
// gave something else, and each takes time to compare with the right ones.
const mostErrors = 20

func (d *decoder) addError(path string, message, fix lang.Text) {
	if len(d.errs) >= mostErrors {
		d.left++
		return
	}
	d.errs = append(d.errs, InputError(path, message, fix))
}

// forms says what an argument of each kind is, and gives an example.
var forms = map[reflect.Kind]struct {
	what    lang.Text
	example string
}{
	reflect.String:  {lang.Text{EN: "a string", ZH: "字符串"}, `"text"`},
	reflect.Bool:    {lang.Text{EN: "a boolean", ZH: "布尔值"}, "true"},
	reflect.Int:     {lang.Text{EN: "a whole number", ZH: "整数"}, "8"},
	reflect.Float64: {lang.Text{EN: "a number", ZH: "数字"}, "1.5"},
	reflect.Slice:   {lang.Text{EN: "a list", ZH: "列表"}, `["a", "b"]`},
	reflect.Struct:  {lang.Text{EN: "an object", ZH: "对象"}, `{"name": "value"}`},
}

func (d *decoder) wrong(path string, n tree.Node, t reflect.Type, tag reflect.StructTag) {
	form := forms[t.Kind()]
	if t.Kind() == reflect.String && n.Kind == tree.Bool {
		form.example = strconv.Quote(n.Text)
	}
	d.addTypeError(path, n, form.what, form.example, helpOf(tag))
}

func (d *decoder) addTypeError(path string, n tree.Node, what lang.Text, example any, help lang.Text) {
	fix := lang.Text{EN: "give %s, such as %s", ZH: "请给出%s，例如 %s"}.With(what, example)
	if help.EN != "" {
		fix = lang.Text{EN: "%s (%s)", ZH: "%s（%s）"}.With(fix, help)
	}
	d.addError(path, lang.Text{EN: "is %s, not %s", ZH: "是%s，而不是%s"}.With(describeValue(n), what), fix)
}

var (
	noArgument = lang.Text{EN: "is not an argument here", ZH: "不是这里的参数"}
	leaveOut   = lang.Text{EN: "leave it out", ZH: "请去掉"}
)

// spec reads a job specification the way a file is read, so that an agent may write
// what a person may write: 4 for "4" among the arguments, one word for a list of one.
// Errors name the fields by their paths in the specification.
func (d *decoder) spec(_ string, n tree.Node, v reflect.Value, tag reflect.StructTag) {
	quoted := n.Kind == tree.Text && strings.HasPrefix(strings.TrimSpace(n.Text), "{")
	if n.Kind != tree.Map && !quoted {
		d.addTypeError("spec", n, forms[reflect.Struct].what, lang.Text{
			EN: `{"nodes": 2, "args": ["--bf16"]}; text of a YAML file goes into yaml`,
			ZH: `{"nodes": 2, "args": ["--bf16"]}；YAML 文件的文本请放入 yaml`,
		}, helpOf(tag))
		return
	}
	s, err := job.FromTree(n)
	if quoted {
		s, err = job.Decode([]byte(n.Text))
	}
	if err != nil {
		e := AsError(FieldErrors(err))
		d.errs = append(append(d.errs, e), e.More...)
		e.More = nil
		return
	}
	v.Set(reflect.ValueOf(s))
}

// unknown reports a name that is no argument.
func (d *decoder) unknown(path, key string, _ tree.Node, t reflect.Type) {
	fix := lang.Text{}
	if len(d.errs) < mostErrors {
		fix = d.unknownFix(key, fieldsOf(t), path == key)
	}
	d.addError(path, noArgument, fix)
}

// after checks what a struct's tags require of the values in n, and fills in defaults.
func (d *decoder) after(path string, n tree.Node, v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		at, given, target := tree.Join(path, f.name), n.Key(f.name), v.FieldByIndex(f.index)
		switch {
		case given.Kind == tree.Null && f.required:
			d.addError(at, lang.Text{EN: "is missing", ZH: "缺失"}, lang.Text{EN: "give %s%s", ZH: "请给出 %s%s"}.With(f.name, hint(f)))
		case given.Kind == tree.Null && f.def != "":
			d.Read(at, tree.Node{Kind: tree.Text, Text: f.def}, target, `scalar:""`)
		case given.Kind == tree.List && f.required && len(given.List) == 0:
			d.addError(at, lang.Text{EN: "is empty", ZH: "为空"}, lang.Text{EN: "give %s%s", ZH: "请给出 %s%s"}.With(f.name, hint(f)))
		case d.nonempty && given.Kind == tree.Text && given.Text == "":
			d.addError(at, lang.Text{EN: "is empty", ZH: "为空"}, lang.Text{EN: "leave %s out, or give it a value%s", ZH: "请省略 %s，或给出值%s"}.With(f.name, hint(f)))
		default:
			d.checkEnum(at, f, target)
		}
	}
}

// checkEnum reports a value that is not among the words that its tag allows.
func (d *decoder) checkEnum(path string, f field, v reflect.Value) {
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

func hint(f field) lang.Text {
	if f.help.EN == "" {
		return lang.Text{}
	}
	return lang.Text{EN: ": %s", ZH: "：%s"}.With(f.help)
}

// unknownFix suggests the argument that was probably meant, or lists all of them. At
// the top level the list includes the surface's own arguments, and a field of a
// specification that was given outside of spec is pointed to its place.
func (d *decoder) unknownFix(word string, fs []field, top bool) lang.Text {
	var names []string
	for _, f := range fs {
		if p, own := d.own[f.name]; !top || !own || p != nil {
			names = append(names, f.name)
		}
	}
	if top {
		for _, name := range slices.Sorted(maps.Keys(d.own)) {
			if d.own[name] != nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	plain := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	inSpec := func(f field) bool {
		return f.typ == specType && slices.ContainsFunc(fieldsOf(specType), func(f field) bool { return f.name == plain })
	}
	if slices.ContainsFunc(fs, inSpec) {
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

// describeValue describes a wrong value: scalars as they are, everything else by its kind.
func describeValue(n tree.Node) lang.Text {
	switch n.Kind {
	case tree.Text:
		if len(n.Text) > 40 {
			n.Text = strings.ToValidUTF8(n.Text[:40], "") + "…"
		}
		return lang.Text{EN: "the string %q", ZH: "字符串 %q"}.With(n.Text)
	case tree.Int, tree.Real:
		return lang.Text{EN: "the number %s", ZH: "数字 %s"}.With(n.Text)
	case tree.List:
		return forms[reflect.Slice].what
	case tree.Map:
		return forms[reflect.Struct].what
	case tree.Bool:
		return lang.Text{EN: "%s", ZH: " %s"}.With(n.Text)
	}
	return lang.Text{EN: "null", ZH: " null"}
}
