package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

const mixed = " --bf16 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --attention-dropout 0.0 --hidden-dropout 0.0 --train-iters 1000 --lr 1e-4 --min-lr 1e-5 --lr-warmup-iters 10 --mock-data"

const llamaLike = " --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights --group-query-attention --num-query-groups 8 --vocab-size 128256 --seq-length 8192 --max-position-embeddings 8192"

// models are published architectures as Megatron's flags.
var models = map[string]string{
	// Llama 3, arXiv:2407.21783, table 3.
	"Llama 3 8B":   "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32" + llamaLike + mixed,
	"Llama 3 70B":  "--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64" + llamaLike + mixed,
	"Llama 3 405B": "--num-layers 126 --hidden-size 16384 --ffn-hidden-size 53248 --num-attention-heads 128" + llamaLike + mixed,
	// Llama 3 with the sequence length of its last stage of training, section 3.4.2.
	"Llama 3 405B, 131k": "--num-layers 126 --hidden-size 16384 --ffn-hidden-size 53248 --num-attention-heads 128" + strings.ReplaceAll(llamaLike, "8192", "131072") + mixed,
	// GPT-3, arXiv:2005.14165, table 2.1.
	"GPT-3 175B": "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50257" + mixed,
	// Mixtral, arXiv:2401.04088, table 1.
	"Mixtral 8x7B": "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --vocab-size 32000 --seq-length 4096 --max-position-embeddings 32768 --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall" + mixed,
	// DeepSeek-V3, arXiv:2412.19437, section 4.2.
	"DeepSeek-V3": "--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --vocab-size 129280 --seq-length 4096 --max-position-embeddings 4096 --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 --moe-layer-freq ([0]*3+[1]*58) --moe-router-score-function sigmoid --moe-grouped-gemm --moe-token-dispatcher-type alltoall --mtp-num-layers 1" + mixed,
}

// shardedGrads shards gradients over the data-parallel ranks like the optimizer's
// state and keeps the weights whole after the forward pass, as Meta's trainer does
// (arXiv:2407.21783, section 3.3.2). With plain data parallelism the paper's layouts
// would need recompute to fit.
const shardedGrads = " --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads --ckpt-format fsdp_dtensor"

// published are layouts of real runs, with the source of each.
var published = []struct {
	model, flags, gpu string
	gpus              int
	layout            megatron.Layout // sizes of 0 may be any
	// tflops is the published speed of each GPU; 0 where none is published.
	tflops float64
	// slower is how much slower than our first option the layout may be by our
	// estimate, where it is not in the top fifth; 0 means 0.1.
	slower float64
	source string
}{
	{"Llama 3 8B", "--global-batch-size 128 --grad-reduce-in-bf16", "h100", 8, megatron.Layout{TP: 1, PP: 1, CP: 2}, 0, 0, "docs/user-guide/parallelism-guide.md of Megatron-LM; Megatron-Bridge llama3_8b_pretrain_8gpu_h100_bf16_config"},
	{"Llama 3 70B", "--global-batch-size 256 --grad-reduce-in-bf16", "h100", 64, megatron.Layout{TP: 4, PP: 4, CP: 2}, 0, 0, "docs/user-guide/parallelism-guide.md of Megatron-LM; Megatron-Bridge llama3_70b_pretrain_64gpu_h100_bf16_config"},
	{"Llama 3 405B", "--global-batch-size 1536 --grad-reduce-in-bf16", "h100", 1024, megatron.Layout{TP: 8, PP: 8, CP: 2}, 0, 0, "docs/user-guide/parallelism-guide.md of Megatron-LM; Megatron-Bridge llama31_405b_pretrain_1024gpu_h100_bf16_config"},
	{"Llama 3 405B", "--global-batch-size 2048" + shardedGrads, "h100", 8192, megatron.Layout{TP: 8, PP: 16, CP: 1}, 430, 0, "arXiv:2407.21783, table 4"},
	{"Llama 3 405B", "--global-batch-size 2048" + shardedGrads, "h100", 16384, megatron.Layout{TP: 8, PP: 16, CP: 1}, 400, 0, "arXiv:2407.21783, table 4"},
	{"Llama 3 405B, 131k", "--global-batch-size 128" + shardedGrads, "h100", 16384, megatron.Layout{TP: 8, PP: 16, CP: 16}, 380, 0, "arXiv:2407.21783, table 4"},
	// The larger two with Megatron's plain data parallelism. They fit because gradients
	// are in bf16, as in Megatron-Bridge's recipe for 405B.
	{"Llama 3 405B", "--global-batch-size 2048 --grad-reduce-in-bf16", "h100", 16384, megatron.Layout{TP: 8, PP: 16, CP: 1}, 0, 0, "arXiv:2407.21783, table 4"},
	{"Llama 3 405B, 131k", "--global-batch-size 128 --grad-reduce-in-bf16", "h100", 16384, megatron.Layout{TP: 8, PP: 16, CP: 16}, 0, 0, "arXiv:2407.21783, table 4"},
	{"GPT-3 175B", "--global-batch-size 256", "h100", 128, megatron.Layout{TP: 4, PP: 8, CP: 1}, 0, 0, "docs/user-guide/parallelism-guide.md of Megatron-LM"},
	{"GPT-3 175B", "--global-batch-size 1536", "a100", 1024, megatron.Layout{TP: 8, PP: 16, CP: 1}, 0, 0, "examples/gpt3/train_gpt3_175b_distributed.sh of Megatron-LM"},
	{"Mixtral 8x7B", "--global-batch-size 256", "h100", 64, megatron.Layout{TP: 1, PP: 4, CP: 1, EP: 8}, 0, 0, "examples/mixtral/train_mixtral_8x7b_distributed.sh of Megatron-LM"},
	{"DeepSeek-V3", "--global-batch-size 15360 --fp8-format e4m3 --fp8-recipe blockwise", "h800", 2048, megatron.Layout{TP: 1, PP: 16, CP: 1, EP: 64}, 0, 0.25, "arXiv:2412.19437, section 3.2; its schedule, DualPipe, hides the all-to-all, Megatron's does not"},
	{"DeepSeek-V3", "--global-batch-size 8192", "h100", 1024, megatron.Layout{TP: 2, PP: 16, CP: 1, EP: 64}, 0, 0.25, "docs/user-guide/parallelism-guide.md of Megatron-LM"},
}

func same(want, got megatron.Layout) bool {
	return want.TP == got.TP && want.PP == got.PP && want.CP == got.CP && (want.EP == 0 || want.EP == got.EP)
}

// TestPublishedLayoutsAreRecommended checks the layouts of published runs. Each must
// be legal, fit in memory, and rank in the top fifth or be nearly as fast as the first.
func TestPublishedLayoutsAreRecommended(t *testing.T) {
	for _, p := range published {
		t.Run(fmt.Sprintf("%s on %d %s", p.model, p.gpus, p.gpu), func(t *testing.T) {
			r, err := Recommend(Question{Argv: strings.Fields(models[p.model] + " " + p.flags), GPUs: p.gpus, GPU: p.gpu})
			require.NoError(t, err)
			rank := -1
			for i, o := range r.Options {
				if same(p.layout, o.Layout) {
					rank = i
					break
				}
			}
			for i, o := range r.Best(3) {
				t.Logf("%d: %s mbs %d %s %.1f GiB %.0f TFLOP/s %.2f s", i+1, o.Layout, o.MicroBatch, o.Recompute, o.Memory.GiB(), o.TFLOPs, o.StepSeconds)
			}
			require.GreaterOrEqual(t, rank, 0, "%v is not among the %d legal layouts that fit (%s)", p.layout, len(r.Options), p.source)
			o := r.Options[rank]
			t.Logf("published %s: rank %d of %d, mbs %d %s %.1f GiB, %.0f TFLOP/s", o.Layout, rank+1, len(r.Options), o.MicroBatch, o.Recompute, o.Memory.GiB(), o.TFLOPs)
			if p.tflops > 0 {
				require.InEpsilon(t, p.tflops, o.TFLOPs, 0.1, "the cost model is near what was measured")
			}
			behind := o.StepSeconds/r.Options[0].StepSeconds - 1
			require.True(t, rank+1 <= (len(r.Options)+4)/5 || behind <= max(p.slower, 0.1), "%v ranks %d of %d, %.0f %% behind (%s)", p.layout, rank+1, len(r.Options), 100*behind, p.source)
		})
	}
}

func TestRecommendForManyGPUs(t *testing.T) {
	r, err := Recommend(Question{Argv: strings.Fields(models["Llama 3 405B"] + " --global-batch-size 2048"), GPUs: 4096, GPU: "h100"})
	require.NoError(t, err)
	require.NotEmpty(t, r.Options)
}

// BenchmarkRecommend ranks all layouts of 4,096 GPUs. It must take less than 100 ms.
func BenchmarkRecommend(b *testing.B) {
	for _, model := range []string{"Llama 3 405B", "DeepSeek-V3"} {
		argv := strings.Fields(models[model] + " --global-batch-size 8192")
		b.Run(model, func(b *testing.B) {
			for b.Loop() {
				_, err := Recommend(Question{Argv: argv, GPUs: 4096, GPU: "h100"})
				require.NoError(b, err)
			}
		})
	}
}

func TestRecommendedFlagsAreAccepted(t *testing.T) {
	for _, q := range []Question{
		{Argv: strings.Fields(models["Llama 3 8B"] + " --global-batch-size 128 --grad-reduce-in-bf16"), GPUs: 8, GPU: "h200"},
		{Argv: strings.Fields(models["Llama 3 70B"] + " --global-batch-size 256"), GPUs: 64, GPU: "b200"},
		{Argv: strings.Fields(models["Mixtral 8x7B"] + " --global-batch-size 256"), GPUs: 64, GPU: "h100"},
		{Argv: strings.Fields(models["DeepSeek-V3"] + " --global-batch-size 8192"), GPUs: 1024, GPU: "h100"},
		{Argv: strings.Fields(models["GPT-3 175B"] + " --global-batch-size 256"), GPUs: 256, GPU: "a100"},
	} {
		r, err := Recommend(q)
		require.NoError(t, err)
		require.NotEmpty(t, r.Options)
		gpu, _ := megatron.LookupGPU(q.GPU)
		for _, o := range r.Best(3) {
			env := map[string]string{}
			if o.Connections != Unset {
				env[connections] = o.Connections
			}
			v := Check(megatron.Run{Argv: append(append([]string{}, q.Argv...), o.Flags...), WorldSize: q.GPUs, Arch: gpu.Arch, Env: env})
			require.True(t, v.OK, "%s with %v: %v", o.Layout, o.Flags, v.Problems)
			require.Less(t, o.Memory.GiB(), gpu.MemoryGiB)
			require.NotEmpty(t, o.Reasons)
			for _, reason := range o.Reasons {
				require.NotEmpty(t, reason.ZH)
			}
		}
	}
}

// A question with the model alone gets the distributed optimizer, as usual in
// practice.
func TestRecommendAddsTheDistributedOptimizer(t *testing.T) {
	const added = "--use-distributed-optimizer"
	given := models["Llama 3 8B"] + " --global-batch-size 128 --grad-reduce-in-bf16"
	bare := strings.NewReplacer(" "+added, "", " --overlap-grad-reduce", "", " --overlap-param-gather", "").Replace(given)
	require.NotContains(t, bare, added)
	with, err := Recommend(Question{Argv: strings.Fields(given), GPUs: 8, GPU: "h100"})
	require.NoError(t, err)
	without, err := Recommend(Question{Argv: strings.Fields(bare), GPUs: 8, GPU: "h100"})
	require.NoError(t, err)
	require.Len(t, without.Options, len(with.Options))
	for i, o := range without.Options {
		require.Equal(t, with.Options[i].Layout, o.Layout)
		require.Equal(t, o.DP*o.CP > 1, strings.Contains(strings.Join(o.Flags, " "), added), "%s: %v", o.Layout, o.Flags)
	}
	sgd, err := Recommend(Question{Argv: strings.Fields(bare + " --optimizer sgd"), GPUs: 8, GPU: "h100"})
	require.NoError(t, err)
	require.NotEmpty(t, sgd.Options)
	require.NotContains(t, sgd.Options[0].Flags, added, "the distributed optimizer asserts that it shards Adam")
	// FSDP shards the optimizer itself.
	fsdp, err := Recommend(Question{Argv: strings.Fields(bare + shardedGrads), GPUs: 8, GPU: "h100"})
	require.NoError(t, err)
	require.NotEmpty(t, fsdp.Options)
	require.NotContains(t, fsdp.Options[0].Flags, added)
}

func TestRecommendRejectsIncompleteQuestions(t *testing.T) {
	_, err := Recommend(Question{Argv: strings.Fields(models["Llama 3 8B"]), GPUs: 8, GPU: "abacus"})
	require.ErrorContains(t, err, `gpu "abacus" is not known`)
	_, err = Recommend(Question{Argv: strings.Fields(models["Llama 3 8B"]), GPUs: 0, GPU: "h100"})
	require.ErrorContains(t, err, "gpus is 0")
	_, err = Recommend(Question{Argv: []string{"--num-layers", "4"}, GPUs: 8, GPU: "h100"})
	require.ErrorContains(t, err, "--hidden-size")
	_, err = Recommend(Question{Argv: []string{"--num-layer", "4"}, GPUs: 8, GPU: "h100"})
	require.ErrorContains(t, err, "--num-layer")

	r, err := Recommend(Question{Argv: strings.Fields(models["Llama 3 405B"] + " --global-batch-size 64"), GPUs: 8, GPU: "h100"})
	require.NoError(t, err, "too large a model is an answer, not an error")
	require.Empty(t, r.Options)
	require.Greater(t, r.Smallest, 80.0, "it says how much the least layout would need")
}

func TestRecommendForOneGPU(t *testing.T) {
	small := "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 --global-batch-size 64" + mixed
	r, err := Recommend(Question{Argv: strings.Fields(small), GPUs: 1, GPU: "l40s"})
	require.NoError(t, err)
	require.Len(t, r.Options, 1)
	require.Equal(t, megatron.Layout{TP: 1, PP: 1, CP: 1, EP: 1, ETP: 1, DP: 1, EDP: 1}, r.Options[0].Layout)
	require.Equal(t, Unset, r.Options[0].Connections)
}

func first(t *testing.T, q Question) Option {
	t.Helper()
	r, err := Recommend(q)
	require.NoError(t, err)
	require.NotEmpty(t, r.Options)
	return r.Options[0]
}

func TestFP8IsFasterWhereTheGPUSupportsIt(t *testing.T) {
	speed := func(gpu, flags string) float64 {
		return first(t, Question{Argv: strings.Fields(models["Llama 3 70B"] + " --global-batch-size 256 " + flags), GPUs: 64, GPU: gpu}).TFLOPs
	}
	const fp8, mxfp8, nvfp4 = "--fp8-format hybrid --fp8-recipe tensorwise", "--fp8-format e4m3 --fp8-recipe mxfp8", "--fp4-format e2m1"
	require.Greater(t, speed("h100", fp8), 1.4*speed("h100", ""))
	require.Greater(t, speed("b200", mxfp8), 1.3*speed("b200", ""))
	require.Greater(t, speed("b200", fp8), speed("b200", mxfp8), "scales for blocks cost more than one for a tensor")
	require.Greater(t, speed("b200", nvfp4), speed("b200", mxfp8))
}

// TP 8 may span nodes of four GPUs within an NVLink domain, and no others.
func TestTensorParallelismMaySpanAnNVLinkDomain(t *testing.T) {
	widest := func(q Question) int {
		q.Argv = strings.Fields(models["Llama 3 70B"] + " --global-batch-size 256")
		r, err := Recommend(q)
		require.NoError(t, err)
		most := 0
		for _, o := range r.Options {
			most = max(most, o.TP)
		}
		return most
	}
	require.Equal(t, 8, widest(Question{GPUs: 64, GPUsPerNode: 4, GPU: "gb200"}))
	require.Equal(t, 4, widest(Question{GPUs: 64, GPUsPerNode: 4, GPU: "h100"}))
	require.Equal(t, 4, widest(Question{GPUs: 64, GPUsPerNode: 4, GPU: "gb200", NVLinkDomain: 4}))
	require.Equal(t, 8, widest(Question{GPUs: 64, GPUsPerNode: 4, GPU: "h100", NVLinkDomain: 32}))
}

func TestTightLayoutsComeLast(t *testing.T) {
	r, err := Recommend(Question{Argv: strings.Fields(models["Llama 3 8B"] + " --global-batch-size 128 --grad-reduce-in-bf16"), GPUs: 8, GPU: "h100"})
	require.NoError(t, err)
	require.False(t, r.Options[0].Tight)
	last := false
	for _, o := range r.Options {
		require.False(t, last && !o.Tight, "a roomy layout after a tight one")
		last = o.Tight
	}
}

// No number of stages divides 61 layers. The layout lists each stage's layers and
// contains every layer, the MTP layer and the loss once.
func TestIndivisibleLayersGetALayout(t *testing.T) {
	r, err := Recommend(Question{Argv: strings.Fields(models["DeepSeek-V3"] + " --global-batch-size 8192"), GPUs: 1024, GPU: "h100"})
	require.NoError(t, err)
	deepest := 0
	for _, o := range r.Options {
		layout := ""
		for i, f := range o.Flags {
			require.NotEqual(t, "--num-virtual-stages-per-pipeline-rank", f, "the layout says so")
			if f == "--pipeline-model-parallel-layout" {
				layout = o.Flags[i+1]
			}
		}
		require.Equal(t, o.PP > 1, layout != "", o.Layout)
		if layout == "" {
			continue
		}
		stages, bad := megatron.ParseStages(layout)
		require.Zero(t, bad, layout)
		require.Len(t, stages, o.PP*max(o.VPP, 1), layout)
		require.Equal(t, []int{1, 61, 1, 1}, []int{stages.Count('E'), stages.Count('t'), stages.Count('m'), stages.Count('L')}, layout)
		require.LessOrEqual(t, stages[len(stages)-1:].Count('t'), stages[1:2].Count('t'), layout)
		deepest = max(deepest, o.VPP)
	}
	require.Greater(t, deepest, 1, "virtual stages are tried as well")
}

func TestRecommendRequiresEachModelSize(t *testing.T) {
	for _, size := range []string{"--num-layers", "--hidden-size", "--num-attention-heads", "--seq-length"} {
		argv := strings.Fields(models["GPT-3 175B"])
		for i, w := range argv {
			if w == size {
				argv[i+1] = "0"
			}
		}
		_, err := Recommend(Question{Argv: argv, GPUs: 64, GPU: "h100"})
		require.Error(t, err, size)
	}
}
