package tree

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// A Decoder reads nodes into structs of strings, numbers, booleans, lists and maps of
// strings. A struct's fields have the names of their json tags. Three more tags allow a
// shorter form: join puts a list's words together with that separator, scalar takes one
// text for a list (cut at its commas unless it says whole), and pairs takes a map for a
// text of name=value words.
type Decoder struct {
	// Wrong is told of a value that type t cannot take. tag is that of its field.
	Wrong func(path string, n Node, t reflect.Type, tag reflect.StructTag)
	// Unknown is told of a key that struct t has no field for.
	Unknown func(path, key string, n Node, t reflect.Type)
	// After, if set, is called with each struct once it was read.
	After func(path string, n Node, v reflect.Value)
	// Types, if set, reads the types that have a form of their own.
	Types map[reflect.Type]func(path string, n Node, v reflect.Value, tag reflect.StructTag)
	// Lenient accepts what programs write: numbers in quotes, 8.0 for 8, empty text, and
	// one word for a list of one.
	Lenient bool
	// Typed refuses true and false as text, and gives the elements of a list paths of their own.
	Typed bool
}

// Read sets v from the node at path.
func (d *Decoder) Read(path string, n Node, v reflect.Value, tag reflect.StructTag) {
	if own := d.Types[v.Type()]; own != nil {
		own(path, n, v, tag)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if p := reflect.New(v.Type().Elem()); d.scalar(path, n, p.Elem(), tag) {
			v.Set(p)
		}
	case reflect.Struct:
		d.structure(path, n, v, tag)
	case reflect.Slice:
		d.slice(path, n, v, tag)
	case reflect.Map:
		if n.Kind != Map {
			d.Wrong(path, n, v.Type(), tag)
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for i, text := range d.values(path, n) {
			v.SetMapIndex(reflect.ValueOf(n.Keys[i]), reflect.ValueOf(text))
		}
	default:
		d.scalar(path, n, v, tag)
	}
}

func (d *Decoder) structure(path string, n Node, v reflect.Value, tag reflect.StructTag) {
	if n.Kind != Map {
		d.Wrong(path, n, v.Type(), tag)
		return
	}
	fields := fieldsOf(v.Type())
	for i, key := range n.Keys {
		at := Join(path, key)
		if f, ok := fields[key]; !ok {
			d.Unknown(at, key, n.List[i], v.Type())
		} else if n.List[i].Kind != Null || n.List[i].Blank && oneValue(f.Type) { // a null means not given, and so does a section without entries
			d.Read(at, n.List[i], v.FieldByIndex(f.Index), f.Tag)
		}
	}
	if d.After != nil {
		d.After(path, n, v)
	}
}

// oneValue reports whether a field is neither a list nor a map.
func oneValue(t reflect.Type) bool {
	k := t.Kind()
	return k != reflect.Struct && k != reflect.Slice && k != reflect.Map && (k != reflect.Pointer || oneValue(t.Elem()))
}

func (d *Decoder) slice(path string, n Node, v reflect.Value, tag reflect.StructTag) {
	how, scalar := tag.Lookup("scalar")
	switch {
	case n.Kind == List:
	case n.Kind == Text && scalar && how != "whole":
		for word := range strings.SplitSeq(n.Text, ",") {
			n.List = append(n.List, Node{Kind: Text, Text: word, Line: n.Line})
		}
	case n.Kind == Text && (scalar || d.Lenient && n.Text != "" && !strings.ContainsAny(n.Text, " \t\n")):
		n.List = []Node{n}
	default:
		d.Wrong(path, n, v.Type(), tag)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.List), len(n.List)))
	_, pairs := tag.Lookup("pairs")
	for i, e := range n.List {
		if e.Kind == Text && v.Index(i).Kind() == reflect.String { // most are, and may be empty
			v.Index(i).SetString(e.Text)
			continue
		}
		at := path
		if d.Typed {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if pairs && e.Kind == Map {
			words := d.values(at, e)
			for i, key := range e.Keys {
				words[i] = key + "=" + words[i]
			}
			v.Index(i).SetString(strings.Join(words, " "))
			continue
		}
		d.Read(at, e, v.Index(i), "")
	}
}

// values returns the texts of a map's values.
func (d *Decoder) values(path string, n Node) []string {
	texts := make([]string, len(n.List))
	for i, e := range n.List {
		if d.isText(e) {
			texts[i] = e.Text
		} else {
			d.Wrong(Join(path, n.Keys[i]), e, reflect.TypeFor[string](), "")
		}
	}
	return texts
}

func (d *Decoder) isText(n Node) bool {
	return n.Kind == Text || n.Kind == Int || n.Kind == Real || n.Kind == Bool && !d.Typed
}

// scalar sets v, a text, a number or a boolean, and reports whether n is one.
func (d *Decoder) scalar(path string, n Node, v reflect.Value, tag reflect.StructTag) (ok bool) {
	switch v.Kind() {
	case reflect.Bool:
		if ok = n.Kind == Bool || n.Kind == Text && (n.Text == "true" || n.Text == "false"); ok {
			v.SetBool(strings.EqualFold(n.Text, "true"))
		}
	case reflect.Int:
		var i int
		if i, ok = d.whole(n); ok {
			v.SetInt(int64(i))
		}
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Text, 64)
		if ok = err == nil && math.Abs(f) <= math.MaxFloat64 && (n.Kind == Int || n.Kind == Real || d.Lenient && n.Kind == Text); ok {
			v.SetFloat(f)
		}
	case reflect.String:
		if sep := tag.Get("join"); sep != "" && n.Kind == List {
			var words []string
			d.slice(path, n, reflect.ValueOf(&words).Elem(), "")
			n.Kind, n.Text = Text, strings.Join(words, sep)
		}
		if ok = d.isText(n) && (n.Text != "" || d.Lenient); ok {
			v.SetString(n.Text)
		}
	}
	if !ok {
		d.Wrong(path, n, v.Type(), tag)
	}
	return ok
}

// whole returns a number without a fraction.
func (d *Decoder) whole(n Node) (int, bool) {
	i, err := strconv.Atoi(n.Text)
	if err == nil {
		return i, n.Kind == Int || d.Lenient && n.Kind == Text
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	return int(f), err == nil && d.Lenient && n.Kind == Real && f == math.Trunc(f) && math.Abs(f) <= 1<<53
}

var known sync.Map // reflect.Type → map[string]reflect.StructField

func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	if fields, ok := known.Load(t); ok {
		return fields.(map[string]reflect.StructField)
	}
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && !f.Anonymous && name != "-" {
			fields[cmp.Or(name, f.Name)] = f
		}
	}
	known.Store(t, fields)
	return fields
}
