package job

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/tree"
)

// Limits on the text of a specification, which is untrusted.
const (
	maxBytes = 256 << 10
	maxDepth = 16
	maxKeys  = 4096 // each key is compared with all others
)

// parse reads YAML, of which JSON is a subset, into a tree of nodes.
func parse(data []byte) (tree.Node, error) {
	if len(data) > maxBytes {
		return tree.Node{}, notSpec(phrase("%d bytes are more than a specification may have", "%d 字节超过了规格允许的大小", len(data)), phrase("at most %d", "最多 %d", maxBytes))
	}
	if !utf8.Valid(data) {
		return tree.Node{}, notSpec(phrase("is not valid UTF-8", "不是有效的 UTF-8"), phrase("save the file as UTF-8", "请以 UTF-8 保存文件"))
	}
	return parseYAML(bytes.TrimPrefix(data, []byte("\ufeff")))
}

// CheckYAML returns an error where text is no YAML that a specification may be: too large, too deep, or with
// aliases, of which few make a very large value.
func CheckYAML(text []byte) error {
	_, err := parse(text)
	return err
}

func atMostLevels() lang.Text { return phrase("at most %d levels", "最多 %d 层", maxDepth) }

func notSpec(msg, fix lang.Text) *FieldError {
	return &FieldError{Field: "spec", Msg: msg, Fix: fix}
}

func parseYAML(data []byte) (n tree.Node, err error) {
	defer func() {
		if r := recover(); r != nil { // the parser is third-party code, and may panic on untrusted text
			n, err = tree.Node{}, notSpec(phrase("not YAML that can be read", "不是可读取的 YAML"), phrase("check its indentation and quotes", "请检查缩进与引号"))
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := checkTokens(tokens); err != nil {
		return tree.Node{}, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return tree.Node{}, notYAML(data, err)
	}
	switch {
	case len(file.Docs) > 1:
		return tree.Node{}, notSpec(phrase("more than one document", "含有多个 YAML 文档"), phrase("one specification in a file", "一个文件只写一份规格"))
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return tree.Node{Kind: tree.Map}, nil
	}
	return fromAST(file.Docs[0].Body, "", 0)
}

// notYAML is NotYAML for a specification. Where the text would be YAML without the
// lookalikes in it, the fix names the one at fault.
func notYAML(data []byte, err error) error {
	e := NotYAML("spec", err)
	lines := strings.Split(string(data), "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return e
	}
	given := lines[e.Line-1]
	for _, line := range []string{given, strings.ReplaceAll(given, "：", "： ")} { // a full-width colon includes the blank that YAML needs
		meant, first := Plainly(line)
		if first == 0 {
			continue
		}
		lines[e.Line-1] = meant
		if _, err := parser.Parse(lexer.Tokenize(strings.Join(lines, "\n")), 0, parser.AllowDuplicateMapKey()); err == nil {
			e.Fix = WrongCharacter(first)
			if line != given {
				e.Fix = phrase("write a colon and a blank in place of ： (U+FF1A)", "请把 ：（U+FF1A）改为半角冒号加空格")
			}
			return e
		}
	}
	return e
}

// checkTokens rejects anchors, aliases, tags and too deep nesting before the parser
// expands or follows them. A specification needs none of these.
func checkTokens(tokens token.Tokens) error {
	depth, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType:
			return notSpec(phrase("line %d: %q: YAML's anchors, aliases and tags are not taken", "第 %d 行：%q：不接受 YAML 的锚点、别名与标签", line, t.Value), phrase("write the value out, or quote it", "请直接写出该值，或加引号"))
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		case token.InvalidType:
			return NotYAML("spec", &yaml.SyntaxError{Message: t.Error, Token: t})
		}
		if depth > maxDepth || dashes > maxDepth || t.Position.IndentNum > 40*maxDepth {
			return notSpec(phrase("line %d: nested too deep", "第 %d 行：嵌套过深", line), atMostLevels())
		}
	}
	return nil
}

func fromAST(a ast.Node, path string, depth int) (tree.Node, error) {
	if depth > maxDepth {
		return tree.Node{}, notSpec(phrase("nested too deep", "嵌套过深"), atMostLevels())
	}
	line := lineOf(a)
	switch v := a.(type) {
	case nil:
		return tree.Node{Kind: tree.Null}, nil
	case *ast.NullNode:
		return tree.Node{Kind: tree.Null, Line: line, Blank: v.Token.Type == token.ImplicitNullType}, nil
	case *ast.BoolNode:
		return tree.Node{Kind: tree.Bool, Text: v.Token.Value, Line: line}, nil
	case *ast.IntegerNode:
		return tree.Node{Kind: tree.Int, Text: v.Token.Value, Line: line}, nil
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return tree.Node{Kind: tree.Real, Text: a.GetToken().Value, Line: line}, nil
	case *ast.StringNode:
		return tree.Node{Kind: tree.Text, Text: v.Value, Line: line}, nil
	case *ast.LiteralNode:
		return tree.Node{Kind: tree.Text, Text: v.Value.Value, Line: line}, nil
	case *ast.SequenceNode:
		n := tree.Node{Kind: tree.List, Line: line}
		for _, e := range v.Values {
			child, err := fromAST(e, path, depth+1)
			if err != nil {
				return tree.Node{}, err
			}
			n.List = append(n.List, child)
		}
		return n, nil
	case *ast.MappingNode:
		return fromPairs(v.Values, path, depth)
	case *ast.MappingValueNode:
		return fromPairs([]*ast.MappingValueNode{v}, path, depth)
	}
	return tree.Node{}, &FieldError{
		Field: cmp.Or(path, "spec"), Line: line,
		Msg: phrase("YAML's %s is not taken", "不接受 YAML 的 %s", strings.ToLower(a.Type().String())), Fix: phrase("write a plain value", "请写普通的值"),
	}
}

// lineOf returns the line of a, or 0 if it is unknown.
func lineOf(a ast.Node) int {
	if a == nil || a.GetToken() == nil || a.GetToken().Position == nil {
		return 0
	}
	return a.GetToken().Position.Line
}

func fromPairs(pairs []*ast.MappingValueNode, path string, depth int) (tree.Node, error) {
	n := tree.Node{Kind: tree.Map}
	if len(pairs) > maxKeys {
		return n, &FieldError{
			Field: path, Line: lineOf(pairs[0].Key),
			Msg: phrase("has more than %d names", "名称超过 %d 个", maxKeys), Fix: phrase("at most %d", "最多 %d", maxKeys),
		}
	}
	for _, p := range pairs {
		key, line := p.Key.GetToken().Value, lineOf(p.Key)
		n.Line = cmp.Or(n.Line, line)
		at := tree.Join(path, key)
		if slices.Contains(n.Keys, key) {
			return tree.Node{}, &FieldError{Field: at, Line: line, Msg: phrase("is given twice", "重复给出"), Fix: phrase("keep one", "只保留一个")}
		}
		child, err := fromAST(p.Value, at, depth+1)
		if err != nil {
			return tree.Node{}, err
		}
		child.Line = line // the line of the key; the value may begin further down
		n.Keys, n.List = append(n.Keys, key), append(n.List, child)
	}
	return n, nil
}
