package ops

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

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

// A treeReader reads a text that is known to be valid JSON, value by value. Numbers stay
// as they were written.
type treeReader struct{ *json.Decoder }

// node reads one value, and refuses repeated keys and deep nesting. All is one line, so
// that a specification's faults have one.
func (r treeReader) node(path string, depth int) (tree.Node, error) {
	if depth > maxDepth {
		return tree.Node{}, InputError(path,
			lang.Text{EN: "nests deeper than %d levels", ZH: "嵌套超过 %d 层"}.With(maxDepth),
			lang.Text{EN: "send flatter arguments", ZH: "请减少参数的嵌套层数"})
	}
	n := tree.Node{Line: 1}
	switch v := r.token().(type) {
	case json.Delim:
		if n.Kind = tree.List; v == '{' {
			n.Kind = tree.Map
		}
		for r.More() {
			if err := r.add(&n, path, depth+1); err != nil {
				return n, err
			}
		}
		r.token()
	case string:
		n.Kind, n.Text = tree.Text, v
	case bool:
		n.Kind, n.Text = tree.Bool, strconv.FormatBool(v)
	case json.Number:
		if n.Kind, n.Text = tree.Int, v.String(); strings.ContainsAny(n.Text, ".eE") {
			n.Kind = tree.Real
		}
	}
	return n, nil
}

// token returns the next token, which valid JSON always has.
func (r treeReader) token() json.Token {
	t, _ := r.Token()
	return t
}

// add reads the next element of a list, or the next member of an object.
func (r treeReader) add(n *tree.Node, path string, depth int) error {
	if n.Kind == tree.Map {
		key, _ := r.token().(string)
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
	child, err := r.node(path, depth)
	n.List = append(n.List, child)
	return err
}
