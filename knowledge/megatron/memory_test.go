package megatron

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Part returns the bytes of the part with this name.
func (m Memory) Part(name string) float64 {
	for _, p := range m.Parts {
		if p.Name == name {
			return p.Bytes
		}
	}
	return 0
}

func effective(t *testing.T, world int, line string) *Config {
	t.Helper()
	a, errs := Parse(Run{Argv: strings.Fields(line), WorldSize: world, Arch: 9})
	require.Empty(t, errs)
	return a.Effective()
}

const (
	rms = " --swiglu --disable-bias-linear --normalization RMSNorm --untie-embeddings-and-output-weights --bf16 --use-distributed-optimizer " +
		"--hidden-dropout 0.0 --attention-dropout 0.0"
	gpt175b = "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --padded-vocab-size 51200 --seq-length 2048 --bf16 --use-distributed-optimizer"
	llama8b = "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 " +
		"--padded-vocab-size 128256 --seq-length 8192" + rms
	llama70b = "--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --group-query-attention --num-query-groups 8 " +
		"--padded-vocab-size 128256 --seq-length 8192" + rms
	mixtral = "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 " +
		"--padded-vocab-size 32000 --seq-length 4096 --num-experts 8 --moe-router-topk 2" + rms
	deepseek = "--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --multi-latent-attention --q-lora-rank 1536 " +
		"--kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --padded-vocab-size 129280 --seq-length 4096 --num-experts 256 " +
		"--moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 --moe-layer-freq ([0]*3+[1]*58)" + rms
)

// TestParameterCounts compares with the sizes stated in the papers.
func TestParameterCounts(t *testing.T) {
	for name, c := range map[string]struct {
		line        string
		all, active float64 // in 10^9
	}{
		"GPT-3 175B, arXiv:2005.14165":   {gpt175b, 174.6, 174.6},
		"Llama 3 8B, arXiv:2407.21783":   {llama8b, 8.03, 8.03},
		"Llama 3 70B, arXiv:2407.21783":  {llama70b, 70.55, 70.55},
		"Mixtral 8x7B, arXiv:2401.04088": {mixtral, 46.7, 12.9},
		"DeepSeek-V3, arXiv:2412.19437":  {deepseek, 671, 37.5},
	} {
		all, active := effective(t, 8, c.line).Shape().Params()
		require.InEpsilon(t, c.all, all/1e9, 0.005, name)
		require.InEpsilon(t, c.active, active/1e9, 0.01, name)
	}
}

// The bytes of weights and optimizer are close to the result of Megatron's own
// theoretical_memory_usage.py for the same arguments.
func TestEstimateAgreesOnWeights(t *testing.T) {
	for name, c := range map[string]struct {
		world int
		line  string
		bytes float64
	}{
		"GPT-3 175B":   {128, gpt175b + " --tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 128", 33565741056},
		"Llama 3 70B":  {64, llama70b + " --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 256", 40870692864},
		"Mixtral 8x7B": {64, mixtral + " --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 256", 20063312640},
	} {
		m := effective(t, c.world, c.line).Memory()
		got := m.Part(PartParameters) + m.Part(PartGradients) + m.Part(PartOptimizer)
		require.InEpsilon(t, c.bytes, got, 0.06, name)
	}
}

func TestMemoryDependsOnFlags(t *testing.T) {
	const base = llama8b + " --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 128"
	memory := func(more string) Memory { return effective(t, 16, base+" "+more).Memory() }
	plain := memory("")
	sum := 0.0
	for _, p := range plain.Parts {
		require.GreaterOrEqual(t, p.Bytes, 0.0, p.Name)
		sum += p.Bytes
	}
	require.InDelta(t, plain.Bytes, sum, 1, "the parts are the whole")

	less := func(part, more string) {
		t.Helper()
		require.Less(t, memory(more).Part(part), plain.Part(part), more)
	}
	less(PartActivations, "--sequence-parallel")
	less(PartActivations, "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1")
	less(PartActivations, "--recompute-granularity selective --recompute-modules mlp layernorm")
	less(PartActivations, "--context-parallel-size 2")
	less(PartActivations, "--fp8-format hybrid")
	const full = "--recompute-granularity full --recompute-num-layers "
	require.InEpsilon(t, memory(full+"1 --recompute-method uniform").Part(PartActivations), memory(full+"16 --recompute-method block").Part(PartActivations), 1e-9,
		"all 16 layers of the stage are recomputed one by one, either way")
	less(PartGradients, "--grad-reduce-in-bf16")
	less(PartParameters, "--tensor-model-parallel-size 4")
	less(PartParameters, "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params")
	require.Greater(t, effective(t, 16, strings.ReplaceAll(base, "--use-distributed-optimizer", "")).Memory().Part(PartOptimizer), plain.Part(PartOptimizer))
	require.Greater(t, memory("--num-virtual-stages-per-pipeline-rank 4").Part(PartActivations), plain.Part(PartActivations),
		"interleaving holds more in flight")

	last := effective(t, 16, base)
	shape := last.Shape()
	require.Zero(t, last.logits(&shape, 0), "logits are the last stage's")
	require.Positive(t, last.logits(&shape, 1))
	require.InDelta(t, plain.GiB(), last.GiBOf(&shape), 1e-9)
}

// Transformer Engine has no kernel for fp32, nor for a GPU before Ampere, that keeps the
// attention scores out of memory.
func TestAttentionScoresExistWhereNoKernelAvoidsThem(t *testing.T) {
	base := strings.ReplaceAll(small, "--bf16", "") + " --transformer-impl transformer_engine "
	kept := func(more string, arch int) float64 {
		c := effective(t, 8, base+more)
		c.Arch = arch
		return c.Memory().Part(PartActivations)
	}
	for _, unfused := range []float64{kept("", 9) / 2, kept("--fp16", 7)} {
		require.InEpsilon(t, kept("--fp16 --attention-backend unfused", 9), unfused, 0.05)
		require.Greater(t, unfused, 2*kept("--fp16", 9))
	}
	require.Equal(t, kept("--fp16", 8), kept("--fp16", 0), "an unknown GPU is a current one")
}

// The logits in fp32 are as large as their gradient, whatever computes the loss.
func TestLogitsInFP32(t *testing.T) {
	logits := func(flags string) float64 {
		c := effective(t, 8, strings.ReplaceAll(small, "--bf16", "")+" "+flags)
		s := c.Shape()
		return c.logits(&s, c.PP-1) / (c.tokens(&s) * float64(s.Vocab) / float64(c.TP))
	}
	for flags, bytes := range map[string][2]float64{ // in bf16, in fp32
		"":                            {6, 8},
		"--cross-entropy-loss-fusion": {10, 12},
		"--cross-entropy-loss-fusion --cross-entropy-fusion-impl te": {2, 4},
	} {
		require.InDeltaSlice(t, bytes[:], []float64{logits(flags + " --bf16"), logits(flags)}, 1e-9, flags)
	}
}

// The optimizers that keep one number a weight, and fp32 weights, whose state may be offloaded
// too.
func TestOptimizerStateOfEachOptimizer(t *testing.T) {
	state := func(flags string) float64 {
		_, _, state := effective(t, 8, strings.ReplaceAll(small, "--bf16", "")+" "+flags).bytesPerParam()
		return state
	}
	for flags, bytes := range map[string]float64{
		"--bf16": 12, "--bf16 --optimizer sgd": 8, "--bf16 --optimizer lion": 8, "--bf16 --optimizer muon": 8, "": 8, "--optimizer sgd": 4,
		"--optimizer-cpu-offload --optimizer-offload-fraction 0.5": 4,
	} {
		require.InDelta(t, bytes, state(flags), 1e-9, flags)
	}
}

// Muon keeps one number for each weight of a matrix. The embedding is left to Adam, which keeps two.
func TestMuonKeepsLessThanAdam(t *testing.T) {
	state := func(flags string) float64 { return effective(t, 1, small+" "+flags).Memory().Part(PartOptimizer) }
	c := effective(t, 1, small)
	s := c.Shape()
	params, _ := c.stageParams(&s, 0)
	embedding := c.embeddingParams(&s, 0)
	require.Positive(t, embedding)
	require.InDelta(t, 4*(params-embedding), state("")-state("--optimizer muon"), 1)
}

// The optimizer that deals whole layers out to the ranks shards Muon's state in every release. Before
// 0.18 it deals out whole tensors, and one rank has Adam's state of all of the embedding.
func TestDealtOutMuonIsSharded(t *testing.T) {
	state := func(release Release, flags string) float64 {
		args, _ := Parse(Run{Argv: strings.Fields(small + " --global-batch-size 64 " + flags), WorldSize: 64, Arch: 9, Release: release})
		return args.Effective().Memory().Part(PartOptimizer)
	}
	c := effective(t, 1, small)
	s := c.Shape()
	require.InDelta(t, state(Main, "--optimizer muon")/64, state(Main, "--optimizer dist_muon"), 1)
	for _, release := range []Release{V016, V017} {
		layers := state(Main, "--optimizer dist_muon") - 12*c.embeddingParams(&s, 0)/64
		require.InDelta(t, layers+12*c.vocabularyParams(&s), state(release, "--optimizer dist_muon"), 1)
		require.Less(t, state(release, "--optimizer dist_muon"), state(release, "--optimizer muon"))
	}
}

// An expert part keeps less when some of it is recomputed: the activation
// function or the shared expert. It keeps least when all of it is recomputed.
func TestRecomputeReducesMemoryOfExperts(t *testing.T) {
	base := deepseek + " --pipeline-model-parallel-size 16 --expert-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 256 "
	kept := func(modules string) float64 {
		return effective(t, 256, base+"--recompute-granularity selective --recompute-modules "+modules).Memory().Part(PartActivations)
	}
	none := kept("core_attn")
	require.Less(t, kept("core_attn moe_act"), none)
	require.Less(t, kept("core_attn shared_experts"), none)
	require.Less(t, kept("core_attn moe"), kept("core_attn moe_act shared_experts"))
}

// The bytes that each part keeps for a token, calculated by hand for
// DeepSeek-V3 on two tensor-parallel ranks.
func TestActivationsForEachToken(t *testing.T) {
	base := deepseek + " --tensor-model-parallel-size 2 --sequence-parallel --expert-tensor-parallel-size 2 --pipeline-model-parallel-size 16 " +
		"--expert-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 256 "
	const (
		input   = 4 * 7168 // of the norm and of the projection after it
		mask    = 7168     // of dropout
		latent  = 2 * (1536 + 512 + 64)
		qkv     = 2 * 128 * (2*192 + 128)
		out     = 2 * 128 * 128
		scores  = 2 * 128 * 4096 // the softmax
		dropped = 3 * 128 * 4096 // dropout's mask and result
		routed  = 2 * 7168 * 2   // to both tensor-parallel ranks of an expert
		expert  = 6 * 2048
		product = 2 * 2048 // output of an expert's activation function
	)
	for flags, want := range map[string][3]float64{ // attention, MLP, experts
		"": {(input + latent + qkv + out) / 2, (input + 6*18432) / 2, (input + 8*(routed+expert) + expert) / 2},
		"--attention-backend unfused": {
			(input + latent + qkv + out + scores) / 2, (input + 6*18432) / 2, (input + 8*(routed+expert) + expert) / 2,
		},
		"--attention-backend unfused --attention-dropout 0.1": {
			(input + mask + latent + qkv + out + scores + dropped) / 2, (input + mask + 6*18432) / 2, (input + mask + 8*(routed+expert) + expert) / 2,
		},
		"--recompute-granularity selective --recompute-modules mla_up_proj mlp moe_act": {
			(input + latent + out) / 2, input / 2, (input + 8*(routed+expert-product) + expert) / 2,
		},
	} {
		c := effective(t, 256, base+flags)
		s := c.Shape()
		require.Equal(t, want, [3]float64{c.attentionActivations(&s, 2), c.mlpActivations(&s, 2), c.moeActivations(&s, 2)}, flags)
	}
}

// Offloaded state and shorter types reduce the GPU's memory, and the low-precision
// copy of the weights adds to it.
func TestMemoryCountsOffloadingAndShortTypes(t *testing.T) {
	base := small + " --use-distributed-optimizer --transformer-impl transformer_engine"
	part := func(flags, name string) float64 { return effective(t, 8, base+" "+flags).Memory().Part(name) }
	plain := part("", PartOptimizer)
	require.InEpsilon(t, plain/2, part("--optimizer-cpu-offload --optimizer-offload-fraction 0.5 --use-precision-aware-optimizer", PartOptimizer), 1e-9)
	require.Zero(t, part("--optimizer-cpu-offload --optimizer-offload-fraction 1.0 --use-precision-aware-optimizer", PartOptimizer))
	require.InEpsilon(t, part("", PartActivations)*3/8, part("--cpu-offloading-num-layers 6", PartActivations), 1e-9, "of 8 layers two stay, and one is on its way")

	weights := part("", PartParameters) / 2
	for flags, bytes := range map[string]float64{
		"--fp8-format hybrid --fp8-recipe tensorwise":                    3,
		"--fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather": 2,
		"--fp4-format e2m1": 2.5,
	} {
		require.InEpsilon(t, bytes*weights, part(flags, PartParameters), 1e-9, flags)
	}
	args, _ := Parse(Run{Argv: strings.Fields(base + " --fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather"), WorldSize: 8, Arch: 10})
	require.InEpsilon(t, weights, args.Effective().Memory().Part(PartParameters), 1e-9, "Blackwell needs no transposed copy")
	require.Less(t, part("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te", PartLogits), part("", PartLogits))
}
