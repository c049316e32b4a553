package joblogs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// TestASilentJobIsToldByItsLastLine uses a running job with one iteration each second
// whose log was written just now, or more than a minute ago.
func TestASilentJobIsToldByItsLastLine(t *testing.T) {
	log := filepath.Join(t.TempDir(), "x-7.out")
	require.NoError(t, os.WriteFile(log, []byte(strings.Repeat(
		" iteration        2/     100 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.000000E+00 |\n", 8)), 0o644))
	for age, hangs := range map[time.Duration]bool{time.Second: false, 70 * time.Second: true} {
		when := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(log, when, when))
		c := opstest.NewCall(t, &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{"7": {ID: "7", User: "alice", State: slurm.Running, Stdout: log}}})
		out, err := opstest.Do(t, c, Metrics(), "7")
		require.NoError(t, err)
		m := out.(MetricsOut)
		require.Equal(t, hangs, m.Pulses[0].MayHang)
		require.Equal(t, hangs, m.Runs[0].ETASeconds == nil)
		out, err = opstest.Do(t, c, Logs(), "7")
		require.NoError(t, err)
		l := out.(LogsOut)
		require.Equal(t, hangs, l.Pulse.MayHang)
		require.InDelta(t, age.Seconds(), float64(*l.Pulse.AgeS), 60)
		for _, v := range []string{fmt.Sprint(m.View(lang.EN)), fmt.Sprint(l.View(lang.EN))} {
			require.Equal(t, hangs, strings.Contains(v, "perhaps a hang"), v)
			require.Contains(t, v, "iteration 2, 1 s an iteration")
		}
	}
}
