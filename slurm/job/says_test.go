package job_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func inChinese(t *testing.T, err error) {
	t.Helper()
	found := job.AsFieldErrors(err)
	require.NotEmpty(t, found, "%v", err)
	for _, e := range found {
		msg, fix := e.In(lang.ZH)
		require.Equal(t, lang.ZH, lang.Of(msg), "%s: %s", e.Field, e.Msg)
		if e.Fix != "" {
			require.Equal(t, lang.ZH, lang.Of(fix), "%s: %s", e.Field, e.Fix)
			require.NotContains(t, fix, "%s")
		}
		msg, fix = e.In(lang.EN)
		require.Equal(t, e.Msg+e.Fix, msg+fix)
	}
}

func TestEveryRefusalIsSaidInChineseToo(t *testing.T) {
	for _, g := range grammars {
		for _, bad := range g.refuses {
			s, err := set(t, g.field, bad)
			if err == nil {
				_, err = job.Render(s, job.Options{})
			}
			inChinese(t, err)
		}
	}
	for _, text := range []string{
		"[a]", "a: &x 1", "a: [", "nodes: x", "nodes: 1.5", "exclusive: 3", "args: x", "env: [a]", "name: [a]", "name: {a: b}", "nam: x", "qqqqqqqq: 1",
		"name: a\nname: b", "container: 3", "container: {imag: x}", "name: ''", "{a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: {m: {n: {o: {p: {q: {r: 1}}}}}}}}}}}}}}}}}}",
		"a: 1\n---\nb: 2", "name: \xff", "{\"name\": \"\\ud800\"}", "\t- x", strings.Repeat("x", 300<<10),
	} {
		_, err := job.Decode([]byte(text))
		inChinese(t, err)
	}
	for _, change := range []func(*job.Spec){
		func(s *job.Spec) { s.Worktree = "" },
		func(s *job.Spec) { s.Worktree = "/" },
		func(s *job.Spec) { s.Nodes = ptr(0) },
		func(s *job.Spec) { s.Script = "/etc/x.py" },
		func(s *job.Spec) { s.Launcher = job.Custom },
		func(s *job.Spec) { s.LauncherArgv = []string{"x"} },
		func(s *job.Spec) { s.Container.Runtime = job.Docker },
		func(s *job.Spec) { s.Container.Image = "x" },
		func(s *job.Spec) { s.Chain, s.Array = ptr(3), "1-3" },
		func(s *job.Spec) { s.Preset = []string{"no-such"} },
		func(s *job.Spec) { s.Worktree, s.Container = "/a:b", job.Container{Runtime: job.Docker, Image: "x"} },
		func(s *job.Spec) { s.Env = map[string]string{"HF_TOKEN": "x"} },
		func(s *job.Spec) { s.Env = map[string]string{"MASTER_ADDR": "x"} },
		func(s *job.Spec) {
			s.Env = map[string]string{"RANK": "x", "NODE_RANK": "x", "NNODES": "1", "WORLD_SIZE": "x"}
		},
		func(s *job.Spec) { s.Env = map[string]string{"BASH_ENV": "x", "a b": "x", "ARGS": "x", "N": "a\x00"} },
		func(s *job.Spec) { s.Args = []string{"a\x00"} },
		func(s *job.Spec) { s.Args = []string{strings.Repeat("a", 200<<10)} },
		func(s *job.Spec) { s.Rdzv.Conf = map[string]string{"Bad": "x", "ok": "a,b"} },
		func(s *job.Spec) { s.Comment = strings.Repeat("a", 2000) },
	} {
		s := twoNodes()
		change(&s)
		_, err := job.Render(s, job.Options{})
		inChinese(t, err)
	}
	pyxis := twoNodes()
	pyxis.Container = job.Container{Runtime: job.Pyxis, Image: "/a.sqsh"}
	_, err := job.ForShell(pyxis, job.Options{}, job.Place{})
	inChinese(t, err)
	_, err = job.ForShell(twoNodes(), job.Options{}, job.Place{Nodes: []string{"a"}})
	inChinese(t, err)
	_, err = job.IntoStep(twoNodes(), job.Options{}, "x")
	inChinese(t, err)
	_, err = job.Images(job.Image{Variant: "x"})
	inChinese(t, err)
	_, err = job.Images(job.Image{Remote: "/x"})
	inChinese(t, err)
	_, err = job.Distribute(twoNodes(), job.Options{}, "")
	inChinese(t, err)
	_, _, err = job.ImportRecipe([]byte("a: 1"))
	inChinese(t, err)
}

func TestEveryWarningIsSaidInChineseToo(t *testing.T) {
	all := 0
	for _, change := range []func(*job.Spec){
		func(s *job.Spec) {
			s.Preset, s.Container = []string{"docker-privileged"}, job.Container{Runtime: job.Docker, Image: "x"}
		},
		func(s *job.Spec) { s.Signal, s.Container = "TERM", job.Container{Runtime: job.Docker, Image: "x"} },
		func(s *job.Spec) { s.Container = job.Container{Runtime: job.Enroot, Image: "a/b:c"} },
		func(s *job.Spec) {
			s.Preset, s.Time, s.Worktree = []string{"joined-log", "per-node-logs"}, "5", "/tmp/x"
		},
	} {
		s := twoNodes()
		change(&s)
		script, err := job.Render(s, job.Options{})
		require.NoError(t, err)
		for _, w := range script.Warnings {
			require.Equal(t, lang.ZH, lang.Of(job.Say(w, lang.ZH)), w)
			all++
		}
	}
	require.GreaterOrEqual(t, all, 10)
}

// Whoever writes a new sentence in the source gives it its Chinese.
func TestNoSentenceIsForgotten(t *testing.T) {
	files := token.NewFileSet()
	packages, err := parser.ParseDir(files, ".", nil, 0) //nolint:staticcheck // one folder, no build tags
	require.NoError(t, err)
	looked := 0
	check := func(e ast.Node) {
		ast.Inspect(e, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			text = strings.Trim(text, " :")
			if !strings.Contains(text, " ") || strings.HasPrefix(text, ", such") {
				return true
			}
			looked++
			for _, verb := range []string{"%d", "%q", "%U"} {
				text = strings.ReplaceAll(text, verb, "%s")
			}
			require.True(t, job.Knows(text) || lang.Of(job.Say(text, lang.ZH)) == lang.ZH, "%s: %q has no Chinese in says.go", files.Position(lit.Pos()), text)
			return true
		})
	}
	for name, file := range packages["job"].Files {
		if strings.HasSuffix(name, "_test.go") || name == "says.go" {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if k, ok := n.Key.(*ast.Ident); ok && (k.Name == "Msg" || k.Name == "Fix") {
					check(n.Value)
				}
			case *ast.CallExpr:
				called := ""
				switch f := n.Fun.(type) {
				case *ast.Ident:
					called = f.Name
				case *ast.SelectorExpr:
					called = f.Sel.Name
				}
				from := map[string]int{"notSpec": 0, "fail": 2, "form": 1}
				at, ok := from[called]
				if sel, is := n.Fun.(*ast.SelectorExpr); is && called == "add" {
					x, _ := sel.X.(*ast.Ident)
					at, ok = 2, x != nil && x.Name == "v"
				}
				for i := at; ok && i < len(n.Args); i++ {
					check(n.Args[i])
				}
			}
			return true
		})
	}
	require.Greater(t, looked, 80)
}
