package job

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/tree"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// Decode reads a specification from YAML or JSON. It rejects unknown keys, duplicate
// keys and values of the wrong type, and reports all such faults at once: the error
// is a *FieldError or FieldErrors. Validate checks the values themselves.
func Decode(data []byte) (Spec, error) {
	var s Spec
	root, err := parse(data)
	if err == nil {
		s, err = read(root, false)
	}
	if severalLines(data) {
		return s, err
	}
	return s, withoutLines(err)
}

// FromTree is Decode for a program's JSON, which may quote numbers and give one word for a
// list of one.
func FromTree(root tree.Node) (Spec, error) {
	s, err := read(root, true)
	return s, withoutLines(err)
}

func withoutLines(err error) error {
	for _, e := range AsFieldErrors(err) {
		e.Line = 0
	}
	return err
}

func read(root tree.Node, lenient bool) (Spec, error) {
	if root.Kind != tree.Map {
		return Spec{}, notSpec(faults[root.Kind], phrase("write name: value lines", "请写成 name: value 形式的行"))
	}
	var s Spec
	var d decoder
	if d.read("", root, &s, lenient); len(d.errs) > 0 {
		d.alsoWrong(root, s)
	}
	if d.left > 0 {
		d.errs = append(d.errs, notSpec(phrase("errors not listed here: %d", "另有 %d 处错误未列出", d.left), lang.Text{}))
	}
	switch len(d.errs) {
	case 0:
		return s, nil
	case 1:
		return Spec{}, d.errs[0]
	}
	return Spec{}, d.errs
}

// severalLines reports whether data has more than one line. Line numbers in errors
// are useful only then.
func severalLines(data []byte) bool { return bytes.Contains(bytes.TrimSpace(data), []byte("\n")) }

// Locate sets, in each field error inside err, the file and the line of its text
// that set the field. It returns err.
func Locate(err error, file string, text []byte) error {
	found := AsFieldErrors(err)
	root, perr := tree.Node{}, error(nil)
	if severalLines(text) {
		root, perr = parse(text)
	}
	for _, e := range found {
		if e.Line == 0 && perr == nil {
			e.Line = lineOfField(root, e.Field, e.Value)
		}
		if e.Line > 0 || e.Field == "spec" {
			e.File = file
		}
	}
	return err
}

// lineOfField returns the line of the field at path, or 0 if the text does not set that
// field, or sets it to another value, which a flag has replaced. For a list it returns
// the line of the element equal to value, if there is one.
func lineOfField(n tree.Node, path, value string) int {
	for path != "" {
		key, rest, _ := strings.Cut(path, ".")
		n, path = n.Key(key), rest
	}
	if n.Kind == tree.List {
		for _, e := range n.List {
			if e.Text == value {
				return e.Line
			}
		}
	} else if n.Kind != tree.Map && !strings.Contains(n.Text, value) {
		return 0
	}
	return n.Line
}

type decoder struct {
	errs FieldErrors
	left int // errors beyond mostErrors
}

// mostErrors is how many errors of one text are reported: a text with more is hardly a
// specification, and each name that is wrong takes time to compare with the right ones.
const mostErrors = 20

func (d *decoder) fail(path string, n tree.Node, msg, fix lang.Text) {
	if len(d.errs) >= mostErrors {
		d.left++
		return
	}
	d.errs = append(d.errs, &FieldError{Field: path, Value: n.Text, Line: n.Line, Msg: msg, Fix: fix})
}

// alsoWrong adds the faults of values that were read, so that one form does not hide the
// other. The faults of what the text does not say wait until it can be read.
func (d *decoder) alsoWrong(root tree.Node, s Spec) {
	failed := slices.Clone(d.errs)
	for _, e := range s.Validate() {
		e.Line = lineOfField(root, e.Field, e.Value)
		switch {
		case e.Line == 0 || slices.ContainsFunc(failed, func(f *FieldError) bool { return f.Field == e.Field }):
		case len(d.errs) >= mostErrors:
			d.left++
		default:
			d.errs = append(d.errs, e)
		}
	}
}

func (d *decoder) read(path string, n tree.Node, into *Spec, lenient bool) {
	(&tree.Decoder{Wrong: d.wrong, Unknown: d.unknown, Lenient: lenient}).Read(path, n, reflect.ValueOf(into).Elem(), "")
}

// faults says of a value of the wrong kind what it is.
var faults = map[tree.Kind]lang.Text{
	tree.Null: phrase("is nothing", "没有值"), tree.Text: phrase("is text", "是文本"), tree.Int: phrase("is a number", "是数字"),
	tree.Real: phrase("is a decimal number", "是小数"), tree.Bool: phrase("is true or false", "是 true 或 false"),
	tree.List: phrase("is a list", "是列表"), tree.Map: phrase("is a map", "是映射"),
}

func (d *decoder) wrong(path string, n tree.Node, t reflect.Type, _ reflect.StructTag) {
	msg, fix := faults[n.Kind], phrase("write one value, in quotes where needed", "请写一个值，必要时加引号")
	switch t.Kind() {
	case reflect.Struct:
		fix = phrase("write a map of %s", "请写成映射，键为 %s", strings.Join(namesOf(t), ", "))
	case reflect.Map:
		fix = phrase("write a map of NAME: value", "请写成 NAME: value 的映射")
	case reflect.Slice:
		fix = phrase("write a list, one element each", "请写成列表，每项一个元素")
	case reflect.Bool:
		fix = phrase("write true or false", "请写 true 或 false")
	case reflect.Int:
		msg, fix = phrase("is not a whole number", "不是整数"), phrase("write a number such as 8", "请写数字，例如 8")
		if _, err := strconv.Atoi(n.Text); err == nil && n.Kind == tree.Text {
			msg, fix = phrase("is in quotes and so it is text", "带有引号，因此是文本"), phrase("write it without quotes", "请去掉引号")
		}
	}
	if n.Text == "" && (t.Kind() == reflect.String && n.Kind == tree.Text || n.Blank) {
		msg, fix = phrase("is empty", "为空"), phrase("leave it out, or give a value", "请去掉，或给出值")
	}
	d.fail(path, n, msg, fix)
}

func namesOf(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		names = append(names, jsonName(f))
	}
	return names
}

// unknown reports a key that is not a field. Its fix suggests the nearest field name.
func (d *decoder) unknown(path, key string, n tree.Node, t reflect.Type) {
	if len(d.errs) >= mostErrors {
		d.left++
		return
	}
	names := namesOf(t)
	fix := phrase("the fields are %s", "可用字段：%s", strings.Join(names, ", "))
	if near := nearest(key, names); near != "" {
		fix = phrase("did you mean %s?", "是否想写 %s？", strings.TrimSuffix(path, key)+near)
	}
	if flag := "--" + strings.ReplaceAll(key, "_", "-"); path == key {
		if _, ok := megatron.LookupFlag(flag); ok {
			fix = phrase("it is Megatron's: write %s in args", "这是 Megatron 的参数：请在 args 中写 %s", flag)
		}
	}
	if plain, ok := meantPlainly(key, func(meant string) bool { return slices.Contains(names, meant) }); ok {
		fix = plain
	}
	d.fail(path, tree.Node{Line: n.Line}, phrase("is not a field of the job specification", "不是作业规格的字段"), fix)
}

// nearest returns the only name of which word is the first part, as gpus is of
// gpus_per_node, or else the name that differs from word in the fewest letters; "" if no name
// is close to word.
func nearest(word string, names []string) string {
	word = strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	if len(word) > 64 {
		return ""
	}
	begins := func(n string) bool { return strings.HasPrefix(n, word+"_") }
	if i := slices.IndexFunc(names, begins); i >= 0 && !slices.ContainsFunc(names[i+1:], begins) {
		return names[i]
	}
	return near.Word(word, names, min(3, 1+len(word)/2))
}
