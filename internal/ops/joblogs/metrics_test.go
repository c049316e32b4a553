package joblogs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestMetricsForetellNothingOfAJobThatHasEnded(t *testing.T) {
	log := filepath.Join(t.TempDir(), "x-7.out")
	require.NoError(t, os.WriteFile(log, []byte(
		" [2026-06-11 10:00:00] iteration        1/     100 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.000000E+00 |\n"+
			" [2026-06-11 10:00:01] iteration        2/     100 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.000000E+00 |\n"), 0o644))
	for state, tells := range map[slurm.State]bool{slurm.Running: true, slurm.Failed: false, slurm.Cancelled: false} {
		c := opstest.NewCall(t, &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{"7": {ID: "7", User: "alice", State: state, Stdout: log}}})
		out, err := opstest.Do(t, c, Metrics(), "7")
		require.NoError(t, err)
		require.Equal(t, tells, out.(MetricsOut).Runs[0].ETASeconds != nil, state)
	}
}
