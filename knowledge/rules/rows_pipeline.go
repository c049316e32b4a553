package rules

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

const (
	vpLayers = "--num-layers-per-virtual-pipeline-stage"
	vpStages = "--num-virtual-stages-per-pipeline-rank"
	ppLayout = "--pipeline-model-parallel-layout"
	ppFirst  = "--decoder-first-pipeline-num-layers"
	ppLast   = "--decoder-last-pipeline-num-layers"
	forEmbed = "--account-for-embedding-in-pipeline-split"
	forLoss  = "--account-for-loss-in-pipeline-split"
)

func pipelineRows() []row {
	even := t("every stage holds the same number of layers", "每一级的层数相同")
	vp := t("virtual pipeline stages", "使用虚拟流水级")
	return topics("pipeline", []row{
		{
			id: "one-layout-flag", flags: vpStages + " " + vpLayers + " " + ppLayout, source: inArgs + "928",
			when: t("virtual stages or a layout", "虚拟流水级或自定义布局"),
			must: t("at most one of "+vpLayers+", "+vpStages+" and "+ppLayout+" may be given", vpLayers+"、"+vpStages+"、"+ppLayout+" 最多给一个"),
			why:  t("each of them decides the stages alone", "三者各自单独决定分级"), do: t("keep one", "只保留一个"),
			broken: func(c *cfg) bool {
				n := 0
				for _, given := range []bool{c.NumLayersPerVirtualPipelineStage.OK, c.NumVirtualStagesPerPipelineRank.OK, c.PipelineModelParallelLayout.OK} {
					if given {
						n++
					}
				}
				return n > 1
			},
		},
		{
			id: "layout-letters", flags: ppLayout, source: inLayout + "315", at: 943,
			when: t(ppLayout, ""), must: t("only E, t, m, L, |, commas and (…)*N may occur", "只能出现 E、t、m、L、|、逗号以及 (…)*N"),
			why: t("E is the embedding, t a decoder layer, m an MTP layer, L the loss", "E 为嵌入，t 为解码层，m 为 MTP 层，L 为损失"), do: t("correct the layout", "修正布局字符串"),
			broken: func(c *cfg) bool { return c.PipelineModelParallelLayout.OK && c.BadStage != 0 },
		},
		{
			id: "layout-stages-multiple-of-pp", flags: ppLayout + " " + ppFlag, source: inArgs + "945",
			when: t(ppLayout, ""), must: t("the number of stages must be a multiple of PP", "级数必须是 PP 的整数倍"),
			why: t("each rank takes the same number of stages", "每个 rank 承担同样多的级"), do: t("add or remove a | in the layout", "在布局里增减 |"),
			broken: func(c *cfg) bool {
				return c.PipelineModelParallelLayout.OK && c.BadStage == 0 && c.PP > 0 && !multiple(len(c.Stages), c.PP)
			},
			fix: func(c *cfg) lang.Text {
				return t("the layout has %d stages; PP is %d", "布局有 %d 级，而 PP 为 %d").With(len(c.Stages), c.PP)
			},
		},
		{
			id: "uneven-needs-virtual-stages", flags: vpLayers + " " + ppFirst + " " + ppLast, source: inArgs + "955",
			when: t(ppFirst+" or "+ppLast+" with virtual stages", ppFirst+" 或 "+ppLast+" 与虚拟流水级同用"),
			must: t(vpStages+" must be used instead of "+vpLayers, "必须用 "+vpStages+" 而不是 "+vpLayers),
			why:  t("with uneven stages no single number of layers fits all of them", "各级不均匀时，不存在统一的每级层数"), do: t("give "+vpStages, "改给 "+vpStages),
			broken: func(c *cfg) bool { return byVirtualLayers(c) && unevenStages(c) },
		},
		{
			id: "virtual-layers-multiple-of-pp", flags: "--num-layers " + ppFlag + " " + vpLayers, source: inArgs + "968", effect: ChangesExperiment,
			when: t(vpLayers, ""), must: t("the layers (plus one for each account flag) must be a multiple of PP", "层数（每个 account 参数再加一）必须是 PP 的整数倍"),
			why: even, do: t("choose a PP that divides the layers", "选能整除层数的 PP"),
			broken: func(c *cfg) bool {
				return byVirtualLayers(c) && !unevenStages(c) && c.PP > 0 && !multiple(c.SplitLayers, c.PP)
			},
			fix: fixLayersByPP,
		},
		{
			id: "virtual-layers-divide-stage", flags: vpLayers + " --num-layers " + ppFlag, source: inArgs + "972",
			when: t(vpLayers+" K", ""), must: t("the layers of a rank must be a multiple of K", "每个 rank 的层数必须是 K 的整数倍"),
			why: t("a rank's layers are cut into virtual stages of K layers", "每个 rank 的层按 K 层一级切成虚拟级"), do: t("choose a divisor", "取约数"),
			broken: func(c *cfg) bool {
				return byVirtualLayers(c) && !unevenStages(c) && c.PP > 0 && multiple(c.SplitLayers, c.PP) &&
					!multiple(c.SplitLayers/c.PP, c.NumLayersPerVirtualPipelineStage.V)
			},
			fix: func(c *cfg) lang.Text {
				n := c.SplitLayers / c.PP
				return t("use %s: one of %s", "%s 取 %s 之一").With(vpLayers, divisors(n))
			},
		},
		{
			id: "layers-multiple-of-pp", flags: ppFlag + " --num-layers", source: inArgs + "997",
			when: t("no virtual stages and no first or last stage counts", "没有虚拟流水级，也没有指定首末级层数"),
			must: t("--num-layers (plus one for each account flag) must be a multiple of PP", "--num-layers（每个 account 参数再加一）必须是 PP 的整数倍"),
			why:  even, do: t("choose a PP that divides the layers", "选能整除层数的 PP"),
			broken: func(c *cfg) bool {
				return !c.PipelineModelParallelLayout.OK && !c.NumLayersPerVirtualPipelineStage.OK && !c.NumVirtualStagesPerPipelineRank.OK &&
					!unevenStages(c) && c.Asked.NumLayers.OK && c.Hybrid == nil && c.PP > 0 && !multiple(c.SplitLayers, c.PP)
			},
			fix: fixLayersByPP,
		},
		{
			id: "virtual-stages-need-pp-2", flags: ppFlag + " " + vpStages + " " + vpLayers, source: inArgs + "1002",
			when: t("virtual stages above 1 with p2p overlap (the default)", "虚拟流水级大于 1 且启用 p2p 重叠（默认）"), must: t("PP must be at least 2", "PP 必须不小于 2"),
			why: t("one stage has nothing to interleave with", "只有一级时无从交错"), do: t("use PP 2 or more, or drop the virtual stages", "取 PP ≥ 2，或去掉虚拟流水级"),
			broken: func(c *cfg) bool { return c.VP.OK && c.Asked.OverlapP2pComm && c.PP <= 1 },
		},
		{
			id: "virtual-stages-need-pp-3", flags: ppFlag + " --no-overlap-p2p-communication", source: inArgs + "1006",
			when: t("virtual stages above 1 with --no-overlap-p2p-communication", "虚拟流水级大于 1 且 --no-overlap-p2p-communication"), must: t("PP must be at least 3", "PP 必须不小于 3"),
			why: t("with two ranks several sends and receives would meet between the same pair", "只有两个 rank 时，同一对之间会同时出现多组收发"), do: t("drop --no-overlap-p2p-communication, or use PP 3 or more", "去掉 --no-overlap-p2p-communication，或取 PP ≥ 3"),
			broken: func(c *cfg) bool { return c.VP.OK && !c.Asked.OverlapP2pComm && c.PP <= 2 },
		},
		{
			id: "defer-embedding-needs-pp", flags: ppFlag + " --defer-embedding-wgrad-compute", source: inParallel + "546",
			when: t("--defer-embedding-wgrad-compute", ""), must: t("PP must be above 1", "PP 必须大于 1"),
			why: t("the work is moved into the pipeline's bubble", "该计算被推迟到流水线气泡里"), do: t("drop --defer-embedding-wgrad-compute", "去掉 --defer-embedding-wgrad-compute"),
			broken: func(c *cfg) bool { return c.DeferEmbeddingWgradCompute && c.PP == 1 },
		},
		{
			id: "defer-embedding-needs-fusion", flags: "--no-gradient-accumulation-fusion --defer-embedding-wgrad-compute", source: inParallel + "551",
			when: t("--defer-embedding-wgrad-compute", ""), must: t("--no-gradient-accumulation-fusion must not be given", "不能使用 --no-gradient-accumulation-fusion"),
			why: t("the deferred gradients are added up by the fused kernel", "推迟的梯度由融合内核累加"), do: t("drop one of the two", "去掉其中一个"),
			broken: func(c *cfg) bool { return c.DeferEmbeddingWgradCompute && !c.GradientAccumulationFusion },
		},
		{
			id: "wgrad-deferral-limit", flags: "--wgrad-deferral-limit --defer-embedding-wgrad-compute", source: inParallel + "556",
			when: t("--defer-embedding-wgrad-compute", ""), must: t("--wgrad-deferral-limit must not be negative", "--wgrad-deferral-limit 不能为负"),
			why: t("it counts microbatches; 0 means all", "它是微批数，0 表示全部"), do: t("give 0 or more", "取 0 或正数"),
			broken: func(c *cfg) bool { return c.DeferEmbeddingWgradCompute && c.WgradDeferralLimit < 0 },
		},
		{
			id: "warmup-flush-overlap-needs-interleaving", flags: "--overlap-p2p-communication-warmup-flush " + vpStages, source: inParallel + "572",
			when: t("--overlap-p2p-communication-warmup-flush", ""), must: t("p2p overlap must be on, and that needs virtual pipeline stages", "必须启用 p2p 重叠，而它需要虚拟流水级"),
			why: t("without an interleaved schedule Megatron switches the overlap off silently", "没有交错调度时 Megatron 会静默关闭该重叠"), do: t("drop the flag, or give "+vpStages+" 2 with PP 2 or more", "去掉该参数，或在 PP ≥ 2 时给 "+vpStages+" 2"),
			broken: func(c *cfg) bool { return c.OverlapP2pCommWarmupFlush && !c.OverlapP2pComm },
		},
		{
			id: "uneven-or-account", flags: ppFirst + " " + ppLast + " " + forEmbed + " " + forLoss, source: inConfig + "2235",
			when: t(ppFirst+" or "+ppLast, ppFirst+" 或 "+ppLast), must: t("the account-for flags must not be given as well", "不能同时给 account-for 系列参数"),
			why: t("both move layers between the first, the last and the other stages", "两者都在调整首末级与其他级的层数"), do: t("keep one way", "只保留一种方式"),
			broken: func(c *cfg) bool { return unevenStages(c) && accounts(c) },
		},
		{
			id: "layout-alone", flags: ppLayout + " " + ppFirst + " " + ppLast + " " + forEmbed + " " + forLoss, source: inConfig + "2252",
			when: t(ppLayout, ""), must: t("no other flag may move layers between stages", "不能再用其他参数调整各级层数"),
			why: t("the layout says everything", "布局已说明一切"), do: t("drop the other flags", "去掉其他参数"),
			broken: func(c *cfg) bool { return c.PipelineModelParallelLayout.OK && (unevenStages(c) || accounts(c)) },
		},
		layoutRow("layout-starts-with-embedding", "95", t("the first letter must be E", "第一个字母必须是 E"), t("the first stage holds the embedding", "首级包含嵌入"),
			func(c *cfg) bool { return !strings.HasPrefix(c.Stages.Flat(), "E") }),
		layoutRow("layout-ends-with-loss", "98", t("the last letter must be L", "最后一个字母必须是 L"), t("the last stage computes the loss", "末级计算损失"),
			func(c *cfg) bool { return !strings.HasSuffix(c.Stages.Flat(), "L") }),
		layoutRow("layout-one-embedding", "103", t("E must occur once", "E 只能出现一次"), t("there is one embedding", "嵌入只有一个"),
			func(c *cfg) bool { return c.Stages.Count('E') != 1 }),
		layoutRow("layout-one-loss", "106", t("L must occur once", "L 只能出现一次"), t("there is one loss", "损失只有一个"),
			func(c *cfg) bool { return c.Stages.Count('L') != 1 }),
		layoutRow("layout-layer-count", "107", t("the number of t must equal --num-layers", "t 的个数必须等于 --num-layers"), t("every decoder layer has its place", "每个解码层都要有位置"),
			func(c *cfg) bool { return c.Stages.Count('t') != c.Layers }),
		layoutRow("layout-mtp-count", "112", t("the number of m must equal --mtp-num-layers", "m 的个数必须等于 --mtp-num-layers"), t("every MTP layer has its place", "每个 MTP 层都要有位置"),
			func(c *cfg) bool { return c.Stages.Count('m') != c.MtpNumLayers.Or(0) }),
		layoutRow("layout-mtp-last", "117", t("no t may follow an m", "m 之后不能再有 t"), t("MTP layers read the output of the last decoder layer", "MTP 层读取最后一个解码层的输出"),
			func(c *cfg) bool {
				_, after, found := strings.Cut(c.Stages.Flat(), "m")
				return found && strings.Contains(after, "t")
			}),
		layoutRow("layout-mtp-last-virtual-stage", "123", t("m may only be in the last virtual stage of a rank", "m 只能位于某个 rank 的最后一个虚拟级"), t("MTP runs after the decoder", "MTP 在解码器之后运行"),
			func(c *cfg) bool {
				for i, s := range c.Stages {
					if c.PP > 0 && i < len(c.Stages)-c.PP && strings.Contains(s, "m") {
						return true
					}
				}
				return false
			}),
		layoutRow("layout-mtp-together", "129", t("all m must be in one stage", "所有 m 必须在同一级"), t("the MTP layers share their embedding and head", "各 MTP 层共享嵌入与输出头"),
			func(c *cfg) bool {
				for _, s := range c.Stages {
					if n := strings.Count(s, "m"); n > 0 && n != c.Stages.Count('m') {
						return true
					}
				}
				return false
			}),
		{
			id: "first-stage-positive", flags: ppFirst, source: inConfig + "2304",
			when: t(ppFirst, ""), must: t("the count must be above 0", "层数必须大于 0"),
			why: t("a stage without layers is not supported here", "此处不支持没有层的级"), do: t("give 1 or more", "取 1 或更大"),
			broken: func(c *cfg) bool {
				return unevenApplies(c) && c.DecoderFirstPipelineNumLayers.OK && c.DecoderFirstPipelineNumLayers.V <= 0
			},
		},
		{
			id: "first-stage-multiple-of-virtual", flags: ppFirst + " " + vpStages, source: inConfig + "2312",
			when: t(ppFirst+" with virtual stages V", ppFirst+" 与 V 个虚拟级"), must: t("the count must be a multiple of V", "层数必须是 V 的整数倍"),
			why: even, do: t("give a multiple of V", "取 V 的倍数"),
			broken: func(c *cfg) bool {
				return unevenApplies(c) && c.VP.OK && c.DecoderFirstPipelineNumLayers.OK && !multiple(c.DecoderFirstPipelineNumLayers.V, c.VP.V)
			},
		},
		{
			id: "last-stage-positive", flags: ppLast, source: inConfig + "2323",
			when: t(ppLast, ""), must: t("the count must be above 0", "层数必须大于 0"),
			why: t("a stage without layers is not supported here", "此处不支持没有层的级"), do: t("give 1 or more", "取 1 或更大"),
			broken: func(c *cfg) bool {
				return unevenApplies(c) && c.DecoderLastPipelineNumLayers.OK && c.DecoderLastPipelineNumLayers.V <= 0
			},
		},
		{
			id: "last-stage-multiple-of-virtual", flags: ppLast + " " + vpStages, source: inConfig + "2331",
			when: t(ppLast+" with virtual stages V", ppLast+" 与 V 个虚拟级"), must: t("the count must be a multiple of V", "层数必须是 V 的整数倍"),
			why: even, do: t("give a multiple of V", "取 V 的倍数"),
			broken: func(c *cfg) bool {
				return unevenApplies(c) && c.VP.OK && c.DecoderLastPipelineNumLayers.OK && !multiple(c.DecoderLastPipelineNumLayers.V, c.VP.V)
			},
		},
		{
			id: "uneven-uses-up-layers", flags: ppFirst + " " + ppLast + " --num-layers " + ppFlag, source: inConfig + "2342",
			when: t(ppFirst+" or "+ppLast, ppFirst+" 或 "+ppLast), must: t("layers and stages must be used up together", "层和级必须同时用完"),
			why: t("PP 2 with both counts: they must sum to the layers; PP 1 with one: it must be all layers; and layers left need a middle stage", "PP 2 且首末都给时两者之和须等于层数；PP 1 时须为全部层；有剩余层就要有中间级"), do: t("correct the counts", "修正层数"),
			broken: func(c *cfg) bool {
				layers, stages := middle(c)
				return unevenApplies(c) && (layers != 0) != (stages != 0)
			},
			fix: func(c *cfg) lang.Text {
				layers, stages := middle(c)
				return t("%d layers are left for %d middle stages", "剩 %d 层，而中间级有 %d 个").With(layers, stages)
			},
		},
		{
			id: "middle-layers-multiple", flags: ppFirst + " " + ppLast + " --num-layers " + ppFlag, source: inConfig + "2350",
			when: t(ppFirst+" or "+ppLast, ppFirst+" 或 "+ppLast), must: t("the layers left must be a multiple of the stages left", "剩余层数必须是剩余级数的整数倍"),
			why: even, do: t("correct the counts", "修正层数"),
			broken: func(c *cfg) bool {
				layers, stages := middle(c)
				return unevenApplies(c) && stages != 0 && layers%stages != 0
			},
			fix: func(c *cfg) lang.Text {
				layers, stages := middle(c)
				return t("%d layers are left for %d middle stages", "剩 %d 层分给 %d 个中间级").With(layers, stages)
			},
		},
		{
			id: "middle-layers-multiple-of-virtual", flags: vpStages + " " + ppFirst + " " + ppLast, source: inConfig + "2364",
			when: t(ppFirst+" or "+ppLast+" with virtual stages V", ppFirst+" 或 "+ppLast+" 与 V 个虚拟级"), must: t("the layers of a middle rank must be a multiple of V", "中间 rank 的层数必须是 V 的整数倍"),
			why: even, do: t("correct the counts", "修正层数"),
			broken: func(c *cfg) bool {
				layers, stages := middle(c)
				return unevenApplies(c) && c.VP.OK && stages != 0 && layers%stages == 0 && !multiple(layers/stages, c.VP.V)
			},
		},
		{
			id: "account-layers-multiple", flags: ppFlag + " --num-layers " + forEmbed + " " + forLoss, source: inConfig + "2383",
			when: t("the account-for flags without virtual stages", "account-for 参数且无虚拟级"), must: t("layers plus the flags must be a multiple of PP", "层数加上这些参数后必须是 PP 的整数倍"),
			why: even, do: t("choose a PP that divides them", "选能整除的 PP"),
			broken: func(c *cfg) bool { return accountApplies(c) && !c.VP.OK && c.PP > 0 && !multiple(splitLayers(c), c.PP) },
			after:  "layers-multiple-of-pp",
		},
		{
			id: "account-layers-multiple-virtual", flags: ppFlag + " --num-layers " + forEmbed + " " + forLoss, source: inConfig + "2396",
			when: t("the account-for flags with virtual stages", "account-for 参数与虚拟级"), must: t("layers plus the flags must be a multiple of PP", "层数加上这些参数后必须是 PP 的整数倍"),
			why: even, do: t("choose a PP that divides them", "选能整除的 PP"),
			broken: func(c *cfg) bool { return accountApplies(c) && c.VP.OK && c.PP > 0 && !multiple(splitLayers(c), c.PP) },
			fix:    fixLayersByPP, after: "virtual-layers-multiple-of-pp",
		},
		{
			id: "account-layers-per-virtual-stage", flags: vpStages + " " + forEmbed + " " + forLoss, source: inConfig + "2409",
			when: t("the account-for flags with virtual stages V", "account-for 参数与 V 个虚拟级"), must: t("layers plus the flags per rank must be a multiple of V", "每个 rank 的层数（含这些参数）必须是 V 的整数倍"),
			why: even, do: t("choose a divisor", "取约数"),
			broken: func(c *cfg) bool {
				return accountApplies(c) && c.VP.OK && c.PP > 0 && multiple(splitLayers(c), c.PP) && !multiple(splitLayers(c)/c.PP, c.VP.V)
			},
		},
		{
			id: "pipeline-layers-build", flags: "--num-layers " + ppFlag, source: inBlock + "156", effect: ChangesExperiment,
			when: t("at model build, also where argument validation skipped the check", "构建模型时；参数校验跳过的情形也一样"), must: t("layers must be a multiple of PP", "层数必须是 PP 的整数倍"),
			why: t("with "+vpStages+" nothing checks this before the whole job is allocated", "使用 "+vpStages+" 时，要等整个作业分配好才会发现"), do: t("choose a PP that divides the layers", "选能整除层数的 PP"),
			broken: func(c *cfg) bool { return placed(c) && !unevenStages(c) && !multiple(splitLayers(c), c.PP) },
			fix:    fixLayersByPP, after: "layers-multiple-of-pp",
		},
		{
			id: "virtual-stages-divide-rank", flags: vpStages + " --num-layers " + ppFlag, source: inBlock + "175",
			when: t(vpStages+" V", ""), must: t("the layers of a rank must be a multiple of V", "每个 rank 的层数必须是 V 的整数倍"),
			why: t("found only when the model is built: the whole job is allocated and started first", "要到构建模型时才发现：整个作业已经分配并启动"), do: t("choose a divisor", "取约数"),
			broken: func(c *cfg) bool {
				n, ok := rankLayers(c)
				return ok && c.VP.OK && c.PP > 1 && !multiple(n, c.VP.V)
			},
			fix: func(c *cfg) lang.Text {
				n, _ := rankLayers(c)
				return t("%d layers on a rank: use one of %s", "每个 rank 有 %d 层：取 %s 之一").With(n, divisors(n))
			},
		},
		{
			id: "first-stage-keeps-layers", flags: forEmbed + " --num-layers " + ppFlag, source: inBlock + "194",
			when: t(forEmbed, ""), must: t("the first (virtual) stage must hold at least one layer to give up", "首个（虚拟）级至少要有一层可让出"),
			why: t("the embedding takes a layer's place", "嵌入占用一层的位置"), do: t("use fewer stages", "减少级数"),
			broken: func(c *cfg) bool { n, ok := stageLayers(c); return ok && c.AccountForEmbeddingInPipelineSplit && n < 1 },
		},
		{
			id: "last-stage-keeps-layers", flags: forLoss + " --num-layers " + ppFlag, source: inBlock + "201",
			when: t(forLoss, ""), must: t("the last (virtual) stage must hold at least one layer to give up", "末个（虚拟）级至少要有一层可让出"),
			why: t("the loss takes a layer's place", "损失占用一层的位置"), do: t("use fewer stages", "减少级数"),
			broken: func(c *cfg) bool { n, ok := stageLayers(c); return ok && c.AccountForLossInPipelineSplit && n < 1 },
			after:  "first-stage-keeps-layers",
		},
		{
			id: "microbatches-fill-group", flags: "--global-batch-size --micro-batch-size --microbatch-group-size-per-virtual-pipeline-stage " + ppFlag + " DP", source: inPipeline + "1168", effect: ChangesExperiment,
			when: vp, must: t("a step must have at least as many microbatches as the group size (PP unless given), and the group size must be at least PP", "每步的微批数不得小于组大小（默认为 PP），组大小不得小于 PP"),
			why: t("found only at the first training step, after all has been loaded", "要到第一个训练步才发现，此时一切都已加载"), do: t("raise the global batch, or use fewer stages", "增大全局批，或减少级数"),
			broken: func(c *cfg) bool {
				g := group(c)
				return interleaved(c) && (g > c.Microbatches || g < c.PP)
			},
			fix: func(c *cfg) lang.Text {
				g := group(c)
				if g < c.PP {
					return t("use a group size of %d or more", "组大小取 %d 或更大").With(c.PP)
				}
				batch := g * c.MicroBatchSize.V * c.DP * c.GTP
				return t("there are %d microbatches: use --global-batch-size %d or more, or no virtual stages", "当前只有 %d 个微批：--global-batch-size 取 %d 或更大，或不用虚拟级").With(c.Microbatches, batch)
			},
		},
		{
			id: "microbatches-fill-last-group", flags: "--global-batch-size --micro-batch-size --microbatch-group-size-per-virtual-pipeline-stage " + ppFlag + " DP", source: inPipeline + "1180", effect: ChangesExperiment,
			when: vp, must: t("microbatches modulo the group size (PP unless given) must be 0, or at least PP", "微批数对组大小（默认为 PP）取余须为 0，或不小于 PP"),
			why: t("the last group must fill the pipeline too; found only at the first training step", "最后一组也要填满流水线；要到第一个训练步才发现"), do: t("make the number of microbatches a multiple of PP", "让微批数是 PP 的倍数"),
			broken: func(c *cfg) bool {
				g := group(c)
				if !interleaved(c) || g <= 0 || g > c.Microbatches || g < c.PP {
					return false
				}
				rest := c.Microbatches % g
				return rest > 0 && rest < c.PP
			},
			fix: func(c *cfg) lang.Text {
				return fixBatch(c.Batch, group(c)*c.MicroBatchSize.V*c.DP*c.GTP)
			},
		},
	})
}

func layoutRow(id, line string, must, why lang.Text, broken func(*cfg) bool) row {
	return row{
		id: id, flags: ppLayout + " --num-layers --mtp-num-layers", source: inLayout + line,
		when: t(ppLayout, ""), must: must, why: why, do: t("correct the layout", "修正布局字符串"),
		broken: func(c *cfg) bool { return c.PipelineModelParallelLayout.OK && c.BadStage == 0 && broken(c) },
	}
}

func byVirtualLayers(c *cfg) bool {
	return c.NumLayersPerVirtualPipelineStage.OK && !c.NumVirtualStagesPerPipelineRank.OK && !c.PipelineModelParallelLayout.OK
}

func unevenStages(c *cfg) bool {
	return c.DecoderFirstPipelineNumLayers.OK || c.DecoderLastPipelineNumLayers.OK
}

func accounts(c *cfg) bool {
	return c.AccountForEmbeddingInPipelineSplit || c.AccountForLossInPipelineSplit
}

// unevenApplies and accountApplies follow the branches of the model
// configuration: a layout comes first, then first and last counts, then the
// account-for flags.
func unevenApplies(c *cfg) bool { return !c.PipelineModelParallelLayout.OK && unevenStages(c) }

func accountApplies(c *cfg) bool {
	return !c.PipelineModelParallelLayout.OK && !unevenStages(c) && accounts(c)
}

// splitLayers counts the layers that the model's construction divides over the
// stages, including the embedding and the loss where they count as layers.
func splitLayers(c *cfg) int {
	n := c.Layers
	if c.AccountForEmbeddingInPipelineSplit {
		n++
	}
	if c.AccountForLossInPipelineSplit {
		n++
	}
	return n
}

// middle returns the layers and the stages that remain without the first and the
// last stage, where these have layer counts of their own.
func middle(c *cfg) (layers, stages int) {
	layers, stages = c.Layers, c.PP
	for _, n := range []struct {
		given bool
		count int
	}{
		{c.DecoderFirstPipelineNumLayers.OK, c.DecoderFirstPipelineNumLayers.V},
		{c.DecoderLastPipelineNumLayers.OK, c.DecoderLastPipelineNumLayers.V},
	} {
		if n.given {
			layers -= n.count
			stages--
		}
	}
	return layers, stages
}

// placed reports whether Megatron divides the layers over the stages by number. A
// hybrid model's pattern or a pipeline layout would assign them instead.
func placed(c *cfg) bool {
	return c.Entry != "hybrid" && !c.PipelineModelParallelLayout.OK && c.PP > 0 && c.NumLayers.OK
}

// rankLayers returns the number of layers of each rank; false where the stages are
// uneven.
func rankLayers(c *cfg) (int, bool) {
	if !placed(c) {
		return 0, false
	}
	if unevenStages(c) {
		return 0, false // the model configuration checks these
	}
	n := splitLayers(c)
	return n / c.PP, multiple(n, c.PP)
}

// stageLayers returns the number of layers of each virtual stage; false where they
// are uneven.
func stageLayers(c *cfg) (int, bool) {
	n, ok := rankLayers(c)
	if ok && c.VP.OK && c.PP > 1 {
		if !multiple(n, c.VP.V) {
			return 0, false
		}
		n /= c.VP.V
	}
	return n, ok
}

// interleaved reports whether training steps run with virtual stages.
func interleaved(c *cfg) bool {
	return c.VP.OK && c.PP > 1 && c.Microbatches > 0 && c.Trains()
}

// group returns the number of consecutive microbatches that a virtual stage
// processes before the next one.
func group(c *cfg) int { return c.MicrobatchGroupSizePerVpStage.Or(c.PP) }

func fixLayersByPP(c *cfg) lang.Text {
	n := splitLayers(c)
	best := 1
	for d := 1; d < min(c.PP, largest); d++ {
		if multiple(n, d) && multiple(c.World, c.TP*d*c.CP) {
			best = d
		}
	}
	return t("use PP %d: %d layers are divisible by %s", "改用 PP %d：%d 层可被 %s 整除").With(best, n, divisors(n))
}
