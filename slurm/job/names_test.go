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

// A specification may not set a variable that the script uses internally: the script
// could do something else, or the variable could lose its value.
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
		// The user may set the variables of presets and traces; LC_ALL is set for one command only.
		if err == nil {
			require.True(t, slices.ContainsFunc([]string{"NCCL_", "TORCH_", "PYTHONFAULT", "CUDA_", "T_", "HF_", "UV_", "GLOO_", "LC_ALL", "WANDB_", "MLFLOW_", "NVTE_"}, func(p string) bool {
				return strings.HasPrefix(name, p)
			}), "env.%s can be set, and the script uses it", name)
		}
	}
}

// assigned collects the variables that text assigns, including those in its single-quoted
// strings, which other shells run.
func assigned(t *testing.T, text string, names map[string]bool) {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return // the string is not shell code
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			// Variables that these two functions declare are local to them.
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
