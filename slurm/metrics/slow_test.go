package metrics_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// readAs reads the log of a run on GPUs of the given kind.
func readAs(t *testing.T, gpu, log string) metrics.Run {
	t.Helper()
	r, err := metrics.ReadFrom("run", strings.NewReader(log), gpu)
	require.NoError(t, err)
	return r
}

// detected is a report of Megatron's straggler detector.
func detected(slow int, tf, most float64) string {
	return fmt.Sprintf("0: INFO:megatron.core.utils:[2026-11-20 12:00:00] | MnRtt/Rnk: 1446.49ms/13 | MxRtt/Rnk: 1570.32ms/%d "+
		"| MnDRtt/Rnk: 1.22ms/15 | MxDRtt/Rnk: 30.33ms/23 | MnEtpt/Rnk: %.2fTF/%d | MxEtpt/Rnk: %.2fTF/13\n", slow, tf, slow, most)
}

func TestAStragglerIsNamed(t *testing.T) {
	body := run(60, usual)
	for name, log := range map[string]string{
		"the detector, three times": body + detected(17, 380, 610) + detected(17, 375, 611) + detected(17, 379, 609),
		"its judgement":             body + "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected ranks: {17}\n",
		"timers of every rank": body + strings.Repeat("times across ranks (ms):\n  forward-compute:\n     rank  0: 100.00\n     rank  1: 101.00\n"+
			"     rank 16: 99.00\n     rank 17: 171.00\n  optimizer:\n     rank  0: 9.00\n", 3),
	} {
		found := readAs(t, "", log).Check()
		require.Len(t, found, 1, name)
		require.Equal(t, "straggler", found[0].ID, name)
		require.Equal(t, 17, *found[0].Rank, name)
		require.Contains(t, found[0].Fix.ZH, "--exclude", name)
	}
	for name, log := range map[string]string{
		"another one each time": body + detected(17, 380, 610) + detected(3, 375, 611) + detected(9, 379, 609),
		"stages that differ":    body + strings.Repeat(detected(30, 560, 609), 5),
		"once":                  body + detected(17, 380, 610),
		"long ago":              detected(17, 380, 610) + detected(17, 380, 610) + detected(17, 380, 610) + run(180, usual),
		"timers that hardly vary": body + strings.Repeat("times across ranks (ms):\n  forward-compute:\n     rank  0: 100.00\n     rank  1: 110.00\n"+
			"     rank  2: 105.00\n", 5),
	} {
		require.Empty(t, readAs(t, "", log).Check(), name)
	}
	two := readAs(t, "", body+strings.Repeat("times across ranks (ms):\n  forward-compute:\n     rank  0: 100.00\n     rank  1: 171.00\n", 3))
	require.Empty(t, two.Slowest, "of two ranks none is the usual one")
}

// The advice for runs at a tenth of the peak depends on what makes them slow.
func TestASlowStartNamesTheFlag(t *testing.T) {
	slow := strings.ReplaceAll(run(60, usual), "GPU): 400.0", "GPU): 90.0")
	arg := func(name, v string) string {
		return fmt.Sprintf("  %s %s %s\n", name, strings.Repeat(".", 40-len(name)), v)
	}
	full := "[Rank 0] (after 1 iterations) memory (MB) | allocated: 60000.0 | max allocated: 70000.0 | reserved: 72000.0 | max reserved: 74000.0\n"
	for name, c := range map[string]struct{ log, fix string }{
		"data": {arg("num_workers", "2") + slow + "(min, max) time across ranks (ms):\n    forward-backward ...............................: " +
			"(3200.10, 3200.90)\n    batch-generator ................................: (900.20, 1210.30)\n", "--num-workers 4"},
		"memory": {
			arg("micro_batch_size", "2") + slow +
				"[Rank 0] (after 1 iterations) memory (MB) | allocated: 20000.0 | max allocated: 28000.0 | reserved: 29000.0 | max reserved: 30000.0\n",
			"--micro-batch-size 4",
		},
		"recompute": {
			arg("recompute_granularity", "full") + slow +
				"[Rank 0] (after 1 iterations) memory (MB) | allocated: 20000.0 | max allocated: 28000.0 | reserved: 29000.0 | max reserved: 30000.0\n",
			"--recompute-granularity selective",
		},
		"data, since lately": {
			arg("num_workers", "2") + strings.Repeat("(min, max) time across ranks (ms):\n    batch-generator ................................: (1.20, 1.30)\n", 40) +
				slow + strings.Repeat("(min, max) time across ranks (ms):\n    batch-generator ................................: (900.20, 1210.30)\n", 16),
			"--num-workers 4",
		},
		"layout":  {arg("tensor_model_parallel_size", "16") + slow + full, "--tensor-model-parallel-size 8"},
		"overlap": {arg("overlap_grad_reduce", "False") + slow + full, "--overlap-grad-reduce"},
		"no hint": {slow + full, "--num-workers"},
	} {
		found := readAs(t, "h100", c.log).Check()
		require.Len(t, found, 1, name)
		require.Equal(t, "slow_start", found[0].ID, name)
		require.Contains(t, found[0].Fix.In(lang.EN), c.fix, name)
		require.Contains(t, found[0].Fix.In(lang.ZH), c.fix, name)
	}
}

// A batch size that doubles half-way, as with --rampup-batch-size, does not make a run slow.
func TestABatchThatGrowsIsNotSlow(t *testing.T) {
	small := run(60, usual)
	large := strings.ReplaceAll(run(120, func(i int) (string, string, string) {
		_, loss, grad := usual(i)
		return "8000.0", loss, grad
	}), "global batch size:   256", "global batch size:   512")
	_, large, ok := strings.Cut(large, "iteration       60/")
	require.True(t, ok)
	require.Empty(t, read(t, small+large).Check())
}

func TestRecentReadsTheEndsOfLongLogs(t *testing.T) {
	dir := t.TempDir()
	log := run(40, usual) + strings.Repeat("a line that says nothing at all of any number\n", 100_000) + run(100, usual)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.log"), []byte(log), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.log"), []byte(detected(3, 100, 200)), 0o644))
	r, err := metrics.Recent(context.Background(), nil, []string{dir}, "h100")
	require.NoError(t, err)
	require.Equal(t, 100, r.Iterations[len(r.Iterations)-1].N)
	require.Len(t, r.Slowest, 1, "of all files together")
	_, err = metrics.Recent(context.Background(), nil, []string{filepath.Join(dir, "gone")}, "")
	require.NoError(t, err)

	// A log that is longer than what is read of its beginning, and shorter than what is read of its end.
	dir = t.TempDir()
	log = run(40, usual) + strings.Repeat("a line that says nothing at all of any number\n", 10_000) + run(90, usual)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.log"), []byte(log), 0o644))
	r, err = metrics.Recent(context.Background(), nil, []string{dir}, "h100")
	require.NoError(t, err)
	require.Equal(t, 90, r.Iterations[len(r.Iterations)-1].N)
}
