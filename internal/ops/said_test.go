package ops_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// Whoever writes a new error in the source gives it its Chinese: each sentence
// of an Error, of the program's own doors and of the back ends, is in a table.
func TestNoErrorIsForgottenInChinese(t *testing.T) {
	looked, missing := 0, []string(nil)
	for _, folder := range []string{"../../slurm", "../../slurm/cluster"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, 0)
			require.NoError(t, err)
			for _, said := range sentences(file) {
				text := template(said)
				if !hasWords(text) {
					continue
				}
				looked++
				if lang.Of(ops.Said(errors.New(text)).ZH) != lang.ZH {
					missing = append(missing, fmt.Sprintf("%s: %s", set.Position(said.Pos()), text))
				}
			}
		}
	}
	require.Empty(t, missing, "give these their Chinese in said_*.go")
	require.Greater(t, looked, 30)
}

// sentences are the messages and fixes that a file gives to errors.
func sentences(file *ast.File) (all []ast.Expr) {
	passed := map[string]bool{} // variables that hold a whole message
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if nameOf(n.Type) != "Error" {
				return true
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					switch nameOf(kv.Key) {
					case "Message", "Msg", "Fix":
						all = append(all, kv.Value)
					}
				}
			}
		case *ast.CallExpr:
			switch nameOf(n.Fun) {
			case "InputError", "NotFoundError", "badInput", "notFound", "bad":
				if len(n.Args) > 2 {
					all = append(all, n.Args[1:3]...)
				}
				if len(n.Args) == 1 {
					all = append(all, n.Args[0])
				}
				if len(n.Args) == 4 && template(n.Args[2]) == "7" && nameOf(n.Args[3]) != "err" {
					passed[nameOf(n.Args[3])] = true
				}
			case "sure":
				all = append(all, n.Args[1])
			}
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				sel, ok := l.(*ast.SelectorExpr)
				if ok && len(n.Rhs) == len(n.Lhs) && (sel.Sel.Name == "Message" || sel.Sel.Name == "Fix") && nameOf(sel.X) == "e" && n.Tok == token.ASSIGN {
					all = append(all, n.Rhs[i])
				}
			}
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && passed[nameOf(a.Lhs[0])] {
			all = append(all, a.Rhs[0])
		}
		return true
	})
	return all
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

var verb = regexp.MustCompile(`%(\[\d+\])?[a-z]`)

// template is what a sentence says, with a number for each of its values.
func template(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		text = verb.ReplaceAllString(strings.ReplaceAll(text, "%q", `"7"`), "7")
		return strings.ReplaceAll(text, "%%", "%")
	case *ast.ParenExpr:
		return template(e.X)
	case *ast.BinaryExpr:
		return template(e.X) + template(e.Y)
	case *ast.CallExpr:
		if nameOf(e.Fun) == "Sprintf" {
			return template(e.Args[0])
		}
	}
	return "7"
}

// hasWords is false for what is a value, a command or a flag alone.
func hasWords(text string) bool {
	for _, command := range []string{"chmod ", "openssl ", "slack: {", "mute 4711", "diagnose 7", "megatron-ops link", "gpus_per_node: 7", "--on-nodes gpu"} {
		if strings.HasPrefix(text, command) {
			return false
		}
	}
	return strings.Trim(text, "7%/:;-(). $\"") != ""
}
