package diagnose_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Ranks report their own iterations, in a file each or in one file; one of them stopped before the
// others.
func TestAHangNamesTheRanksBehind(t *testing.T) {
	each := func(to int) string {
		var b strings.Builder
		b.WriteString("> initializing torch distributed ...\n")
		for i := 1; i <= to; i++ {
			fmt.Fprintf(&b, "[2026-06-11 10:00:%02d.000000] iteration %8d/    1000 | consumed samples: 64 | elapsed time per iteration (ms): 1000.0 "+
				"| lm loss: 2.0E+00 |\n", i, i)
		}
		return b.String()
	}
	reached := func(rank int) int {
		if rank == 5 {
			return 17
		}
		return 18
	}
	apart, together := t.TempDir(), t.TempDir()
	var all strings.Builder
	written := make([][]string, 8)
	for rank := range 8 {
		log := each(reached(rank))
		require.NoError(t, os.WriteFile(filepath.Join(apart, fmt.Sprintf("train_%s_rank%04d.out", []string{"gpu07", "gpu08"}[rank/4], rank)), []byte(log), 0o600))
		written[rank] = strings.SplitAfter(strings.TrimSuffix(log, "\n"), "\n")
	}
	for i := range 19 {
		for rank, lines := range written {
			if i < len(lines) {
				fmt.Fprintf(&all, "%d: %s\n", rank, strings.TrimSpace(lines[i]))
			}
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(together, "slurm-12.out"), []byte(all.String()), 0o600))
	silent := int64(7200)
	for _, dir := range []string{apart, together} {
		r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent, Nodes: []string{"gpu07", "gpu08"}})
		require.NoError(t, err)
		require.Equal(t, outcome.Hang, r.Class)
		require.NotNil(t, r.Behind, dir)
		require.Equal(t, []int{5}, r.Behind.Ranks)
		require.Equal(t, "gpu08", r.Behind.Node)
		require.Contains(t, r.Summary, "Behind the others: rank 5 (node gpu08); they reached iteration 18.")
		require.Contains(t, r.View(lang.ZH).Sections[0].Text, "落后的是 rank 5（节点 gpu08）")
	}
}

// A py-spy dump of four ranks shows which of them stand apart.
func TestStacksTellWhoStandsApart(t *testing.T) {
	const waits, reads = "all_reduce (torch/distributed/distributed_c10d.py:2806)", "__getitem__ (gpt_dataset.py:211)"
	stack := func(label, where string) string {
		text := "Process 1001: python pretrain_gpt.py\n" + label + "Thread 0x7F (active): \"MainThread\"\n"
		if where != "" {
			text += label + "    " + where + "\n" + label + "    train (megatron/training/training.py:2100)\n"
		}
		return label + text + label + "\n"
	}
	for name, c := range map[string]struct {
		log   string
		apart []int
	}{
		"one of four":            {stack("0: ", waits) + stack("1: ", waits) + stack("2: ", reads) + stack("3: ", waits), []int{2}},
		"one of three":           {stack("0: ", reads) + stack("1: ", waits) + stack("2: ", waits), []int{0}},
		"two of four":            {stack("0: ", waits) + stack("1: ", waits) + stack("2: ", reads) + stack("3: ", reads), nil},
		"all wait":               {stack("0: ", waits) + stack("1: ", waits) + stack("2: ", waits), nil},
		"nobody knows which":     {stack("0: ", waits) + stack("1: ", waits) + stack("2: ", waits) + stack("", reads), nil},
		"one shows no stack":     {stack("0: ", waits) + stack("1: ", waits) + stack("2: ", waits) + stack("3: ", ""), nil},
		"one, and one without a": {stack("0: ", waits) + stack("1: ", waits) + stack("2: ", reads) + stack("3: ", ""), []int{2}},
	} {
		src, err := logfile.Read("slurm-7.out", strings.NewReader(c.log))
		require.NoError(t, err)
		silent := int64(7200)
		r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent})
		require.NoError(t, err)
		require.Equal(t, outcome.Hang, r.Class, name)
		if c.apart == nil {
			require.Nil(t, r.Behind, name)
			continue
		}
		require.NotNil(t, r.Behind, name)
		require.Equal(t, "stacks", r.Behind.By, name)
		require.Equal(t, c.apart, r.Behind.Ranks, name)
	}
}
