package rules

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func expertRows() []row {
	return topics("experts", []row{
		{
			id: "grouped-gemm-needs-ampere", flags: "--moe-grouped-gemm", source: inArgs + "1380",
			when: t("--moe-grouped-gemm", ""), must: t("the GPU must be Ampere or newer", "GPU 必须是 Ampere 或更新架构"),
			why: t("the grouped kernels are not built for older GPUs", "分组内核不支持更旧的 GPU"), do: t("drop --moe-grouped-gemm", "去掉 --moe-grouped-gemm"),
			broken: func(c *cfg) bool { return c.MoeGroupedGemm && c.Arch < 8 },
		},
		{
			id: "ep-needs-experts", flags: epFlag + " --num-experts", source: inArgs + "1656", effect: PerformanceOnly,
			when: t("EP > 1", ""), must: t("--num-experts must be given and above 0 (0 counts as not given)", "必须给出大于 0 的 --num-experts（0 等于没给）"),
			why: t("a dense model has no experts to spread", "稠密模型没有可分布的专家"), do: t("use EP 1, or give --num-experts", "改用 EP 1，或给出 --num-experts"),
			broken: func(c *cfg) bool { return c.EP > 1 && c.Experts == 0 },
		},
		{
			id: "experts-multiple-of-ep", flags: epFlag + " --num-experts", source: inArgs + "1657",
			when: t("EP > 1", ""), must: t("--num-experts must be a multiple of EP", "--num-experts 必须是 EP 的整数倍"),
			why: t("each rank holds the same number of experts", "每个 rank 持有同样多的专家"), do: t("use an EP that divides the experts", "选能整除专家数的 EP"),
			broken: func(c *cfg) bool { return c.EP > 1 && c.Experts != 0 && !multiple(c.Experts, c.EP) },
			fix: func(c *cfg) lang.Text {
				return t("use EP: one of %s (%d experts)", "EP 取 %s 之一（共 %d 个专家）").With(divisors(c.Experts), c.Experts)
			},
		},
		{
			id: "upcycling-needs-save", flags: "--save --moe-use-upcycling", source: inArgs + "1864",
			when: t("--moe-use-upcycling", ""), must: t("--save must be given", "必须给 --save"),
			why: t("the converted checkpoint is written there", "转换后的检查点写到那里"), do: t("add --save", "加上 --save"),
			broken: func(c *cfg) bool { return c.MoeUseUpcycling && !c.Save.OK },
		},
		{
			id: "latent-size-positive", flags: "--moe-latent-size", source: inArgs + "1981", effect: ChangesExperiment,
			when: t("--moe-latent-size", ""), must: t("the size must be above 0", "大小必须大于 0"),
			why: t("experts work in a projection of this width", "专家在该宽度的投影里计算"), do: t("give a positive size", "改成正数"),
			broken: func(c *cfg) bool { return c.MoeLatentSize.OK && c.MoeLatentSize.V <= 0 },
		},
		{
			id: "latent-size-needs-experts", flags: "--moe-latent-size --num-experts", source: inArgs + "1982", effect: ChangesExperiment,
			when: t("--moe-latent-size", ""), must: t("the model must have experts", "模型必须是 MoE"),
			why: t("only experts are projected", "只有专家层使用该投影"), do: t("drop --moe-latent-size", "去掉 --moe-latent-size"),
			broken: func(c *cfg) bool { return c.MoeLatentSize.OK && c.MoeLatentSize.V > 0 && c.Experts == 0 },
		},
		{
			id: "grouped-tensor-needs-grouped-gemm", flags: "--moe-grouped-gemm --moe-use-grouped-tensor", source: inConfig + "1414",
			when: t("--moe-use-grouped-tensor", ""), must: t("--moe-grouped-gemm must be given", "必须加 --moe-grouped-gemm"),
			why: t("the tensor is the input of the grouped kernel", "该张量是分组内核的输入"), do: t("add --moe-grouped-gemm", "加上 --moe-grouped-gemm"),
			broken: func(c *cfg) bool { return c.MoeUseGroupedTensor && !c.MoeGroupedGemm },
		},
		{
			id: "experts-not-negative", flags: "--num-experts", source: inConfig + "1683", effect: ChangesExperiment,
			when: t("--num-experts", ""), must: t("the number must not be negative", "专家数不能为负"),
			why: t("0 means a dense model", "0 表示稠密模型"), do: t("give a positive number", "改成正数"),
			broken: func(c *cfg) bool { return c.Experts < 0 },
		},
		{
			id: "moe-ffn-needs-experts", flags: "--moe-ffn-hidden-size --num-experts --moe-layer-freq", source: inConfig + "1702", effect: ChangesExperiment,
			when: t("--moe-ffn-hidden-size without --num-experts", "--moe-ffn-hidden-size 但没有 --num-experts"), must: t("--num-experts must be given, unless --moe-layer-freq leaves some layers dense", "必须给 --num-experts，除非 --moe-layer-freq 使部分层为稠密层"),
			why: t("a dense layer has no expert width", "稠密层没有专家宽度"), do: t("drop --moe-ffn-hidden-size", "去掉 --moe-ffn-hidden-size"),
			broken: func(c *cfg) bool {
				f := c.MoeLayerFreq
				mixed := f.IsList && slices.Contains(f.List, 0) || !f.IsList && f.N > 1
				return c.Experts == 0 && c.MoeFfnHiddenSize.OK && (!mixed || c.Release < megatron.V018)
			},
		},
		{
			id: "single-grouped-needs-grouped-gemm", flags: "--moe-grouped-gemm --moe-single-grouped-weight --moe-single-grouped-bias", source: inConfig + "1709",
			when: t("--moe-single-grouped-weight or --moe-single-grouped-bias", ""), must: t("--moe-grouped-gemm must be given", "必须加 --moe-grouped-gemm"),
			why: t("the weights of all experts are one tensor of the grouped kernel", "所有专家的权重合成分组内核的一个张量"), do: t("add --moe-grouped-gemm", "加上 --moe-grouped-gemm"),
			broken: func(c *cfg) bool { return (c.MoeSingleGroupedWeight || c.MoeSingleGroupedBias) && !c.MoeGroupedGemm },
		},
		{
			id: "single-grouped-weight-recipe", flags: "--moe-single-grouped-weight --fp8-recipe --fp4-recipe", source: inConfig + "1726", effect: ChangesExperiment,
			when: t("--moe-single-grouped-weight with fp8 or fp4", "--moe-single-grouped-weight 且用 fp8 或 fp4"), must: t("the recipe must be mxfp8 or nvfp4", "配方必须是 mxfp8 或 nvfp4"),
			why: t("other quantised weights cannot be cast in groups yet", "其他量化权重尚不能成组转换"), do: t("drop --moe-single-grouped-weight", "去掉 --moe-single-grouped-weight"),
			broken: func(c *cfg) bool {
				if c.Release < megatron.V019 {
					return c.MoeSingleGroupedWeight && (c.Fp4.OK || !c.Fp8.OK || c.Fp8Recipe != "mxfp8")
				}
				return c.MoeSingleGroupedWeight && (c.Fp8.OK && c.Fp8Recipe != "mxfp8" || c.Fp4.OK && c.Fp4Recipe != "nvfp4")
			},
		},
		{
			id: "single-grouped-weight-fp4-gather", flags: "--fp4-param-gather --moe-single-grouped-weight", source: inConfig + "1731",
			when: t("--moe-single-grouped-weight with --fp4-format", "--moe-single-grouped-weight 且 --fp4-format"), must: t("--fp4-param-gather must be given", "必须加 --fp4-param-gather"),
			why: t("without it Transformer Engine falls back to a path that is being removed", "否则 Transformer Engine 会退回即将移除的路径"), do: t("add --fp4-param-gather", "加上 --fp4-param-gather"),
			broken: func(c *cfg) bool { return c.MoeSingleGroupedWeight && c.Fp4.OK && !c.Fp4ParamGather },
		},
		{
			id: "single-grouped-weight-needs-tensor", flags: "--moe-use-grouped-tensor --moe-single-grouped-weight", source: inConfig + "1737",
			when: t("--moe-single-grouped-weight", ""), must: t("--moe-use-grouped-tensor must be given", "必须加 --moe-use-grouped-tensor"),
			why: t("the grouped weight is read through it", "成组权重通过它读取"), do: t("add --moe-use-grouped-tensor", "加上 --moe-use-grouped-tensor"),
			broken: func(c *cfg) bool { return c.MoeSingleGroupedWeight && !c.MoeUseGroupedTensor },
		},
		{
			id: "single-grouped-bias-needs-bias", flags: "--disable-bias-linear --moe-single-grouped-bias", source: inConfig + "1739", effect: ChangesExperiment,
			when: t("--moe-single-grouped-bias", ""), must: t("--disable-bias-linear must not be given", "不能使用 --disable-bias-linear"),
			why: t("there is no bias to group", "没有可成组的偏置"), do: t("drop --moe-single-grouped-bias", "去掉 --moe-single-grouped-bias"),
			broken: func(c *cfg) bool { return c.MoeSingleGroupedBias && !c.AddBiasLinear },
		},
		{
			id: "single-grouped-bias-needs-tensor", flags: "--moe-use-grouped-tensor --moe-single-grouped-bias", source: inConfig + "1741",
			when: t("--moe-single-grouped-bias", ""), must: t("--moe-use-grouped-tensor must be given", "必须加 --moe-use-grouped-tensor"),
			why: t("the grouped bias is read through it", "成组偏置通过它读取"), do: t("add --moe-use-grouped-tensor", "加上 --moe-use-grouped-tensor"),
			broken: func(c *cfg) bool { return c.MoeSingleGroupedBias && !c.MoeUseGroupedTensor },
		},
		{
			id: "deepep-needs-flex", flags: "--moe-token-dispatcher-type --moe-enable-deepep", source: inConfig + "1745",
			when: t("--moe-enable-deepep", ""), must: t("--moe-token-dispatcher-type must be flex", "--moe-token-dispatcher-type 必须是 flex"),
			why: t("DeepEP is a back end of the flex dispatcher", "DeepEP 是 flex 分发器的后端"), do: t("use --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep", "改用 --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep"),
			broken: func(c *cfg) bool { return c.MoeEnableDeepep && c.MoeTokenDispatcherType != "flex" },
		},
		{
			id: "one-flex-backend", flags: "--moe-flex-dispatcher-backend --moe-enable-deepep", source: inConfig + "1747",
			when: t("--moe-enable-deepep", ""), must: t("--moe-flex-dispatcher-backend must not be hybridep", "--moe-flex-dispatcher-backend 不能是 hybridep"),
			why: t("a dispatcher has one back end", "分发器只有一个后端"), do: t("drop --moe-enable-deepep", "去掉 --moe-enable-deepep"),
			broken: func(c *cfg) bool { return c.MoeEnableDeepep && c.Asked.MoeFlexDispatcherBackend == "hybridep" },
		},
		{
			id: "deepep-no-padding", flags: "--moe-pad-expert-input-to-capacity --moe-flex-dispatcher-backend", source: inConfig + "1758", effect: ChangesExperiment,
			when: t("the flex dispatcher with deepep (its default)", "flex 分发器且后端为 deepep（默认）"), must: t("--moe-pad-expert-input-to-capacity must not be given", "不能使用 --moe-pad-expert-input-to-capacity"),
			why: t("DeepEP sends the real number of tokens", "DeepEP 按实际 token 数发送"), do: t("use --moe-token-dispatcher-type alltoall, or drop the padding", "改用 --moe-token-dispatcher-type alltoall，或去掉填充"),
			broken: func(c *cfg) bool {
				return c.MoeTokenDispatcherType == "flex" && c.MoePadExpertInputToCapacity &&
					(c.MoeEnableDeepep || c.MoeFlexDispatcherBackend == "deepep" || c.Release < megatron.V016)
			},
		},
		{
			id: "ncclep-needs-flex", flags: "--moe-token-dispatcher-type --moe-flex-dispatcher-backend", source: inConfig + "1765",
			when: t("--moe-flex-dispatcher-backend ncclep", ""), must: t("--moe-token-dispatcher-type must be flex", "--moe-token-dispatcher-type 必须是 flex"),
			why: t("it is a back end of the flex dispatcher", "它是 flex 分发器的后端"), do: t("use --moe-token-dispatcher-type flex", "改用 --moe-token-dispatcher-type flex"),
			broken: func(c *cfg) bool { return c.MoeFlexDispatcherBackend == "ncclep" && c.MoeTokenDispatcherType != "flex" },
		},
		{
			id: "ncclep-grouped-tensor-needs-fuser", flags: "--use-transformer-engine-op-fuser --moe-use-grouped-tensor --moe-flex-dispatcher-backend", source: inConfig + "1770",
			when: t("--moe-flex-dispatcher-backend ncclep with --moe-use-grouped-tensor", ""), must: t("--use-transformer-engine-op-fuser must be given", "必须加 --use-transformer-engine-op-fuser"),
			why: t("only the fused path reads its buffers", "只有融合路径能读取它的缓冲区"), do: t("add --use-transformer-engine-op-fuser", "加上 --use-transformer-engine-op-fuser"),
			broken: func(c *cfg) bool {
				return c.MoeFlexDispatcherBackend == "ncclep" && c.MoeUseGroupedTensor && !c.UseTransformerEngineOpFuser
			},
		},
		{
			id: "dispatch-dtype-needs-ncclep", flags: "--moe-dispatch-fwd-dtype --moe-combine-bwd-dtype --moe-flex-dispatcher-backend", source: inConfig + "1781", effect: ChangesExperiment,
			when: t("--moe-dispatch-fwd-dtype or --moe-combine-bwd-dtype other than bf16", "--moe-dispatch-fwd-dtype 或 --moe-combine-bwd-dtype 不是 bf16"), must: t("the dispatcher must be flex with the ncclep back end", "分发器必须是 flex 且后端为 ncclep"),
			why: t("only this back end sends quantised tokens", "只有该后端能发送量化 token"), do: t("use bf16", "改用 bf16"),
			broken: func(c *cfg) bool {
				return dispatchDtype(c) && (c.MoeTokenDispatcherType != "flex" || c.MoeFlexDispatcherBackend != "ncclep")
			},
		},
		{
			id: "dispatch-dtype-needs-fuser", flags: "--use-transformer-engine-op-fuser --moe-grouped-gemm --moe-dispatch-fwd-dtype", source: inConfig + "1786", effect: ChangesExperiment,
			when: t("--moe-dispatch-fwd-dtype or --moe-combine-bwd-dtype other than bf16", "--moe-dispatch-fwd-dtype 或 --moe-combine-bwd-dtype 不是 bf16"), must: t("--use-transformer-engine-op-fuser and --moe-grouped-gemm must be given", "必须加 --use-transformer-engine-op-fuser 与 --moe-grouped-gemm"),
			why: t("only the fused grouped kernel reads quantised tokens", "只有融合的分组内核能读取量化 token"), do: t("use bf16", "改用 bf16"),
			broken: func(c *cfg) bool { return dispatchDtype(c) && (!c.UseTransformerEngineOpFuser || !c.MoeGroupedGemm) },
		},
		{
			id: "flex-sms-agree", flags: "--moe-deepep-num-sms --moe-hybridep-num-sms --moe-flex-dispatcher-num-sms", source: inConfig + "1807",
			when: t("both old SM counts without the new one", "两个旧的 SM 数都给了而新的没给"), must: t("--moe-deepep-num-sms and --moe-hybridep-num-sms must agree", "--moe-deepep-num-sms 与 --moe-hybridep-num-sms 必须一致"),
			why: t("both became --moe-flex-dispatcher-num-sms", "两者已合并为 --moe-flex-dispatcher-num-sms"), do: t("give --moe-flex-dispatcher-num-sms", "改给 --moe-flex-dispatcher-num-sms"),
			broken: func(c *cfg) bool {
				a, b := c.MoeDeepepNumSms, c.MoeHybridepNumSms
				return a.OK && b.OK && a.V != b.V && !c.MoeFlexDispatcherNumSms.OK
			},
		},
		{
			id: "shared-expert-size-positive", flags: "--moe-shared-expert-intermediate-size", source: inConfig + "1815", effect: ChangesExperiment,
			when: t("--moe-shared-expert-intermediate-size", ""), must: t("the size must be above 0", "大小必须大于 0"),
			why: t("it is the number of shared experts times the width of each", "它等于共享专家数乘以每个的宽度"), do: t("give a positive size, or leave it out", "改成正数，或去掉"),
			broken: func(c *cfg) bool {
				return c.MoeSharedExpertIntermediateSize.OK && c.MoeSharedExpertIntermediateSize.V <= 0
			},
		},
		{
			id: "shared-expert-overlap-dispatcher", flags: "--moe-token-dispatcher-type --moe-shared-expert-overlap", source: inConfig + "1824",
			when: t("--moe-shared-expert-overlap with a shared expert", "有共享专家且使用 --moe-shared-expert-overlap"), must: t("--moe-token-dispatcher-type must be alltoall or flex (allgather is the default)", "--moe-token-dispatcher-type 必须是 alltoall 或 flex（默认是 allgather）"),
			why: t("the shared expert runs beside the all-to-all", "共享专家与 all-to-all 并行执行"), do: t("use --moe-token-dispatcher-type alltoall", "改用 --moe-token-dispatcher-type alltoall"),
			broken: func(c *cfg) bool {
				return c.MoeSharedExpertIntermediateSize.OK && c.MoeSharedExpertOverlap &&
					(!allToAll(c) || c.MoeTokenDispatcherType != "alltoall" && c.Release < megatron.V018)
			},
		},
		{
			id: "aux-loss-per-balancing", flags: "--moe-aux-loss-coeff --moe-router-load-balancing-type", source: inConfig + "1829", effect: ChangesExperiment,
			when: t("several values of --moe-router-load-balancing-type", "--moe-router-load-balancing-type 给了多个值"), must: t("--moe-aux-loss-coeff must have as many values", "--moe-aux-loss-coeff 的个数必须相同"),
			why: t("each kind of balancing has its own weight", "每种均衡方式各有系数"), do: t("give one coefficient for each", "逐一给出系数"),
			broken: func(c *cfg) bool {
				return len(c.MoeRouterLoadBalancingType) > 1 && len(c.MoeAuxLossCoeff) != len(c.MoeRouterLoadBalancingType)
			},
		},
		capacityRow("capacity-needs-aux-losses", "1847", true),
		capacityRow("capacity-needs-aux-loss", "1857", false),
		{
			id: "padding-needs-capacity", flags: "--moe-expert-capacity-factor --moe-pad-expert-input-to-capacity", source: inConfig + "1864", effect: ChangesExperiment,
			when: t("--moe-pad-expert-input-to-capacity", ""), must: t("--moe-expert-capacity-factor must be 0 or more (a negative one counts as not given)", "--moe-expert-capacity-factor 必须不小于 0（负数等于没给）"),
			why: t("the capacity is what inputs are padded to", "输入会被填充到该容量"), do: t("add --moe-expert-capacity-factor 1.0, or drop the padding", "加 --moe-expert-capacity-factor 1.0，或去掉填充"),
			broken: func(c *cfg) bool { return c.MoePadExpertInputToCapacity && !hasCapacity(c) },
		},
		{
			id: "rank-capacity-backend", flags: "--moe-flex-dispatcher-backend --moe-expert-rank-capacity-factor", source: inConfig + "1870", effect: ChangesExperiment,
			when: t("--moe-expert-rank-capacity-factor", ""), must: t("--moe-flex-dispatcher-backend must be hybridep or ncclep", "--moe-flex-dispatcher-backend 必须是 hybridep 或 ncclep"),
			why: t("only they drop tokens by rank", "只有它们按 rank 丢弃 token"), do: t("use --moe-flex-dispatcher-backend hybridep", "改用 --moe-flex-dispatcher-backend hybridep"),
			broken: func(c *cfg) bool {
				return c.MoeExpertRankCapacityFactor.OK && c.MoeFlexDispatcherBackend != "hybridep" && (c.MoeFlexDispatcherBackend != "ncclep" || c.Release < megatron.V019)
			},
		},
		{
			id: "rank-capacity-hybridep", flags: "--use-transformer-engine-op-fuser --moe-use-grouped-tensor --moe-expert-rank-capacity-factor", source: inConfig + "1879", effect: ChangesExperiment,
			when: t("--moe-expert-rank-capacity-factor with hybridep", "--moe-expert-rank-capacity-factor 且后端为 hybridep"), must: t("--use-transformer-engine-op-fuser or --moe-use-grouped-tensor must be given", "必须加 --use-transformer-engine-op-fuser 或 --moe-use-grouped-tensor"),
			why: t("the dropped layout is read by them only", "只有它们能读取丢弃后的布局"), do: t("add --use-transformer-engine-op-fuser", "加上 --use-transformer-engine-op-fuser"),
			broken: func(c *cfg) bool {
				backend := c.MoeFlexDispatcherBackend == "hybridep" || c.Release < megatron.V019
				return c.MoeExpertRankCapacityFactor.OK && backend && !c.UseTransformerEngineOpFuser && (!c.MoeUseGroupedTensor || c.Release < megatron.Main)
			},
		},
		{
			id: "moe-bias-needs-etp-1", flags: "--expert-tensor-parallel-size --disable-bias-linear --num-experts " + tpFlag, source: inConfig + "2613", effect: PerformanceOnly,
			when: t("experts with linear biases (the default)", "专家层带线性偏置（默认）"), must: t("ETP must be 1; it defaults to TP", "ETP 必须为 1；它默认等于 TP"),
			why: t("a bias cannot be split over tensor-parallel ranks of an expert", "专家的偏置不能在张量并行 rank 间切分"), do: t("add --expert-tensor-parallel-size 1 (or --disable-bias-linear, which changes the model)", "加 --expert-tensor-parallel-size 1（或 --disable-bias-linear，但会改变模型）"),
			broken: func(c *cfg) bool { return c.Experts != 0 && c.AddBiasLinear && c.ETP != 1 },
		},
		{
			id: "expert-bias-score-function", flags: "--moe-router-score-function --moe-router-enable-expert-bias", source: inConfig + "2621", effect: ChangesExperiment,
			when: t("--moe-router-enable-expert-bias", ""), must: t("--moe-router-score-function must be sigmoid or sqrtsoftplus (softmax is the default)", "--moe-router-score-function 必须是 sigmoid 或 sqrtsoftplus（默认是 softmax）"),
			why: t("the bias is added to scores that do not depend on each other", "偏置要加在相互独立的得分上"), do: t("add --moe-router-score-function sigmoid", "加上 --moe-router-score-function sigmoid"),
			broken: func(c *cfg) bool {
				return c.MoeRouterEnableExpertBias && c.MoeRouterScoreFunction != "sigmoid" && (c.MoeRouterScoreFunction != "sqrtsoftplus" || c.Release < megatron.V018)
			},
		},
		{
			id: "router-padding-needs-quantization", flags: "--moe-router-padding-for-quantization --fp8-format --fp4-format", source: inConfig + "2651", effect: PerformanceOnly,
			when: t("--moe-router-padding-for-quantization", ""), must: t("fp8 or fp4 must be on", "必须启用 fp8 或 fp4"),
			why: t("tokens are padded to the block sizes of quantised kernels", "token 按量化内核的块大小填充"), do: t("drop --moe-router-padding-for-quantization", "去掉 --moe-router-padding-for-quantization"),
			broken: func(c *cfg) bool {
				return c.MoeRouterPaddingForQuantization && !c.Fp8.OK && (!c.Fp4.OK || c.Release < megatron.V016)
			},
		},
		{
			id: "router-padding-dispatcher", flags: "--moe-token-dispatcher-type --moe-router-padding-for-quantization", source: inConfig + "2656",
			when: t("--moe-router-padding-for-quantization", ""), must: t("--moe-token-dispatcher-type must not be allgather, the default", "--moe-token-dispatcher-type 不能是默认的 allgather"),
			why: t("that dispatcher cannot pad the routing map", "该分发器无法填充路由表"), do: t("use --moe-token-dispatcher-type alltoall", "改用 --moe-token-dispatcher-type alltoall"),
			broken: func(c *cfg) bool { return c.MoeRouterPaddingForQuantization && c.MoeTokenDispatcherType == "allgather" },
		},
		{
			id: "topk-1-needs-pre-softmax", flags: "--moe-router-pre-softmax --moe-router-topk --moe-router-score-function", source: inConfig + "2669", effect: ChangesExperiment,
			when: t("--moe-router-topk 1 with softmax scores and without sinkhorn, dense models too", "--moe-router-topk 1、softmax 得分且非 sinkhorn，稠密模型也一样"), must: t("--moe-router-pre-softmax must be given", "必须加 --moe-router-pre-softmax"),
			why: t("a softmax over one chosen expert is always 1 and has no gradient", "对唯一选中的专家做 softmax 恒为 1，没有梯度"), do: t("add --moe-router-pre-softmax", "加上 --moe-router-pre-softmax"),
			broken: func(c *cfg) bool {
				return c.MoeRouterTopk == 1 && c.MoeRouterScoreFunction == "softmax" && !c.MoeRouterPreSoftmax && !sinkhorn(c)
			},
		},
		{
			id: "group-topk-needs-groups", flags: "--moe-router-num-groups --moe-router-group-topk", source: inConfig + "2678", effect: ChangesExperiment,
			when: t("--moe-router-group-topk", ""), must: t("--moe-router-num-groups must be given", "必须给 --moe-router-num-groups"),
			why: t("groups are chosen before experts", "先选组再选专家"), do: t("add --moe-router-num-groups", "加上 --moe-router-num-groups"),
			broken: func(c *cfg) bool {
				return c.MoeRouterGroupTopk.Or(0) != 0 && c.MoeRouterNumGroups.Or(0) == 0
			},
		},
		{
			id: "experts-multiple-of-groups", flags: "--moe-router-num-groups --num-experts", source: inConfig + "2682", effect: ChangesExperiment,
			when: t("--moe-router-group-topk with --moe-router-num-groups G", "--moe-router-group-topk 与 --moe-router-num-groups G"), must: t("--num-experts must be a multiple of G", "--num-experts 必须是 G 的整数倍"),
			why: t("each group holds the same number of experts", "每组专家数相同"), do: t("choose a divisor of the experts", "取专家数的约数"),
			broken: func(c *cfg) bool {
				return groupRouting(c) && (c.Experts == 0 || !multiple(c.Experts, c.MoeRouterNumGroups.V))
			},
			fix: func(c *cfg) lang.Text {
				if c.Experts <= 0 {
					return t("drop the group flags: the model is dense", "去掉分组参数：模型是稠密的")
				}
				return t("use %s groups (%d experts)", "组数取 %s（共 %d 个专家）").With(divisors(c.Experts), c.Experts)
			},
		},
		{
			id: "group-topk-at-most-groups", flags: "--moe-router-group-topk --moe-router-num-groups", source: inConfig + "2686", effect: ChangesExperiment,
			when: t("--moe-router-group-topk", ""), must: t("it must not be above --moe-router-num-groups", "不能大于 --moe-router-num-groups"),
			why: t("there are no more groups to choose", "没有更多的组可选"), do: t("lower --moe-router-group-topk", "减小 --moe-router-group-topk"),
			broken: func(c *cfg) bool { return groupRouting(c) && c.MoeRouterGroupTopk.V > c.MoeRouterNumGroups.V },
		},
		{
			id: "moe-pattern-length", flags: "--moe-layer-freq --num-layers", source: "megatron/core/models/gpt/gpt_layer_specs.py:653", stage: building, at: 653, effect: ChangesExperiment,
			when: t("--moe-layer-freq with a list", "--moe-layer-freq 给列表"), must: t("its length must equal --num-layers", "其长度必须等于 --num-layers"),
			why: t("the list says layer by layer which are expert layers; found only when the model is built", "列表逐层说明哪些是专家层；要到构建模型时才发现"), do: t("make the list as long as the model", "让列表与层数等长"),
			broken: func(c *cfg) bool {
				return c.MoeLayerFreq.IsList && layerSpecs(c) && len(c.MoeLayerFreq.List) != c.Layers
			},
			fix: func(c *cfg) lang.Text {
				return t("the list has %d entries; the model has %d layers", "列表有 %d 项，而模型有 %d 层").With(len(c.MoeLayerFreq.List), c.Layers)
			},
		},
		{
			id: "variant-moe-pattern-length", flags: "--moe-layer-freq --num-layers --experimental-attention-variant", source: inVariant + "446", stage: building, at: 446, effect: ChangesExperiment,
			when: t("--moe-layer-freq with a list and an experimental attention variant", "--moe-layer-freq 给列表且使用实验性注意力"), must: t("its length must equal --num-layers", "其长度必须等于 --num-layers"),
			why: t("the list says layer by layer which are expert layers; found only when the model is built", "列表逐层说明哪些是专家层；要到构建模型时才发现"), do: t("make the list as long as the model", "让列表与层数等长"),
			broken: func(c *cfg) bool {
				return variantModel(c) && c.Experts != 0 && c.MoeLayerFreq.IsList && len(c.MoeLayerFreq.List) != c.Layers
			},
		},
		{
			id: "variant-linear-pattern-length", flags: "--linear-attention-freq --num-layers --experimental-attention-variant", source: inVariant + "472", stage: building, at: 472, effect: ChangesExperiment,
			when: t("--linear-attention-freq with a list", "--linear-attention-freq 给列表"), must: t("its length must equal --num-layers", "其长度必须等于 --num-layers"),
			why: t("the list says layer by layer which are linear; found only when the model is built", "列表逐层说明哪些是线性注意力；要到构建模型时才发现"), do: t("make the list as long as the model", "让列表与层数等长"),
			broken: func(c *cfg) bool {
				f := c.LinearAttentionFreq
				return variantModel(c) && gatedDelta(c) && f.OK && f.V.IsList && len(f.V.List) != c.Layers
			},
		},
		{
			id: "grouped-gemm-no-fused-bias", flags: "--no-bias-dropout-fusion --disable-bias-linear --moe-grouped-gemm", source: "megatron/core/transformer/moe/experts.py:205", stage: building, at: 9000,
			when: t("--moe-grouped-gemm with linear biases (both dense defaults)", "--moe-grouped-gemm 且带线性偏置（均为稠密默认设置）"), must: t("--disable-bias-linear or --no-bias-dropout-fusion must be given", "必须加 --disable-bias-linear 或 --no-bias-dropout-fusion"),
			why: t("the grouped layer adds no fused bias; found only when the model is built", "分组层不支持融合偏置；要到构建模型时才发现"), do: t("add --no-bias-dropout-fusion (or --disable-bias-linear, which changes the model)", "加 --no-bias-dropout-fusion（或 --disable-bias-linear，但会改变模型）"),
			broken: func(c *cfg) bool {
				return expertLayers(c) && c.MoeGroupedGemm && c.AddBiasLinear && c.BiasDropoutFusion && c.TransformerImpl == "transformer_engine"
			},
		},
		{
			id: "deepep-needs-several-ranks", flags: "--moe-flex-dispatcher-backend " + epFlag + " --expert-tensor-parallel-size", source: "megatron/core/transformer/moe/token_dispatcher.py:1836", stage: building, at: 8000,
			when: t("the flex dispatcher with deepep (its default)", "flex 分发器且后端为 deepep（默认）"), must: t("ETP × EP must be above 1", "ETP × EP 必须大于 1"),
			why: t("there is no other rank to send tokens to; found only when the model is built", "没有可发送的对象；要到构建模型时才发现"), do: t("use EP above 1, or --moe-token-dispatcher-type alltoall", "取 EP > 1，或改用 --moe-token-dispatcher-type alltoall"),
			broken: func(c *cfg) bool {
				any := c.MoeTokenDispatcherType == "flex" && c.Experts > 0 && c.Release < megatron.V017
				return (any || flexBackend(c, "deepep")) && c.ETP*c.EP <= 1
			},
		},
		{
			id: "ncclep-needs-several-ranks", flags: "--moe-flex-dispatcher-backend " + epFlag + " --expert-tensor-parallel-size", source: "megatron/core/transformer/moe/token_dispatcher.py:1854", stage: building, at: 8001,
			when: t("the flex dispatcher with ncclep", "flex 分发器且后端为 ncclep"), must: t("ETP × EP must be above 1", "ETP × EP 必须大于 1"),
			why: t("there is no other rank to send tokens to; found only when the model is built", "没有可发送的对象；要到构建模型时才发现"), do: t("use EP above 1, or --moe-token-dispatcher-type alltoall", "取 EP > 1，或改用 --moe-token-dispatcher-type alltoall"),
			broken: func(c *cfg) bool { return flexBackend(c, "ncclep") && c.ETP*c.EP <= 1 },
		},
		{
			id: "moe-tp-needs-sequence-parallel", flags: "--sequence-parallel " + tpFlag + " --num-experts", source: "megatron/core/transformer/moe/moe_layer.py:637", stage: stepping, at: 9000,
			when: t("experts with TP > 1", "MoE 且 TP > 1"), must: t("--sequence-parallel must be given", "必须加 --sequence-parallel"),
			why: t("the message mentions performance, but it is an exception in the first forward pass; no earlier check finds it", "报错说的是性能，实际却是首次前向时的异常；之前没有任何检查"), do: t("add --sequence-parallel", "加上 --sequence-parallel"),
			broken: func(c *cfg) bool { return expertLayers(c) && c.Trains() && c.TP > 1 && !c.SequenceParallel },
		},
		{
			id: "sinkhorn-no-aux-loss", flags: "--moe-aux-loss-coeff --moe-router-load-balancing-type", source: "megatron/core/transformer/moe/router.py:298", stage: stepping, at: 9001, effect: ChangesExperiment,
			when: t("--moe-router-load-balancing-type sinkhorn", ""), must: t("--moe-aux-loss-coeff must be 0 (the default)", "--moe-aux-loss-coeff 必须为 0（默认）"),
			why: t("sinkhorn balances by itself; found in the first forward pass", "sinkhorn 自带均衡；要到首次前向时才发现"), do: t("drop --moe-aux-loss-coeff", "去掉 --moe-aux-loss-coeff"),
			broken: func(c *cfg) bool {
				return expertLayers(c) && c.Trains() && sinkhorn(c) && (len(c.MoeAuxLossCoeff) != 1 || c.MoeAuxLossCoeff[0] != 0)
			},
		},
	})
}

func capacityRow(id, line string, several bool) row {
	return row{
		id: id, flags: "--moe-router-load-balancing-type --moe-expert-capacity-factor", source: inConfig + line, effect: ChangesExperiment,
		when: t("--moe-expert-capacity-factor", ""), must: t("load balancing must be aux_loss, seq_aux_loss, global_aux_loss or none", "负载均衡方式必须是 aux_loss、seq_aux_loss、global_aux_loss 或 none"),
		why: t("sinkhorn already gives every expert the same load", "sinkhorn 已让各专家负载相同"), do: t("drop the capacity, or use aux_loss", "去掉容量限制，或改用 aux_loss"),
		broken: func(c *cfg) bool {
			kinds := c.MoeRouterLoadBalancingType
			return c.MoeExpertCapacityFactor.OK && (len(kinds) > 1) == several && slices.ContainsFunc(kinds, func(k string) bool {
				return !slices.Contains([]string{"aux_loss", "seq_aux_loss", "global_aux_loss", "none"}, k)
			})
		},
	}
}

func dispatchDtype(c *cfg) bool {
	return c.MoeDispatchFwdDtype != "bf16" || c.MoeCombineBwdDtype != "bf16"
}

func allToAll(c *cfg) bool {
	return c.MoeTokenDispatcherType == "alltoall" || c.MoeTokenDispatcherType == "flex"
}

// hasCapacity reports whether there is a capacity factor; a negative one means none.
func hasCapacity(c *cfg) bool {
	return c.MoeExpertCapacityFactor.OK && c.MoeExpertCapacityFactor.V >= 0
}

func sinkhorn(c *cfg) bool {
	return len(c.MoeRouterLoadBalancingType) == 1 && c.MoeRouterLoadBalancingType[0] == "sinkhorn"
}

func groupRouting(c *cfg) bool {
	return c.MoeRouterGroupTopk.Or(0) != 0 && c.MoeRouterNumGroups.Or(0) != 0
}

// expertLayers reports whether Megatron's gpt or hybrid builder makes at least one
// expert layer.
func expertLayers(c *cfg) bool {
	if c.Experts == 0 {
		return false
	}
	switch c.Entry {
	case "t5", "bert":
		return false
	case "hybrid":
		return c.Hybrid != nil && strings.Contains(c.Hybrid.Main+c.Hybrid.MTP, "E")
	}
	return !c.MoeLayerFreq.IsList || slices.Contains(c.MoeLayerFreq.List, 1)
}

// layerSpecs reports whether a gpt model's layers are specified one by one.
func layerSpecs(c *cfg) bool {
	return c.Entry == "gpt" && c.Spec == nil && c.Variant == "" && (c.Experts != 0 || c.MtpNumLayers.OK)
}

func variantModel(c *cfg) bool { return c.Entry == "gpt" && c.Spec == nil && c.Variant != "" }

func flexBackend(c *cfg, backend string) bool {
	return expertLayers(c) && c.MoeTokenDispatcherType == "flex" && c.MoeFlexDispatcherBackend == backend
}
