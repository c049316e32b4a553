package diagnose_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Several tasks that fail alike before the training is launched do not show that the script went on after the first of them.
func TestTasksThatFailAlikeInACheck(t *testing.T) {
	missing := "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nModuleNotFoundError: No module named 'transformer_engine'\n"
	exits := "srun: error: gpu1: tasks 0-3,5-6: Exited with exit code 1\nsrun: error: gpu1: task 4: Exited with exit code 1\n"
	for name, c := range map[string]struct{ log, class string }{
		"not launched": {strings.Repeat(missing, 7) + exits + "pre-flight failed (1), not launching\n", outcome.ImportError},
		"went on":      {missing + diagnosetest.Rounds(9, "Epoch {n}: Train Loss 0.1\n") + exits, outcome.UnknownExit},
	} {
		r := diagnosetest.Old(t, "pre-flight: imports\n"+c.log)
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
	}
}
