package pattern_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestPhrases has every known message about a failure, each in the log of a run that was healthy
// before, among irrelevant lines.
func TestPhrases(t *testing.T) {
	b, err := os.ReadFile(diagnosetest.Testdata("phrases.txt"))
	require.NoError(t, err)
	seen := map[string]int{}
	for n, row := range strings.Split(string(b), "\n") {
		class, phrase, ok := strings.Cut(row, " ")
		if !ok || strings.HasPrefix(row, "#") {
			continue
		}
		seen[class]++
		t.Run(fmt.Sprintf("%s/%d", class, n+1), func(t *testing.T) {
			log, want := phraseLog(phrase)
			src, err := logfile.Read("slurm-1.out", strings.NewReader(log))
			require.NoError(t, err)
			r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "ENDED"})
			require.NoError(t, err)
			require.Equal(t, class, r.Class, "%s\n%+v", log, r)
			require.Contains(t, r.RootLine, want)
			require.NotEmpty(t, r.Advice)
			require.NotEmpty(t, r.Summary)
		})
	}
	for _, c := range outcome.Classes() {
		if c.ID != outcome.Hang && c.ID != outcome.Running && c.ID != outcome.Success {
			require.Positive(t, seen[c.ID], "a class without a phrase: %s", c.ID)
		}
	}
}

// phraseLog returns a log around a phrase, and the line that is the cause.
func phraseLog(phrase string) (log, want string) {
	var b strings.Builder
	b.WriteString(noise)
	for i := range 4 {
		fmt.Fprintf(&b, " [2026-06-11 10:0%d:00] iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): 60000.0 "+
			"| learning rate: 1.000000E-04 | global batch size:    64 | lm loss: 2.%d00000E+00 | loss scale: 1.0 | grad norm: 0.500 "+
			"| number of skipped iterations:   0 | number of nan iterations:   0 |\n", i, i+100, 64*(i+100), 4-i)
	}
	want = phrase
	if frames, ok := strings.CutPrefix(phrase, "! "); ok {
		stack, text, _ := strings.Cut(frames, " ! ")
		want = text
		b.WriteString("Traceback (most recent call last):\n  File \"/w/pretrain_gpt.py\", line 9, in <module>\n    pretrain(\n")
		for _, f := range strings.Fields(stack) {
			file, function, _ := strings.Cut(f, ":")
			fmt.Fprintf(&b, "  File \"/w/%s\", line 7, in %s\n    raise\n", file, function)
		}
		b.WriteString(text + "\n")
	} else {
		b.WriteString(phrase + "\n")
	}
	return b.String(), strings.TrimSpace(want[:min(len(want), 60)])
}

// noise are lines of healthy runs that look like failures.
const noise = `WARNING:root:could not import fused_thing (optional), falling back to the slow path
[W610 10:11:12.0 socket.cpp:464] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not supported by protocol).
n1:12:12 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.
wandb: ERROR Error while calling W&B API: context deadline exceeded
  error_injection_rate ............................ 0
  exit_on_missing_checkpoint ...................... True
WARNING: could not find the metadata file /ckpt/latest_checkpointed_iteration.txt
    will not load any checkpoints and will start from random
/v/lib/python3.12/site-packages/x.py:3: FutureWarning: this error will be raised in a later version
`
