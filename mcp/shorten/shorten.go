// Package shorten prepares an operation's output for a client: it fills in every list
// that the schema promises, removes secrets, and cuts the output to a size.
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

// Tidy returns a copy of an output in which every missing list is an empty one, as the
// schema promises, and, if clean is set, no string contains secrets or control
// characters. The copy shares with the original whatever needs no change; Tidy never
// writes to the original.
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

// flat reports whether a value of type t needs no tidying as long as it is not cleaned:
// it contains no list or map that could be missing. What an interface holds has no
// schema, so it may hold null.
func flat(t reflect.Type) bool {
	if known, ok := flatTypes.Load(t); ok {
		return known.(bool)
	}
	is := true
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		is = false
	case reflect.Pointer:
		flatTypes.Store(t, false) // ends the recursion for a type that contains itself
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

// SmallPiece is the size of a list's JSON, in bytes, up to which cutting it would not
// help.
const SmallPiece = 1500

// MaxString is how many bytes of an answer a string may take. Half a script is useless,
// so only strings that are too long to be a script are cut.
const MaxString = 16 << 10

// A Cut is a shortened output: its value, its JSON, notes on what was left out, and the
// cursor at which the longest list continues.
type Cut struct {
	Out    any
	Raw    []byte
	Notes  []string
	Cursor string
}

// Shorten starts the list that limit's cursor names at the cursor's position, then cuts
// out's longest lists until its JSON fits the limit, and its longest strings where
// lists alone do not suffice. out must be a tidied copy, whose lists Shorten may
// replace.
func Shorten(out any, limit Limit, keepTail bool) (Cut, error) {
	v := reflect.New(reflect.TypeOf(out)).Elem()
	v.Set(reflect.ValueOf(out))
	starts, err := skip(v, limit.Cursor)
	if err != nil {
		return Cut{}, err
	}
	whole := map[string]int{}
	left := map[string]int{}
	var order []string
	c := Cut{}
	raw, err := JSON(v.Interface())
	if err == nil && len(raw) > limit.Bytes {
		// All jobs with some of their nodes are better than some jobs with all their
		// nodes.
		if n := shortenRows(v); n != "" {
			c.Notes = append(c.Notes, n)
			raw, err = JSON(v.Interface())
		}
	}
	for range 24 {
		if err != nil || len(raw) <= limit.Bytes {
			break
		}
		p, ok := heaviest(v)
		if !ok {
			break
		}
		if _, seen := whole[p.path]; !seen {
			whole[p.path] = p.v.Len()
			order = append(order, p.path)
		}
		p.cut(max(SmallPiece/2, p.size-(len(raw)-limit.Bytes)), keepTail)
		left[p.path] = p.v.Len()
		if c.Cursor == "" && p.v.Kind() == reflect.Slice && !keepTail {
			c.Cursor = p.path
		}
		raw, err = JSON(v.Interface())
	}
	for _, p := range order {
		from := starts[p]
		if keepTail {
			c.Notes = append(c.Notes, fmt.Sprintf("%s shortened: the last %d of %d shown", p, left[p], whole[p]))
			continue
		}
		c.Notes = append(c.Notes, fmt.Sprintf("%s shortened: %d to %d of %d shown", p, from+1, from+left[p], from+whole[p]))
	}
	if c.Cursor != "" {
		c.Cursor += "@" + strconv.Itoa(starts[c.Cursor]+left[c.Cursor])
	}
	c.Out, c.Raw = v.Interface(), raw
	return c, err
}

// skip makes the list that a cursor names start at the cursor's position, and returns
// where each list starts.
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
		return nil, ops.InputError(CursorField,
			lang.Text{EN: "%q is not a position in this answer", ZH: "%q 不是这个回答中的位置"}.With(cursor),
			lang.Text{EN: "give the cursor of the previous answer, with the same arguments", ZH: "请给出上一次回答的 cursor，其余参数不变"})
	}
	return map[string]int{path: n}, nil
}

// longRow is how many elements a list within a row of another list keeps if the answer
// is too long.
const longRow = 4

// shortenRows cuts the node lists within the rows of v's lists and returns a note on
// it. It copies the rows, because they may be the original's.
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
				// A list of node names may be cut; a command that lacks words is
				// useless.
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
	size int // of its JSON, in bytes
}

// heaviest finds the piece of v with the longest JSON.
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

// pieces calls each for the non-empty lists and strings among the fields of v and of
// the structs within it.
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

// cut keeps at most maxBytes bytes of the piece's JSON, which is longer.
func (p piece) cut(maxBytes int, tail bool) {
	n := p.v.Len()
	if p.v.Kind() == reflect.String {
		p.v.SetString(strings.ToValidUTF8(p.v.String()[:maxBytes], ""))
		return
	}
	// Elements differ in length, so count those that fit one by one.
	keep := 0
	for size := 2; keep < n-1; keep++ {
		i := keep
		if tail {
			i = n - 1 - keep
		}
		raw, err := JSON(p.v.Index(i).Interface())
		if size += len(raw) + 1; err != nil || size > maxBytes {
			break
		}
	}
	if tail {
		p.v.Set(p.v.Slice(n-keep, n))
		return
	}
	p.v.Set(p.v.Slice(0, keep))
}

// CursorField is the name of the argument, and of an answer's field, with which a list
// continues where the answer before ended.
const CursorField = "cursor"

// A Limit is how many bytes an answer may take, and where it continues.
type Limit struct {
	Bytes  int
	Cursor string // from the answer before; empty: from the beginning
}

// bothLanguages matches a text in two languages as package lang encodes it.
var bothLanguages = regexp.MustCompile(`\{"en":("(?:[^"\\]|\\.)*"),"zh":"(?:[^"\\]|\\.)*"\}`)

// JSON encodes v, with its texts in English only.
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
