package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a specification's text, which is text from outside.
const (
	maxBytes = 256 << 10
	maxDepth = 16
)

// A kind says what a node of the text is, in a reader's words.
type kind string

const (
	isNull kind = "nothing"
	isText kind = "text"
	isInt  kind = "a number"
	isReal kind = "a decimal number"
	isBool kind = "true or false"
	isList kind = "a list"
	isMap  kind = "a map"
)

// A node is one value as it was written: YAML and JSON come to the same tree.
// Scalars keep their text, so that "3e-4" and "010" reach a program unchanged.
type node struct {
	kind kind
	text string
	list []node
	keys []string // of a map, in order; list holds the values
}

// parse reads YAML or JSON into a tree.
func parse(data []byte) (node, error) {
	if len(data) > maxBytes {
		return node{}, notSpec(fmt.Sprintf("%d bytes are more than a specification may have", len(data)), fmt.Sprintf("at most %d", maxBytes))
	}
	if !utf8.Valid(data) {
		return node{}, notSpec("is not valid UTF-8", "save the file as UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if s := bytes.TrimSpace(data); len(s) > 0 && s[0] == '{' && json.Valid(s) {
		dec := json.NewDecoder(bytes.NewReader(s))
		dec.UseNumber()
		return parseJSON(dec, "", 0)
	}
	return parseYAML(data)
}

// notSpec is an error about the text as a whole.
func notSpec(msg, fix string) *FieldError {
	return &FieldError{Field: "spec", Msg: msg, Fix: fix}
}

func parseJSON(dec *json.Decoder, path string, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, notSpec("nested too deep", fmt.Sprintf("at most %d levels", maxDepth))
	}
	t, err := dec.Token()
	if err != nil {
		return node{}, notSpec("not JSON: "+err.Error(), "")
	}
	switch v := t.(type) {
	case nil:
		return node{kind: isNull}, nil
	case bool:
		return node{kind: isBool, text: fmt.Sprint(v)}, nil
	case json.Number:
		return node{kind: numberKind(v.String()), text: v.String()}, nil
	case string:
		if strings.ContainsRune(v, utf8.RuneError) { // half of a pair, such as "\ud800"
			return node{}, &FieldError{Field: cmpOr(path, "spec"), Value: v, Msg: "holds what is no character", Fix: "leave it out"}
		}
		return node{kind: isText, text: v}, nil
	case json.Delim:
		n := node{kind: isList}
		if v == '{' {
			n.kind = isMap
		}
		for dec.More() {
			at := path
			if n.kind == isMap {
				key, err := dec.Token()
				if err != nil {
					return node{}, notSpec("not JSON: "+err.Error(), "")
				}
				at = join(path, key.(string))
				if err := n.addKey(key.(string), at); err != nil {
					return node{}, err
				}
			}
			child, err := parseJSON(dec, at, depth+1)
			if err != nil {
				return node{}, err
			}
			n.list = append(n.list, child)
		}
		_, err := dec.Token()
		return n, err
	}
	return node{}, io.ErrUnexpectedEOF
}

func (n *node) addKey(key, path string) error {
	for _, k := range n.keys {
		if k == key {
			return &FieldError{Field: path, Msg: "is given twice", Fix: "keep one"}
		}
	}
	n.keys = append(n.keys, key)
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func numberKind(text string) kind {
	if strings.Trim(text, "+-0123456789") == "" {
		return isInt
	}
	return isReal
}

func parseYAML(data []byte) (n node, err error) {
	defer func() {
		if r := recover(); r != nil { // the parser is another's, the text a stranger's
			n, err = node{}, notSpec("not YAML that can be read", "check its indentation and quotes")
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := checkTokens(tokens); err != nil {
		return node{}, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return node{}, notSpec("not YAML: "+firstLine(err), "mend it there; lines are name: value")
	}
	switch {
	case len(file.Docs) > 1:
		return node{}, notSpec("more than one document", "one specification in a file")
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return node{kind: isMap}, nil
	}
	return fromAST(file.Docs[0].Body, "", 0)
}

// checkTokens refuses what a specification has no use for, before the parser
// follows it: anchors, aliases and tags, and brackets nested without end.
func checkTokens(tokens token.Tokens) error {
	depth, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType:
			return notSpec(fmt.Sprintf("line %d: %q: YAML's anchors, aliases and tags are not taken", line, t.Value), "write the value out, or quote it")
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		case token.InvalidType:
			return notSpec(fmt.Sprintf("not YAML: line %d: %s", line, t.Error), "mend it there; lines are name: value")
		}
		if depth > maxDepth || dashes > maxDepth || t.Position.IndentNum > 40*maxDepth {
			return notSpec(fmt.Sprintf("line %d: nested too deep", line), fmt.Sprintf("at most %d levels", maxDepth))
		}
	}
	return nil
}

func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}

func fromAST(a ast.Node, path string, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, notSpec("nested too deep", fmt.Sprintf("at most %d levels", maxDepth))
	}
	switch v := a.(type) {
	case nil, *ast.NullNode:
		return node{kind: isNull}, nil
	case *ast.BoolNode:
		return node{kind: isBool, text: v.Token.Value}, nil
	case *ast.IntegerNode:
		return node{kind: isInt, text: v.Token.Value}, nil
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return node{kind: isReal, text: a.GetToken().Value}, nil
	case *ast.StringNode:
		return node{kind: isText, text: v.Value}, nil
	case *ast.LiteralNode:
		return node{kind: isText, text: v.Value.Value}, nil
	case *ast.SequenceNode:
		n := node{kind: isList}
		for _, e := range v.Values {
			child, err := fromAST(e, path, depth+1)
			if err != nil {
				return node{}, err
			}
			n.list = append(n.list, child)
		}
		return n, nil
	case *ast.MappingNode:
		return fromPairs(v.Values, path, depth)
	case *ast.MappingValueNode:
		return fromPairs([]*ast.MappingValueNode{v}, path, depth)
	}
	return node{}, &FieldError{Field: cmpOr(path, "spec"), Msg: fmt.Sprintf("YAML's %s is not taken", strings.ToLower(a.Type().String())), Fix: "write a plain value"}
}

func fromPairs(pairs []*ast.MappingValueNode, path string, depth int) (node, error) {
	n := node{kind: isMap}
	for _, p := range pairs {
		key := p.Key.GetToken().Value
		at := join(path, key)
		if err := n.addKey(key, at); err != nil {
			return node{}, err
		}
		child, err := fromAST(p.Value, at, depth+1)
		if err != nil {
			return node{}, err
		}
		n.list = append(n.list, child)
	}
	return n, nil
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
