// Package shorten makes of an operation's output what a client may be sent: every
// list that its schema promises, no secrets, and no more than there is room for.
package shorten

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// Tidy returns a copy of an output in which every list that is missing is an
// empty one, as the schema promises, and, where clean is set, every string is
// without secrets and control characters. What needs no change is shared with
// the original, which is never written to.
func Tidy(out any, clean bool) any {
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
			if t.Field(i).IsExported() && !(v.Field(i).IsZero() && strings.Contains(t.Field(i).Tag.Get("json"), ",omit")) {
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
		for field := range t.Fields() {
			is = is && (t == timeType || !field.IsExported() || flat(field.Type))
		}
	}
	flatTypes.Store(t, is)
	return is
}

var flatTypes sync.Map // reflect.Type → bool

// SmallPiece is a list's JSON that is not worth cutting: it is not what makes an
// answer long.
const SmallPiece = 1500

// MaxString is how long a string may make an answer: half a script is worth
// nothing, so strings are cut only where they are no script any more.
const MaxString = 16 << 10

// A Cut is a shortened output: its JSON, what was left out in words, and the
// cursor with which the longest list goes on.
type Cut struct {
	Out    any
	Raw    []byte
	Notes  []string
	Cursor string
}

// Shorten lets the list that r's cursor names begin there, cuts out's longest
// lists until its JSON fits into r, and its longest strings where they alone are
// too long. out is a tidied copy, whose lists are its own.
func Shorten(out any, r Room, keepTail bool) (Cut, error) {
	v := reflect.New(reflect.TypeOf(out)).Elem()
	v.Set(reflect.ValueOf(out))
	begins, err := skip(v, r.Cursor)
	if err != nil {
		return Cut{}, err
	}
	whole := map[string]int{}
	left := map[string]int{}
	var order []string
	c := Cut{}
	raw, err := JSON(v.Interface())
	if err == nil && len(raw) > r.Bytes {
		// Rather all jobs with some nodes each than some jobs with all their nodes.
		if n := shortenRows(v); n != "" {
			c.Notes = append(c.Notes, n)
			raw, err = JSON(v.Interface())
		}
	}
	for range 24 {
		if err != nil || len(raw) <= r.Bytes {
			break
		}
		p, ok := heaviest(v)
		if !ok {
			break
		}
		if _, seen := whole[p.path]; !seen {
			whole[p.path] = p.length()
			order = append(order, p.path)
		}
		p.cut(max(SmallPiece/2, p.size-(len(raw)-r.Bytes)), keepTail)
		left[p.path] = p.length()
		if c.Cursor == "" && p.v.Kind() == reflect.Slice && !keepTail {
			c.Cursor = p.path
		}
		raw, err = JSON(v.Interface())
	}
	for _, p := range order {
		from := begins[p]
		c.Notes = append(c.Notes, fmt.Sprintf("%s shortened: %d to %d of %d shown", p, from+1, from+left[p], from+whole[p]))
	}
	if c.Cursor != "" {
		c.Cursor += "@" + strconv.Itoa(begins[c.Cursor]+left[c.Cursor])
	}
	c.Out, c.Raw = v.Interface(), raw
	return c, err
}

// skip lets the list that a cursor names begin where the cursor says, and
// returns where each list begins.
func skip(v reflect.Value, cursor string) (map[string]int, error) {
	if cursor == "" {
		return nil, nil
	}
	path, at, _ := strings.Cut(cursor, "@")
	n, err := strconv.Atoi(at)
	found := false
	pieces(v, func(p piece) {
		if p.path == path && p.v.Kind() == reflect.Slice && n >= 0 && n <= p.v.Len() {
			p.v.Set(p.v.Slice(n, p.v.Len()))
			found = true
		}
	})
	if err != nil || !found {
		return nil, &ops.Error{
			Code:    ops.BadInput,
			Field:   CursorField,
			Message: lang.Text{EN: "%q is no place in this answer", ZH: "%q 不是这个回答中的位置"}.With(cursor),
			Fix:     lang.Text{EN: "give the cursor of the answer before, with the same arguments", ZH: "请给出上一次回答的 cursor，其余参数不变"},
		}
	}
	return map[string]int{path: n}, nil
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
		if !f.CanSet() || f.Kind() != reflect.Slice || f.Type().Elem().Kind() != reflect.Struct {
			continue
		}
		rows := reflect.MakeSlice(f.Type(), f.Len(), f.Len())
		reflect.Copy(rows, f)
		cut := ""
		for r := range rows.Len() {
			row := rows.Index(r)
			for _, at := range reflect.VisibleFields(row.Type()) {
				// Names of nodes may be fewer; a command that lacks words is none.
				name, _, _ := strings.Cut(at.Tag.Get("json"), ",")
				if !at.IsExported() || name != "nodes" || at.Type.Kind() != reflect.Slice {
					continue
				}
				if list := row.FieldByIndex(at.Index); list.Len() > longRow {
					list.Set(list.Slice(0, longRow))
					cut = name
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

// heaviest finds the piece with the longest JSON among v's.
func heaviest(v reflect.Value) (best piece, ok bool) {
	pieces(v, func(p piece) {
		p.size = p.v.Len()
		if p.v.Kind() == reflect.Slice {
			raw, err := JSON(p.v.Interface())
			if err != nil {
				return
			}
			p.size = len(raw)
		} else if p.size < MaxString {
			return
		}
		if p.size > best.size {
			best, ok = p, true
		}
	})
	return best, ok && best.size > SmallPiece
}

// pieces calls each for the lists and strings among v's fields and those of the
// structs in it that are not empty.
func pieces(v reflect.Value, each func(piece)) {
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
			if v.Len() > 0 && v.CanSet() {
				each(piece{path: path, v: v})
			}
		}
	}
	walk("", v)
}

func (p piece) length() int { return p.v.Len() }

// cut keeps at most room bytes of the piece's JSON, which has more.
func (p piece) cut(room int, tail bool) {
	n := p.v.Len()
	if p.v.Kind() == reflect.String {
		p.v.SetString(strings.ToValidUTF8(p.v.String()[:room], ""))
		return
	}
	// Elements differ in length: those that fit are counted one by one.
	keep := 0
	for size := 2; keep < n-1; keep++ {
		i := keep
		if tail {
			i = n - 1 - keep
		}
		raw, err := JSON(p.v.Index(i).Interface())
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

// CursorField is the argument and the field of an answer by which a long list
// goes on where the answer before ended.
const CursorField = "cursor"

// A Room is what an answer may take, and from where it goes on.
type Room struct {
	Bytes  int
	Cursor string // of the answer before; empty: from the beginning
}

// bothLanguages is a text in two languages as package lang writes it.
var bothLanguages = regexp.MustCompile(`\{"en":("(?:[^"\\]|\\.)*"),"zh":"(?:[^"\\]|\\.)*"\}`)

// JSON is v as JSON, its texts in one language.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(2048) // most answers
	enc := json.NewEncoder(&b)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	raw := bytes.TrimRight(b.Bytes(), "\n")
	if bytes.Contains(raw, []byte(`{"en":`)) {
		raw = bothLanguages.ReplaceAll(raw, []byte("$1"))
	}
	return raw, nil
}
