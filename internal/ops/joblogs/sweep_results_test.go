package joblogs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	for i, loss := range []string{"4.0E+00", "2.5E+00", "", "NAN", "5.0E+00"} {
		id := slurm.JobID(fmt.Sprintf("80_%d", i))
		j := slurm.Job{ID: id, Name: "gpt", User: "alice", State: slurm.Completed, WorkDir: dir, Stdout: filepath.Join(dir, fmt.Sprintf("gpt-%s.out", id))}
		text := "loading\n"
		if loss != "" {
			text = fmt.Sprintf(" [2026-06-11 10:00:00.000000] iteration       10/      10 | elapsed time per iteration (ms): 4000.0 | lm loss: %s |\n", loss)
		}
		if loss == "2.5E+00" { // a program that does not write how many there will be
			text = strings.Replace(text, "/      10", "", 1)
		}
		if loss == "5.0E+00" {
			text += " validation loss at iteration 10 | lm loss value: 2.0E+00 | lm loss PPL: 7.4E+00 |\n"
		}
		require.NoError(t, os.WriteFile(j.Stdout, []byte(text), 0o600))
		jobs[id] = j
	}
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: jobs})
	remember(t, c, "80", "name: gpt\nnodes: 1\ngpus_per_node: 8\nworktree: /lustre/m\nsweep: [\"lr=1e-3,1e-4,1e-5,1e-6,1e-7,1e-8\"]\n")
	var steps []string
	c.Progress = func(done, of int, what string) { steps = append(steps, fmt.Sprintf("%d/%d %s", done, of, what)) }
	out, err := opstest.Do(t, c, joblogs.Compare(), "--sweep", "80")
	require.NoError(t, err)
	var order []string
	for _, r := range out.(joblogs.CompareOut).Sweep {
		order = append(order, fmt.Sprintf("%s %s %s", r.Point, r.JobID, r.State))
	}
	require.Equal(t, []string{
		"lr=1e-7 80_4 COMPLETED", "lr=1e-4 80_1 COMPLETED", "lr=1e-3 80_0 COMPLETED", "lr=1e-5 80_2 COMPLETED", "lr=1e-6 80_3 COMPLETED", "lr=1e-8 80_5 ",
	}, order, "by validation where there is one; what has no loss, or no job, comes last")
	require.Subset(t, steps, []string{"1/6 lr=1e-3", "6/6 lr=1e-8"})
	text := opstest.Text(t, out, lang.EN)
	require.Contains(t, text, "6 points, the best first")
	require.Regexp(t, `lr=1e-7 +80_4 +COMPLETED +10/10 +5 +5 +2 +4\s`, text)
	require.Regexp(t, `lr=1e-4 +80_1 +COMPLETED +10 +2\.5 `, text, "10 of a number that nobody knows is no 10/0")
	require.Contains(t, text, "metrics 80_4")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "6 组参数")
	_, err = opstest.Do(t, c, joblogs.Compare(), "--sweep", "81")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
}
