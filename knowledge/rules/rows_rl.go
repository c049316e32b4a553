package rules

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// reinforcementRows check --perform-rl-step, with which training and inference take
// turns in one job.
func reinforcementRows() []row {
	const (
		partial = "--rl-partial-rollouts"
		persist = "--rl-persist-cuda-graphs"
		cache   = "--rl-kv-cache-management-mode"
		impl    = "--cuda-graph-impl"
		samples = "--global-batch-size --grpo-prompts-per-step --grpo-group-size --grpo-iterations"
	)
	rl := func(id, flags, line string, must, why, do lang.Text, broken func(*cfg) bool) row {
		return row{
			id: id, flags: flags, source: inArgs + line, when: t("--perform-rl-step", ""), must: must, why: why, do: do,
			broken: func(c *cfg) bool { return c.PerformRlStep && broken(c) },
		}
	}
	given := func(flag string) lang.Text { return t("%s must be given", "必须使用 %s").With(flag) }
	streamed := t("only streamed rollouts run ahead of training", "只有流式 rollout 才能领先于训练")
	addPartial := t("add "+partial, "加上 "+partial)
	graphs := t("there is no graph to keep or to train with otherwise", "否则没有可保留或用于训练的图")
	addGraphs := t("add "+impl+" local, or drop the flag", "加上 "+impl+" local，或去掉该参数")
	saved := t("the generated samples are in no checkpoint: a job may end or save only when they are used up", "生成的样本不进检查点：只能在样本用完时结束或保存")
	every := func(flag string) lang.Text {
		return t("%s must be a multiple of prompts × group size × iterations / global batch", "%s 必须是 提示数 × 组大小 × 迭代数 ÷ 全局批大小 的整数倍").With(flag)
	}
	whole := t("choose a multiple, or change --grpo-iterations", "取整数倍，或调整 --grpo-iterations")
	packing := rl("rl-packing-bin-holds-sequence", "--rl-sequence-packing-bin-size --seq-length --rl-use-sequence-packing", "415",
		t("--rl-sequence-packing-bin-size must be at least --seq-length", "--rl-sequence-packing-bin-size 不能小于 --seq-length"),
		t("a bin holds at least one sequence", "一个箱至少容纳一条序列"), t("raise it to --seq-length", "增大到 --seq-length"),
		func(c *cfg) bool { return c.RlUseSequencePacking && c.SeqLength.V > c.RlSequencePackingBinSize })
	packing.until = megatron.V015
	collected := rl("rl-batch-within-collection", "--global-batch-size --grpo-prompts-per-step --grpo-group-size", "",
		t("--global-batch-size must not exceed prompts × group size", "--global-batch-size 不能超过 提示数 × 组大小"),
		t("a step cannot use more samples than one collection gives", "一步不能用掉比一次采样更多的样本"),
		t("lower it, or raise --grpo-prompts-per-step", "减小它，或增大 --grpo-prompts-per-step"),
		func(c *cfg) bool {
			return (c.Release != megatron.V016 || !c.SkipTrain) && c.GlobalBatchSize.V > c.GrpoPromptsPerStep*c.GrpoGroupSize
		}) // 0.16 then collects nothing
	collected.source = "megatron/rl/rl_utils.py:2300"
	iterations := t("--grpo-iterations must be above 0", "--grpo-iterations 必须大于 0")
	once := t("give 1 or more", "取 1 或更大")
	divides := func(c *cfg) bool {
		return c.GrpoIterations == 0 && (c.TensorboardDir.OK || c.SaveInterval.OK || c.ExitInterval.OK)
	}
	used := rl("rl-iterations-positive", "--grpo-iterations --tensorboard-dir --save-interval --exit-interval", "", iterations,
		t("the intervals and the number that goes to TensorBoard are divided by it: a ZeroDivisionError", "保存与退出间隔以及写入 TensorBoard 的步数都要除以它：会以 ZeroDivisionError 结束"), once, divides)
	used.source = "megatron/training/training.py:3432"
	again := rl("rl-iterations-collect-again", "--grpo-iterations", "", iterations,
		t("samples are collected again after so many uses: below 1 the run trains on the first ones for ever", "用过这么多次后才再次采样：小于 1 时会一直用第一批样本训练"), once,
		func(c *cfg) bool { return c.GrpoIterations < 1 && !divides(c) })
	again.source, again.severity = "megatron/rl/rl_utils.py:2607", Warning
	return topics("reinforcement learning", []row{
		packing, collected, used, again,
		rl("rl-samples-fill-batches", samples, "727",
			t("prompts × group size × iterations must be a multiple of the global batch", "提示数 × 组大小 × 迭代数 必须是全局批大小的整数倍"),
			t("the samples of one generation are used up by whole steps", "一次生成的样本要由整数个训练步用完"),
			t("change one of the four", "调整四者之一"),
			func(c *cfg) bool { return c.GlobalBatchSize.V > 0 && !multiple(generated(c), c.GlobalBatchSize.V) }),
		rl("rl-exit-interval-fits", "--exit-interval "+samples, "735", every("--exit-interval"), saved, whole,
			func(c *cfg) bool { return c.ExitInterval.OK && splitsGeneration(c, c.ExitInterval.V) }),
		rl("rl-save-interval-fits", "--save-interval "+samples, "738", every("--save-interval"), saved, whole,
			func(c *cfg) bool { return c.SaveInterval.OK && splitsGeneration(c, c.SaveInterval.V) }),
		rl("rl-kept-graphs-need-graphs", impl+" "+persist, "481", t("%s must not be none", "%s 不能是 none").With(impl), graphs, addGraphs,
			func(c *cfg) bool { return c.RlPersistCudaGraphs && c.CudaGraphImpl == "none" }),
		rl("rl-training-graphs-need-graphs", impl+" --rl-training-cuda-graphs", "485", t("%s must not be none", "%s 不能是 none").With(impl), graphs, addGraphs,
			func(c *cfg) bool {
				return c.Release >= megatron.V017 && c.RlTrainingCudaGraphs && c.CudaGraphImpl == "none"
			}),
		rl("rl-offloaded-cache-keeps-graphs", persist+" "+cache, "500", given(persist),
			t("capturing the graphs again would overwrite an offloaded cache", "重新捕获图会破坏已卸载的缓存"),
			t("add %s, or use %s recompute", "加上 %s，或改用 %s recompute").With(persist, cache),
			func(c *cfg) bool { return c.RlKvCacheManagementMode == "offload" && !c.RlPersistCudaGraphs }),
		rl("rl-offloaded-cache-no-unified-memory", cache+" --inference-dynamic-batching-unified-memory-level", "505",
			t("%s must not be offload with unified memory", "使用统一内存时 %s 不能是 offload").With(cache),
			t("unified memory moves the cache by itself", "统一内存会自行移动缓存"), t("use %s persist", "改用 %s persist").With(cache),
			func(c *cfg) bool {
				return c.RlKvCacheManagementMode == "offload" && c.InferenceDynamicBatchingUnifiedMemoryLevel > 0
			}),
		rl("rl-lag-or-requests", "--rl-generation-lag --rl-max-inflight-requests", "530", t("the two flags must not be given together", "两个参数不能同时使用"),
			t("each follows from the other", "两者可互相推出"), t("keep one", "只保留一个"),
			func(c *cfg) bool { return c.RlMaxInflightRequests.OK && c.RlGenerationLag.OK }),
		rl("rl-requests-positive", "--rl-max-inflight-requests", "532", t("the number must be above 0", "数值必须大于 0"),
			t("rollouts are generated by requests", "rollout 由请求生成"), t("give 1 or more", "取 1 或更大"),
			func(c *cfg) bool { return c.RlMaxInflightRequests.OK && c.RlMaxInflightRequests.V < 1 }),
		rl("rl-requests-need-partial", partial+" --rl-max-inflight-requests --grpo-prompts-per-step --grpo-group-size", "535", given(partial), streamed, addPartial,
			func(c *cfg) bool {
				return c.RlMaxInflightRequests.V > c.GrpoPromptsPerStep*c.GrpoGroupSize && !c.RlPartialRollouts
			}),
		rl("rl-lag-not-below", "--rl-generation-lag", "546", t("the lag must be at least -1", "滞后不能小于 -1"),
			t("-1 is no request in flight", "-1 表示没有在途请求"), t("drop it", "去掉它"),
			func(c *cfg) bool { return c.Release == megatron.Main && c.RlGenerationLag.V < -1 }),
		rl("rl-lag-needs-partial", partial+" --rl-generation-lag", "549", given(partial), streamed, addPartial,
			func(c *cfg) bool { return c.RlGenerationLag.V > 0 && !c.RlPartialRollouts }),
		rl("rl-submission-needs-partial", partial+" --rl-submission-granularity", "551", given(partial), streamed, addPartial,
			func(c *cfg) bool {
				whole := c.RlSubmissionGranularity == "B" || c.RlSubmissionGranularity == "G" && c.Release < megatron.Main
				return !whole && !c.RlPartialRollouts
			}),
		rl("rl-consumption-kind", "--rl-consumption-granularity", "554", t("it must be G or B", "必须是 G 或 B"),
			t("training takes whole groups", "训练按整组取样本"), t("drop it", "去掉它"),
			func(c *cfg) bool { return c.RlConsumptionGranularity == "R" }),
		rl("rl-batches-are-no-groups", "--rl-submission-granularity --rl-consumption-granularity", "556",
			t("groups must not be consumed from submitted batches", "按批提交时不能按组消费"),
			t("a batch is ready as a whole", "一批样本整体就绪"), t("use the same granularity for both", "两者用同一粒度"),
			func(c *cfg) bool { return c.RlSubmissionGranularity == "B" && c.RlConsumptionGranularity == "G" }),
		rl("rl-offloads-existing-optimizer", "--no-load-optim --skip-train --rl-offload-optimizer-during-inference", "1879",
			t("--no-load-optim must not be given with --skip-train", "使用 --skip-train 时不能给 --no-load-optim"),
			t("the two leave no optimizer to offload", "两者同用时没有可卸载的优化器"), t("drop --rl-offload-optimizer-during-inference", "去掉 --rl-offload-optimizer-during-inference"),
			func(c *cfg) bool { return c.SkipTrain && c.NoLoadOptim && c.RlOffloadOptimizerDuringInference }),
	})
}

// reinforcementUntil016 are checks that only 0.16 makes.
func reinforcementUntil016() []row {
	const idle, level = "--rl-offload-inference-model-weights-when-idle", "--rl-inference-model-unified-memory-level"
	const cache, legacy = "--rl-offload-kv-cache-during-training", "--moe-use-legacy-grouped-gemm"
	return []row{
		{
			id: "rl-offloaded-training-cache", flags: "--inference-dynamic-batching-unified-memory-level " + cache, source: inArgs + "336",
			when: t(cache, ""), must: t("--inference-dynamic-batching-unified-memory-level must be 0", "--inference-dynamic-batching-unified-memory-level 必须为 0"),
			why: t("unified memory moves the cache by itself", "统一内存会自行移动缓存"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool {
				return c.RlOffloadKvCacheDuringTraining && c.InferenceDynamicBatchingUnifiedMemoryLevel > 0
			},
		},
		{
			id: "rl-idle-weights-unified", flags: level + " " + idle, source: inArgs + "346",
			when: t("--perform-rl-step "+idle, ""), must: t(level+" must be 1", level+" 必须为 1"),
			why: t("0.16 moves idle weights through unified memory only", "0.16 只能借助统一内存移出闲置权重"), do: t("add %s 1", "加上 %s 1").With(level),
			broken: func(c *cfg) bool {
				return c.PerformRlStep && c.RlOffloadInferenceModelWeightsWhenIdle && c.RlInferenceModelUnifiedMemoryLevel != 1
			},
		},
		{
			id: "rl-other-experts-no-legacy-grouped-gemm", flags: legacy + " --rl-inference-expert-model-parallel-size " + epFlag, source: inArgs + "360",
			when: t("--perform-rl-step with another EP for inference", "--perform-rl-step 且推理使用不同的 EP"), must: t(legacy+" must be off", "不能使用 "+legacy),
			why: t("its weights cannot be moved between layouts", "其权重无法在两种布局间搬移"), do: t("drop "+legacy, "去掉 "+legacy),
			broken: func(c *cfg) bool {
				ep := c.RlInferenceExpertModelParallelSize
				return c.PerformRlStep && ep.OK && ep.V != c.EP && c.MoeUseLegacyGroupedGemm
			},
		},
	}
}

// generated is the number of samples that one generation makes for training.
func generated(c *cfg) int { return c.GrpoPromptsPerStep * c.GrpoGroupSize * c.GrpoIterations }

// splitsGeneration reports whether an interval ends while generated samples are left.
func splitsGeneration(c *cfg, interval int) bool {
	batch := c.GlobalBatchSize.V
	return batch > 0 && generated(c) >= batch && multiple(generated(c), batch) && interval%(generated(c)/batch) != 0
}
