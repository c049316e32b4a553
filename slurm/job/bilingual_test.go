package job_test

import (
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
		require.Equal(t, lang.ZH, lang.Of(msg), "%s: %s", e.Field, msg)
		require.Equal(t, lang.EN, lang.Of(e.Msg.EN+e.Fix.EN), "%s: %s", e.Field, e.Msg.EN)
		if e.Fix.EN != "" {
			require.Equal(t, lang.ZH, lang.Of(fix), "%s: %s", e.Field, fix)
		}
		require.NotContains(t, e.Msg.EN+e.Msg.ZH+e.Fix.EN+e.Fix.ZH, "%!", "a value is missing")
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
		func(s *job.Spec) { s.Nodes = new(0) },
		func(s *job.Spec) { s.Script = "/etc/x.py" },
		func(s *job.Spec) { s.Launcher = job.Custom },
		func(s *job.Spec) { s.LauncherArgv = []string{"x"} },
		func(s *job.Spec) { s.Container.Runtime = job.Docker },
		func(s *job.Spec) { s.Container.Image = "x" },
		func(s *job.Spec) { s.Chain, s.Array = new(3), "1-3" },
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
	_, err := job.ForShell(pyxis, job.Options{}, nil)
	inChinese(t, err)
	_, err = job.ForShell(twoNodes(), job.Options{}, []string{"a"})
	inChinese(t, err)
	_, err = job.IntoStep(twoNodes(), job.Options{}, "x")
	inChinese(t, err)
	_, err = job.Images(job.Image{Variant: "x"})
	inChinese(t, err)
	_, err = job.Images(job.Image{Remote: "/x"})
	inChinese(t, err)
	_, err = job.Distribute(twoNodes(), job.Options{})
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
			require.Equal(t, lang.ZH, lang.Of(w.ZH), w.EN)
			all++
		}
	}
	require.GreaterOrEqual(t, all, 10)
}
