package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// maxDepth is how deeply arguments may nest. No operation needs a tenth of it.
const maxDepth = 64

// maxNames is how many names one object may have. Each is compared with all others.
const maxNames = 4096

// An object keeps the order of its keys, so that mistakes are reported in the order in
// which they were written.
type object []member

type member struct {
	key   string
	value any
}

// validJSON returns an error that explains why raw is not one JSON value.
func validJSON(raw []byte) error {
	if json.Valid(raw) {
		return nil
	}
	var v any
	err := json.Unmarshal(raw, &v) // only for its error
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) && json.NewDecoder(bytes.NewReader(raw)).Decode(&v) == nil {
		err = lang.Text{EN: "something comes after the object", ZH: "对象之后还有多余的内容"}.Err()
	}
	return InputError("",
		lang.Text{EN: "arguments are not valid JSON: %s", ZH: "参数不是有效的 JSON：%s"}.With(lang.Said(err)),
		lang.Text{EN: "send one JSON object", ZH: "请发送一个 JSON 对象"})
}

// parseTree reads one valid JSON value and refuses repeated keys and deep nesting.
// Numbers stay as they were written.
func parseTree(raw []byte) (any, error) {
	p := treeParser{rest: string(raw)}
	return p.value("", 0)
}

// A treeParser walks a text that is known to be valid JSON. Strings without escapes are
// substrings of the text.
type treeParser struct{ rest string }

// next skips blanks and separators and returns the first other byte.
func (p *treeParser) next() byte {
	at := 0
	for {
		switch p.rest[at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			at++
			continue
		}
		p.rest = p.rest[at:]
		return p.rest[0]
	}
}

func (p *treeParser) value(path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, InputError(path,
			lang.Text{EN: "nests deeper than %d levels", ZH: "嵌套超过 %d 层"}.With(maxDepth),
			lang.Text{EN: "send flatter arguments", ZH: "请减少参数的嵌套层数"})
	}
	switch c := p.next(); c {
	case '{':
		return p.object(path, depth)
	case '[':
		p.rest = p.rest[1:]
		list := make([]any, 0, 16) // a job's arguments are some dozen words
		for p.next() != ']' {
			at := ""
			if c := p.rest[0]; c == '{' || c == '[' { // nothing else can be refused
				at = fmt.Sprintf("%s[%d]", path, len(list))
			}
			v, err := p.value(at, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		p.rest = p.rest[1:]
		return list, nil
	case '"':
		return p.text(), nil
	case 't', 'f', 'n':
		n := 4
		if c == 'f' {
			n = 5
		}
		p.rest = p.rest[n:]
		if c == 'n' {
			return nil, nil
		}
		return c == 't', nil
	}
	n := strings.IndexAny(p.rest, " \t\r\n,]}")
	if n < 0 {
		n = len(p.rest)
	}
	number := json.Number(p.rest[:n])
	p.rest = p.rest[n:]
	return number, nil
}

func (p *treeParser) object(path string, depth int) (any, error) {
	p.rest = p.rest[1:]
	o := make(object, 0, 8)
	for p.next() != '}' {
		key := p.text()
		if len(o) == maxNames {
			return nil, InputError(path, lang.Text{EN: "has more than %d names", ZH: "名称超过 %d 个"}.With(maxNames),
				lang.Text{EN: "give only what differs from the defaults", ZH: "请只给出与默认值不同的内容"})
		}
		if slices.ContainsFunc(o, func(m member) bool { return m.key == key }) {
			return nil, InputError(join(path, key), lang.Text{EN: "is given twice", ZH: "重复给出"}, lang.Text{EN: "give it once", ZH: "请只给出一次"})
		}
		at := ""
		if c := p.next(); c == '{' || c == '[' { // nothing else can be refused
			at = join(path, key)
		}
		v, err := p.value(at, depth+1)
		if err != nil {
			return nil, err
		}
		o = append(o, member{key, v})
	}
	p.rest = p.rest[1:]
	return o, nil
}

// text reads the string that begins at the current byte.
func (p *treeParser) text() string {
	end, escaped := 1, false
	for p.rest[end] != '"' {
		if p.rest[end] == '\\' {
			escaped = true
			end++
		}
		end++
	}
	raw := p.rest[:end+1]
	p.rest = p.rest[end+1:]
	if !escaped && utf8.ValidString(raw) {
		return raw[1:end]
	}
	var s string
	_ = json.Unmarshal([]byte(raw), &s) // cannot fail: raw is part of a valid JSON text
	return s
}

// plain turns a tree into the value that encoding/json would have made of it.
func plain(in any) any {
	switch v := in.(type) {
	case object:
		m := make(map[string]any, len(v))
		for _, e := range v {
			m[e.key] = plain(e.value)
		}
		return m
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String()
	}
	return in
}

// encodeTree writes a tree as JSON, with numbers as they were written.
func encodeTree(in any) []byte {
	var b bytes.Buffer
	writeTree(&b, in)
	return b.Bytes()
}

func writeTree(b *bytes.Buffer, in any) {
	switch v := in.(type) {
	case object:
		b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeTree(b, m.key)
			b.WriteByte(':')
			writeTree(b, m.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeTree(b, e)
		}
		b.WriteByte(']')
	case json.Number:
		b.WriteString(v.String())
	default:
		raw, _ := json.Marshal(v) // a string, a boolean or null
		b.Write(raw)
	}
}
