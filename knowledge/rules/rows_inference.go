package rules

import (
	"slices"
)

// inferenceRows check modes that training runs seldom use: inference-optimised
// layers, batch-invariant kernels and hyper-connections.
func inferenceRows() []row {
	const (
		impl      = "--transformer-impl"
		invariant = "--batch-invariant-mode"
		hyper     = "--enable-mhc-connections"
	)
	optimized := func(broken func(*cfg) bool) func(*cfg) bool {
		return func(c *cfg) bool { return c.TransformerImpl == "inference_optimized" && broken(c) }
	}
	experts := func(broken func(*cfg) bool) func(*cfg) bool {
		return optimized(func(c *cfg) bool { return c.Experts != 0 && broken(c) })
	}
	layers := t(impl+" inference_optimized", "")
	expertLayers := t(impl+" inference_optimized with experts", impl+" inference_optimized 且为 MoE")
	kernels := t("its fused kernels support no other case", "其融合内核只支持这种情形")
	train := t("use "+impl+" transformer_engine for training", "训练请用 "+impl+" transformer_engine")
	same := func(id, flags, line, en, zh, doEN, doZH string, broken func(*cfg) bool) row {
		return row{
			id: id, flags: flags + " " + invariant, source: inConfig + line, when: t(invariant, ""), must: t(en, zh),
			why: t("a sample's results must not depend on the rest of the batch, in training and in inference", "无论同批有什么，训练与推理都必须得到相同的比特"), do: t(doEN, doZH),
			broken: func(c *cfg) bool { return c.BatchInvariantMode && broken(c) },
		}
	}
	streams := func(id, flags, line, en, zh, doEN, doZH string, broken func(*cfg) bool) row {
		return row{
			id: id, flags: flags + " " + hyper, source: inConfig + line, effect: ChangesExperiment, when: t(hyper, ""), must: t(en, zh),
			why: t("the residual is several streams wide, which this setting does not support", "残差由多路流组成，该功能尚不支持"), do: t(doEN, doZH),
			broken: func(c *cfg) bool { return c.EnableMhcConnections && broken(c) },
		}
	}
	return topics("inference and special modes", []row{
		{
			id: "optimized-moe-no-etp", flags: "--expert-tensor-parallel-size " + impl, source: inConfig + "1600", when: expertLayers,
			must: t("ETP must be 1", "ETP 必须为 1"), why: kernels, do: t("add --expert-tensor-parallel-size 1", "加 --expert-tensor-parallel-size 1"),
			broken: experts(func(c *cfg) bool { return c.ETP > 1 }),
		},
		{
			id: "optimized-moe-dropless", flags: "--moe-expert-capacity-factor " + impl, source: inConfig + "1604", when: expertLayers,
			must: t("--moe-expert-capacity-factor must not be given", "不能给 --moe-expert-capacity-factor"), why: kernels, do: t("drop it", "去掉它"), effect: ChangesExperiment,
			broken: experts(func(c *cfg) bool { return c.MoeExpertCapacityFactor.OK }),
		},
		{
			id: "optimized-moe-no-padding", flags: "--moe-router-padding-for-quantization " + impl, source: inConfig + "1606", when: expertLayers,
			must: t("--moe-router-padding-for-quantization must not be given", "不能给 --moe-router-padding-for-quantization"), why: kernels, do: t("drop it", "去掉它"),
			broken: experts(func(c *cfg) bool { return c.Asked.MoeRouterPaddingForQuantization }),
		},
		{
			id: "optimized-moe-router-dtype", flags: "--moe-router-dtype " + impl, source: inConfig + "1611", when: expertLayers,
			must: t("--moe-router-dtype must be fp32", "--moe-router-dtype 必须是 fp32"), why: t("converting the scores while decoding would cost too much", "解码时转换得分代价过高"), do: t("add --moe-router-dtype fp32", "加 --moe-router-dtype fp32"), effect: ChangesExperiment,
			broken: experts(func(c *cfg) bool { return c.MoeRouterDtype.V != "fp32" }),
		},
		{
			id: "optimized-moe-gated-backend", flags: "--inference-grouped-gemm-backend --swiglu " + impl, source: inConfig + "1622", when: expertLayers,
			must: t("a gated activation needs --inference-grouped-gemm-backend torch or vllm", "门控激活需要 --inference-grouped-gemm-backend torch 或 vllm"), why: kernels, do: t("use --inference-grouped-gemm-backend vllm", "改用 --inference-grouped-gemm-backend vllm"),
			broken: experts(func(c *cfg) bool {
				return c.Gated && !slices.Contains([]string{"torch", "vllm"}, c.InferenceGroupedGemmBackend)
			}),
		},
		{
			id: "optimized-rmsnorm", flags: "--normalization " + impl, source: inConfig + "3156", when: layers, effect: ChangesExperiment,
			must: t("--normalization must be RMSNorm", "--normalization 必须是 RMSNorm"), why: kernels, do: train,
			broken: optimized(func(c *cfg) bool { return c.Normalization != "RMSNorm" }),
		},
		{
			id: "optimized-plain-gamma", flags: "--apply-layernorm-1p " + impl, source: inConfig + "3157", when: layers, effect: ChangesExperiment,
			must: t("--apply-layernorm-1p must not be given", "不能给 --apply-layernorm-1p"), why: kernels, do: train,
			broken: optimized(func(c *cfg) bool { return c.LayernormZeroCenteredGamma }),
		},
		{
			id: "optimized-no-bias", flags: "--disable-bias-linear " + impl, source: inConfig + "3158", when: layers, effect: ChangesExperiment,
			must: t("--disable-bias-linear must be given", "必须加 --disable-bias-linear"), why: kernels, do: train,
			broken: optimized(func(c *cfg) bool { return c.AddBiasLinear }),
		},
		{
			id: "optimized-no-qkv-bias", flags: "--add-qkv-bias " + impl, source: inConfig + "3159", when: layers, effect: ChangesExperiment,
			must: t("--add-qkv-bias must not be given", "不能给 --add-qkv-bias"), why: kernels, do: train,
			broken: optimized(func(c *cfg) bool { return c.AddQkvBias }), after: "optimized-no-bias",
		},
		{
			id: "fused-tp-needs-optimized", flags: impl + " --inference-fuse-tp-communication", source: inConfig + "3180", when: t("--inference-fuse-tp-communication", ""),
			must: t(impl+" must be inference_optimized", impl+" 必须是 inference_optimized"), why: kernels, do: t("drop --inference-fuse-tp-communication", "去掉 --inference-fuse-tp-communication"),
			broken: func(c *cfg) bool { return c.InferenceFuseTpCommunication && c.TransformerImpl != "inference_optimized" },
		},
		{
			id: "fused-tp-dense", flags: "--num-experts --inference-fuse-tp-communication", source: inConfig + "3184", when: t("--inference-fuse-tp-communication", ""),
			must: t("the model must be dense", "模型必须是稠密的"), why: kernels, do: t("drop --inference-fuse-tp-communication", "去掉 --inference-fuse-tp-communication"),
			broken: func(c *cfg) bool { return c.InferenceFuseTpCommunication && c.Experts != 0 },
		},
		{
			id: "nvls-kernels-need-optimized", flags: impl + " --inference-disable-triton-nvls-kernels", source: inConfig + "3189", when: t("--inference-disable-triton-nvls-kernels", ""),
			must: t(impl+" must be inference_optimized", impl+" 必须是 inference_optimized"), why: t("no other layers have these kernels", "其他实现没有这些内核"), do: t("drop --inference-disable-triton-nvls-kernels", "去掉 --inference-disable-triton-nvls-kernels"),
			broken: func(c *cfg) bool {
				return c.InferenceDisableTritonNvlsKernels && c.TransformerImpl != "inference_optimized"
			},
		},
		same("invariant-bf16", "--bf16", "3212", "--bf16 must be given", "必须用 --bf16", "add --bf16", "加 --bf16", func(c *cfg) bool { return c.ParamsDtype != "torch.bfloat16" }),
		same("invariant-flash", "--attention-backend", "3216", "--attention-backend must be flash", "--attention-backend 必须是 flash", "add --attention-backend flash", "加 --attention-backend flash", func(c *cfg) bool { return c.AttentionBackend != "flash" }),
		same("invariant-flash-version", "--flash-attention-version", "3223", "--flash-attention-version must be 3 or 4", "--flash-attention-version 必须是 3 或 4", "add --flash-attention-version 3", "加 --flash-attention-version 3",
			func(c *cfg) bool { v := c.FlashAttentionVersion; return !v.OK || v.V != 3 && v.V != 4 }),
		same("invariant-no-cp", cpFlag, "3230", "CP must be 1", "CP 必须为 1", "use CP 1", "改用 CP 1", func(c *cfg) bool { return c.CP != 1 }),
		same("invariant-no-dropout", "--attention-dropout", "3233", "--attention-dropout must be 0", "--attention-dropout 必须为 0", "add --attention-dropout 0.0", "加 --attention-dropout 0.0", func(c *cfg) bool { return c.AttentionDropout != 0 }),
		same("invariant-alltoall", "--moe-token-dispatcher-type", "3242", "experts need --moe-token-dispatcher-type alltoall", "MoE 需要 --moe-token-dispatcher-type alltoall", "use alltoall", "改用 alltoall",
			func(c *cfg) bool {
				return c.Experts > 0 && c.TransformerImpl != "inference_optimized" && c.MoeTokenDispatcherType != "alltoall"
			}),
		same("invariant-moe-bf16", "--fp8-format --fp4-format", "3261", "experts must run in bf16", "专家必须以 bf16 计算", "drop fp8 and fp4", "去掉 fp8 与 fp4", func(c *cfg) bool { return c.Experts > 0 && (c.Fp8.OK || c.Fp4.OK) }),
		same("invariant-moe-unfused", "--moe-permute-fusion", "3264", "--moe-permute-fusion must not be given", "不能给 --moe-permute-fusion", "drop it", "去掉它",
			func(c *cfg) bool { return c.Experts > 0 && (c.MoePermuteFusion || c.MoePermuteFusionIntoHybridep) }),
		same("invariant-moe-dropless", "--moe-pad-expert-input-to-capacity", "3268", "experts must not be padded", "专家输入不能填充", "drop the padding", "去掉填充",
			func(c *cfg) bool {
				return c.Experts > 0 && (c.MoePadExpertInputToCapacity || c.MoePadExpertsForCudaGraphInference)
			}),
		{
			id: "mhc-recompute-needs-mhc", flags: hyper + " --recompute-modules", source: inConfig + "2030", effect: ChangesExperiment, when: t("mhc in --recompute-modules", "--recompute-modules 含 mhc"),
			must: t(hyper+" must be given", "必须使用 "+hyper), why: t("there is nothing to compute again", "没有可重算的部分"), do: t("remove mhc", "去掉 mhc"),
			broken: func(c *cfg) bool {
				return c.Recompute == "selective" && recomputes(c, "mhc") && !c.EnableMhcConnections
			},
		},
		streams("mhc-or-mlp-recompute", "--recompute-modules", "2032", "mhc and mlp must not both be recomputed", "不能同时重计算 mhc 与 mlp", "remove one of the two", "去掉其中一个",
			func(c *cfg) bool { return c.Recompute == "selective" && recomputes(c, "mhc") && recomputes(c, "mlp") }),
		streams("mhc-recompute-layers", "--mhc-recompute-layer-num", "2041", "--mhc-recompute-layer-num must be at least 1", "--mhc-recompute-layer-num 必须不小于 1", "leave it out", "去掉该参数",
			func(c *cfg) bool {
				return c.Recompute == "selective" && recomputes(c, "mhc") && c.MhcRecomputeLayerNum.OK && c.MhcRecomputeLayerNum.V < 1
			}),
		streams("mhc-recompute-no-offload", "--fine-grained-activation-offloading", "2046", "recompute of mhc must not be combined with activation offloading", "重计算 mhc 不能与激活卸载同用", "drop one of the two", "去掉其中一个",
			func(c *cfg) bool {
				return c.Recompute == "selective" && recomputes(c, "mhc") && c.FineGrainedActivationOffloading
			}),
		streams("mhc-no-mtp", "--mtp-num-layers", "2064", "--mtp-num-layers must not be given", "不能给 --mtp-num-layers", "drop --mtp-num-layers", "去掉 --mtp-num-layers", func(c *cfg) bool { return c.MtpNumLayers.OK }),
		streams("mhc-no-full-recompute", "--recompute-granularity", "2070", "--recompute-granularity must not be full", "--recompute-granularity 不能是 full", "recompute mhc selectively", "选择性重计算 mhc", func(c *cfg) bool { return c.Recompute == "full" }),
		streams("mhc-no-fused-tp", "--inference-fuse-tp-communication", "2077", "--inference-fuse-tp-communication must not be given", "不能给 --inference-fuse-tp-communication", "drop it", "去掉它", func(c *cfg) bool { return c.InferenceFuseTpCommunication }),
		streams("mhc-no-pp", ppFlag, "2093", "PP must be 1", "PP 必须为 1", "use PP 1", "改用 PP 1", func(c *cfg) bool { return c.PP > 1 }),
		streams("mhc-no-fp32-residual", "--fp32-residual-connection", "2104", "--fp32-residual-connection must not be given", "不能给 --fp32-residual-connection", "drop it", "去掉它", func(c *cfg) bool { return c.Fp32ResidualConnection }),
		streams("mhc-sinkhorn", "--mhc-sinkhorn-iterations", "2115", "--mhc-sinkhorn-iterations must be at least 1", "--mhc-sinkhorn-iterations 必须不小于 1", "leave it at the default", "用默认值", func(c *cfg) bool { return c.MhcSinkhornIterations < 1 }),
		streams("mhc-gating", "--mhc-init-gating-factor", "2122", "--mhc-init-gating-factor must not be negative", "--mhc-init-gating-factor 不能为负", "leave it at the default", "用默认值", func(c *cfg) bool { return c.MhcInitGatingFactor < 0 }),
		{
			id: "rl-packing-micro-batch", flags: "--micro-batch-size --rl-use-sequence-packing", source: inArgs + "564", when: t("--perform-rl-step --rl-use-sequence-packing", ""), effect: PerformanceOnly,
			must: t("--micro-batch-size must be 1", "--micro-batch-size 必须为 1"), why: t("a packed sequence is a batch already", "打包后的序列本身就是一批"), do: t("use --micro-batch-size 1 and a longer --seq-length", "改用 --micro-batch-size 1 并加长 --seq-length"),
			broken: func(c *cfg) bool { return c.PerformRlStep && c.RlUseSequencePacking && c.MicroBatchSize.V != 1 },
		},
	})
}
