package rules

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// Each rule is checked on both sides of its limit, and in the releases with another
// limit.
func TestRulesOnBothSidesOfTheirLimit(t *testing.T) {
	flex := "!--moe-token-dispatcher-type --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend "
	delta := "--experimental-attention-variant gated_delta_net --linear-num-key-heads 8 --linear-num-value-heads 16 --linear-attention-freq 4 "
	optimized := "--transformer-impl inference_optimized --moe-router-dtype fp32 --normalization RMSNorm"
	rl := "--perform-rl-step "
	unified := "--inference-dynamic-batching-unified-memory-level 1 --rl-persist-cuda-graphs --cuda-graph-impl local --te-rng-tracker --rl-kv-cache-management-mode "
	offloads := "--skip-train --rl-offload-optimizer-during-inference "
	for _, c := range []struct {
		rule, base, edits string
		release           megatron.Release
		told              bool
	}{
		{"eval-interval-given", "dense", "!--eval-interval", megatron.Main, true},
		{"eval-interval-given", "dense", "!--eval-interval --eval-iters 0", megatron.V016, true},
		{"eval-interval-given", "dense", "!--eval-interval", megatron.V015, false},
		{"eval-interval-given", "dense", "--eval-interval 1000", megatron.Main, false},
		{"eval-interval-given", "dense", "!--eval-interval --full-validation", megatron.Main, false},
		{"eval-interval-given", "dense", "!--eval-interval --skip-train", megatron.V016, false},
		{"eval-interval-given", "dense", "!--eval-interval --eval-interval 0 --skip-train", megatron.V015, true},
		{"eval-interval-given", "dense", "!--eval-interval --eval-interval 0 --eval-iters 0", megatron.Main, true},
		{"eval-interval-given", "dense", "!--eval-interval --perform-rl-step", megatron.Main, false},
		{"heads-multiple-of-query-groups", "llama", "--num-query-groups 3", megatron.Main, true},
		{"heads-multiple-of-query-groups", "llama", "--num-query-groups 8", megatron.Main, false},
		{"heads-multiple-of-query-groups", "llama", "!--group-query-attention --num-query-groups 3", megatron.Main, false},
		{"local-sequence-parallel-needs-apex", "dense", "--transformer-impl local --tensor-model-parallel-size 2 --sequence-parallel", megatron.Main, true},
		{"local-sequence-parallel-needs-apex", "dense", "--transformer-impl local --tensor-model-parallel-size 1 --sequence-parallel", megatron.Main, false},
		{"local-sequence-parallel-needs-apex", "dense", "--tensor-model-parallel-size 2 --sequence-parallel", megatron.Main, false},
		{"local-sequence-parallel-needs-apex", "dense", "--transformer-impl local --tensor-model-parallel-size 2 --sequence-parallel --spec a b", megatron.Main, false},
		{"ncclep-needs-several-ranks", "moe", flex + "ncclep !--expert-model-parallel-size", megatron.Main, true},
		{"ncclep-needs-several-ranks", "moe", flex + "ncclep", megatron.Main, false},
		{"rank-capacity-backend", "moe", flex + "ncclep --moe-expert-rank-capacity-factor 1.5", megatron.Main, false},
		{"rank-capacity-backend", "moe", flex + "deepep --moe-expert-rank-capacity-factor 1.5", megatron.Main, true},
		{"rank-capacity-backend", "moe", flex + "hybridep --moe-expert-rank-capacity-factor 1.5", megatron.Main, false},
		{"rank-capacity-backend", "moe", flex + "hybridep --moe-expert-rank-capacity-factor 1.5", megatron.V018, false},
		{"rank-capacity-hybridep", "moe", flex + "hybridep --moe-expert-rank-capacity-factor 1.5", megatron.Main, true},
		{"rank-capacity-hybridep", "moe", flex + "hybridep --moe-expert-rank-capacity-factor 1.5 --moe-use-grouped-tensor", megatron.Main, false},
		{"rank-capacity-hybridep", "moe", flex + "hybridep --moe-expert-rank-capacity-factor 1.5 --use-transformer-engine-op-fuser", megatron.V018, false},
		{"rank-capacity-hybridep", "moe", flex + "ncclep --moe-expert-rank-capacity-factor 1.5", megatron.Main, false},
		{"single-grouped-weight-recipe", "moe", "--moe-single-grouped-weight", megatron.Main, false},
		{"single-grouped-weight-recipe", "moe", "--moe-single-grouped-weight", megatron.V018, true},
		{"single-grouped-weight-recipe", "moe", "--moe-single-grouped-weight --fp8-format e4m3 --fp8-recipe mxfp8", megatron.V018, false},
		{"single-grouped-weight-recipe", "moe", "--moe-single-grouped-weight --fp8-format e4m3 --fp8-recipe mxfp8", megatron.Main, false},
		{"single-grouped-weight-recipe", "moe", "--moe-single-grouped-weight --fp8-format hybrid --fp8-recipe tensorwise", megatron.Main, true},
		{"single-grouped-weight-recipe", "moe", "--moe-single-grouped-weight --fp4-format e2m1 --fp4-recipe nvfp4", megatron.Main, false},
		{"single-grouped-weight-recipe", "moe", "--moe-single-grouped-weight --fp4-format e2m1 --fp4-recipe nvfp4", megatron.V018, true},
		{"dsa-topk-offset", "latent", "--experimental-attention-variant dsa --dsa-indexer-skip-topk-offset -1", megatron.Main, true},
		{"dsa-topk-offset", "latent", "--experimental-attention-variant dsa --dsa-indexer-skip-topk-offset 0", megatron.Main, false},
		{"dsa-topk-offset", "latent", "--dsa-indexer-skip-topk-offset -1", megatron.Main, false},
		{"dsa-topk-freq", "latent", "--experimental-attention-variant dsa --dsa-indexer-topk-freq 0", megatron.Main, true},
		{"dsa-topk-freq", "latent", "--experimental-attention-variant dsa --dsa-indexer-topk-freq 1", megatron.Main, false},
		{"gdn-key-heads-fit-tp", "llama", delta, megatron.Main, false},
		{"gdn-key-heads-fit-tp", "llama", delta + "--linear-num-key-heads 4", megatron.Main, true},
		{"gdn-key-heads-fit-tp", "llama", delta + "--linear-num-key-heads 4", megatron.V017, false},
		{"gdn-value-heads-fit-tp", "llama", delta + "--linear-num-value-heads 12", megatron.Main, true},
		{"gdn-value-heads-fit-tp", "llama", delta + "--linear-num-value-heads 12", megatron.V017, false},
		{"fused-residual-needs-rmsnorm", "llama", "--fused-residual-rmsnorm", megatron.Main, false},
		{"fused-residual-needs-rmsnorm", "llama", "!--normalization --fused-residual-rmsnorm", megatron.Main, true},
		{"fused-residual-needs-rmsnorm", "llama", "!--normalization", megatron.Main, false},
		{"cached-latents-no-rope-fusion", "latent", "--cache-mla-latents", megatron.Main, true},
		{"cached-latents-no-rope-fusion", "latent", "--cache-mla-latents", megatron.V015, true},
		{"cached-latents-no-rope-fusion", "latent", "--cache-mla-latents --no-rope-fusion", megatron.Main, false},
		{"cached-latents-no-rope-fusion", "latent", "", megatron.Main, false},
		{"cached-latents-no-rope-fusion", "llama", "--cache-mla-latents", megatron.Main, false},
		{"no-xavier-init", "dense", "--init-method-xavier-uniform", megatron.Main, true},
		{"no-xavier-init", "dense", "--init-method-xavier-uniform", megatron.V015, true},
		{"no-xavier-init", "dense", "--init-method-std 0.01", megatron.Main, false},
		{"spec-module-and-name", "llama", "--spec local", megatron.Main, true},
		{"spec-module-and-name", "llama", "--spec local", megatron.V019, true},
		{"spec-module-and-name", "llama", "--spec local", megatron.V018, false},
		{"spec-module-and-name-late", "llama", "--spec local", megatron.V018, true},
		{"spec-module-and-name-late", "llama", "--spec local", megatron.Main, false},
		{"spec-module-and-name", "hybrid", "--spec local", megatron.V018, true},
		{"spec-module-and-name-late", "hybrid", "--spec local", megatron.V018, false},
		{"spec-module-and-name-late", "hybrid", "--spec local", megatron.V017, true},
		{"spec-module-and-name", "llama", "--spec module name", megatron.Main, false},
		{"spec-module-and-name", "bert", "--spec local", megatron.Main, false},
		{"layers-positive", "dense", "--num-layers 0", megatron.Main, true},
		{"layers-positive", "dense", "--num-layers 0", megatron.V015, true},
		{"layers-positive", "dense", "--num-layers 2", megatron.Main, false},
		{"sharp-replica-only", "dense", "--use-sharp", megatron.Main, true},
		{"sharp-replica-only", "dense", "--use-sharp", megatron.V019, true},
		{"sharp-replica-only", "dense", "--use-sharp", megatron.V018, false},
		{"sharp-replica-only", "dense", "--use-sharp --sharp-enabled-group dp_replica --num-distributed-optimizer-instances 2", megatron.Main, false},
		{"single-grouped-weight-needs-fuser", "moe", "--moe-single-grouped-weight", megatron.V019, true},
		{"single-grouped-weight-needs-fuser", "moe", "--moe-single-grouped-weight --use-transformer-engine-op-fuser", megatron.V019, false},
		{"single-grouped-weight-needs-fuser", "moe", "--moe-single-grouped-weight", megatron.Main, false},
		{"single-grouped-weight-needs-fuser", "moe", "--moe-single-grouped-weight", megatron.V018, false},
		{"phase-transitions-whole", "dense", "--phase-transition-iterations 100,half", megatron.Main, true},
		{"phase-transitions-whole", "dense", "--phase-transition-iterations 100,200.5", megatron.V016, true},
		{"phase-transitions-whole", "dense", "--phase-transition-iterations 200,100", megatron.Main, false},
		{"phase-transitions-whole", "dense", "--phase-transition-iterations 100", megatron.V017, false},
		{"phase-transitions-whole", "dense", "--phase-transition-iterations 1_000,+2000", megatron.Main, false},
		{"dynamic-inference-block", "dense", "--inference-dynamic-batching --inference-dynamic-batching-block-size 64", megatron.V017, true},
		{"dynamic-inference-block", "dense", "--inference-dynamic-batching --inference-dynamic-batching-block-size 512", megatron.V017, false},
		{"dynamic-inference-block", "dense", "--inference-dynamic-batching-block-size 64", megatron.V015, false},
		{"dynamic-inference-block", "dense", "--inference-dynamic-batching --inference-dynamic-batching-block-size 64", megatron.V018, false},
		{"graph-scope-full-alone", "dense", "--cuda-graph-scope full attn", megatron.V017, true},
		{"graph-scope-full-alone", "dense", "--cuda-graph-scope full attn", megatron.V016, true},
		{"graph-scope-full-alone", "dense", "--cuda-graph-scope full", megatron.V017, false},
		{"graph-scope-full-alone", "dense", "--cuda-graph-scope attn mlp", megatron.V017, false},
		{"retro-needs-samples", "dense", "--retro-add-retriever", megatron.V015, true},
		{"retro-needs-samples", "deep", "--retro-add-retriever", megatron.V015, false},
		{"retro-no-sequence-parallel", "deep", "--retro-add-retriever", megatron.V015, true},
		{"retro-no-sequence-parallel", "deep", "!--sequence-parallel --retro-add-retriever", megatron.V015, false},
		{"retro-no-pipeline", "deep", "--retro-add-retriever", megatron.V015, true},
		{"retro-no-pipeline", "moe", "--retro-add-retriever", megatron.V015, false},
		{"unknown-flag", "bert", "--modelopt-enabled", megatron.V017, true},
		{"unknown-flag", "t5", "--export-model-type GPTModel", megatron.V015, true},
		{"unknown-flag", "llama", "--modelopt-enabled", megatron.V017, false},
		{"unknown-flag", "hybrid", "--modelopt-enabled", megatron.Main, false},
		{"gdp-chunks-in-range", "dense", "--gdp-cutedsl-kernel --gdp-num-chunk-states-to-recompute 65", megatron.Main, true},
		{"gdp-chunks-in-range", "dense", "--gdp-cutedsl-kernel --gdp-num-chunk-states-to-recompute 64", megatron.Main, false},
		{"gdp-chunks-in-range", "dense", "--gdp-num-chunk-states-to-recompute 65", megatron.Main, false},
		{"optimized-moe-no-gate", "moe", optimized, megatron.V018, true},
		{"optimized-moe-no-gate", "moe", optimized, megatron.V017, false},
		{"optimized-moe-no-gate", "moe", optimized + " --cuda-graph-impl local", megatron.V017, true},
		{"optimized-moe-no-gate", "moe", "!--swiglu " + optimized, megatron.V019, false},
		{"ramp-up-no-phases", "deep", "--rampup-batch-size 8 8 1000 --phase-transition-iterations 10,20", megatron.V017, true},
		{"ramp-up-no-phases", "deep", "--rampup-batch-size 8 8 1000", megatron.V016, false},
		{"ramp-up-has-steps", "deep", "--rampup-batch-size 32 8 1000", megatron.V015, true},
		{"ramp-up-has-steps", "deep", "--rampup-batch-size 24 8 1000", megatron.V017, false},
		// Reinforcement learning: 64 samples a step, 128 a generation.
		{"rl-samples-fill-batches", "dense", rl, megatron.Main, false},
		{"rl-samples-fill-batches", "dense", rl + "--grpo-group-size 3", megatron.V015, false},
		{"rl-samples-fill-batches", "dense", rl + "--grpo-group-size 3 --grpo-iterations 1", megatron.V015, true},
		{"rl-samples-fill-batches", "dense", rl + "--grpo-group-size 3 --grpo-iterations 1", megatron.Main, true},
		{"rl-samples-fill-batches", "dense", "--grpo-group-size 3 --grpo-iterations 1", megatron.Main, false},
		{"rl-iterations-positive", "dense", rl + "--grpo-iterations 0 --tensorboard-dir /t", megatron.Main, true},
		{"rl-iterations-positive", "dense", rl + "--grpo-iterations 0 --save-interval 8", megatron.V015, true},
		{"rl-iterations-positive", "dense", rl + "--grpo-iterations 0 --exit-interval 8", megatron.Main, true},
		{"rl-iterations-positive", "dense", rl + "--grpo-iterations 0", megatron.Main, false},
		{"rl-iterations-positive", "dense", rl + "--grpo-iterations -1 --tensorboard-dir /t", megatron.Main, false},
		{"rl-iterations-positive", "dense", "--grpo-iterations 0 --tensorboard-dir /t", megatron.Main, false},
		{"rl-iterations-collect-again", "dense", rl + "--grpo-iterations 0", megatron.Main, true},
		{"rl-iterations-collect-again", "dense", rl + "--grpo-iterations -1 --tensorboard-dir /t", megatron.V016, true},
		{"rl-iterations-collect-again", "dense", rl + "--grpo-iterations -1", megatron.V015, false},
		{"rl-iterations-collect-again", "dense", rl + "--grpo-iterations 1", megatron.Main, false},
		{"rl-iterations-collect-again", "dense", "--grpo-iterations 0", megatron.Main, false},
		{"rl-batch-within-collection", "dense", rl + "--grpo-group-size 1", megatron.Main, true},
		{"rl-batch-within-collection", "dense", rl + "--grpo-group-size 1", megatron.V015, false},
		{"rl-batch-within-collection", "dense", rl + "--grpo-group-size 1 --skip-train", megatron.Main, true},
		{"rl-batch-within-collection", "dense", rl + "--grpo-group-size 1 --skip-train", megatron.V016, false},
		{"rl-batch-within-collection", "dense", rl, megatron.Main, false},
		{"rl-packing-bin-holds-sequence", "dense", rl + "--rl-use-sequence-packing --rl-sequence-packing-bin-size 1024", megatron.V015, true},
		{"rl-packing-bin-holds-sequence", "dense", rl + "--rl-use-sequence-packing --rl-sequence-packing-bin-size 2048", megatron.V015, false},
		{"fim-no-legacy-tokenizer", "llama", "--fim-data --legacy-tokenizer", megatron.V016, true},
		{"fim-no-legacy-tokenizer", "llama", "--legacy-tokenizer", megatron.V016, false},
		{"rl-offloaded-training-cache", "dense", "--rl-offload-kv-cache-during-training --inference-dynamic-batching-unified-memory-level 1", megatron.V016, true},
		{"rl-offloaded-training-cache", "dense", "--rl-offload-kv-cache-during-training", megatron.V016, false},
		{"rl-offloaded-training-cache", "dense", "--rl-offload-kv-cache-during-training --inference-dynamic-batching-unified-memory-level 1", megatron.V015, false},
		{"rl-idle-weights-unified", "dense", rl + "--rl-offload-inference-model-weights-when-idle", megatron.V016, true},
		{"rl-idle-weights-unified", "dense", rl + "--rl-offload-inference-model-weights-when-idle --rl-inference-model-unified-memory-level 1", megatron.V016, false},
		{"rl-idle-weights-unified", "dense", rl + "--rl-offload-inference-model-weights-when-idle", megatron.V017, false},
		{"rl-other-experts-no-legacy-grouped-gemm", "moe", rl + "--moe-use-legacy-grouped-gemm --rl-inference-expert-model-parallel-size 2", megatron.V016, true},
		{"rl-other-experts-no-legacy-grouped-gemm", "moe", rl + "--moe-use-legacy-grouped-gemm --rl-inference-expert-model-parallel-size 4", megatron.V016, false},
		{"rl-exit-interval-fits", "dense", rl + "--exit-interval 3", megatron.V018, true},
		{"rl-exit-interval-fits", "dense", rl + "--exit-interval 4", megatron.V018, false},
		{"rl-save-interval-fits", "dense", rl + "--save-interval 5", megatron.Main, true},
		{"rl-save-interval-fits", "dense", rl + "--save-interval 6", megatron.Main, false},
		{"rl-kept-graphs-need-graphs", "dense", rl + "--rl-persist-cuda-graphs", megatron.V017, true},
		{"rl-kept-graphs-need-graphs", "dense", rl + "--rl-persist-cuda-graphs --cuda-graph-impl local --te-rng-tracker", megatron.V017, false},
		{"rl-training-graphs-need-graphs", "dense", rl + "--rl-training-cuda-graphs", megatron.Main, true},
		{"rl-training-graphs-need-graphs", "dense", rl + "--rl-training-cuda-graphs", megatron.V016, false},
		{"rl-offloaded-cache-keeps-graphs", "dense", rl + "--rl-kv-cache-management-mode offload", megatron.V019, true},
		{"rl-offloaded-cache-keeps-graphs", "dense", rl + "--rl-kv-cache-management-mode recompute", megatron.V019, false},
		{"rl-offloaded-cache-no-unified-memory", "dense", rl + unified + "offload", megatron.Main, true},
		{"rl-offloaded-cache-no-unified-memory", "dense", rl + unified + "persist", megatron.Main, false},
		{"rl-lag-or-requests", "dense", rl + "--rl-generation-lag 0 --rl-max-inflight-requests 4", megatron.Main, true},
		{"rl-lag-or-requests", "dense", rl + "--rl-max-inflight-requests 4", megatron.Main, false},
		{"rl-requests-positive", "dense", rl + "--rl-max-inflight-requests 0", megatron.Main, true},
		{"rl-requests-positive", "dense", rl + "--rl-max-inflight-requests 1", megatron.Main, false},
		{"rl-requests-need-partial", "dense", rl + "--rl-max-inflight-requests 65", megatron.Main, true},
		{"rl-requests-need-partial", "dense", rl + "--rl-max-inflight-requests 64", megatron.Main, false},
		{"rl-requests-need-partial", "dense", rl + "--rl-max-inflight-requests 65 --rl-partial-rollouts", megatron.Main, false},
		{"rl-lag-not-below", "dense", rl + "--rl-generation-lag=-1.5", megatron.Main, true},
		{"rl-lag-not-below", "dense", rl + "--rl-generation-lag=-1", megatron.Main, false},
		{"rl-lag-needs-partial", "dense", rl + "--rl-generation-lag 1", megatron.V019, true},
		{"rl-lag-needs-partial", "dense", rl + "--rl-generation-lag 0.5", megatron.Main, true},
		{"rl-lag-needs-partial", "dense", rl + "--rl-generation-lag 1 --rl-partial-rollouts", megatron.V019, false},
		{"rl-submission-needs-partial", "dense", rl + "--rl-submission-granularity R", megatron.V019, true},
		{"rl-submission-needs-partial", "dense", rl + "--rl-submission-granularity G", megatron.V019, false},
		{"rl-submission-needs-partial", "dense", rl + "--rl-submission-granularity G", megatron.Main, true},
		{"rl-consumption-kind", "dense", rl + "--rl-consumption-granularity R", megatron.V019, true},
		{"rl-consumption-kind", "dense", rl + "--rl-consumption-granularity B", megatron.Main, false},
		{"rl-batches-are-no-groups", "dense", rl + "--rl-consumption-granularity G", megatron.Main, true},
		{"rl-batches-are-no-groups", "dense", rl + "--rl-consumption-granularity G --rl-submission-granularity G --rl-partial-rollouts", megatron.Main, false},
		{"rl-offloads-existing-optimizer", "dense", rl + offloads + "--no-load-optim", megatron.V017, true},
		{"rl-offloads-existing-optimizer", "dense", rl + offloads, megatron.Main, false},
		{"pipeline-groups-same", "deep", "--use-tp-pp-dp-mapping", megatron.Main, false},
		// 0.15 allows recompute together with one CUDA graph, that of attention.
		{"graph-recompute-attention-only", "dense", "--cuda-graph-impl transformer_engine --cuda-graph-scope attn --recompute-granularity selective", megatron.V015, false},
		{"graph-recompute-attention-only", "dense", "--cuda-graph-impl transformer_engine --cuda-graph-scope full --recompute-granularity selective", megatron.V015, true},
		{"graph-recompute-attention-only", "dense", "--cuda-graph-impl local --cuda-graph-scope attn --recompute-granularity selective", megatron.V015, true},
		{"graph-recompute-attention-only", "dense", "--cuda-graph-impl local --cuda-graph-scope attn", megatron.V015, false},
	} {
		d := newDraft(bases[c.base])
		d.edit(c.edits)
		run := d.carried("", "", true, "")
		v := Check(megatron.Run{Entry: run.Entry, Argv: run.Argv, WorldSize: run.World, Arch: run.Arch, Env: run.Env, Release: c.release})
		told := slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Rule == c.rule })
		require.Equal(t, c.told, told, "%s in %s with %s", c.rule, c.release, c.edits)
	}
}

func TestOnlyAnErrorBlocks(t *testing.T) {
	for _, c := range []struct {
		of     []Problem
		blocks bool
	}{{nil, false}, {[]Problem{{Severity: Warning}, {Severity: Note}}, false}, {[]Problem{{Severity: Note}, {Severity: Error}}, true}} {
		require.Equal(t, c.blocks, Blocking(c.of))
	}
}
