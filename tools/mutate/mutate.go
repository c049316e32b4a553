// Command mutate changes one place of the code at a time and checks whether a test of
// the same package notices.
//
//	go run ./tools/mutate [-n 100] [-seed 1] [-timeout 3m] [-v] FOLDER...
//
// The places are drawn at random, by seed, from the folders' files, except for tests,
// generated files and files for other systems. The changes are: a comparison reversed
// or shifted by one, && for ||, a negation dropped, + for -, true for false, an early
// return, continue or break dropped. A mutant is killed if the -short tests of its
// package fail or do not end in time; a mutant that does not compile does not count.
// The changed file is passed by go's -overlay, so that the tree stays unchanged. The
// last line is "killed K of N (share)"; the survivors are listed before it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A mutant is one change: text replaces the bytes from..to of file.
type mutant struct {
	file, folder string
	line         int
	from, to     int
	was, text    string
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %q for %q", m.file, m.line, m.text, m.was)
}

// changes are the replacements of each operator.
var changes = map[token.Token][]string{
	token.EQL:  {"!="},
	token.NEQ:  {"=="},
	token.LSS:  {"<=", ">="},
	token.LEQ:  {"<", ">"},
	token.GTR:  {">=", "<="},
	token.GEQ:  {">", "<"},
	token.LAND: {"||"},
	token.LOR:  {"&&"},
	token.ADD:  {"-"},
	token.SUB:  {"+"},
	token.MUL:  {"/"},
	token.QUO:  {"*"},
	token.REM:  {"*"},
}

func main() {
	n := flag.Int("n", 100, "how many mutants that compile")
	seed := flag.Uint64("seed", 1, "which places are drawn")
	limit := flag.Duration("timeout", 3*time.Minute, "for the tests of one mutant")
	verbose := flag.Bool("v", false, "print each mutant as it is judged")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: mutate [-n 100] [-seed 1] [-timeout 3m] [-v] FOLDER...")
		os.Exit(2)
	}
	if err := run(flag.Args(), *n, *seed, *limit, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(folders []string, n int, seed uint64, limit time.Duration, verbose bool) error {
	all, err := mutants(folders)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, seed))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	binary := filepath.Join(dir, "tests")
	healthy := map[string]bool{}
	killed, judged := 0, 0
	var survivors []mutant
	for _, m := range all {
		if judged == n {
			break
		}
		if _, seen := healthy[m.folder]; !seen {
			healthy[m.folder] = compiles(m.folder, "", binary) && passes(m.folder, binary, limit)
			if !healthy[m.folder] {
				fmt.Printf("%s: left out, its tests fail unchanged\n", m.folder)
			}
		}
		if !healthy[m.folder] {
			continue
		}
		overlay, err := m.overlay(dir)
		if err != nil {
			return err
		}
		verdict := "killed"
		switch {
		case !compiles(m.folder, overlay, binary):
			verdict = "does not compile"
		case passes(m.folder, binary, limit):
			verdict = "survived"
			survivors = append(survivors, m)
			judged++
		default:
			killed++
			judged++
		}
		if verbose {
			fmt.Printf("%-16s %s\n", verdict, m)
		}
	}
	for _, m := range survivors {
		fmt.Println("survived:", m)
	}
	fmt.Printf("killed %d of %d (%.2f), seed %d\n", killed, judged, float64(killed)/float64(max(judged, 1)), seed)
	return nil
}

// mutants returns all possible changes in the folders, in a fixed order.
func mutants(folders []string) (all []mutant, err error) {
	for _, folder := range folders {
		folder = filepath.Clean(folder)
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			if strings.HasSuffix(f, "_test.go") || bytes.Contains(src[:min(len(src), 400)], []byte("Code generated")) {
				continue
			}
			if built, err := build.Default.MatchFile(folder, filepath.Base(f)); err != nil || !built {
				continue // for another system: no test here could notice
			}
			found, err := mutantsOf(folder, f, src)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

func mutantsOf(folder, file string, src []byte) (all []mutant, err error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(at token.Pos, length int, text string) {
		p := fset.Position(at)
		all = append(all, mutant{file, folder, p.Line, p.Offset, p.Offset + length, string(src[p.Offset : p.Offset+length]), text})
	}
	ast.Inspect(tree, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.GenDecl:
			return x.Tok != token.IMPORT
		case *ast.BinaryExpr:
			if y, ok := x.Y.(*ast.BasicLit); ok && y.Kind == token.STRING && x.Op == token.ADD {
				return true
			}
			for _, text := range changes[x.Op] {
				add(x.OpPos, len(x.Op.String()), text)
			}
		case *ast.UnaryExpr:
			if x.Op == token.NOT {
				add(x.OpPos, 1, "")
			}
		case *ast.IfStmt:
			if s := early(x); s != nil {
				add(s.Pos(), int(s.End()-s.Pos()), "")
			}
		case *ast.Ident:
			if i := slices.Index([]string{"true", "false"}, x.Name); i >= 0 {
				add(x.Pos(), len(x.Name), []string{"false", "true"}[i])
			}
		}
		return true
	})
	return all, nil
}

// early returns the only statement of an if that just leaves, without a result, or nil.
func early(x *ast.IfStmt) ast.Stmt {
	if x.Init != nil || x.Else != nil || len(x.Body.List) != 1 {
		return nil
	}
	switch s := x.Body.List[0].(type) {
	case *ast.BranchStmt:
		return s
	case *ast.ReturnStmt:
		if len(s.Results) == 0 {
			return s
		}
	}
	return nil
}

// overlay writes the changed file into dir, and the overlay file that tells go about
// it. It returns the latter's path.
func (m mutant) overlay(dir string) (string, error) {
	src, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, slices.Concat(src[:m.from], []byte(m.text), src[m.to:]), 0o600); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {abs: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}

// compiles builds the folder's tests into the file binary, with the overlay if one is
// given.
func compiles(folder, overlay, binary string) bool {
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	return exec.Command("go", append(args, "./"+folder)...).Run() == nil
}

// passes reports whether the short tests in binary pass in the folder in which go test
// would run them.
func passes(folder, binary string, limit time.Duration) bool {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	c := exec.CommandContext(ctx, binary, "-test.short", "-test.failfast")
	c.Dir = folder
	c.WaitDelay = 5 * time.Second
	return c.Run() == nil
}
