package megatron

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown formats a field of c for the table below: its value, or a dash where it is absent.
func shown(c *Config, field string) string {
	v := reflect.ValueOf(c).Elem().FieldByName(field)
	if v.Kind() == reflect.Struct {
		if !v.FieldByName("OK").Bool() {
			return "-"
		}
		v = v.FieldByName("V")
	}
	return strings.ReplaceAll(fmt.Sprint(v), " ", ",")
}

// The values that Megatron derives from its arguments on 16 GPUs, by release where releases differ.
func TestDerivedValues(t *testing.T) {
	const batch = "--micro-batch-size 2 --global-batch-size 64 "
	for _, row := range []struct {
		release Release
		flags   string
		want    string
	}{
		// sizes
		{Main, "--tensor-model-parallel-size 2 --context-parallel-size 2 --pipeline-model-parallel-size 2", "GTP=1 DP=2 ETP=2 EGTP=1 EDP=4"},
		{Main, "--tensor-model-parallel-size 2 --tensor-parallel-num-weight-shards 4", "GTP=2 DP=4 EGTP=1 EDP=8"},
		{Main, "--tensor-model-parallel-size 2 --expert-tensor-parallel-num-weight-shards 4", "GTP=1 DP=8 EGTP=2 EDP=4"},
		{Main, "--tensor-model-parallel-size 2 --tensor-parallel-num-weight-shards 3", "GTP=1 DP=8"},
		{Main, "--tensor-model-parallel-size 4 --tensor-parallel-num-weight-shards 2", "GTP=1 DP=4"},
		{Main, "--tensor-model-parallel-size 2 --tensor-parallel-num-weight-shards 0", "GTP=1 DP=8"},
		{Main, "--tensor-model-parallel-size 0 --tensor-parallel-num-weight-shards 2", "GTP=1 DP=0"},
		{Main, "", "DistCkpt=true RecomputeGranularity=-"},
		{Main, "--ckpt-format torch --recompute-activations", "DistCkpt=false RecomputeGranularity=selective"},
		// CUDA graphs
		{V017, "--cuda-graph-impl transformer_engine --cuda-graph-scope full_iteration", "CudaGraphImpl=transformer_engine"},
		{V017, "--cuda-graph-impl local", "InferenceCudaGraphScope=none"},
		{V018, "--cuda-graph-impl local", "InferenceCudaGraphScope=layer"},
		{V018, "--cuda-graph-impl local --inference-cuda-graph-scope block", "InferenceCudaGraphScope=block"},
		{V018, "--cuda-graph-impl local --cuda-graph-scope full_iteration_inference", "InferenceCudaGraphScope=block GraphDeprecated=[full_iteration_inference]"},
		{V018, "--cuda-graph-scope full_iteration_inference", "InferenceCudaGraphScope=none"},
		{Main, "--cuda-graph-impl local --cuda-graph-modules moe_router", "GraphModules=[moe_router,moe_preprocess]"},
		{Main, "--cuda-graph-impl local --cuda-graph-modules moe_preprocess", "GraphModules=[moe_preprocess,moe_router]"},
		{Main, "--cuda-graph-impl local --cuda-graph-modules attn", "GraphModules=[attn]"},
		{Main, "--cuda-graph-impl transformer_engine --cuda-graph-modules moe_router", "GraphModules=[moe_router]"},
		// hybrid patterns
		{V017, "--hybrid-override-pattern M*M* --num-layers 2", "Layers=4"},
		{V016, "--hybrid-override-pattern M*M* --num-layers 2", "Layers=2"},
		{V017, "--hybrid-override-pattern M*M* --hybrid-layer-pattern M*", "Layers=2"},
		{Main, "--hybrid-layer-pattern M*M* --mtp-hybrid-override-pattern M* --mtp-num-layers 3", "Layers=4 HybridLayerPattern=M*M*/M*/M*/M* MtpHybridOverridePattern=-"},
		{Main, "--hybrid-layer-pattern M*M* --mtp-hybrid-override-pattern M*", "HybridLayerPattern=M*M* MtpHybridOverridePattern=M*"},
		{Main, "--hybrid-layer-pattern M*M* --mtp-num-layers 2", "HybridLayerPattern=M*M*"},
		{Main, "--hybrid-layer-pattern M*/M --mtp-hybrid-override-pattern M* --mtp-num-layers 3", "HybridLayerPattern=M*/M MtpNumLayers=1"},
		{V017, "--hybrid-layer-pattern M*D", "MultiLatentAttention=false"},
		{V018, "--hybrid-layer-pattern M*D", "MultiLatentAttention=true"},
		{V018, "--hybrid-layer-pattern M*+", "MultiLatentAttention=false"},
		{V019, "--hybrid-layer-pattern M*+", "MultiLatentAttention=true"},
		{Main, "--hybrid-layer-pattern M*", "MultiLatentAttention=false"},
		{Main, "--mtp-hsm --mtp-num-layers 1", "MtpHsm=false"},
		{Main, "--mtp-hsm --mtp-num-layers 2", "MtpHsm=true"},
		{Main, "--mtp-num-layers 1", "MtpHsm=false"},
		// virtual stages
		{Main, "--num-layers 8 --pipeline-model-parallel-size 4", "VP=- VPP=0 OverlapP2pComm=false"},
		{Main, "--num-layers 8 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2", "VP=2 OverlapP2pComm=true"},
		{Main, "--hybrid-layer-pattern M*|M*", "VP=2"},
		{Main, "--hybrid-layer-pattern M*|M* --pipeline-model-parallel-size 2", "VP=-"},
		{Main, "--hybrid-layer-pattern M*|M*|M*|M* --pipeline-model-parallel-size 2", "VP=2"},
		{Main, "--hybrid-layer-pattern M*M*", "VP=-"},
		{Main, "--encoder-num-layers 12 --decoder-num-layers 6 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1", "SplitLayers=6 VP=3"},
		{Main, "--num-layers 12 --decoder-num-layers 6 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1", "SplitLayers=12 VP=6"},
		{Main, "--encoder-num-layers 12 --decoder-num-layers 6", "SplitLayers=12"},
		{Main, "--encoder-num-layers 12 --num-layers-per-virtual-pipeline-stage 1 --pipeline-model-parallel-size 2", "SplitLayers=12"},
		{Main, "--num-layers 10 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split", "SplitLayers=12"},
		// batches
		{Main, batch, "EvalGlobalBatchSize=64 EvalMicroBatchSize=2 Microbatches=2"},
		{Main, batch + "--eval-global-batch-size 32 --eval-micro-batch-size 1", "EvalGlobalBatchSize=32 EvalMicroBatchSize=1"},
		{Main, batch + "--encoder-seq-length 512", "SeqLength=512"},
		{Main, batch + "--encoder-seq-length 512 --seq-length 1024", "SeqLength=1024"},
		{V017, batch + "--rampup-batch-size 32 32 1000", "Batch=32 Microbatches=1"},
		{V018, batch + "--rampup-batch-size 32 32 1000", "Batch=64 Microbatches=2"},
		{Main, batch + "--tensor-model-parallel-size 2 --tensor-parallel-num-weight-shards 4", "DP=4 Microbatches=4"},
		{Main, "--micro-batch-size 2 --global-batch-size 70", "Microbatches=0"},
		{Main, "--micro-batch-size 2 --global-batch-size 70 --decrease-batch-size-if-needed", "Microbatches=2"},
		{Main, "--global-batch-size 64", "Microbatches=0"},
		// precision
		{Main, "", "ParamsDtype=torch.float32 AccumulateAllreduceGradsInFp32=false CheckForNanInLossAndGrad=true"},
		{Main, "--bf16", "ParamsDtype=torch.bfloat16 AccumulateAllreduceGradsInFp32=true"},
		{Main, "--bf16 --grad-reduce-in-bf16 --accumulate-allreduce-grads-in-fp32", "AccumulateAllreduceGradsInFp32=false"},
		{Main, "--bf16 --main-grads-dtype bf16", "AccumulateAllreduceGradsInFp32=false"},
		{Main, "--fp16", "ParamsDtype=torch.float16 AccumulateAllreduceGradsInFp32=false CheckForNanInLossAndGrad=false"},
		{Main, "--fp16 --loss-scale 4096", "CheckForNanInLossAndGrad=true"},
		{Main, "--fp8-param-gather", "Fp8ParamGather=true"},
		{Main, "--fp8-param-gather --use-torch-fsdp2", "Fp8ParamGather=false"},
		// the model
		{Main, "--hidden-size 1024 --num-attention-heads 8 --num-experts 4", "FfnHiddenSize=4096 MoeFfnHiddenSize=4096 KvChannels=128 NumQueryGroups=8"},
		{Main, "--hidden-size 1024 --num-attention-heads 8 --kv-channels 64 --num-query-groups 2 --group-query-attention", "KvChannels=64 NumQueryGroups=2"},
		{Main, "--ffn-hidden-size 2048 --num-experts 4 --moe-ffn-hidden-size 512", "FfnHiddenSize=2048 MoeFfnHiddenSize=512"},
		{Main, "--ffn-hidden-size 2048", "MoeFfnHiddenSize=- KvChannels=-"},
		{Main, "", "PositionEmbeddingType=learned_absolute ApplyRopeFusion=false"},
		{Main, "--use-rotary-position-embeddings", "PositionEmbeddingType=rope ApplyRopeFusion=true"},
		{Main, "", "AddQkvBias=true BiasGeluFusion=true Activation=gelu Gated=false BiasActivationFusion=true"},
		{Main, "--disable-bias-linear", "AddQkvBias=false BiasGeluFusion=false BiasActivationFusion=false"},
		{Main, "--swiglu --no-bias-gelu-fusion", "Activation=silu Gated=true BiasActivationFusion=true"},
		{Main, "--swiglu --no-bias-swiglu-fusion", "BiasActivationFusion=false"},
		{Main, "--squared-relu", "Activation=squared_relu Gated=false"},
		{Main, "--quick-geglu", "Activation=quick_gelu Gated=true"},
		{Main, "--experimental-attention-variant gated_delta_net", "Variant=gdn"},
		{Main, "--hybrid-layer-pattern MD", "Variant=dsa"},
		{Main, "--hybrid-layer-pattern M*", "Variant="},
		{Main, "--moe-grouped-gemm", "MoeUseGroupedTensor=false"},
		{Main, "--use-transformer-engine-op-fuser", "MoeUseGroupedTensor=false"},
		{Main, "--use-transformer-engine-op-fuser --moe-grouped-gemm", "MoeUseGroupedTensor=true"},
		{Main, "--moe-enable-deepep --moe-token-dispatcher-type flex", "MoeFlexDispatcherBackend=deepep"},
		{Main, "--moe-enable-deepep --moe-token-dispatcher-type alltoall --moe-flex-dispatcher-backend hybridep", "MoeFlexDispatcherBackend=hybridep"},
		{Main, "--moe-router-padding-for-fp8", "MoeRouterPaddingForQuantization=true"},
		{Main, "", "MoeRouterPaddingForQuantization=false Recompute= RecomputeModules=[core_attn]"},
		{Main, "--recompute-granularity full --recompute-modules mlp", "Recompute=full RecomputeModules=[mlp]"},
		{Main, "--moe-layer-recompute", "Recompute=selective RecomputeModules=[core_attn,moe]"},
		{Main, "--moe-layer-recompute --recompute-modules moe", "RecomputeModules=[moe]"},
		// sharding of the optimizer: by elements, or by layers for optimizers that need whole matrices
		{Main, "--use-distributed-optimizer", "UseDistributedOptimizer=true LayerWise=false"},
		{Main, "--use-distributed-optimizer --optimizer sgd", "UseDistributedOptimizer=true LayerWise=false"},
		{Main, "--use-distributed-optimizer --optimizer muon", "UseDistributedOptimizer=false LayerWise=true"},
		{V017, "--use-distributed-optimizer --optimizer muon", "UseDistributedOptimizer=true LayerWise=false"},
		{Main, "--optimizer muon", "LayerWise=false"},
		{Main, "--optimizer dist_muon", "Optimizer=muon LayerWise=true"},
		{V017, "--optimizer dist_muon", "Optimizer=muon LayerWise=true"},
		{V016, "--optimizer dist_muon", "Optimizer=muon LayerWise=true"},
		{Main, "--use-megatron-fsdp", "UseDistributedOptimizer=true FsdpManualRegistration=false"},
		{Main, "--use-megatron-fsdp --megatron-fsdp-version 2 --use-nccl-ub", "UseDistributedOptimizer=false FsdpManualRegistration=true"},
		{Main, "--use-nccl-ub", "FsdpManualRegistration=false"},
		{Main, "--use-distributed-optimizer --overlap-param-gather --freeze-all-layers", "UseDistributedOptimizer=false OverlapParamGather=false"},
		{Main, "--use-distributed-optimizer --overlap-param-gather", "OverlapParamGather=true"},
		{V018, "--reuse-grad-buf-for-mxfp8-param-ag", "ReuseGradBufForMxfp8ParamAg=true"},
		{V018, "--reuse-grad-buf-for-mxfp8-param-ag --use-megatron-fsdp", "ReuseGradBufForMxfp8ParamAg=false"},
		{V017, "--reuse-grad-buf-for-mxfp8-param-ag --use-megatron-fsdp", "ReuseGradBufForMxfp8ParamAg=true"},
		{V017, "--reuse-grad-buf-for-mxfp8-param-ag --fsdp-manual-registration", "ReuseGradBufForMxfp8ParamAg=true"},
		{V017, "--reuse-grad-buf-for-mxfp8-param-ag --use-megatron-fsdp --fsdp-manual-registration", "ReuseGradBufForMxfp8ParamAg=false"},
		// saving and offloading
		{V016, "--async-save", "AsyncSave=false"},
		{V015, "--async-save", "AsyncSave=true"},
		{V016, "--async-save --use-persistent-ckpt-worker", "AsyncSave=true"},
		{V016, "--async-save --ckpt-format torch", "AsyncSave=true"},
		{Main, "--cpu-offloading-num-layers 1", "CPUOffload=true"},
		{Main, "", "CPUOffload=false"},
	} {
		args, errs := Parse(Run{Argv: strings.Fields(row.flags), WorldSize: 16, Release: row.release})
		require.Empty(t, errs, row.flags)
		c := args.Effective()
		var got []string
		for want := range strings.FieldsSeq(row.want) {
			field, _, _ := strings.Cut(want, "=")
			got = append(got, field+"="+shown(c, field))
		}
		require.Equal(t, row.want, strings.Join(got, " "), "%s %s", row.release, row.flags)
	}
}

// The number of expert layers, the width of a Mamba mixer, and the padded vocabulary.
func TestShape(t *testing.T) {
	type shape struct {
		moe   int
		last  bool
		inner int
		vocab int
	}
	for flags, want := range map[string]shape{
		"--num-layers 5 --num-experts 4 --vocab-size 256":                                                               {moe: 5, last: true, vocab: 256},
		"--num-layers 4 --num-experts 4 --moe-layer-freq 3 --padded-vocab-size 300":                                     {moe: 2, last: true, vocab: 300},
		"--num-layers 5 --num-experts 4 --moe-layer-freq 2 --vocab-size 257":                                            {moe: 3, last: true, vocab: 384},
		"--num-layers 4 --num-experts 4 --moe-layer-freq 2 --vocab-size 257 --make-vocab-size-divisible-by 64":          {moe: 2, vocab: 320},
		"--num-layers 3 --num-experts 4 --moe-layer-freq [1,0,1] --vocab-size 1 --tensor-model-parallel-size 2":         {moe: 2, last: true, vocab: 256},
		"--num-layers 3 --num-experts 4 --moe-layer-freq [1,0,0] --padded-vocab-size 300":                               {moe: 1, vocab: 300},
		"--hybrid-layer-pattern M*- --hidden-size 1024 --padded-vocab-size 300":                                         {inner: 2048, vocab: 300},
		"--hybrid-layer-pattern MEE --hidden-size 1024 --mamba-num-heads 8 --mamba-head-dim 32 --padded-vocab-size 300": {moe: 2, inner: 256, vocab: 300},
	} {
		s := effective(t, 8, flags).Shape()
		require.Equal(t, want, shape{s.MoELayers, s.LastMoE, s.Mamba.Inner, s.Vocab}, flags)
	}
}
