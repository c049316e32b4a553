package diagnose_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

func TestPySpyStacksAreGrouped(t *testing.T) {
	var b strings.Builder
	for rank := range 8 {
		where := "    all_reduce (torch/distributed/distributed_c10d.py:2259)\n"
		if rank == 5 {
			where = "    read (gpt_dataset.py:77)\n"
		}
		for _, l := range strings.Split(fmt.Sprintf("Process %d: python pretrain_gpt.py\nPython v3.12.3 (/usr/bin/python3.12)\n\n"+
			"Thread %d (idle): \"MainThread\"\n%s    train_step (training.py:%d)\nThread 99 (idle): \"Thread-1\"\n    wait (threading.py:359)\n", 100+rank,
			100+rank, where, 50), "\n") {
			fmt.Fprintf(&b, "%d: %s\n", rank, l)
		}
	}
	silent := int64(5400)
	src, err := logfile.Read("slurm-1.out", strings.NewReader(b.String()))
	require.NoError(t, err)
	r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent})
	require.NoError(t, err)
	require.Equal(t, outcome.Hang, r.Class)
	require.Equal(t, []report.StackGroup{
		{Ranks: []int{5}, Frames: []string{"read (gpt_dataset.py)", "train_step (training.py)"}},
		{Ranks: []int{0, 1, 2, 3, 4, 6, 7}, Frames: []string{"all_reduce (torch/distributed/distributed_c10d.py)", "train_step (training.py)"}},
	}, r.Stacks)
}

func TestMissingRanksAreSaid(t *testing.T) {
	dir := t.TempDir()
	for _, rank := range []string{"0", "3"} {
		p := filepath.Join(dir, "attempt_0", rank)
		require.NoError(t, os.MkdirAll(p, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(p, "stdout.log"), []byte("  world_size ...................................... 8\n"+diagnosetest.OOMLog), 0o644))
	}
	r, err := diagnose.Path(context.Background(), dir, diagnose.Context{})
	require.NoError(t, err)
	require.Contains(t, r.Notes, "logs of 2 of 8 ranks are available")
}
