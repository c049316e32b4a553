package layers

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const (
	widest  = 160  // characters in a line of code
	longest = 500  // lines in a file
	largest = 5000 // lines in a room of the operations
)

// fillsTables lists the files that may have an init function, each with the reason.
// A reader does not see the contents of a table that an init function fills.
var fillsTables = map[string]string{
	"internal/quickstart/quickstart.go": "it sets the collector before any other package makes its tables",
}

// A file can be read in one sitting.
func TestNoFileIsLong(t *testing.T) {
	eachFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if n := set.File(file.Pos()).LineCount(); n > longest && !ast.IsGenerated(file) {
			t.Errorf("%s has %d lines, more than %d: give one of its ideas a file", name, n, longest)
		}
	})
}

// A line of code has at most widest characters. String literals are data and may be
// longer, except regular expressions, which are split into explained parts.
func TestSourceIsNarrowAndShort(t *testing.T) {
	seenInit, inRoom := map[string]bool{}, map[string]int{}
	eachSource(t, func(name string, set *token.FileSet, file *ast.File) {
		if ast.IsGenerated(file) {
			return
		}
		src, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		code := withoutTexts(set, file, src)
		lines := strings.Split(code, "\n")
		if dir := filepath.Dir(name); strings.HasPrefix(dir, "internal/ops") && !strings.HasSuffix(name, "_test.go") {
			inRoom[dir] += len(lines) - 1
		}
		for i, line := range lines {
			if w := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); w > widest {
				t.Errorf("%s:%d is %d characters wide, texts apart: break it", name, i+1, w)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					if seenInit[name] = true; fillsTables[name] == "" {
						t.Errorf("%s: %s has an init: pass the table, or make it where it is declared", set.Position(n.Pos()), name)
					}
				}
			case *ast.CallExpr:
				if f := called(n); f != "regexp.MustCompile" && f != "lazy.New" {
					return true
				}
				for _, arg := range n.Args {
					ast.Inspect(arg, func(x ast.Node) bool {
						if lit, ok := x.(*ast.BasicLit); ok && utf8.RuneCountInString(lit.Value) > widest {
							t.Errorf("%s: a regular expression of %d characters in one line: split it", set.Position(lit.Pos()), utf8.RuneCountInString(lit.Value))
						}
						return true
					})
				}
			}
			return true
		})
	})
	for room, n := range inRoom {
		require.LessOrEqual(t, n, largest, "%s has that many lines: give one of its ideas a room", room)
	}
	for name := range fillsTables {
		require.True(t, seenInit[name], "%s has no init any more: take it out of the table", name)
	}
}

// withoutTexts returns src with its string literals emptied; their line breaks stay.
func withoutTexts(set *token.FileSet, file *ast.File, src []byte) string {
	var b strings.Builder
	at := 0
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		from := set.Position(lit.Pos()).Offset
		b.Write(src[at:from])
		b.WriteString(`""` + strings.Repeat("\n", strings.Count(lit.Value, "\n")))
		at = from + len(lit.Value)
		return true
	})
	b.Write(src[at:])
	return b.String()
}
