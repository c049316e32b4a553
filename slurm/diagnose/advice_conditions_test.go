package diagnose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

// TestAdviceReadsTheJob prints a job's own arguments before it runs out of
// memory: what it has already is not advised, and nothing is said twice.
func TestAdviceReadsTheJob(t *testing.T) {
	arguments := func(micro, optimizer, granularity string) string {
		return "using world size: 8, data-parallel size: 8, context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n" +
			"  micro_batch_size ................................ " + micro + "\n" +
			"  recompute_granularity ........................... " + granularity + "\n" +
			"  use_distributed_optimizer ....................... " + optimizer + "\n"
	}
	advice := func(log string) string { return strings.Join(diagnoseText(t, log).Advice, "\n") }
	fresh := advice(arguments("4", "False", "None") + oomLog)
	require.Equal(t, 1, strings.Count(fresh, "try --micro-batch-size 2"))
	require.NotContains(t, fresh, "Halve --micro-batch-size", "its own number is said instead")
	require.Contains(t, fresh, "--use-distributed-optimizer")
	require.Contains(t, fresh, "--recompute-granularity full")
	spent := advice(arguments("1", "True", "full") + oomLog)
	require.NotContains(t, spent, "--micro-batch-size")
	require.NotContains(t, spent, "--use-distributed-optimizer")
	require.NotContains(t, spent, "--recompute-granularity full")
	require.Contains(t, spent, "parallelism")
	require.Contains(t, advice(oomLog), "Halve --micro-batch-size", "where the job's arguments are not known")
	for _, c := range diagnose.Classes() {
		seen := map[string]bool{}
		for _, a := range c.Advice {
			require.False(t, seen[a.EN], "%s says it twice: %s", c.ID, a.EN)
			seen[a.EN] = true
		}
	}
}
