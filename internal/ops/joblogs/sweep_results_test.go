package joblogs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestTheBestPointOfASweepComesFirst(t *testing.T) {
	dir := t.TempDir()
	jobs := map[slurm.JobID]slurm.Job{}
	for i, loss := range []string{"4.0E+00", "2.5E+00", ""} {
		id := slurm.JobID(fmt.Sprintf("80_%d", i))
		j := slurm.Job{ID: id, Name: "gpt", User: "alice", State: slurm.Completed, WorkDir: dir, Stdout: filepath.Join(dir, fmt.Sprintf("gpt-%s.out", id))}
		text := "loading\n"
		if loss != "" {
			text = fmt.Sprintf(" [2026-06-11 10:00:00.000000] iteration       10/      10 | elapsed time per iteration (ms): 4000.0 | lm loss: %s |\n", loss)
		}
		require.NoError(t, os.WriteFile(j.Stdout, []byte(text), 0o600))
		jobs[id] = j
	}
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: jobs})
	remember(t, c, "80", "name: gpt\nnodes: 1\ngpus_per_node: 8\nworktree: /lustre/m\nsweep: [\"lr=1e-3,1e-4,1e-5,1e-6\"]\n")
	out, err := opstest.Do(t, c, joblogs.Compare(), "--sweep", "80")
	require.NoError(t, err)
	var order []string
	for _, r := range out.(joblogs.CompareOut).Sweep {
		order = append(order, fmt.Sprintf("%s %s %s", r.Point, r.JobID, r.State))
	}
	require.Equal(t, []string{"lr=1e-4 80_1 COMPLETED", "lr=1e-3 80_0 COMPLETED", "lr=1e-5 80_2 COMPLETED", "lr=1e-6 80_3 "}, order, "what has no loss, or no job, comes last")
	require.Contains(t, opstest.Text(t, out, lang.EN), "4 points, the best first")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "4 组参数")
	_, err = opstest.Do(t, c, joblogs.Compare(), "--sweep", "81")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
}
