package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's root, relative to this folder.
const root = "../.."

// englishOnly lists folders and files whose errors need no Chinese, each with the
// reason. "x/" means the folder and everything below it.
var englishOnly = map[string]string{
	"mcp/":                          "agents read it, and the protocol speaks English",
	"bot/bot.go":                    "a mistake of the program's that starts it",
	"bot/open_submissions.go":       "it holds an error that came in both languages",
	"bot/outbox/":                   "operators read it in the log",
	"bot/incoming/signature.go":     "whoever sent a request that is not Slack's reads it",
	"internal/demo/":                "it speaks as uv and torchrun do",
	"internal/ops/command_words.go": "a wrong tag in the source: the first test finds it",
	"internal/ops/ops.go":           "a wrong type in the source: the first test finds it",
	"internal/ops/joblogs/logs.go":  "it ends a loop and is never shown",
	"internal/store/pgtest/":        "tests read it",
	"internal/pickle/pickle.go":     "a file that cannot be read is told as such, whatever the reason",
	"knowledge/cards/":              "authors read it when the program is built",
	"knowledge/eval/":               "authors read it when answers are scored",
	"knowledge/index/":              "authors read it when the program is built",
	"knowledge/library/":            "authors read it when the program is built",
	"knowledge/megatron/flaggen/":   "authors read it when the program is built",
	"knowledge/model.go":            "operators read it in the log",
	"knowledge/rules/recommend.go":  "it holds a rule's own text",
	"packaging/":                    "developers read it",
	"skills/":                       "authors read it when the program is built",
	"slurm/cluster/local/local.go":  "a program that forgot its stand-in: the first test finds it",
	"slurm/diagnose/scan/all.go":    "it holds an error that came from another process",
	"slurm/slurmtest/":              "tests read it",
	"tools/":                        "developers read it",
}

// eachSource calls its function for every Go file of the program, without tests.
func eachSource(t *testing.T, each func(name string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	eachFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if !strings.HasSuffix(name, "_test.go") {
			each(name, set, file)
		}
	})
}

// eachFile parses every Go file of the repository, tests too.
func eachFile(t *testing.T, each func(name string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "dist", "node_modules"}, d.Name())) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			each(filepath.ToSlash(name), set, file)
		}
		return err
	}))
}

// An error that a person may see has its text in both languages where it arises:
// lang.Text{EN: …, ZH: …}.Err(…), or Slurm's own words in slurm.Sayf. fmt.Errorf and
// errors.New are only for errors that nobody sees.
func TestErrorsAreInBothLanguages(t *testing.T) {
	used := map[string]bool{}
	eachSource(t, func(name string, set *token.FileSet, file *ast.File) {
		why := excuse(name)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f := called(call); f == "fmt.Errorf" || f == "errors.New" {
				if used[why] = true; why == "" {
					t.Errorf("%s: %s has no Chinese: write lang.Text{EN: …, ZH: …}.Err(…)", set.Position(call.Pos()), f)
				}
			}
			return true
		})
	})
	for place := range englishOnly {
		require.True(t, used[place], "%s has no error in English alone any more: take it out of the table", place)
	}
}

// called returns the name of the function of another package that call calls, such as
// "errors.New".
func called(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	from, ok := f.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return from.Name + "." + f.Sel.Name
}

// verb matches a formatting verb of package fmt.
var verb = regexp.MustCompile(`%[-+# 0-9.]*(?:\[(\d+)\])?([a-zA-Z])`)

// Both languages of a text use all of its values, in any order, and each in the same way.
func TestBothLanguagesTakeTheSameValues(t *testing.T) {
	looked := 0
	eachSource(t, func(_ string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "With" && f.Sel.Name != "Err" || len(call.Args) == 0 || call.Ellipsis.IsValid() {
				return true
			}
			text, ok := f.X.(*ast.CompositeLit)
			if !ok {
				return true
			}
			written := map[int]string{}
			for _, e := range text.Elts {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				said, ok := kv.Value.(*ast.BasicLit)
				if !ok {
					continue
				}
				looked++
				places, numbered := 0, 0
				for _, m := range verb.FindAllStringSubmatch(strings.ReplaceAll(said.Value, "%%", ""), -1) {
					places++
					at := places
					if m[1] != "" {
						var err error
						at, err = strconv.Atoi(m[1])
						require.NoError(t, err)
						numbered = max(numbered, at)
					}
					if other := written[at]; other != "" && other != m[2] {
						t.Errorf("%s: value %d is written by %%%s and by %%%s", set.Position(said.Pos()), at, other, m[2])
					}
					written[at] = m[2]
				}
				if numbered > len(call.Args) || numbered == 0 && places != len(call.Args) {
					t.Errorf("%s: %d values for %s", set.Position(said.Pos()), len(call.Args), said.Value)
				}
			}
			return true
		})
	})
	require.Greater(t, looked, 500)
}

// excuse returns the row of englishOnly that covers name, or "".
func excuse(name string) string {
	for place := range englishOnly {
		if place == name || strings.HasSuffix(place, "/") && strings.HasPrefix(name, place) {
			return place
		}
	}
	return ""
}
