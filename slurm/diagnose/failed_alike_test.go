package diagnose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
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

// A check of the environment failed, and the job's other log tells whether its program did its work without.
func TestACheckThatFailedBeforeTheProgram(t *testing.T) {
	check := "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nModuleNotFoundError: No module named 'tensorflow'\n"
	program := strings.ReplaceAll(check, "<string>", "/w/train.py")
	library := strings.Repeat("2026-04-20 13:51:39.72: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1616] Created device gpu:0\n", 3)
	pairs := diagnosetest.Rounds(9, "Pair {n}: Dice = 0.5\n")
	for name, c := range map[string]struct{ err, out, class string }{
		"the program completed":            {check + library, pairs + "Job finished at Mon Apr 20 01:51:46 PM EDT 2026\n", outcome.Success},
		"nothing behind the check":         {check, pairs + "Job finished at Mon Apr 20 01:51:46 PM EDT 2026\n", outcome.ImportError},
		"the check ran the program":        {strings.Replace(check, "<module>\n", "<module>\n  File \"/w/train.py\", line 3, in main\n", 1) + library, pairs + "Job finished at Mon Apr 20 01:51:46 PM EDT 2026\n", outcome.ImportError},
		"it did not":                       {check + library, pairs, outcome.ImportError},
		"the program itself lacked it":     {program, pairs + "Job finished at Mon Apr 20 01:51:46 PM EDT 2026\n", outcome.ImportError},
		"a task left with the check's end": {check + "srun: error: gpu1: task 0: Exited with exit code 1\n", "Job finished at Mon Apr 20 01:51:46 PM EDT 2026\n", outcome.ImportError},
	} {
		r := ofFolder(t, map[string]string{"job.err": c.err, "job.out": c.out})
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
	}
}
