package report_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// TestAdviceReadsTheJob prints a job's arguments before it runs out of memory: the advice leaves out
// what the job has already, and repeats nothing.
func TestAdviceReadsTheJob(t *testing.T) {
	arguments := func(micro, optimizer, granularity string) string {
		return "using world size: 8, data-parallel size: 8, context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n" +
			"  micro_batch_size ................................ " + micro + "\n" +
			"  recompute_granularity ........................... " + granularity + "\n" +
			"  use_distributed_optimizer ....................... " + optimizer + "\n"
	}
	advice := func(log string) string { return strings.Join(diagnosetest.Text(t, log).Advice, "\n") }
	fresh := advice(arguments("4", "False", "None") + diagnosetest.OOMLog)
	require.Equal(t, 1, strings.Count(fresh, "try --micro-batch-size 2"))
	require.NotContains(t, fresh, "Halve --micro-batch-size", "its own number is said instead")
	require.Contains(t, fresh, "--use-distributed-optimizer")
	require.Contains(t, fresh, "--recompute-granularity full")
	spent := advice(arguments("1", "True", "full") + diagnosetest.OOMLog)
	require.NotContains(t, spent, "--micro-batch-size")
	require.NotContains(t, spent, "--use-distributed-optimizer")
	require.NotContains(t, spent, "--recompute-granularity full")
	require.Contains(t, spent, "parallelism")
	require.Contains(t, advice(diagnosetest.OOMLog), "Halve --micro-batch-size", "where the job's arguments are not known")
	for _, c := range outcome.Classes() {
		seen := map[string]bool{}
		for _, a := range c.Advice {
			require.False(t, seen[a.EN], "%s says it twice: %s", c.ID, a.EN)
			seen[a.EN] = true
		}
	}
}

// What only the specification tells: a job with all memory is not advised to ask for more, one without
// a container passes nothing into one, and a single rank shards nothing.
func TestAdviceReadsTheSpecification(t *testing.T) {
	advice := func(log string, c diagnose.Context) string {
		return strings.Join(diagnosetest.With(t, log, c).Advice, "\n")
	}
	killed := "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n"
	require.Contains(t, advice(killed, diagnose.Context{}), "--mem")
	whole := advice(killed, diagnose.Context{Already: []string{report.AllMemory}})
	require.NotContains(t, whole, "--mem ")
	require.Contains(t, whole, "--num-workers")
	refused := "Traceback (most recent call last):\n  File \"/w/arguments.py\", line 9, in validate_args\n    assert x\n" +
		"AssertionError: Using tensor model parallelism or context parallelism require setting the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 1\n"
	require.Contains(t, advice(refused, diagnose.Context{}), "container")
	require.NotContains(t, advice(refused, diagnose.Context{Already: []string{report.ContainerVariables}}), "container")
	alone := megatron.Run{WorldSize: 4, Argv: strings.Fields("--num-layers 8 --hidden-size 512 --num-attention-heads 8 --tensor-model-parallel-size 4")}
	require.NotContains(t, advice(diagnosetest.OOMLog, diagnose.Context{Launch: &alone}), "--use-distributed-optimizer")
	alone.WorldSize = 8
	require.Contains(t, advice(diagnosetest.OOMLog, diagnose.Context{Launch: &alone}), "--use-distributed-optimizer")
}
