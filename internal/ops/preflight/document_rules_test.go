package preflight

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Every rule that plan reports can be looked up.
func TestEveryRowThatPlanReportsIsExplained(t *testing.T) {
	reported := map[string]bool{}
	for _, r := range documentRules() {
		reported[r.id] = true
	}
	for _, to := range lintRows {
		reported[to.row] = true
	}
	added := regexp.MustCompile(`\b[fr]\.add\("([a-z-]+)"|rule, fix :?= "([a-z-]+)"`)
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range sources {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range added.FindAllStringSubmatch(string(b), -1) {
			reported[m[1]+m[2]] = true
		}
	}
	require.Greater(t, len(reported), 40)
	for id := range reported {
		r, ok := rules.Explain(id)
		require.True(t, ok, "%s is no row of the rules table", id)
		require.NotEmpty(t, r.Remedy.ZH)
	}
}

func TestTheVirtualEnvironmentIsLookedInto(t *testing.T) {
	tree := t.TempDir()
	opstest.Write(t, filepath.Join(tree, "pyproject.toml"), `[project]
name = "megatron-core"
[project.optional-dependencies]
training = [
    "Flask-RESTful",
    "wandb>=0.1",  # a comment with "quotes"
]
dev = ["einops~=0.8", "openai[aiohttp]", "only-linux; sys_platform == 'linux'"]
te = ["transformer-engine[pytorch]"]
`)
	packages := filepath.Join(tree, ".venv", "lib", "python3.12", "site-packages")
	opstest.Write(t, filepath.Join(tree, ".venv", "bin", "python"), "")
	for _, have := range []string{"flask_restful-1.0.dist-info", "wandb-0.2.dist-info"} {
		require.NoError(t, os.MkdirAll(filepath.Join(packages, have), 0o755))
	}
	check := func() []rules.Problem {
		f := fileCheck{spec: job.Spec{Worktree: tree}.WithDefaults()}
		f.environment()
		return slices.DeleteFunc(f.ps, func(p rules.Problem) bool { return p.Rule == "uv-missing" })
	}
	ps := check()
	require.Equal(t, []string{"environment-synced"}, ids(ps))
	require.Contains(t, ps[0].Message, "lacks 2 packages of the extras training and dev, such as einops, openai")
	for _, have := range []string{"einops-0.8.dist-info", "openai-1.dist-info"} {
		require.NoError(t, os.MkdirAll(filepath.Join(packages, have), 0o755))
	}
	require.Empty(t, check())
	require.NoError(t, os.Remove(filepath.Join(tree, ".venv", "bin", "python")))
	require.Contains(t, check()[0].Message, "not a complete virtual environment")

	t.Setenv("PATH", t.TempDir())
	f := fileCheck{spec: job.Spec{Worktree: tree}.WithDefaults()}
	f.environment()
	require.Contains(t, ids(f.ps), "uv-missing")
}

func TestWhatSeveralNodesUseMustBeOnASharedFileSystem(t *testing.T) {
	tree, two := "/usr", 2 // a folder of this machine whose name does not look local
	f := fileCheck{spec: job.Spec{Worktree: tree, Nodes: &two}.WithDefaults(), apart: true}
	f.environment()
	f.sharedOutput("--save", tree+"/ck")
	require.Contains(t, ids(f.ps), "worktree-shared")
	require.Contains(t, ids(f.ps), "outputs-shared")

	f = fileCheck{spec: f.spec, apart: true, shared: []string{"/usr"}}
	f.environment()
	f.sharedOutput("--save", tree+"/ck")
	require.NotContains(t, ids(f.ps), "worktree-shared", "the site's word counts")
	require.NotContains(t, ids(f.ps), "outputs-shared")
}

func TestACheckpointMustFitInTheQuota(t *testing.T) {
	dir := t.TempDir()
	s := job.Spec{Worktree: dir, Args: []string{"--num-layers", "32", "--hidden-size", "4096", "--num-attention-heads", "32", "--seq-length", "128", "--save", dir}}
	f := fileCheck{spec: s.WithDefaults(), quotas: func(string) []slurm.Quota {
		return []slurm.Quota{{Of: "user", Mount: "/home", Used: 90 << 30, Limit: 100 << 30}, {Of: "group", Mount: "/home", Limit: 1 << 50}}
	}}
	f.args = argsOf(f.spec)
	f.save()
	i := slices.Index(ids(f.ps), "save-quota")
	require.GreaterOrEqual(t, i, 0)
	require.Regexp(t, `^your quota on /home has 10 GiB left of 100, and one checkpoint takes about \d+ GiB$`, f.ps[i].Message)
	require.Equal(t, 1, strings.Count(strings.Join(ids(f.ps), " "), "save-quota"), "the group's has room")
}

// An image is checked against the driver that the site names.
func TestTheImagesCUDANeedsADriver(t *testing.T) {
	for _, tt := range []struct{ driver, image, says string }{
		{"535.183.01", "nvcr.io/nvidia/nemo:26.06", "CUDA 13.2.1, which needs driver 580 or newer; the site's is 535.183.01"},
		{"570.86.15", "/images/nemo_25.11.sqsh", "CUDA 13.0.1, which needs driver 580 or newer"},
		{"580.65.06", "nvcr.io/nvidia/nemo:26.06", ""},
		{"535.183.01", "nvcr.io/nvidia/nemo:25.09", ""},
		{"515", "nvcr.io/nvidia/nemo:25.09", "CUDA 12.9.1, which needs driver 525 or newer; the site's is 515"},
		{"", "nvcr.io/nvidia/nemo:26.06", ""},
		{"535.183.01", "nvcr.io/nvidia/nemo:24.09", ""},
		{"535.183.01", "registry.example.org/own:1", ""},
		{"535.183.01", "", ""},
	} {
		c := opstest.NewCall(t, &opstest.Site{})
		c.Sites = func(string) job.Site { return job.Site{Driver: tt.driver} }
		s := job.Spec{Worktree: "/w", Container: job.Container{Image: tt.image}}.WithDefaults()
		found := slices.IndexFunc(documentRules(), func(r documentRule) bool { return r.id == "image-driver" })
		said := documentRules()[found].check(c, s)
		if tt.says == "" {
			require.Empty(t, said, tt.image)
			continue
		}
		require.Contains(t, said.EN, tt.says)
		require.Equal(t, lang.ZH, lang.Of(said.ZH))
		p := documentRules()[found].problem(said, lang.EN)
		require.Equal(t, rules.Warning, p.Severity)
		require.Contains(t, p.Source, "cuda-compatibility")
	}
}
