package rules

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func hybridRows() []row {
	const pattern = "--hybrid-layer-pattern"
	stages := t("the pattern's | signs say where stages begin", "模式中的 | 已规定各级的起点")
	drop := func(flag string) lang.Text { return t("drop "+flag, "去掉 "+flag) }
	banned := func(id, flag, line string, given func(*cfg) bool) row {
		return row{
			id: id, flags: flag + " " + pattern, source: inArgs + line,
			when: t(pattern, ""), must: t(flag+" must not be given", "不能使用 "+flag), why: stages, do: drop(flag),
			broken: func(c *cfg) bool { return c.Hybrid != nil && given(c) },
		}
	}
	return topics("hybrid models", []row{
		{
			id: "hybrid-spec-given", flags: "--spec", source: "hybrid_builders.py:25", stage: building, effect: ChangesExperiment,
			when: t("a hybrid model", "混合模型"), must: t("--spec must be given", "必须给 --spec"),
			why: t("it names the layers that the pattern's letters stand for, and has no default; found only when the model is built", "它指明模式中各字母代表的层，没有默认值；要到构建模型时才发现"),
			do: t("add --spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec (up to 0.17 every hybrid here is mamba)",
				"加上 --spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec（0.17 及以前，其中的 hybrid 都写作 mamba）"),
			broken: func(c *cfg) bool { return c.Entry == "hybrid" && c.Spec == nil && importsSpec(c) },
			fix: func(c *cfg) lang.Text {
				return t("add --spec %s", "加上 --spec %s").With(strings.Join(megatron.HybridSpec(c.Release), " "))
			},
		},
		{
			id: "one-hybrid-pattern", flags: "--hybrid-override-pattern " + pattern, source: inArgs + "746", effect: ChangesExperiment,
			when: t("--hybrid-override-pattern", ""), must: t(pattern+" must not be given as well", "不能同时给 "+pattern),
			why: t("the first is the old name of the second", "前者是后者的旧名"), do: drop("--hybrid-override-pattern"),
			broken: func(c *cfg) bool { return c.Asked.HybridOverridePattern.OK && c.Asked.HybridLayerPattern.OK },
		},
		{
			id: "hybrid-pattern-letters", flags: pattern, source: inHybrid + "291", at: 785, effect: ChangesExperiment,
			when: t(pattern, ""), must: t("only the layers M, G, *, D, +, -, E and the signs | and / may occur", "只能出现层符号 M、G、*、D、+、-、E 以及 | 与 /"),
			why: t("each letter is a layer: Mamba, delta net, attention, DSA, MLA, MLP, experts", "每个字母是一层：Mamba、delta net、注意力、DSA、MLA、MLP、专家"), do: t("correct the pattern", "修正模式"),
			broken: func(c *cfg) bool { return c.Hybrid != nil && c.Hybrid.Bad != 0 },
		},
		{
			id: "hybrid-one-kind-of-attention", flags: pattern, source: inHybrid + "298", at: 786, effect: ChangesExperiment,
			when: t(pattern, ""), must: t("* must not be combined with D or +", "* 不能与 D 或 + 同时出现"),
			why: t("attention and latent attention cannot share a model configuration", "普通注意力与潜变量注意力不能共用一个模型配置"), do: t("use one kind of attention", "只用一种注意力"),
			broken: func(c *cfg) bool {
				latent := "D+"
				if c.Release < megatron.V019 {
					latent = "D"
				}
				return c.Hybrid != nil && c.Hybrid.Mixed && strings.ContainsAny(c.HybridLayerPattern.V, latent)
			},
		},
		{
			id: "hybrid-pipes-no-first-count", flags: ppFirst + " " + pattern, source: inArgs + "804",
			when: t(pattern+" with |", pattern+" 含 |"), must: t(ppFirst+" must not be given", "不能使用 "+ppFirst), why: stages, do: drop(ppFirst),
			broken: func(c *cfg) bool {
				return c.Hybrid != nil && c.Hybrid.Segments > 1 && c.DecoderFirstPipelineNumLayers.OK
			},
		},
		{
			id: "hybrid-pipes-no-last-count", flags: ppLast + " " + pattern, source: inArgs + "809",
			when: t(pattern+" with |", pattern+" 含 |"), must: t(ppLast+" must not be given", "不能使用 "+ppLast), why: stages, do: drop(ppLast),
			broken: func(c *cfg) bool {
				return c.Hybrid != nil && c.Hybrid.Segments > 1 && c.DecoderLastPipelineNumLayers.OK
			},
		},
		banned("hybrid-no-virtual-layers", vpLayers, "814", func(c *cfg) bool { return c.NumLayersPerVirtualPipelineStage.OK }),
		banned("hybrid-no-virtual-stages", vpStages, "820", func(c *cfg) bool { return c.NumVirtualStagesPerPipelineRank.OK }),
		banned("hybrid-no-layout", ppLayout, "825", func(c *cfg) bool { return c.PipelineModelParallelLayout.OK }),
		banned("hybrid-no-embedding-account", forEmbed, "829", func(c *cfg) bool { return c.AccountForEmbeddingInPipelineSplit }),
		banned("hybrid-no-loss-account", forLoss, "834", func(c *cfg) bool { return c.AccountForLossInPipelineSplit }),
		{
			id: "hybrid-segments-multiple-of-pp", flags: pattern + " " + ppFlag, source: inArgs + "849",
			when: t(pattern+" with |", pattern+" 含 |"), must: t("the number of segments must be a multiple of PP", "段数必须是 PP 的整数倍"),
			why: t("each rank takes the same number of segments", "每个 rank 承担同样多的段"), do: t("move the | signs", "调整 | 的位置"),
			broken: func(c *cfg) bool {
				return c.Hybrid != nil && c.PP > 0 && (c.Hybrid.Segments > 1 || c.PP <= 1) && !multiple(c.Hybrid.Segments, c.PP)
			},
			fix: func(c *cfg) lang.Text {
				return t("the pattern has %d segments; PP is %d", "模式有 %d 段，而 PP 为 %d").With(c.Hybrid.Segments, c.PP)
			},
		},
		{
			id: "hybrid-mtp-same", flags: pattern, source: inHybrid + "262", at: 862, effect: ChangesExperiment,
			when: t(pattern+" with /", pattern+" 含 /"), must: t("every MTP depth must have the same layers", "每个 MTP 深度的层必须相同"),
			why: t("the depths share one definition", "各深度共用一个定义"), do: t("repeat the same pattern after each /", "每个 / 之后写同样的模式"),
			broken: func(c *cfg) bool { return c.Hybrid != nil && c.Hybrid.Uneven },
		},
		{
			id: "hybrid-middle-multiple", flags: ppFirst + " " + ppLast + " " + pattern, source: inHybrid + "414",
			when: t(pattern+" without | and first or last counts", pattern+" 不含 | 且给了首末级层数"), must: t("the layers left must be a multiple of the stages left", "剩余层数必须是剩余级数的整数倍"),
			why: t("the middle stages are even", "中间各级层数相同"), do: t("correct the counts, or write | into the pattern", "修正层数，或在模式里写 |"),
			broken: func(c *cfg) bool {
				layers, left := middle(c)
				return autoSplit(c) && unevenStages(c) && left > 0 && layers%left != 0
			},
			after: "middle-layers-multiple",
		},
		{
			id: "hybrid-layers-multiple-of-pp", flags: pattern + " " + ppFlag, source: inHybrid + "437",
			when: t(pattern+" without | and PP > 1", pattern+" 不含 | 且 PP > 1"), must: t("the pattern's length must be a multiple of PP", "模式长度必须是 PP 的整数倍"),
			why: t("it is cut into even stages; found only when the model is built", "它会被均分成各级；要到构建模型时才发现"), do: t("write | into the pattern, or choose another PP", "在模式里写 |，或换一个 PP"),
			broken: func(c *cfg) bool { return autoSplit(c) && !unevenStages(c) && !multiple(c.Layers, c.PP) },
		},
	})
}

// autoSplit reports whether Megatron splits a hybrid model's pattern into stages
// itself.
func autoSplit(c *cfg) bool {
	return c.Entry == "hybrid" && c.Hybrid != nil && c.Hybrid.Segments == 1 && c.PP > 1
}

// chunkRow is the rule for the chunks that the fused linear attention computes again.
func chunkRow() row {
	const chunks, kernel = "--gdp-num-chunk-states-to-recompute", "--gdp-cutedsl-kernel"
	return row{
		id: "gdp-chunks-in-range", flags: chunks + " " + kernel, source: inConfig + "2197",
		when: t(kernel, ""), must: t(chunks+" must be 0 to 64", chunks+" 必须在 0 到 64 之间"),
		why: t("the kernel holds at most 64 chunks", "内核最多容纳 64 个块"), do: t("give 0 to 64", "取 0 到 64"),
		broken: func(c *cfg) bool {
			return c.GdpCutedslKernel && (c.GdpNumChunkStatesToRecompute < 0 || c.GdpNumChunkStatesToRecompute > 64)
		},
	}
}

// specWords is the rule for the words of --spec. Up to 0.18 a GPT model's layers are
// imported only when the model is built.
func specWords(id string, severity Severity) row {
	return row{
		id: id, flags: "--spec", source: "megatron/core/transformer/spec_utils.py:47", stage: configuring, severity: severity,
		when: t("--spec in the GPT and hybrid scripts", "GPT 与混合模型脚本中的 --spec"),
		must: t("--spec must be two words: a module and a name in it", "--spec 必须是两个词：模块与其中的名称"),
		why:  t("the layers are imported from there; the word local belongs to other scripts", "层从该处导入；local 这个词属于其他脚本"),
		do:   t("write --spec MODULE NAME, or choose the layers with --transformer-impl", "写成 --spec 模块 名称，或用 --transformer-impl 选择层"),
		broken: func(c *cfg) bool {
			early := c.Release > megatron.V018 || c.Release == megatron.V018 && c.Entry == "hybrid"
			return c.Spec != nil && len(c.Spec) != 2 && importsSpec(c) && early == (severity == Error)
		},
	}
}

// specModule is the rule for the module that --spec names. Its check is in no case that Megatron's own
// code judged: the module is only imported when the model is built.
func specModule() row {
	return row{
		id: "hybrid-spec-module", flags: "--spec", source: "megatron/core/transformer/spec_utils.py:52", stage: advising, effect: PerformanceOnly,
		topic: "hybrid models", when: t("--spec up to 0.17", "0.17 及以前的 --spec"),
		must: t("the module must not be one of megatron.core.models.hybrid, which came with 0.18", "不能使用 0.18 才有的 megatron.core.models.hybrid 模块"),
		why:  t("the import fails, and the model is built without layers", "导入失败，模型没有层可用"), do: t("name the module of the release", "使用该版本的模块"),
		broken: func(c *cfg) bool {
			return len(c.Spec) == 2 && importsSpec(c) && strings.HasPrefix(c.Spec[0], "megatron.core.models.hybrid.")
		},
		fix: func(c *cfg) lang.Text {
			return t("use --spec %s", "改用 --spec %s").With(strings.Join(megatron.HybridSpec(c.Release), " "))
		},
	}
}

// importsSpec reports whether the entry script imports the layers that --spec names.
func importsSpec(c *cfg) bool {
	return (c.Entry == "gpt" || c.Entry == "hybrid" && c.TransformerImpl != "inference_optimized") && !c.UseLegacyModels
}
