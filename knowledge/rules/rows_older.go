package rules

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// olderRows are checks of older releases that the newest does not make. A row's
// source is the place in the last release with the check. sources.csv has the places
// in the other releases.
func olderRows() []row {
	last := func(release megatron.Release, rows ...row) []row {
		for i := range rows {
			rows[i].until = release
		}
		return rows
	}
	return topics("older releases", slices.Concat(
		last(megatron.V015, onlyIn015()...),
		last(megatron.V016, until016()...),
		last(megatron.V016, reinforcementUntil016()...),
		last(megatron.V017, until017()...),
		last(megatron.V017, specModule()),
		last(megatron.V017, rampUpRows()...),
		last(megatron.V017, legacyModelRows()...),
		last(megatron.V018, until018()...),
		last(megatron.V019, until019()...),
	))
}

func onlyIn015() []row {
	const retriever = "--retro-add-retriever"
	retro := func(id, flags, line string, must, do lang.Text, broken func(*cfg) bool) row {
		return row{
			id: id, flags: flags + " " + retriever, source: inArgs + line, effect: ChangesExperiment, when: t(retriever, ""), must: must,
			why: t("the retrieval model of 0.15 supports no other case", "0.15 的检索模型只支持这种情形"), do: do,
			broken: func(c *cfg) bool { return c.RetroAddRetriever && broken(c) },
		}
	}
	return []row{
		retro("retro-needs-samples", "--train-samples", "983", t("--train-samples must be given", "必须给 --train-samples"),
			t("drop "+retriever+", or give --train-samples, which the folder of --retro-project-dir sets", "去掉 "+retriever+"，或给出 --train-samples（--retro-project-dir 的目录会设定它）"),
			func(c *cfg) bool { return !c.TrainSamples.OK && !c.RetroProjectDir.OK }),
		retro("retro-no-sequence-parallel", "--sequence-parallel", "987", t("--sequence-parallel must be off", "不能使用 --sequence-parallel"),
			t("drop one of the two", "去掉其中之一"), func(c *cfg) bool { return c.SequenceParallel }),
		retro("retro-no-pipeline", "--pipeline-model-parallel-size", "991", t("PP must be 1", "PP 必须为 1"),
			t("use --pipeline-model-parallel-size 1", "改用 --pipeline-model-parallel-size 1"), func(c *cfg) bool { return c.PP > 1 }),
		{
			id: "experts-no-spec", flags: "--spec --num-experts", source: inArgs + "1027", effect: ChangesExperiment,
			when: t("--num-experts", ""), must: t("--spec must not be given", "不能使用 --spec"),
			why: t("0.15 chooses the layers of a model with experts itself", "0.15 自行选择带专家模型的层"), do: t("drop --spec, or use 0.16 or later", "去掉 --spec，或使用 0.16 及以后的版本"),
			broken: func(c *cfg) bool { return c.NumExperts.OK && c.Spec != nil },
		},
		{
			id: "expert-parallel-no-fp16", flags: "--fp16 " + epFlag, source: inArgs + "1041", effect: ChangesExperiment,
			when: t("EP > 1", ""), must: t("--fp16 must be off", "不能使用 --fp16"),
			why: t("0.15 scales the loss without the expert groups", "0.15 的损失缩放不考虑专家组"), do: t("use --bf16", "改用 --bf16"),
			broken: func(c *cfg) bool { return c.EP > 1 && c.Fp16 },
		},
		{
			id: "grouped-gemm-needs-bf16", flags: "--bf16 --moe-grouped-gemm", source: inArgs + "877", effect: ChangesExperiment,
			when: t("--moe-grouped-gemm", ""), must: t("--bf16 must be given", "必须使用 --bf16"),
			why: t("the grouped GEMM of 0.15 supports bf16 only", "0.15 的分组矩阵乘只支持 bf16"), do: t("add --bf16", "加上 --bf16"),
			broken: func(c *cfg) bool { return c.MoeGroupedGemm && !c.Bf16 },
		},
		{
			id: "flex-needs-deepep", flags: "--moe-enable-deepep --moe-token-dispatcher-type", source: "megatron/core/transformer/moe/token_dispatcher.py:1165", stage: building,
			when: t("--moe-token-dispatcher-type flex", ""), must: t("--moe-enable-deepep must be given", "必须使用 --moe-enable-deepep"),
			why: t("0.15 knows no other back end", "0.15 没有其他后端"), do: t("add --moe-enable-deepep", "加上 --moe-enable-deepep"),
			broken: func(c *cfg) bool {
				return c.MoeTokenDispatcherType == "flex" && c.Experts > 0 && expertLayers(c) && !c.MoeEnableDeepep
			},
		},
		{
			id: "graph-no-expandable-segments", flags: "PYTORCH_CUDA_ALLOC_CONF --cuda-graph-impl", source: inArgs + "1198",
			when: t("--cuda-graph-impl other than none", "--cuda-graph-impl 不为 none"), must: t("expandable_segments:True must not be set", "不能设置 expandable_segments:True"),
			why: t("a replay may access memory that was remapped", "重放时可能访问已重新映射的显存"), do: t("take it out of PYTORCH_CUDA_ALLOC_CONF", "从 PYTORCH_CUDA_ALLOC_CONF 中去掉"),
			broken: func(c *cfg) bool {
				return c.CudaGraphImpl != "none" && strings.Contains(env(c, "PYTORCH_CUDA_ALLOC_CONF"), "expandable_segments:True")
			},
		},
		{
			id: "graph-no-full-recompute", flags: "--recompute-granularity --cuda-graph-impl", source: inArgs + "1202",
			when: t("--cuda-graph-impl other than none", "--cuda-graph-impl 不为 none"), must: t("--recompute-granularity must not be full", "--recompute-granularity 不能是 full"),
			why: t("0.15 cannot capture a recomputed layer", "0.15 无法捕获重计算的层"), do: t("use selective, or no graph", "改用 selective，或不用 CUDA graph"),
			broken: func(c *cfg) bool { return c.CudaGraphImpl != "none" && c.RecomputeGranularity.V == "full" },
		},
		{
			id: "graph-recompute-attention-only", flags: "--recompute-granularity --cuda-graph-impl --cuda-graph-scope", source: inConfig + "1403",
			when: t("CUDA graphs with recomputation", "CUDA graph 与重计算同用"),
			must: t("the recomputation must be selective, the implementation transformer_engine and the scope attn", "重计算须为 selective，实现为 transformer_engine，范围为 attn"),
			why:  t("0.15 knows no other way to recompute outside the graph", "0.15 没有其他在图外重计算的办法"), do: t("use --cuda-graph-impl transformer_engine --cuda-graph-scope attn", "改用 --cuda-graph-impl transformer_engine --cuda-graph-scope attn"),
			broken: func(c *cfg) bool {
				return c.CudaGraphImpl != "none" && c.Recompute != "" && !graphOfAttention(c)
			},
		},
		{
			id: "graph-attention-recompute", flags: "--recompute-modules --cuda-graph-scope", source: inConfig + "1407",
			when: t("--cuda-graph-scope attn with selective recomputation", "--cuda-graph-scope attn 且使用 selective 重计算"), must: t("core_attn and mla_up_proj must not be recomputed", "不能重计算 core_attn 与 mla_up_proj"),
			why: t("both lie inside the captured attention", "两者都在被捕获的注意力之内"), do: t("take them out of --recompute-modules", "从 --recompute-modules 中去掉"),
			broken: func(c *cfg) bool {
				return graphOfAttention(c) && c.Recompute == "selective" && (recomputes(c, "core_attn") || recomputes(c, "mla_up_proj"))
			},
		},
		{
			id: "layout-mtp-with-loss", flags: "--pipeline-model-parallel-layout --mtp-num-layers", source: inLayout + "128", at: 2280, effect: PerformanceOnly,
			when: t("an m in --pipeline-model-parallel-layout", "--pipeline-model-parallel-layout 中有 m"), must: t("m must be in the last stage, together with L", "m 必须与 L 同在最后一级"),
			why: t("0.15 cannot place MTP layers apart from the loss", "0.15 不能把 MTP 层放在损失以外的级"), do: t("move m to the last stage", "把 m 移到最后一级"),
			broken: func(c *cfg) bool {
				for i, stage := range c.Stages {
					if strings.Contains(stage, "m") && (i != len(c.Stages)-1 || !strings.Contains(stage, "L")) {
						return true
					}
				}
				return false
			},
		},
	}
}

func until016() []row {
	const override = "--hybrid-override-pattern"
	return []row{
		{
			id: "hybrid-override-length", flags: override + " --num-layers", source: "megatron/core/ssm/mamba_hybrid_layer_allocation.py:76", stage: building, effect: ChangesExperiment,
			when: t(override, ""), must: t("the pattern must have one letter for each of --num-layers", "模式的字母数必须等于 --num-layers"),
			why: t("each letter is a layer", "每个字母是一层"), do: t("make the two agree", "使两者一致"),
			broken: func(c *cfg) bool { return olderHybrid(c) && len(c.HybridOverridePattern.V) != c.Layers },
		},
		{
			id: "hybrid-override-letters", flags: override, source: "megatron/core/ssm/mamba_hybrid_layer_allocation.py:83", stage: building, effect: ChangesExperiment,
			when: t(override, ""), must: t("only M, *, - and E may occur", "只能出现 M、*、- 和 E"),
			why: t("each letter is a layer: Mamba, attention, MLP, experts", "每个字母是一层：Mamba、注意力、MLP、专家"), do: t("correct the pattern", "修正模式"),
			broken: func(c *cfg) bool {
				letters := "M*-E"
				return olderHybrid(c) && strings.Trim(c.HybridOverridePattern.V, letters) != ""
			},
		},
		{
			id: "hybrid-ratios", flags: "--hybrid-attention-ratio --hybrid-mlp-ratio", source: "megatron/core/ssm/mamba_hybrid_layer_allocation.py:105", stage: building, effect: ChangesExperiment,
			when: t("a hybrid model", "混合模型"), must: t("both ratios must lie between 0 and 1, and so must their sum", "两个比例及其和都必须在 0 与 1 之间"),
			why: t("the remaining layers are Mamba layers", "余下的是 Mamba 层"), do: t("lower one of the two", "减小其中之一"),
			broken: func(c *cfg) bool {
				a, m := c.HybridAttentionRatio, c.HybridMlpRatio
				return c.Entry == "hybrid" && (a < 0 || a > 1 || m < 0 || m > 1 || a+m > 1)
			},
		},
		{
			id: "hybrid-override-ratios", flags: override + " --hybrid-attention-ratio --hybrid-mlp-ratio", source: "megatron/core/ssm/mamba_hybrid_layer_allocation.py:116", stage: building, effect: ChangesExperiment,
			when: t(override+" with a ratio", override+" 与比例同用"), must: t("the pattern must hold as many layers of each kind as the ratios give", "模式中各类层的数量必须与比例一致"),
			why: t("the pattern overrides the order only", "模式只改变顺序"), do: t("drop the ratios", "去掉比例"),
			broken: func(c *cfg) bool {
				if !olderHybrid(c) || c.HybridAttentionRatio <= 0 && c.HybridMlpRatio <= 0 {
					return false
				}
				even := megatron.AllocateHybrid(c.Layers, c.HybridAttentionRatio, c.HybridMlpRatio)
				return slices.ContainsFunc([]string{"M", "*", "-", "E"}, func(letter string) bool {
					return strings.Count(even, letter) != strings.Count(c.HybridOverridePattern.V, letter)
				})
			},
		},
		{
			id: "hybrid-no-virtual-pipeline", flags: "--num-layers-per-virtual-pipeline-stage --num-virtual-stages-per-pipeline-rank", source: "megatron/core/ssm/mamba_block.py:217", stage: building,
			when: t("a hybrid model with PP > 1", "混合模型且 PP > 1"), must: t("there must be no virtual stages", "不能使用虚拟级"),
			why: t("the layers are cut into PP pieces of one size", "各层被切成 PP 个等长的段"), do: t("drop the virtual stages", "去掉虚拟级"),
			broken: func(c *cfg) bool { return c.Entry == "hybrid" && c.PP > 1 && c.VP.OK },
		},
		{
			id: "legacy-grouped-gemm-no-bias", flags: "--disable-bias-linear --moe-use-legacy-grouped-gemm", source: "megatron/core/transformer/moe/experts.py:82", stage: building, effect: ChangesExperiment,
			when: t("--moe-use-legacy-grouped-gemm", ""), must: t("--disable-bias-linear must be given", "必须使用 --disable-bias-linear"),
			why: t("the old grouped GEMM adds no bias", "旧的分组矩阵乘不加偏置"), do: t("add --disable-bias-linear", "加上 --disable-bias-linear"),
			broken: func(c *cfg) bool { return legacyGrouped(c) && c.AddBiasLinear },
		},
		{
			id: "legacy-grouped-gemm-no-latent", flags: "--moe-latent-size --moe-use-legacy-grouped-gemm", source: inArgs + "1273", effect: ChangesExperiment,
			when: t("--moe-latent-size", ""), must: t("--moe-use-legacy-grouped-gemm must be off", "不能使用 --moe-use-legacy-grouped-gemm"),
			why: t("the old grouped GEMM has no projection", "旧的分组矩阵乘没有投影"), do: t("drop --moe-use-legacy-grouped-gemm", "去掉 --moe-use-legacy-grouped-gemm"),
			broken: func(c *cfg) bool { return c.MoeLatentSize.OK && c.MoeUseLegacyGroupedGemm },
		},
		{
			id: "legacy-grouped-gemm-activation", flags: "--moe-use-legacy-grouped-gemm", source: "megatron/core/transformer/moe/experts.py:92", stage: building, effect: ChangesExperiment,
			when: t("a gated activation with --moe-use-legacy-grouped-gemm", "门控激活且使用 --moe-use-legacy-grouped-gemm"), must: t("the activation must be silu or gelu", "激活函数必须是 silu 或 gelu"),
			why: t("the old grouped GEMM supports no other", "旧的分组矩阵乘不支持其他激活"), do: t("drop --moe-use-legacy-grouped-gemm", "去掉 --moe-use-legacy-grouped-gemm"),
			broken: func(c *cfg) bool { return legacyGrouped(c) && c.Gated && c.Activation == "quick_gelu" },
		},
		{
			id: "legacy-grouped-gemm-recompute", flags: "--recompute-modules --moe-use-legacy-grouped-gemm", source: "megatron/core/transformer/moe/experts.py:107", stage: building,
			when: t("moe_act in --recompute-modules with FP8", "--recompute-modules 含 moe_act 且使用 FP8"), must: t("--moe-use-legacy-grouped-gemm must be off", "不能使用 --moe-use-legacy-grouped-gemm"),
			why: t("the old grouped GEMM keeps no FP8 input", "旧的分组矩阵乘不保存 FP8 输入"), do: t("drop --moe-use-legacy-grouped-gemm", "去掉 --moe-use-legacy-grouped-gemm"),
			broken: func(c *cfg) bool {
				return legacyGrouped(c) && c.Recompute == "selective" && recomputes(c, "moe_act") && (c.Fp8.OK || c.Fp4.OK)
			},
		},
		{
			id: "legacy-grouped-gemm-bf16", flags: "--bf16 --moe-use-legacy-grouped-gemm", source: "megatron/core/transformer/moe/experts.py:225", stage: stepping, effect: ChangesExperiment,
			when: t("--moe-use-legacy-grouped-gemm", ""), must: t("--bf16 must be given", "必须使用 --bf16"),
			why: t("the old grouped GEMM supports bf16 only", "旧的分组矩阵乘只支持 bf16"), do: t("add --bf16", "加上 --bf16"),
			broken: func(c *cfg) bool { return legacyGrouped(c) && !c.Bf16 && c.Release >= megatron.V016 },
		},
		{
			id: "delay-wgrad-no-legacy-grouped-gemm", flags: "--delay-wgrad-compute --moe-use-legacy-grouped-gemm", source: inConfig + "1913",
			when: t("--delay-wgrad-compute", ""), must: t("--moe-use-legacy-grouped-gemm must be off", "不能使用 --moe-use-legacy-grouped-gemm"),
			why: t("the old grouped GEMM cannot delay its weight gradient", "旧的分组矩阵乘无法推迟权重梯度"), do: t("drop --moe-use-legacy-grouped-gemm", "去掉 --moe-use-legacy-grouped-gemm"),
			broken: func(c *cfg) bool { return c.DelayWgradCompute && c.MoeUseLegacyGroupedGemm },
		},
		{
			id: "rl-one-way-for-kv-cache", flags: "--rl-remove-kv-cache-during-training --rl-offload-kv-cache-during-training", source: inArgs + "340",
			when: t("--perform-rl-step", ""), must: t("the cache must not be both removed and offloaded", "不能既移除又卸载缓存"),
			why: t("a cache that is removed cannot be offloaded", "同一份缓存只能有一种处置"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool {
				return c.PerformRlStep && c.RlRemoveKvCacheDuringTraining && c.RlOffloadKvCacheDuringTraining
			},
		},
		{
			id: "rl-partial-rollouts-keep-kv-cache", flags: "--rl-partial-rollouts --rl-remove-kv-cache-during-training", source: inArgs + "343",
			when: t("--perform-rl-step with --rl-partial-rollouts", "--perform-rl-step 且使用 --rl-partial-rollouts"), must: t("the cache must not be removed", "不能移除缓存"),
			why: t("an unfinished rollout continues from it", "未完成的 rollout 要从中继续"), do: t("drop --rl-remove-kv-cache-during-training", "去掉 --rl-remove-kv-cache-during-training"),
			broken: func(c *cfg) bool {
				return c.PerformRlStep && c.RlPartialRollouts && c.RlRemoveKvCacheDuringTraining
			},
		},
	}
}

func until017() []row {
	const muon = "--optimizer"
	return []row{
		{
			id: "graph-scope-full-alone", flags: "--cuda-graph-scope", source: inArgs + "1586",
			when: t("--cuda-graph-scope full", ""), must: t("full must be the only value", "full 必须是唯一取值"),
			why: t("it means the whole layer", "它表示整层"), do: t("leave --cuda-graph-scope out: that is the whole layer", "去掉 --cuda-graph-scope：即整层"),
			broken: func(c *cfg) bool {
				return slices.Contains(c.Asked.CudaGraphScope, "full") && len(c.Asked.CudaGraphScope) > 1
			},
		},
		{
			id: "dynamic-inference-block", flags: "--inference-dynamic-batching-block-size --inference-dynamic-batching", source: inArgs + "1456",
			when: t("--inference-dynamic-batching", ""), must: t("the block size must be a multiple of 256", "块大小必须是 256 的整数倍"),
			why: t("the attention kernel reads its cache in blocks of 256 tokens", "注意力内核按 256 个词元的块读取缓存"), do: t("use --inference-dynamic-batching-block-size 256", "改用 --inference-dynamic-batching-block-size 256"),
			broken: func(c *cfg) bool {
				return c.InferenceDynamicBatching && !multiple(c.InferenceDynamicBatchingBlockSize, 256)
			},
		},
		{
			id: "muon-no-distributed-optimizer", flags: "--use-distributed-optimizer " + muon, source: inArgs + "1490",
			when: t("--optimizer muon or dist_muon", "--optimizer 为 muon 或 dist_muon"), must: t("--use-distributed-optimizer must be off", "不能使用 --use-distributed-optimizer"),
			why: t("a step of Muon needs whole matrices, which the sharded optimizer cuts", "Muon 的一步需要完整矩阵，而分片优化器会切开它"), do: t("drop it; dist_muon shards whole layers", "去掉该参数；dist_muon 按整层分片"),
			broken: func(c *cfg) bool { return isMuon(c) && c.UseDistributedOptimizer },
		},
		{
			id: "muon-no-grad-overlap", flags: "--overlap-grad-reduce " + muon, source: inArgs + "1487",
			when: t("--optimizer muon (and dist_muon in 0.16)", "--optimizer muon（0.16 还包括 dist_muon）"), must: t("--overlap-grad-reduce must be off", "不能使用 --overlap-grad-reduce"),
			why: t("the gradients are needed whole", "需要完整梯度"), do: t("drop it, or from 0.17 on use dist_muon", "去掉该参数，0.17 起可改用 dist_muon"),
			broken: func(c *cfg) bool { return muonWithoutOverlap(c) && c.OverlapGradReduce },
		},
		{
			id: "muon-no-gather-overlap", flags: "--overlap-param-gather " + muon, source: inArgs + "1488",
			when: t("--optimizer muon (and dist_muon in 0.16)", "--optimizer muon（0.16 还包括 dist_muon）"), must: t("--overlap-param-gather must be off", "不能使用 --overlap-param-gather"),
			why: t("there is nothing to gather", "没有需要收集的参数"), do: t("drop it, or from 0.17 on use dist_muon", "去掉该参数，0.17 起可改用 dist_muon"),
			broken: func(c *cfg) bool { return muonWithoutOverlap(c) && c.OverlapParamGather },
		},
		{
			id: "muon-no-megatron-fsdp", flags: "--use-megatron-fsdp " + muon, source: inArgs + "1492",
			when: t("--optimizer muon or dist_muon", "--optimizer 为 muon 或 dist_muon"), must: t("--use-megatron-fsdp must be off", "不能使用 --use-megatron-fsdp"),
			why: t("a step of Muon needs whole matrices", "Muon 的一步需要完整矩阵"), do: t("drop --use-megatron-fsdp, or use adam", "去掉 --use-megatron-fsdp，或改用 adam"),
			broken: func(c *cfg) bool { return isMuon(c) && c.UseMegatronFsdp },
		},
		{
			id: "optimizer-kind", flags: muon, source: "megatron/training/training.py:1584", stage: optimizing, effect: ChangesExperiment,
			when: t("--optimizer", ""), must: t("the optimizer must be adam, sgd or a Muon", "优化器必须是 adam、sgd 或 Muon"),
			why: t("up to 0.17 lion is a choice of the parser only", "直到 0.17，lion 只是解析器里的一个取值"), do: t("use --optimizer adam", "改用 --optimizer adam"),
			broken: func(c *cfg) bool { return c.Trains() && emerging(c) && !isMuon(c) && c.Release >= megatron.V016 },
		},
		{
			id: "local-graph-pads-experts", flags: "--moe-pad-experts-for-cuda-graph-inference --cuda-graph-impl " + epFlag, source: inArgs + "1459",
			when: t("--cuda-graph-impl local with EP > 1", "--cuda-graph-impl local 且 EP > 1"), must: t("--moe-pad-experts-for-cuda-graph-inference must be given", "必须使用 --moe-pad-experts-for-cuda-graph-inference"),
			why: t("a graph needs tensors of one size", "CUDA graph 需要固定大小的张量"), do: t("add it, or use --cuda-graph-impl transformer_engine", "加上该参数，或改用 --cuda-graph-impl transformer_engine"),
			broken: func(c *cfg) bool {
				local := c.Asked.CudaGraphImpl == "local" || c.EnableCudaGraph
				optimized := c.Release >= megatron.V017 && c.TransformerImpl == "inference_optimized"
				return local && c.EP > 1 && !optimized && !c.MoePadExpertsForCudaGraphInference
			},
		},
		{
			id: "gated-delta-net-no-cp", flags: cpFlag + " --experimental-attention-variant", source: inConfig + "1115", effect: PerformanceOnly,
			when: t("--experimental-attention-variant gated_delta_net", ""), must: t("CP must be 1", "CP 必须为 1"),
			why: t("the state runs along the sequence", "状态沿序列传递"), do: t("use CP 1, or 0.18 and later", "CP 取 1，或使用 0.18 及以后的版本"),
			broken: func(c *cfg) bool { return gatedDelta(c) && c.CP > 1 },
		},
		{
			id: "expert-overlap-mtp-needs-pp", flags: ppFlag + " --mtp-num-layers --overlap-moe-expert-parallel-comm", source: inConfig + "2138",
			when: t("--overlap-moe-expert-parallel-comm with --mtp-num-layers 1", "--overlap-moe-expert-parallel-comm 且 --mtp-num-layers 1"), must: t("PP must be above 1", "PP 必须大于 1"),
			why: t("the overlap runs the MTP layer with the last stage", "重叠与末级一起运行 MTP 层"), do: t("use PP 2 or more", "PP 取 2 或更大"),
			broken: func(c *cfg) bool { return c.OverlapMoeExpertParallelComm && c.MtpNumLayers.V == 1 && c.PP <= 1 },
		},
		{
			id: "te-graph-no-full-iteration", flags: "--cuda-graph-scope --cuda-graph-impl", source: inConfig + "1981",
			when: t("--cuda-graph-impl transformer_engine", ""), must: t("full_iteration must not be in --cuda-graph-scope", "--cuda-graph-scope 不能含 full_iteration"),
			why: t("only the local implementation captures the whole iteration", "只有 local 实现能捕获整个迭代"), do: t("use --cuda-graph-impl local", "改用 --cuda-graph-impl local"),
			broken: func(c *cfg) bool {
				return c.CudaGraphImpl == "transformer_engine" && slices.Contains(c.CudaGraphScope, "full_iteration")
			},
		},
		{
			id: "user-buffers-no-expandable-segments", flags: "PYTORCH_CUDA_ALLOC_CONF --use-nccl-ub", source: inDDP + "212",
			when: t("--use-nccl-ub", ""), must: t("expandable_segments:True must not be set", "不能设置 expandable_segments:True"),
			why: t("the buffers come from a memory pool, which such segments leave", "缓冲区来自显存池，而可扩展段不受其管理"), do: t("take it out of PYTORCH_CUDA_ALLOC_CONF", "从 PYTORCH_CUDA_ALLOC_CONF 中去掉"),
			broken: func(c *cfg) bool {
				return c.NcclUb && !c.UseTorchFsdp2 && slices.Contains(strings.Split(env(c, "PYTORCH_CUDA_ALLOC_CONF"), ","), "expandable_segments:True")
			},
		},
		{
			id: "flex-no-shared-expert-overlap", flags: "--moe-shared-expert-overlap --moe-token-dispatcher-type", source: "megatron/core/transformer/moe/token_dispatcher.py:1390", stage: building,
			when: t("--moe-token-dispatcher-type flex", ""), must: t("--moe-shared-expert-overlap must be off", "不能使用 --moe-shared-expert-overlap"),
			why: t("the flex dispatcher does not run the shared expert", "flex 分发器不运行共享专家"), do: t("use the alltoall dispatcher", "改用 alltoall 分发器"),
			broken: func(c *cfg) bool {
				return c.MoeTokenDispatcherType == "flex" && c.MoeSharedExpertOverlap && c.MoeSharedExpertIntermediateSize.OK && expertLayers(c)
			},
		},
	}
}

// rampUpRows are about --rampup-batch-size, which works up to 0.17. Later releases
// accept the flag and ignore it.
func rampUpRows() []row {
	const ramp = "--rampup-batch-size"
	start := func(c *cfg) int { return c.RampupBatchSize[0] }
	at := func(id, line string, must, why lang.Text, broken func(*cfg) bool) row {
		return row{
			id: id, flags: ramp + " --global-batch-size", source: inBatch + line, effect: ChangesExperiment,
			when: t(ramp, ""), must: must, why: why, do: t("correct the three numbers", "修正三个数值"),
			broken: func(c *cfg) bool { return len(c.RampupBatchSize) == 3 && broken(c) },
		}
	}
	return []row{
		{
			id: "ramp-up-needs-samples", flags: ramp + " --train-iters", source: inArgs + "1056", effect: ChangesExperiment,
			when: t("--train-iters", ""), must: t(ramp+" must not be given", "不能使用 "+ramp),
			why: t("a ramp counts samples", "批大小递增按样本计数"), do: t("give --train-samples in place of --train-iters", "用 --train-samples 代替 --train-iters"),
			broken: func(c *cfg) bool { return byIterations(c) && c.RampupBatchSize != nil },
		},
		{
			id: "ramp-up-three-numbers", flags: ramp, source: inBatch + "233", effect: ChangesExperiment,
			when: t(ramp, ""), must: t("three numbers must be given", "必须给三个数"),
			why: t("the start, the increment and the samples of the ramp", "起始值、增量与递增所用样本数"), do: t("give START INCREMENT SAMPLES", "写成 起始 增量 样本数"),
			broken: func(c *cfg) bool { return c.RampupBatchSize != nil && len(c.RampupBatchSize) != 3 },
		},
		{
			id: "ramp-up-no-phases", flags: ramp + " --phase-transition-iterations", source: inArgs + "560", effect: ChangesExperiment,
			when: t("--phase-transition-iterations", ""), must: t(ramp+" must not be given", "不能使用 "+ramp),
			why: t("phases count iterations of one size", "阶段按同样大小的迭代计数"), do: t("drop one of the two", "去掉其中之一"),
			broken: func(c *cfg) bool { return c.PhaseTransitionIterations.V != "" && c.RampupBatchSize != nil },
		},
		at("ramp-up-start-positive", "401", t("the start must be above 0", "起始值必须大于 0"), t("a step holds samples", "每步都有样本"), func(c *cfg) bool { return start(c) <= 0 }),
		at("ramp-up-increment-positive", "404", t("the increment must be above 0", "增量必须大于 0"), t("the ramp rises", "批大小递增"), func(c *cfg) bool { return c.RampupBatchSize[1] <= 0 }),
		at("ramp-up-samples-not-negative", "407", t("the samples must not be negative", "样本数不能为负"), t("the ramp ends", "递增须有终点"), func(c *cfg) bool { return c.RampupBatchSize[2] < 0 }),
		at("ramp-up-below-global-batch", "425", t("the start must not be above --global-batch-size", "起始值不能大于 --global-batch-size"), t("the ramp ends there", "递增以其为终点"),
			func(c *cfg) bool { return start(c) > c.GlobalBatchSize.V }),
		at("ramp-up-has-steps", "436", t("the start must be below --global-batch-size", "起始值必须小于 --global-batch-size"), t("the samples are divided by the number of steps", "样本数要除以步数"),
			func(c *cfg) bool { return start(c) > 0 && start(c) == c.GlobalBatchSize.V }),
		at("ramp-up-whole-increments", "429", t("--global-batch-size less the start must be a multiple of the increment", "--global-batch-size 与起始值之差必须是增量的整数倍"), t("the ramp has whole steps", "递增由整步构成"),
			func(c *cfg) bool {
				return c.RampupBatchSize[1] > 0 && start(c) <= c.GlobalBatchSize.V && !multiple(c.GlobalBatchSize.V-start(c), c.RampupBatchSize[1])
			}),
	}
}

// legacyModelRows are about --use-legacy-models, which 0.18 removed.
func legacyModelRows() []row {
	const legacy = "--use-legacy-models"
	without := func(id, flags, line string, must lang.Text, broken func(*cfg) bool) row {
		return row{
			id: id, flags: flags + " " + legacy, source: inArgs + line,
			when: t(legacy, ""), must: must, why: t("models from before Megatron Core do not support it", "Megatron Core 之前的模型不支持"), do: t("drop "+legacy, "去掉 "+legacy),
			broken: func(c *cfg) bool { return c.UseLegacyModels && broken(c) },
		}
	}
	off := func(flag string) lang.Text { return t(flag+" must be off", "不能使用 "+flag) }
	return []row{
		without("legacy-models-ckpt-format", "--ckpt-format", "311", t("--ckpt-format must be torch", "--ckpt-format 必须是 torch"), func(c *cfg) bool { return c.CkptFormat != "torch" }),
		without("legacy-models-no-cp", cpFlag, "1313", t("CP must be 1", "CP 必须为 1"), func(c *cfg) bool { return c.CP > 1 }),
		without("legacy-models-no-gather-overlap", "--overlap-param-gather", "862", off("--overlap-param-gather"), func(c *cfg) bool { return c.OverlapParamGather }),
		without("legacy-models-no-mtp", "--mtp-num-layers", "1555", off("--mtp-num-layers"), func(c *cfg) bool { return c.MtpNumLayers.Or(0) != 0 }),
		without("legacy-models-no-latent", "--moe-latent-size", "1602", off("--moe-latent-size"), func(c *cfg) bool { return c.MoeLatentSize.OK }),
		without("legacy-models-no-decoupled-lr", "--decoupled-lr --decoupled-min-lr", "1277", t("--decoupled-lr and --decoupled-min-lr must be off", "不能使用 --decoupled-lr 与 --decoupled-min-lr"),
			func(c *cfg) bool { return c.DecoupledLr.OK || c.DecoupledMinLr.OK }),
		without("legacy-models-no-interleaved-rotary", "--rotary-interleaved", "1284", off("--rotary-interleaved"), func(c *cfg) bool { return c.RotaryInterleaved }),
	}
}

func until019() []row {
	const impl = "--transformer-impl"
	return []row{{
		id: "optimized-moe-no-gate", flags: "--swiglu --num-experts " + impl, source: inConfig + "1490", effect: ChangesExperiment,
		when: t(impl+" inference_optimized with experts", impl+" inference_optimized 且为 MoE"), must: t("--swiglu must be off", "不能使用 --swiglu"),
		why: t("its fused kernels order the two halves of a gated layer otherwise; 0.17 refuses it with local CUDA graphs only", "其融合内核对门控层两半的排列不同；0.17 只在使用 local CUDA graph 时拒绝"),
		do:  t("use "+impl+" transformer_engine for training", "训练请用 "+impl+" transformer_engine"),
		broken: func(c *cfg) bool {
			return c.TransformerImpl == "inference_optimized" && c.Experts != 0 && c.Gated && (c.Release > megatron.V017 || c.CudaGraphImpl == "local")
		},
	}, {
		id: "single-grouped-weight-needs-fuser", flags: "--use-transformer-engine-op-fuser --moe-single-grouped-weight", source: inConfig + "1580",
		when: t("--moe-single-grouped-weight", ""), must: t("--use-transformer-engine-op-fuser must be given", "必须加 --use-transformer-engine-op-fuser"),
		why: t("0.19 splits the weight into the experts' tensors otherwise", "否则 0.19 会把权重拆成各专家的张量"),
		do:  t("add --use-transformer-engine-op-fuser, or drop --moe-single-grouped-weight", "加 --use-transformer-engine-op-fuser，或去掉 --moe-single-grouped-weight"),
		broken: func(c *cfg) bool {
			return c.MoeSingleGroupedWeight && !c.UseTransformerEngineOpFuser
		},
	}}
}

func until018() []row {
	const mode = "--deterministic-mode"
	return []row{
		specWords("spec-module-and-name-late", Warning),
		{
			id: "deterministic-no-flash", flags: "--use-flash-attn " + mode, source: inArgs + "1537", effect: ChangesExperiment,
			when: t(mode, ""), must: t("--use-flash-attn must be off", "不能使用 --use-flash-attn"),
			why: t("its backward pass sums in any order", "其反向传播的求和顺序不固定"), do: t("drop --use-flash-attn", "去掉 --use-flash-attn"),
			broken: func(c *cfg) bool { return c.DeterministicMode && c.UseFlashAttn },
		},
		{
			id: "deterministic-no-loss-fusion", flags: "--cross-entropy-loss-fusion " + mode, source: inArgs + "1538",
			when: t(mode, ""), must: t("--cross-entropy-loss-fusion must be off", "不能使用 --cross-entropy-loss-fusion"),
			why: t("the fused kernel sums in any order", "融合内核的求和顺序不固定"), do: t("drop --cross-entropy-loss-fusion", "去掉 --cross-entropy-loss-fusion"),
			broken: func(c *cfg) bool { return c.DeterministicMode && c.CrossEntropyLossFusion },
		},
		{
			id: "deterministic-nccl-algo-set", flags: "NCCL_ALGO " + mode, source: inArgs + "1541",
			when: t(mode, ""), must: t("NCCL_ALGO must be Tree, Ring, CollnetDirect, CollnetChain or ^NVLS", "NCCL_ALGO 必须是 Tree、Ring、CollnetDirect、CollnetChain 或 ^NVLS"),
			why: t("NCCL chooses another algorithm from run to run otherwise", "否则 NCCL 每次可能选用不同算法"), do: t("NCCL_ALGO=Ring", "NCCL_ALGO=Ring"),
			broken: func(c *cfg) bool {
				v, _ := c.Env("NCCL_ALGO")
				return c.DeterministicMode && !slices.Contains([]string{"Tree", "Ring", "CollnetDirect", "CollnetChain", "^NVLS"}, v)
			},
		},
		{
			id: "rl-generations-given-once", flags: "--rl-num-parallel-generations --rl-parallel-generation-tasks", source: inArgs + "517",
			when: t("--perform-rl-step", ""), must: t("the two flags must not be given together", "两个参数不能同时使用"),
			why: t("each follows from the other", "两者可互相推出"), do: t("keep --rl-num-parallel-generations", "保留 --rl-num-parallel-generations"),
			broken: func(c *cfg) bool {
				return c.PerformRlStep && c.RlNumParallelGenerations.OK && c.Flag("--rl-parallel-generation-tasks") && c.RlParallelGenerationTasks.OK
			},
		},
		{
			id: "rl-generations-or-batches", flags: "--rl-num-parallel-generations --rl-num-parallel-generation-batches", source: inArgs + "530",
			when: t("--perform-rl-step", ""), must: t("the two flags must not be given together", "两个参数不能同时使用"),
			why: t("each follows from the other", "两者可互相推出"), do: t("keep one", "只保留一个"),
			broken: func(c *cfg) bool {
				return c.PerformRlStep && c.RlNumParallelGenerations.OK && c.RlNumParallelGenerationBatches.OK
			},
		},
		{
			id: "rl-generations-need-partial", flags: "--rl-partial-rollouts --rl-num-parallel-generations", source: inArgs + "535",
			when: t("--rl-num-parallel-generations or --rl-num-parallel-generation-batches", "--rl-num-parallel-generations 或 --rl-num-parallel-generation-batches"), must: t("--rl-partial-rollouts must be given", "必须使用 --rl-partial-rollouts"),
			why: t("only streamed rollouts run concurrently", "只有流式 rollout 才能并行"), do: t("add --rl-partial-rollouts", "加上 --rl-partial-rollouts"),
			broken: func(c *cfg) bool {
				return c.PerformRlStep && (c.RlNumParallelGenerations.OK || c.RlNumParallelGenerationBatches.OK) && !c.RlPartialRollouts
			},
		},
		{
			id: "rl-generations-whole-groups", flags: "--rl-num-parallel-generations --grpo-group-size", source: inArgs + "537",
			when: t("--rl-num-parallel-generations", ""), must: t("it must be a multiple of --grpo-group-size", "必须是 --grpo-group-size 的整数倍"),
			why: t("a group is generated together", "一组须一起生成"), do: t("give a multiple", "取整数倍"),
			broken: func(c *cfg) bool {
				return c.PerformRlStep && c.RlNumParallelGenerations.OK && !multiple(c.RlNumParallelGenerations.V, c.GrpoGroupSize)
			},
		},
	}
}

// graphOfAttention reports whether the only CUDA graph is the one that 0.15 allows
// together with recompute.
func graphOfAttention(c *cfg) bool {
	return c.CudaGraphImpl == "transformer_engine" && len(c.CudaGraphScope) == 1 && c.CudaGraphScope[0] == "attn"
}

// olderHybrid reports whether a hybrid model has a pattern in the form of 0.16 and
// older.
func olderHybrid(c *cfg) bool { return c.Entry == "hybrid" && c.HybridOverridePattern.OK }

func legacyGrouped(c *cfg) bool {
	return c.MoeUseLegacyGroupedGemm && c.MoeGroupedGemm && expertLayers(c)
}

func isMuon(c *cfg) bool { return strings.Contains(c.Asked.Optimizer, "muon") }

// muonWithoutOverlap reports whether the optimizer is a Muon that does not overlap
// communication. dist_muon overlaps from 0.17 on.
func muonWithoutOverlap(c *cfg) bool {
	return isMuon(c) && (c.Asked.Optimizer == "muon" || c.Release < megatron.V017)
}

// rampsUp reports whether the global batch ramps up, which works up to 0.17.
func rampsUp(c *cfg) bool { return c.Release < megatron.V018 && c.RampupBatchSize != nil }
