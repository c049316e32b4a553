package job

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
)

// Decode reads a specification from YAML or JSON. It rejects unknown keys, duplicate
// keys and values of the wrong type, and reports all such faults at once: the error
// is a *FieldError or FieldErrors. Validate checks the values themselves.
func Decode(data []byte) (Spec, error) {
	s, err := decode(data)
	if err != nil && !severalLines(data) {
		for _, e := range AsFieldErrors(err) {
			e.Line = 0
		}
	}
	return s, err
}

func decode(data []byte) (Spec, error) {
	root, err := parse(data)
	if err != nil {
		return Spec{}, err
	}
	if root.kind != isMap {
		return Spec{}, notSpec(root.kind.fault(), phrase("write name: value lines", "请写成 name: value 形式的行"))
	}
	var s Spec
	var d decoder
	if d.structure(root, reflect.ValueOf(&s).Elem(), ""); len(d.errs) > 0 {
		d.alsoWrong(root, s)
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
	root, perr := node{}, error(nil)
	if severalLines(text) {
		root, perr = parse(text)
	}
	for _, e := range found {
		if e.Line == 0 && perr == nil {
			e.Line = root.lineOf(e.Field, e.Value)
		}
		if e.Line > 0 || e.Field == "spec" {
			e.File = file
		}
	}
	return err
}

// lineOf returns the line of the field at path, or 0 if the text does not set that
// field, or sets it to another value, which a flag has replaced. For a list it returns
// the line of the element equal to value, if there is one.
func (n node) lineOf(path, value string) int {
	for path != "" {
		key, rest, _ := strings.Cut(path, ".")
		i := slices.Index(n.keys, key)
		if i < 0 {
			return 0
		}
		n, path = n.list[i], rest
	}
	if n.kind == isList {
		for _, e := range n.list {
			if e.text == value {
				return e.line
			}
		}
	} else if n.kind != isMap && !strings.Contains(n.text, value) {
		return 0
	}
	return n.line
}

type decoder struct{ errs FieldErrors }

// mostErrors is how many errors of one text are reported: a text with more is hardly a
// specification, and each name that is wrong takes time to compare with the right ones.
const mostErrors = 20

func (d *decoder) fail(path string, n node, msg, fix lang.Text) {
	if len(d.errs) >= mostErrors {
		return
	}
	d.errs = append(d.errs, &FieldError{Field: path, Value: n.text, Line: n.line, Msg: msg, Fix: fix})
}

// alsoWrong adds the faults of values that were read, so that one form does not hide the
// other. The faults of what the text does not say wait until it can be read.
func (d *decoder) alsoWrong(root node, s Spec) {
	failed := slices.Clone(d.errs)
	for _, e := range s.Validate() {
		e.Line = root.lineOf(e.Field, e.Value)
		if e.Line > 0 && len(d.errs) < mostErrors && !slices.ContainsFunc(failed, func(f *FieldError) bool { return f.Field == e.Field }) {
			d.errs = append(d.errs, e)
		}
	}
}

func (d *decoder) structure(n node, v reflect.Value, path string) {
	if n.kind == isNull {
		return
	}
	if n.kind != isMap {
		d.fail(path, n, n.kind.fault(), phrase("write a map of %s", "请写成映射，键为 %s", strings.Join(namesOf(v.Type()), ", ")))
		return
	}
	for i, key := range n.keys {
		if len(d.errs) >= mostErrors {
			return
		}
		at := join(path, key)
		f, ok := fieldNamed(v.Type(), key)
		if !ok {
			e := unknown(at, key, namesOf(v.Type()))
			e.Line = n.list[i].line
			d.errs = append(d.errs, e)
			continue
		}
		target := v.FieldByIndex(f.Index)
		if target.Kind() == reflect.Struct {
			d.structure(n.list[i], target, at)
			continue
		}
		d.value(n.list[i], target, f.Tag, at)
	}
}

func fieldNamed(t reflect.Type, key string) (reflect.StructField, bool) {
	for f := range t.Fields() {
		if jsonName(f) == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func namesOf(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		names = append(names, jsonName(f))
	}
	return names
}

func (d *decoder) value(n node, v reflect.Value, tag reflect.StructTag, path string) {
	if n.kind == isNull {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if d.optional(n, p.Elem(), path) {
			v.Set(p)
		}
	case reflect.String:
		if sep := tag.Get("join"); sep != "" && n.kind == isList {
			words := make([]string, len(n.list))
			for i, e := range n.list {
				words[i], _ = d.text(e, path)
			}
			n = node{kind: isText, text: strings.Join(words, sep)}
		}
		if text, ok := d.text(n, path); ok {
			if text == "" {
				d.fail(path, n, phrase("is empty", "为空"), phrase("leave it out, or give a value", "请去掉，或给出值"))
			}
			v.SetString(text)
		}
	case reflect.Slice:
		if how, is := tag.Lookup("scalar"); is && n.kind == isText {
			words := []string{n.text}
			if how != "whole" {
				words = strings.Split(n.text, ",")
			}
			n = node{kind: isList, line: n.line}
			for _, w := range words {
				n.list = append(n.list, node{kind: isText, text: w})
			}
		}
		if n.kind != isList {
			d.fail(path, n, n.kind.fault(), phrase("write a list, one element each", "请写成列表，每项一个元素"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.list), len(n.list)))
		_, pairs := tag.Lookup("pairs")
		for i, e := range n.list {
			if pairs && e.kind == isMap {
				e = d.asWords(e, path)
			}
			text, _ := d.text(e, path)
			v.Index(i).SetString(text)
		}
	case reflect.Map:
		if n.kind != isMap {
			d.fail(path, n, n.kind.fault(), phrase("write a map of NAME: value", "请写成 NAME: value 的映射"))
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for i, key := range n.keys {
			text, _ := d.text(n.list[i], join(path, key))
			v.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(text))
		}
	}
}

// asWords turns a map into a text of name=value words.
func (d *decoder) asWords(n node, path string) node {
	words := make([]string, len(n.keys))
	for i, key := range n.keys {
		text, _ := d.text(n.list[i], join(path, key))
		words[i] = key + "=" + text
	}
	return node{kind: isText, text: strings.Join(words, " "), line: n.line}
}

// optional sets v, the integer or boolean that an optional field points to.
func (d *decoder) optional(n node, v reflect.Value, path string) bool {
	if v.Kind() == reflect.Bool {
		if n.kind == isBool || n.kind == isText && slices.Contains([]string{"true", "false"}, n.text) {
			v.SetBool(strings.EqualFold(n.text, "true"))
			return true
		}
		d.fail(path, n, n.kind.fault(), phrase("write true or false", "请写 true 或 false"))
		return false
	}
	i, err := strconv.Atoi(n.text)
	if n.kind != isInt || err != nil {
		d.fail(path, n, phrase("is not a whole number", "不是整数"), phrase("write a number such as 8", "请写数字，例如 8"))
		return false
	}
	v.SetInt(int64(i))
	return true
}

// text returns any scalar as it was written: "3e-4" stays "3e-4".
func (d *decoder) text(n node, path string) (string, bool) {
	switch n.kind {
	case isText, isInt, isReal, isBool:
		return n.text, true
	}
	d.fail(path, n, n.kind.fault(), phrase("write one value, in quotes where needed", "请写一个值，必要时加引号"))
	return "", false
}

// unknown returns the error for a key that is not a field. Its fix suggests the
// nearest field name.
func unknown(path, key string, names []string) *FieldError {
	e := &FieldError{Field: path, Msg: phrase("is not a field of the job specification", "不是作业规格的字段")}
	if near := nearest(key, names); near != "" {
		e.Fix = phrase("did you mean %s?", "是否想写 %s？", strings.TrimSuffix(path, key)+near)
	} else {
		e.Fix = phrase("the fields are %s", "可用字段：%s", strings.Join(names, ", "))
	}
	return e
}

// nearest returns the name that differs from word in the fewest letters, or "" if no
// name is close to word.
func nearest(word string, names []string) string {
	word = strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	if len(word) > 64 {
		return ""
	}
	return near.Word(word, names, min(3, 1+len(word)/2))
}
