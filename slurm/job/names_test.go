package job_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/syntax"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A variable that the script uses for itself could change what it does, or
// lose its value, so the specification may not set it.
func TestNoVariableOfTheScriptsOwnCanBeSet(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.sh")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assigned(t, string(text), names)
	}
	require.Greater(t, len(names), 20)
	for name := range names {
		spec := twoNodes()
		spec.Env = map[string]string{name: "x"}
		_, err := job.Render(spec, job.Options{})
		// What a preset or a trace sets is the user's to set; LC_ALL stands before one command only.
		if err == nil {
			require.True(t, slices.ContainsFunc([]string{"NCCL_", "TORCH_", "PYTHONFAULT", "CUDA_", "T_", "HF_", "UV_", "GLOO_", "LC_ALL", "WANDB_", "MLFLOW_", "NVTE_"}, func(p string) bool {
				return strings.HasPrefix(name, p)
			}), "env.%s can be set, and the script uses it", name)
		}
	}
}

// assigned collects the variables that text assigns, and the texts inside its
// single quotes, which other shells read.
func assigned(t *testing.T, text string, names map[string]bool) {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return // not a shell's text
	}
	local := 0
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			local++ // what a function declares is gone when it returns
			return n.Name.Value != "look" && n.Name.Value != "watch_gpus"
		case *syntax.Assign:
			if n.Name != nil {
				names[n.Name.Value] = true
			}
		case *syntax.WordIter:
			names[n.Name.Value] = true
		case *syntax.SglQuoted:
			if strings.Contains(n.Value, "\n") && !strings.Contains(n.Value, "import ") {
				assigned(t, n.Value, names)
			}
		}
		return true
	})
}
