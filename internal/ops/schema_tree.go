package ops

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/tree"
)

// maxDepth is how deeply arguments may nest. No operation needs a tenth of it.
const maxDepth = 64

// maxNames is how many names one object may have. Each is compared with all others.
const maxNames = 4096

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

// A treeParser walks a line that is known to be valid JSON. Numbers stay as they were
// written; strings without escapes are substrings of the text.
type treeParser struct{ rest string }

// next skips blanks and separators and returns the first other byte.
func (p *treeParser) next() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n,:")
	return p.rest[0]
}

// node reads one value, and refuses repeated keys and deep nesting. All is one line, so
// that a specification's faults have one.
func (p *treeParser) node(path string, depth int) (tree.Node, error) {
	if depth > maxDepth {
		return tree.Node{}, InputError(path,
			lang.Text{EN: "nests deeper than %d levels", ZH: "嵌套超过 %d 层"}.With(maxDepth),
			lang.Text{EN: "send flatter arguments", ZH: "请减少参数的嵌套层数"})
	}
	n := tree.Node{Line: 1}
	switch c := p.next(); c {
	case '{', '[':
		if n.Kind = tree.List; c == '{' {
			n.Kind = tree.Map
		}
		for p.rest = p.rest[1:]; p.next() != c+2; { // ASCII has the closing bracket two after the opening one
			if err := p.add(&n, path, depth+1); err != nil {
				return n, err
			}
		}
		p.rest = p.rest[1:]
		return n, nil
	case '"':
		n.Kind, n.Text = tree.Text, p.text()
		return n, nil
	case 't', 'f':
		n.Kind = tree.Bool
	case 'n':
		p.rest = p.rest[len("null"):]
		return n, nil
	default:
		n.Kind = tree.Int
	}
	end := strings.IndexAny(p.rest, " \t\r\n,]}")
	n.Text, p.rest = p.rest[:end], p.rest[end:]
	if n.Kind == tree.Int && strings.ContainsAny(n.Text, ".eE") {
		n.Kind = tree.Real
	}
	return n, nil
}

// add reads the next element of a list, or the next member of an object.
func (p *treeParser) add(n *tree.Node, path string, depth int) error {
	if n.Kind == tree.Map {
		key := p.text()
		at := tree.Join(path, key)
		switch {
		case len(n.Keys) == maxNames:
			return InputError(path, lang.Text{EN: "has more than %d names", ZH: "名称超过 %d 个"}.With(maxNames),
				lang.Text{EN: "give only what differs from the defaults", ZH: "请只给出与默认值不同的内容"})
		case slices.Contains(n.Keys, key):
			return InputError(at, lang.Text{EN: "is given twice", ZH: "重复给出"}, lang.Text{EN: "give it once", ZH: "请只给出一次"})
		}
		n.Keys, path = append(n.Keys, key), at
	}
	child, err := p.node(path, depth)
	n.List = append(n.List, child)
	return err
}

// text reads the string that begins at the current byte.
func (p *treeParser) text() (s string) {
	end, escaped := 1, false
	for ; p.rest[end] != '"'; end++ {
		if p.rest[end] == '\\' {
			escaped = true
			end++
		}
	}
	raw := p.rest[:end+1]
	p.rest = p.rest[end+1:]
	if !escaped && utf8.ValidString(raw) {
		return raw[1:end]
	}
	_ = json.Unmarshal([]byte(raw), &s) // cannot fail: raw is part of a valid JSON text
	return s
}
