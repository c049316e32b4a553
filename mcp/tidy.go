package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// tidy returns a copy of an output in which every list that is missing is an
// empty one, as the schema promises, and, where clean is set, every string is
// without secrets and control characters. What needs no change is shared with
// the original, which is never written to.
func tidy(out any, clean bool) any {
	v := reflect.ValueOf(out)
	if !v.IsValid() {
		return out
	}
	return tidyValue(v, clean).Interface()
}

var timeType = reflect.TypeFor[time.Time]()

func tidyValue(v reflect.Value, clean bool) reflect.Value {
	t := v.Type()
	if !clean && flat(t) {
		return v
	}
	switch t.Kind() {
	case reflect.String:
		s := v.String()
		if c := redact.Text(redact.Clean(s)); c != s {
			return reflect.ValueOf(c).Convert(t)
		}
		return v
	case reflect.Slice:
		if v.IsNil() && t.Elem().Kind() != reflect.Uint8 {
			return reflect.MakeSlice(t, 0, 0)
		}
		if !clean && flat(t.Elem()) {
			return v
		}
		out := reflect.MakeSlice(t, v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(tidyValue(v.Index(i), clean))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return reflect.MakeMap(t)
		}
		if !clean && flat(t.Elem()) {
			return v
		}
		out := reflect.MakeMapWithSize(t, v.Len())
		for k, e := range v.Seq2() {
			out.SetMapIndex(tidyValue(k, clean), tidyValue(e, clean))
		}
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(t.Elem())
		out.Elem().Set(tidyValue(v.Elem(), clean))
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		out := reflect.New(t).Elem()
		out.Set(tidyValue(v.Elem(), clean))
		return out
	case reflect.Struct:
		if t == timeType {
			return v
		}
		out := reflect.New(t).Elem()
		out.Set(v)
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				out.Field(i).Set(tidyValue(v.Field(i), clean))
			}
		}
		return out
	}
	return v
}

// flat reports whether a value of type t, one that is not cleaned, is right as
// it is: there is no list or map in it that could be missing. What an interface
// holds has no schema, so it may hold null.
func flat(t reflect.Type) bool {
	if known, ok := flatTypes.Load(t); ok {
		return known.(bool)
	}
	is := true
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		is = false
	case reflect.Pointer:
		flatTypes.Store(t, false) // a type that holds itself ends here
		is = flat(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			is = is && (t == timeType || !t.Field(i).IsExported() || flat(t.Field(i).Type))
		}
	}
	flatTypes.Store(t, is)
	return is
}

var flatTypes sync.Map // reflect.Type → bool

// smallPiece is a list's JSON that is not worth cutting: it is not what makes an
// answer long.
const smallPiece = 1500

// maxString is how long a string may make an answer: half a script is worth
// nothing, so strings are cut only where they are no script any more.
const maxString = 16 << 10

// shorten cuts out's longest lists until its JSON fits into room bytes, and its
// longest strings where they alone are too long. It returns what was left out,
// in words. out is a tidied copy, whose lists are its own.
func shorten(out any, room int, keepTail bool) (any, []byte, []string, error) {
	v := reflect.New(reflect.TypeOf(out)).Elem()
	v.Set(reflect.ValueOf(out))
	whole := map[string]int{}
	left := map[string]int{}
	var order []string
	raw, err := json.Marshal(v.Interface())
	if err == nil && len(raw) > room {
		// Rather all jobs with some nodes each than some jobs with all their nodes.
		if n := shortenRows(v); n != "" {
			order = append(order, n)
			raw, err = json.Marshal(v.Interface())
		}
	}
	for range 24 {
		if err != nil || len(raw) <= room {
			break
		}
		c, ok := heaviest(v)
		if !ok {
			break
		}
		if _, seen := whole[c.path]; !seen {
			whole[c.path] = c.length()
			order = append(order, c.path)
		}
		c.cut(max(smallPiece/2, c.size-(len(raw)-room)), keepTail)
		left[c.path] = c.length()
		raw, err = json.Marshal(v.Interface())
	}
	var omitted []string
	for _, p := range order {
		if whole[p] == 0 {
			omitted = append(omitted, p)
			continue
		}
		omitted = append(omitted, fmt.Sprintf("%s shortened: %d of %d shown", p, left[p], whole[p]))
	}
	return v.Interface(), raw, omitted, err
}

// longRow is how many elements a list within a row of another may have where
// the answer is too long.
const longRow = 4

// shortenRows cuts the long lists within the rows of v's lists, and says so. The
// rows are copied: they may be the original's.
func shortenRows(v reflect.Value) (said string) {
	if v.Kind() != reflect.Struct {
		return ""
	}
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.CanSet() || f.Kind() != reflect.Slice || f.Type().Elem().Kind() != reflect.Struct || f.Len() < 2 {
			continue
		}
		rows := reflect.MakeSlice(f.Type(), f.Len(), f.Len())
		reflect.Copy(rows, f)
		cut := ""
		for r := range rows.Len() {
			row := rows.Index(r)
			for _, at := range reflect.VisibleFields(row.Type()) {
				if !at.IsExported() || at.Type.Kind() != reflect.Slice || at.Type.Elem().Kind() != reflect.String {
					continue
				}
				if list := row.FieldByIndex(at.Index); list.Len() > longRow {
					list.Set(list.Slice(0, longRow))
					cut, _, _ = strings.Cut(at.Tag.Get("json"), ",")
				}
			}
		}
		if cut != "" {
			f.Set(rows)
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			said = fmt.Sprintf("%s of each of %s shortened: %d shown", cut, name, longRow)
		}
	}
	return said
}

// A piece is a list or a string of an output that can be cut.
type piece struct {
	path string
	v    reflect.Value
	size int // of its JSON
}

// heaviest finds the piece with the longest JSON among v's fields and those of
// the structs in it.
func heaviest(v reflect.Value) (best piece, ok bool) {
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(path, v.Elem())
			}
		case reflect.Struct:
			if v.Type() == timeType {
				return
			}
			for i := range v.NumField() {
				f := v.Type().Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if !f.IsExported() || name == "-" {
					continue
				}
				if name == "" && !f.Anonymous {
					name = f.Name
				}
				walk(strings.Trim(path+"."+name, "."), v.Field(i))
			}
		case reflect.Slice, reflect.String:
			if v.Len() == 0 || !v.CanSet() {
				return
			}
			size := v.Len()
			if v.Kind() == reflect.Slice {
				raw, err := json.Marshal(v.Interface())
				if err != nil {
					return
				}
				size = len(raw)
			} else if size < maxString {
				return
			}
			if size > best.size {
				best, ok = piece{path, v, size}, true
			}
		}
	}
	walk("", v)
	return best, ok && best.size > smallPiece
}

func (p piece) length() int { return p.v.Len() }

// cut keeps at most room bytes of the piece's JSON.
func (p piece) cut(room int, tail bool) {
	n := p.v.Len()
	if p.v.Kind() == reflect.String {
		p.v.SetString(strings.ToValidUTF8(p.v.String()[:max(0, min(n-1, room))], ""))
		return
	}
	// Elements differ in length: those that fit are counted one by one.
	keep := 0
	for size := 2; keep < n-1; keep++ {
		i := keep
		if tail {
			i = n - 1 - keep
		}
		raw, err := json.Marshal(p.v.Index(i).Interface())
		if size += len(raw) + 1; err != nil || size > room {
			break
		}
	}
	if tail {
		p.v.Set(p.v.Slice(n-keep, n))
		return
	}
	p.v.Set(p.v.Slice(0, keep))
}
