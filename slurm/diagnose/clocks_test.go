package diagnose_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

// The node that fails first has a clock that is ahead; both nodes log one moment.
func TestClocksAreCorrectedByWhatAllNodesSaw(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	stamp := func(d time.Duration) string { return at.Add(d).Format("2006-01-02 15:04:05") }
	failed := func(when time.Duration, rank int, said string) string {
		return fmt.Sprintf("[%s] [rank%d]: Traceback (most recent call last):\n[rank%d]:   File \"/w/train.py\", line 3, in step\n[rank%d]:     f()\n"+
			"[rank%d]: %s\n[%s] the worker ends\n", stamp(when), rank, rank, rank, rank, said, stamp(when+time.Second))
	}
	common := map[string]func(d time.Duration) string{
		"rendezvous": func(d time.Duration) string {
			return fmt.Sprintf("[%s] torch/distributed/elastic/agent/server/api.py:525] [default] Rendezvous complete for workers. Result:\n", stamp(d))
		},
		"iterations": func(d time.Duration) string {
			var b strings.Builder
			last := 5
			if d > 0 {
				last = 6 // of which the other node logs nothing
			}
			for i := 1; i <= last; i++ {
				fmt.Fprintf(&b, " [%s.000000] iteration %8d/     100 | consumed samples: 64 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.0E+00 |\n",
					stamp(d+time.Duration(i)*time.Second), i)
			}
			return b.String()
		},
		"nothing": func(time.Duration) string { return "hello\n" },
	}
	for name, say := range common {
		dir := t.TempDir()
		const ahead = 90 * time.Second
		require.NoError(t, os.WriteFile(filepath.Join(dir, "train-77-gpu1.err"), []byte(say(0)+failed(60*time.Second, 0, "ValueError: seen second")), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "train-77-gpu2.err"), []byte(say(ahead)+failed(40*time.Second+ahead, 8, "KeyError: 'seen first'")), 0o600))
		r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "FAILED", Nodes: []string{"gpu1", "gpu2"}})
		require.NoError(t, err)
		if name == "nothing" {
			require.Contains(t, r.RootLine, "seen second", "without a common event clocks are believed")
			require.Empty(t, r.Notes)
			continue
		}
		require.Contains(t, r.RootLine, "seen first", name)
		require.Equal(t, "gpu2", *r.RootNode, name)
		require.Contains(t, strings.Join(r.Notes, " "), "the clock of gpu2 is 1m30s ahead", name)
	}
}
