package pattern_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// A line that names a failure and says that the program goes on is not the cause of a later end.
func TestALineThatSaysThatItGoesOnIsNoCause(t *testing.T) {
	for name, line := range map[string]string{
		"ignored":                    "tuner: CUDA out of memory for plan 7 (ignored)",
		"not fatal":                  "tuner: CUDA out of memory for plan 7, nonfatal",
		"an optional part":           "ModuleNotFoundError: No module named 'apex' (optional)",
		"a fallback":                 "fused kernel: CUDA out of memory, falling back to the plain one",
		"an adapter's fabric":        "n1:1:2 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : SM change",
		"caught":                     "tuner: CUDA out of memory (caught)",
		"skipped":                    "tuner: plan 7 skipped: CUDA out of memory",
		"tried again":                "tuner: CUDA out of memory, retrying with half of it",
		"going on":                   "tuner: CUDA out of memory for plan 7, continuing",
		"a warning of Python's":      "/w/x.py:3: RuntimeWarning: CUDA out of memory for plan 7",
		"a plugin that is not there": "plugin: libnccl-net.so: cannot open shared object file; it will not be used",
		"another in its place":       "No module named 'apex': using torch for the norm",
		"resumed":                    "trainer: resumed after CUDA out of memory",
		"something instead":          "cache: No space left on device, /scratch is taken instead",
		"a first start":              "FileNotFoundError: no checkpoint in /ckpt, starting at 0",
		"tied weights":               "  There were missing keys in the checkpoint model loaded: ['lm_head.weight'].",
		"the next one":               "tuner: CUDA out of memory for plan 7, trying another plan",
		"an attempt of several":      "tuner: attempt 1/5: CUDA out of memory",
		"nothing to do":              "tuner: CUDA out of memory for plan 7; no action needed",
		"a control group":            "Error changing group of pid 148770: No space left on device",
		"a plug-in of conda's":       "Error while loading conda entry point: conda-libmamba-solver (libarchive.so.20: cannot open shared object file: No such file or directory)",
		"a rule as a command":        "run.sh: line 10: ==========: command not found",
		"a level below error":        "[WARNING] tuner: CUDA out of memory for plan 7",
		"a level without a margin":   "DEBUG tuner: CUDA out of memory for plan 7",
		"a level as a word":          "Info: CUDA out of memory for plan 7",
		"a level in brackets":        "tuner [INFO]: CUDA out of memory for plan 7",
		"a level between dashes":     "tuner - DEBUG - CUDA out of memory for plan 7",
		"a level between bars":       "10:02:03 | WARNING | CUDA out of memory for plan 7",
		"a level by its letter":      "[W tuner.cpp:12] CUDA out of memory for plan 7",
		"a level by its name":        "level=info msg=\"CUDA out of memory for plan 7\"",
	} {
		src, err := logfile.Read("slurm-1.out", strings.NewReader("loading\n"+line+"\nsrun: error: n1: task 0: Exited with exit code 1\n"))
		require.NoError(t, err)
		r, err := diagnose.Run(t.Context(), src, diagnose.Context{})
		require.NoError(t, err)
		require.Equal(t, outcome.UnknownExit, r.Class, "%s: %s", name, line)
	}
}

// Words that also occur with real failures do not make a line harmless.
func TestAWordOfCautionIsNoComfort(t *testing.T) {
	for _, line := range []string{
		"trainer: the step does not end as expected: CUDA out of memory",
		"trainer: CUDA out of memory, see the log of rank 3 for information",
		"trainer: the step could not be recovered: CUDA out of memory",
	} {
		src, err := logfile.Read("slurm-1.out", strings.NewReader("loading\n"+line+"\nsrun: error: n1: task 0: Exited with exit code 1\n"))
		require.NoError(t, err)
		r, err := diagnose.Run(t.Context(), src, diagnose.Context{})
		require.NoError(t, err)
		require.Equal(t, outcome.CUDAOOM, r.Class, line)
	}
}
