package diagnose

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/flightrecorder"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// dense returns the launch of a dense model on world GPUs, with more flags.
func dense(world int, more string) megatron.Run {
	return megatron.Run{WorldSize: world, Arch: 9, Argv: strings.Fields("--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 " +
		"--seq-length 8192 --max-position-embeddings 8192 --global-batch-size 256 --bf16 --swiglu " + more)}
}

// The changes that are tried to reduce a launch's memory, cheapest first.
func TestWhichChangesAreTried(t *testing.T) {
	const (
		full  = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
		tensl = "--tensor-model-parallel-size 2 --sequence-parallel"
	)
	for flags, want := range map[string][]string{
		"--micro-batch-size 4": {
			"--micro-batch-size 2", "--use-distributed-optimizer", "--recompute-granularity selective", "--micro-batch-size 2", "--micro-batch-size 1",
			full, tensl, "--pipeline-model-parallel-size 2", "--context-parallel-size 2", full + " " + tensl,
		},
		"--micro-batch-size 1 --use-distributed-optimizer --recompute-granularity selective": {
			full, tensl, "--pipeline-model-parallel-size 2", "--context-parallel-size 2", full + " " + tensl,
		},
		"--micro-batch-size 1 --use-distributed-optimizer --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --context-parallel-size 2 " + full: {
			"--tensor-model-parallel-size 8 --sequence-parallel", "--pipeline-model-parallel-size 4", "--context-parallel-size 4",
			full + " --tensor-model-parallel-size 8 --sequence-parallel",
		},
		"--micro-batch-size 1 --use-distributed-optimizer --tensor-model-parallel-size 8 " + full: {
			"--pipeline-model-parallel-size 2", "--context-parallel-size 2",
		},
	} {
		args, _ := megatron.Parse(dense(64, flags))
		var tried []string
		for _, c := range changes(args.Effective()) {
			tried = append(tried, strings.Join(c, " "))
		}
		require.Equal(t, want, tried, flags)
	}
}

// The conditions of remedies that a job meets, by what is known of it.
func TestWhatTheJobHasAlready(t *testing.T) {
	run := func(world int, flags string, env ...string) Context {
		r := dense(world, flags)
		r.Env = map[string]string{}
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			r.Env[name] = value
		}
		return Context{Launch: &r}
	}
	const plain = "--micro-batch-size 2"
	for name, c := range map[string]struct {
		given  Context
		args   map[string]string
		memory *report.Memory
		has    []string
	}{
		"nothing":                    {run(64, plain), nil, nil, nil},
		"what it was told":           {Context{Already: []string{"x"}}, nil, nil, []string{"x"}},
		"a batch of one":             {run(64, "--micro-batch-size 1"), nil, nil, []string{report.SmallerBatch}},
		"full recomputation":         {run(64, plain+" --recompute-granularity full --recompute-method uniform --recompute-num-layers 1"), nil, nil, []string{report.RecomputeAll}},
		"a sharded optimizer":        {run(64, plain+" --use-distributed-optimizer"), nil, nil, []string{report.ShardOptimizer}},
		"nothing to shard over":      {run(8, plain+" --tensor-model-parallel-size 4 --context-parallel-size 2"), nil, nil, []string{report.MoreParallel, report.ShardOptimizer}},
		"stages of all":              {run(8, plain+" --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2"), nil, nil, []string{report.MoreParallel, report.ShardOptimizer}},
		"half of all":                {run(16, plain+" --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2"), nil, nil, nil},
		"a world that is not known":  {run(0, plain+" --tensor-model-parallel-size 4"), nil, nil, nil},
		"printed: a batch of one":    {Context{}, map[string]string{"micro_batch_size": "1"}, nil, []string{report.SmallerBatch}},
		"printed: all":               {Context{}, map[string]string{"recompute_granularity": "full", "use_distributed_optimizer": "True"}, nil, []string{report.RecomputeAll, report.ShardOptimizer}},
		"printed: other":             {Context{}, map[string]string{"micro_batch_size": "2", "recompute_granularity": "selective", "use_distributed_optimizer": "False"}, nil, nil},
		"segments that expand":       {run(64, plain, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64,expandable_segments:True"), nil, nil, []string{report.ExpandableSegments}},
		"little that is split":       {Context{}, nil, &report.Memory{TriedGiB: 2, ReservedGiB: 0.9}, []string{report.ExpandableSegments}},
		"half of it is split":        {Context{}, nil, &report.Memory{TriedGiB: 2, ReservedGiB: 1}, nil},
		"nobody knows what it tried": {Context{}, nil, &report.Memory{}, nil},
		"a trace buffer":             {run(64, plain, "TORCH_NCCL_TRACE_BUFFER_SIZE=2000"), nil, nil, []string{report.FlightRecorder}},
		"a recorder's buffer":        {run(64, plain, "TORCH_FR_BUFFER_SIZE=2000"), nil, nil, []string{report.FlightRecorder}},
		"NCCL says what it does":     {run(64, plain, "NCCL_DEBUG=INFO"), nil, nil, []string{report.DebugNCCL}},
		"NCCL says all that it does": {run(64, plain, "NCCL_DEBUG=TRACE"), nil, nil, []string{report.DebugNCCL}},
		"NCCL warns":                 {run(64, plain, "NCCL_DEBUG=WARN"), nil, nil, nil},
	} {
		j := newJob(sourceOf("x"), []*scan.Facts{{Args: c.args}}, c.given)
		require.ElementsMatch(t, c.has, j.alreadyHas(report.Report{Memory: c.memory}), name)
	}
	j := newJob(sourceOf("x"), []*scan.Facts{{Addresses: map[string]string{"10.0.0.1": "gpu1"}}}, Context{})
	j.missed = &flightrecorder.Missed{}
	require.ElementsMatch(t, []string{report.FlightRecorder, report.DebugNCCL}, j.alreadyHas(report.Report{}), "by what its logs show")
}

// The printed arguments of a run make its launch known only with layers, width and ranks.
func TestWhichLaunchIsKnown(t *testing.T) {
	args := func(without string) map[string]string {
		all := map[string]string{"num_layers": "32", "hidden_size": "4096", "world_size": "8", "bf16": "True", "fp16": "False", "num_experts": "None"}
		delete(all, without)
		return all
	}
	for without, known := range map[string]bool{"": true, "num_layers": false, "hidden_size": false, "world_size": false, "bf16": true} {
		run, given, ok := newJob(sourceOf("x"), []*scan.Facts{{Args: args(without)}}, Context{}).launch()
		require.Equal(t, known, ok, without)
		require.False(t, given, without)
		if without == "" {
			require.Equal(t, []string{"--num-layers", "32", "--hidden-size", "4096", "--bf16"}, run.Argv)
		}
	}
	run, given, ok := newJob(sourceOf("x"), nil, Context{Launch: &megatron.Run{WorldSize: 3}}).launch()
	require.True(t, given && ok)
	require.Equal(t, 3, run.WorldSize)
}

// An exception that does not tell a GPU's memory leads to no advice on flags.
func TestNoChangeIsToldOfWhatIsNotKnown(t *testing.T) {
	const flags = "--micro-batch-size 4 --tensor-model-parallel-size 2 --sequence-parallel"
	run, faulty := dense(64, flags), dense(64, flags+" stray")
	require.Nil(t, newJob(sourceOf("x"), []*scan.Facts{{}}, Context{Launch: &faulty}).fit(&report.Memory{TotalGiB: 80, TriedGiB: 2, FreeGiB: 1}),
		"arguments that Megatron refuses")
	for name, c := range map[string]struct {
		memory *report.Memory
		fits   bool
	}{
		"all":                        {&report.Memory{TotalGiB: 80, TriedGiB: 2, FreeGiB: 1}, true},
		"nothing":                    {nil, false},
		"not how much there is":      {&report.Memory{TriedGiB: 2, FreeGiB: 1}, false},
		"not how much it tried":      {&report.Memory{TotalGiB: 80, FreeGiB: 1}, false},
		"others' processes leave it": {&report.Memory{TotalGiB: 80, TriedGiB: 2, OthersGiB: 30}, true},
	} {
		fit := newJob(sourceOf("x"), []*scan.Facts{{}}, Context{Launch: &run}).fit(c.memory)
		require.Equal(t, c.fits, fit != nil, name)
		if c.fits {
			require.LessOrEqual(t, fit.EstimateGiB, 0.97*(c.memory.TotalGiB-c.memory.OthersGiB), name)
			require.Greater(t, fit.EstimateGiB, 0.1, name)
		}
	}
}

// Which rule Megatron's refusal of an unknown launch names.
func TestWhichRuleARefusalNames(t *testing.T) {
	for name, c := range map[string]struct {
		class, text string
		found       bool
	}{
		"two flags":                       {outcome.ParallelConfig, "AssertionError: num_attention_heads must be divisible by tensor_model_parallel_size", true},
		"no flag":                         {outcome.ParallelConfig, "AssertionError: no", false},
		"a class that no rule explains":   {outcome.UserException, "AssertionError: num_attention_heads must be divisible by tensor_model_parallel_size", false},
		"bad arguments name the same two": {outcome.BadArgs, "num attention heads must be divisible by tensor model parallel size", true},
	} {
		j := newJob(sourceOf("x"), []*scan.Facts{{}}, Context{})
		found := j.brokenRules(verdict{class: c.class, event: &scan.Event{Text: c.text}})
		require.Equal(t, c.found, len(found) == 1, "%s: %d", name, len(found))
		require.Empty(t, j.brokenRules(verdict{class: c.class}), name)
	}
}

// Launches that Megatron refused, and the rules that explain it: those that the launch breaks, else the
// one whose flags the message names.
func TestWhichRulesALaunchBreaks(t *testing.T) {
	const named = "AssertionError: num_attention_heads must be divisible by tensor_model_parallel_size"
	for name, c := range map[string]struct {
		flags, text, class string
		want               []string
	}{
		"several":             {"--micro-batch-size 3 --tensor-model-parallel-size 3 --fp16 --sequence-parallel --num-layers 31 --pipeline-model-parallel-size 2", named, outcome.ParallelConfig, []string{"world-multiple-of-model-size", "eval-batch-divisible", "layers-multiple-of-pp"}},
		"two":                 {"--micro-batch-size 1 --num-layers 31 --pipeline-model-parallel-size 2", named, outcome.ParallelConfig, []string{"layers-multiple-of-pp", "pipeline-layers-build"}},
		"none, and no flag":   {"--micro-batch-size 1", "AssertionError", outcome.ParallelConfig, nil},
		"none, and two flags": {"--micro-batch-size 1", named, outcome.ParallelConfig, []string{"heads-multiple-of-tp"}},
		"of another class":    {"--micro-batch-size 1 --tensor-model-parallel-size 3", named, outcome.CUDAOOM, nil},
	} {
		run := dense(8, c.flags+" --train-iters 9 --lr 1e-4")
		run.Env = map[string]string{"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
		var got []string
		for _, r := range newJob(sourceOf("x"), nil, Context{Launch: &run}).brokenRules(verdict{class: c.class, event: &scan.Event{Text: c.text}}) {
			got = append(got, r.ID)
		}
		require.Equal(t, c.want, got, name)
	}
}
