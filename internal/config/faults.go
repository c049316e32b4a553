package config

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A document is a parsed configuration file. Its errors name the file and the line.
type document struct {
	file string
	body ast.Node
	errs job.FieldErrors
}

func parse(b []byte, file string) (*document, error) {
	t := &document{file: file}
	parsed, err := parser.ParseBytes(b, 0)
	if err != nil {
		e := job.NotYAML("configuration", err)
		e.File = file
		return nil, job.FieldErrors{e}
	}
	if len(parsed.Docs) > 0 {
		t.body = parsed.Docs[0].Body
	}
	if len(parsed.Docs) > 1 {
		t.errs = append(t.errs, &job.FieldError{
			Field: "configuration", File: file, Line: parsed.Docs[1].Start.Position.Line,
			Msg: lang.Text{EN: "is more than one document", ZH: "含有多个 YAML 文档"}, Fix: lang.Text{EN: "take --- out", ZH: "请去掉 ---"},
		})
		return nil, t.errs
	}
	return t, nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (t *document) add(n ast.Node, path, value string, msg, fix lang.Text) {
	t.errs = append(t.errs, &job.FieldError{Field: path, Value: value, File: t.file, Line: n.GetToken().Position.Line, Msg: msg, Fix: fix})
}

// addFault adds an error about a value that is well formed. If its key has an error
// already, the value was left out, and there is nothing to say about it.
func (t *document) addFault(path, value string, msg, fix lang.Text) {
	if slices.ContainsFunc(t.errs, func(e *job.FieldError) bool { return e.Field == path }) {
		return
	}
	t.errs = append(t.errs, &job.FieldError{Field: path, Value: value, File: t.file, Line: t.lineOf(path), Msg: msg, Fix: fix})
}

// compare checks a value against the type of its field, and against what the field's tag
// says: the allowed words, or that it is an address.
func (t *document) compare(n ast.Node, want reflect.Type, path string, tag reflect.StructTag) {
	if n == nil || n.Type() == ast.NullType {
		return
	}
	if anchor, ok := n.(*ast.AnchorNode); ok {
		n = anchor.Value
	}
	if n.Type() == ast.AliasType || n.Type() == ast.TagType {
		return // checked where the value is defined
	}
	switch want.Kind() {
	case reflect.Pointer:
		t.compare(n, want.Elem(), path, tag)
	case reflect.Struct, reflect.Map:
		pairs, ok := pairsOf(n)
		if !ok {
			t.add(n, path, n.GetToken().Value, lang.Text{EN: "is not a map", ZH: "不是映射"}, lang.Text{EN: "write name: value below it, indented", ZH: "请在其下一行缩进写 name: value"})
			return
		}
		for _, p := range pairs {
			t.checkPair(p, want, path)
		}
	case reflect.Slice:
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			t.add(n, path, n.GetToken().Value, lang.Text{EN: "is not a list", ZH: "不是列表"}, lang.Text{EN: "write it as [one, two]", ZH: "请写成 [一, 二] 的形式"})
			return
		}
		for _, e := range list.Values {
			t.compare(e, want.Elem(), path, tag)
		}
	default:
		t.checkScalar(n, want, path, tag)
	}
}

func pairsOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, true
	}
	return nil, false
}

func (t *document) checkPair(p *ast.MappingValueNode, want reflect.Type, path string) {
	key := p.Key.GetToken().Value
	if key == "<<" {
		return
	}
	at := strings.TrimPrefix(path+"."+key, ".")
	if want.Kind() == reflect.Map {
		t.compare(p.Value, want.Elem(), at, "")
		return
	}
	names := keysOf(want)
	if of, ok := names[key]; ok {
		t.compare(p.Value, of.Type, at, of.Tag)
		return
	}
	all := slices.Sorted(maps.Keys(names))
	fix := lang.Text{EN: "its keys are %s", ZH: "可用的键：%s"}.With(strings.Join(all, ", "))
	if meant := near.Word(strings.ReplaceAll(key, "-", "_"), all, min(3, 1+len(key)/2)); meant != "" {
		fix = lang.Text{EN: "did you mean %s?", ZH: "是否想写 %s？"}.With(meant)
	}
	t.add(p.Key, at, "", lang.Text{EN: "is not a configuration key", ZH: "不是配置项"}, fix)
}

// keysOf returns the names that a struct's fields have in the file.
func keysOf(of reflect.Type) map[string]reflect.StructField {
	names := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names[name] = f
		}
	}
	return names
}

// needQuotes are the kinds of values that YAML does not take for text unless they are
// quoted.
var needQuotes = []ast.NodeType{ast.IntegerType, ast.FloatType, ast.BoolType}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (t *document) checkScalar(n ast.Node, want reflect.Type, path string, tag reflect.StructTag) {
	value, enum := n.GetToken().Value, tag.Get("enum")
	var err error
	example := lang.Text{}
	switch want.Kind() {
	case reflect.Bool:
		if n.Type() != ast.BoolType {
			err = strconv.ErrSyntax
		}
		example = lang.Text{EN: "true or false", ZH: "true 或 false"}
	case reflect.Int, reflect.Int64:
		err = checkNumber(n, tag, ast.IntegerType)
		example = lang.Text{EN: "a whole number, such as 8", ZH: "整数，例如 8"}
	case reflect.Float64:
		err = checkNumber(n, tag, ast.IntegerType, ast.FloatType)
		example = lang.Text{EN: "a number, such as 0.5", ZH: "数字，例如 0.5"}
	default:
		if _, list := n.(*ast.SequenceNode); list {
			err, example = strconv.ErrSyntax, lang.Text{EN: "one value, without brackets", ZH: "单个值，不带括号"}
		} else if _, isMap := pairsOf(n); isMap {
			err, example = strconv.ErrSyntax, lang.Text{EN: "one value, in quotes where it holds a colon", ZH: "单个值；含冒号时请加引号"}
		} else if want.Kind() == reflect.String && slices.Contains(needQuotes, n.Type()) && !reflect.PointerTo(want).Implements(unmarshaler) {
			err, example = strconv.ErrSyntax, lang.Text{EN: "text, in quotes: \"%s\"", ZH: "文本，请加引号：\"%s\""}.With(value)
		}
	}
	if at, wrong := url.Parse(value); tag.Get("form") == "url" && value != "" && err == nil && (wrong != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https") {
		err, example = strconv.ErrSyntax, lang.Text{EN: "an address such as https://ops.example.org", ZH: "地址，例如 https://ops.example.org"}
	}
	if least := tag.Get("min"); err != nil && least != "" {
		example = lang.Text{EN: "%s; at least %s", ZH: "%s；不小于 %s"}.With(example, least)
	}
	if words := strings.Split(enum, ","); enum != "" && !slices.Contains(words, value) {
		err, example = strconv.ErrSyntax, lang.Text{EN: "one of %s", ZH: "可用值：%s"}.With(strings.Join(words, ", "))
		if meant := near.Word(value, words, 3); meant != "" {
			example = lang.Text{EN: "did you mean %s? one of %s", ZH: "是否想写 %s？可用值：%s"}.With(meant, strings.Join(words, ", "))
		}
	}
	if err != nil {
		t.add(n, path, value, lang.Text{EN: "is not a valid value for this key", ZH: "不是该配置项可用的值"}, example)
	}
}

// checkNumber checks a number against the field's least value, where its tag has one.
func checkNumber(n ast.Node, tag reflect.StructTag, kinds ...ast.NodeType) error {
	value, err := strconv.ParseFloat(n.GetToken().Value, 64)
	least, bounded := strconv.ParseFloat(tag.Get("min"), 64)
	if err != nil || !slices.Contains(kinds, n.Type()) || bounded == nil && value < least {
		return strconv.ErrSyntax
	}
	return nil
}

// lineOf returns the line of a key by its path. If the document lacks the key, it
// returns the line of its nearest parent, or 0.
func (t *document) lineOf(path string) int {
	n, line := t.body, 0
	for key := range strings.SplitSeq(path, ".") {
		key, index, inList := strings.Cut(strings.TrimSuffix(key, "]"), "[")
		if anchor, ok := n.(*ast.AnchorNode); ok {
			n = anchor.Value
		}
		pairs, _ := pairsOf(n)
		i := slices.IndexFunc(pairs, func(p *ast.MappingValueNode) bool { return p.Key.GetToken().Value == key })
		if i < 0 {
			return line
		}
		n, line = pairs[i].Value, pairs[i].Key.GetToken().Position.Line
		if list, ok := n.(*ast.SequenceNode); ok && inList {
			if i, err := strconv.Atoi(index); err == nil && i < len(list.Values) {
				n = list.Values[i]
				line = n.GetToken().Position.Line
			}
		}
	}
	return line
}
