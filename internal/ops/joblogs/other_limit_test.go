package joblogs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// The diagnosis of a job whose reservation ended says so before it advises more time.
func TestATimeoutBeforeTheTimeLimit(t *testing.T) {
	log := filepath.Join(t.TempDir(), "gpt-7.out")
	require.NoError(t, os.WriteFile(log, []byte("slurmstepd-gpu4: error: *** JOB 7 ON gpu4 CANCELLED AT 2026-06-11T11:16:59 DUE TO TIME LIMIT ***\n"), 0o600))
	limit := int64(1800)
	for elapsed, early := range map[int64]bool{82: true, 1801: false} {
		j := slurm.Job{ID: "7", User: "alice", State: slurm.Timeout, Reason: "TimeLimit", ElapsedS: elapsed, TimeLimitS: &limit, Stdout: log, Nodes: []string{"gpu4"}}
		out, err := opstest.Do(t, opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": j}}), joblogs.Diagnose(), "7")
		require.NoError(t, err)
		text := opstest.Text(t, out, lang.EN)
		if early {
			require.Contains(t, text, "its reservation ended")
			require.Contains(t, text, "01:22 of 30:00")
		} else {
			require.NotContains(t, text, "reservation")
		}
	}
}
