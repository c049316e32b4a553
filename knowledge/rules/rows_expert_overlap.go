package rules

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func expertOverlapRows() []row {
	const overlap = "--overlap-moe-expert-parallel-comm"
	on := t(overlap, "")
	why := t("the all-to-all of one microbatch is hidden behind the computation of another, layer by layer", "一个微批的 all-to-all 逐层藏在另一个微批的计算之后")
	has := func(broken func(*cfg) bool) func(*cfg) bool {
		return func(c *cfg) bool { return c.OverlapMoeExpertParallelComm && broken(c) }
	}
	return topics("expert overlap", []row{
		{
			id: "expert-overlap-needs-virtual-stages", flags: vpStages + " " + overlap + " " + ppFlag, source: inConfig + "3008",
			when: t(overlap+" and PP > 1", overlap+" 且 PP > 1"), must: t("virtual pipeline stages must be given", "必须使用虚拟流水级"), why: why, do: t("add "+vpStages+" 2, or use PP 1", "加 "+vpStages+" 2，或改用 PP 1"),
			broken: has(func(c *cfg) bool { return c.PP > 1 && !c.VP.OK }),
		},
		{
			id: "expert-overlap-needs-ep", flags: epFlag + " " + overlap, source: inConfig + "3013",
			when: on, must: t("EP must be above 1", "EP 必须大于 1"), why: t("without expert parallelism there is nothing to overlap", "没有专家并行就没有可重叠的通信"), do: t("use EP above 1, or drop "+overlap, "取 EP > 1，或去掉 "+overlap),
			broken: has(func(c *cfg) bool { return c.EP <= 1 }),
		},
		{
			id: "expert-overlap-dispatcher", flags: "--moe-token-dispatcher-type " + overlap, source: inConfig + "3016",
			when: on, must: t("--moe-token-dispatcher-type must be alltoall or flex", "--moe-token-dispatcher-type 必须是 alltoall 或 flex"), why: why, do: t("use --moe-token-dispatcher-type alltoall", "改用 --moe-token-dispatcher-type alltoall"),
			broken: has(func(c *cfg) bool { return !allToAll(c) }),
		},
		{
			id: "expert-overlap-no-full-recompute", flags: "--recompute-granularity " + overlap, source: inConfig + "3021",
			when: on, must: t("full recompute must be off", "不能用完全重计算"), why: why, do: t("use --recompute-granularity selective", "改用 --recompute-granularity selective"),
			broken: has(func(c *cfg) bool { return c.Recompute == "full" }),
		},
		{
			id: "expert-overlap-no-recompute-method", flags: "--recompute-method " + overlap, source: inConfig + "3024",
			when: on, must: t("--recompute-method must not be given", "不能给 --recompute-method"), why: why, do: t("drop --recompute-method", "去掉 --recompute-method"),
			broken: has(func(c *cfg) bool { return c.RecomputeMethod.OK }),
		},
		{
			id: "expert-overlap-no-recompute-count", flags: "--recompute-num-layers " + overlap, source: inConfig + "3027",
			when: on, must: t("--recompute-num-layers must not be given", "不能给 --recompute-num-layers"), why: why, do: t("drop --recompute-num-layers", "去掉 --recompute-num-layers"),
			broken: has(func(c *cfg) bool { return c.RecomputeNumLayers.OK }),
		},
		{
			id: "expert-overlap-no-moe-recompute", flags: "--recompute-modules " + overlap, source: inConfig + "3030",
			when: on, must: t("moe must not be in --recompute-modules", "--recompute-modules 不能含 moe"), why: why, do: t("remove moe from --recompute-modules", "从 --recompute-modules 去掉 moe"),
			broken: has(func(c *cfg) bool { return slices.Contains(c.RecomputeModules, "moe") }),
		},
		{
			id: "expert-overlap-half-precision", flags: "--bf16 --fp16 " + overlap, source: inConfig + "3035", effect: ChangesExperiment,
			when: on, must: t("--bf16 or --fp16 must be given", "必须用 --bf16 或 --fp16"), why: why, do: t("add --bf16", "加上 --bf16"),
			broken: has(func(c *cfg) bool { return !c.Bf16 && !c.Fp16 }),
		},
		{
			id: "expert-overlap-no-shared-overlap", flags: "--moe-shared-expert-overlap " + overlap, source: inConfig + "3039",
			when: on, must: t("--moe-shared-expert-overlap must not be given", "不能使用 --moe-shared-expert-overlap"), why: why, do: t("drop --moe-shared-expert-overlap", "去掉 --moe-shared-expert-overlap"),
			broken: has(func(c *cfg) bool { return c.MoeSharedExpertOverlap }),
		},
		{
			id: "expert-overlap-one-mtp", flags: "--mtp-num-layers " + overlap, source: inConfig + "3042", effect: ChangesExperiment,
			when: on, must: t("there must be at most one MTP layer", "MTP 层最多一层"), why: why, do: t("use --mtp-num-layers 1", "改用 --mtp-num-layers 1"),
			broken: has(func(c *cfg) bool { n := c.MtpNumLayers.Or(0); return n != 0 && n != 1 }),
		},
		{
			id: "expert-overlap-ncclep-offload", flags: "--offload-modules --moe-flex-dispatcher-backend " + overlap, source: inConfig + "3054",
			when: t(overlap+" with the ncclep back end and offloading", overlap+" 且后端为 ncclep 并启用卸载"), must: t("expert_fc1 must not be in --offload-modules", "--offload-modules 不能含 expert_fc1"), why: t("the overlap frees that input early", "重叠会提前释放该输入"), do: t("remove expert_fc1", "去掉 expert_fc1"),
			broken: has(func(c *cfg) bool {
				return c.MoeTokenDispatcherType == "flex" && c.MoeFlexDispatcherBackend == "ncclep" &&
					c.FineGrainedActivationOffloading && slices.Contains(c.OffloadModules, "expert_fc1")
			}),
		},
		{
			id: "expert-overlap-graph-modules", flags: "--cuda-graph-modules " + overlap, source: inConfig + "3065",
			when: t(overlap+" with --cuda-graph-impl transformer_engine", overlap+" 且 --cuda-graph-impl transformer_engine"), must: t("moe and mlp must not be CUDA graph modules", "CUDA graph 模块不能含 moe 与 mlp"), why: why, do: t("remove moe and mlp", "去掉 moe 与 mlp"),
			broken: has(func(c *cfg) bool {
				covers := slices.Contains(c.GraphModules, "moe") || slices.Contains(c.GraphModules, "mlp")
				if c.Release < megatron.V018 {
					return c.CudaGraphImpl != "none" && (c.CudaGraphImpl != "transformer_engine" || covers)
				}
				return c.CudaGraphImpl == "transformer_engine" && covers
			}),
		},
		{
			id: "delay-wgrad-needs-te", flags: "--transformer-impl --delay-wgrad-compute", source: inArgs + "1904",
			when: t("--delay-wgrad-compute", ""), must: t("--transformer-impl must be transformer_engine", "--transformer-impl 必须是 transformer_engine"), why: t("only its layers can compute weight gradients later", "只有它的层能推迟计算权重梯度"), do: t("drop --delay-wgrad-compute", "去掉 --delay-wgrad-compute"),
			broken: func(c *cfg) bool { return c.DelayWgradCompute && c.TransformerImpl != "transformer_engine" },
		},
		{
			id: "delay-wgrad-graph-fusion", flags: "--no-gradient-accumulation-fusion --delay-wgrad-compute --cuda-graph-modules", source: inArgs + "1919",
			when: t("--delay-wgrad-compute with --overlap-grad-reduce and graphed weight gradients", "--delay-wgrad-compute 且 --overlap-grad-reduce，权重梯度在图内"), must: t("--no-gradient-accumulation-fusion must not be given", "不能使用 --no-gradient-accumulation-fusion"), why: t("a graph needs fixed addresses, which only the fused accumulation has", "图需要固定地址，只有融合累加能提供"), do: t("drop --no-gradient-accumulation-fusion", "去掉 --no-gradient-accumulation-fusion"),
			broken: func(c *cfg) bool { return wgradInGraph(c) && !c.GradientAccumulationFusion },
		},
		{
			id: "delay-wgrad-graph-no-bias", flags: "--disable-bias-linear --add-qkv-bias --delay-wgrad-compute --cuda-graph-modules", source: inArgs + "1925", effect: ChangesExperiment,
			when: t("--delay-wgrad-compute with attention in the CUDA graph", "--delay-wgrad-compute 且注意力在 CUDA graph 内"), must: t("attention must have no biases", "注意力不能有偏置"), why: t("bias gradients are not delayed in a graph yet", "图内尚不能推迟偏置梯度"), do: t("drop --delay-wgrad-compute, or remove attn from the graph", "去掉 --delay-wgrad-compute，或从图中去掉 attn"),
			broken: func(c *cfg) bool {
				return wgradInGraph(c) && slices.Contains(c.CudaGraphModules, "attn") && (c.AddBiasLinear || c.AddQkvBias)
			},
		},
		{
			id: "delay-wgrad-needs-overlap", flags: overlap + " --delay-wgrad-compute", source: inConfig + "3075",
			when: t("--delay-wgrad-compute", ""), must: t(overlap+" must be given", "必须使用 "+overlap), why: t("the delayed gradients fill the gaps of that schedule", "推迟的梯度用来填补该调度的空隙"), do: t("drop --delay-wgrad-compute, or add "+overlap, "去掉 --delay-wgrad-compute，或加 "+overlap),
			broken: func(c *cfg) bool { return c.DelayWgradCompute && !c.OverlapMoeExpertParallelComm },
		},
		{
			id: "dispatch-wgrad-no-expert-overlap", flags: "--overlap-dispatch-backward-with-experts-wgrad " + overlap, source: inConfig + "3085",
			when: t("--overlap-dispatch-backward-with-experts-wgrad", ""), must: t(overlap+" must not be given", "不能使用 "+overlap), why: t("both move the same communication", "两者移动的是同一段通信"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.OverlapDispatchBackwardWithExpertsWgrad && c.OverlapMoeExpertParallelComm },
		},
		{
			id: "dispatch-wgrad-no-delay", flags: "--overlap-dispatch-backward-with-experts-wgrad --delay-wgrad-compute", source: inConfig + "3092",
			when: t("--overlap-dispatch-backward-with-experts-wgrad", ""), must: t("--delay-wgrad-compute must not be given", "不能使用 --delay-wgrad-compute"), why: t("both move the same gradients", "两者移动的是同一批梯度"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.OverlapDispatchBackwardWithExpertsWgrad && c.DelayWgradCompute },
		},
		{
			id: "early-release-needs-overlap", flags: overlap + " --ep-overlap-early-attn-memory-release", source: inConfig + "3098",
			when: t("--ep-overlap-early-attn-memory-release", ""), must: t(overlap+" must be given", "必须使用 "+overlap), why: t("it changes that schedule only", "它只改变该调度"), do: t("drop --ep-overlap-early-attn-memory-release", "去掉 --ep-overlap-early-attn-memory-release"),
			broken: func(c *cfg) bool { return c.EpOverlapEarlyAttnMemoryRelease && !c.OverlapMoeExpertParallelComm },
		},
	})
}

// wgradInGraph reports whether a CUDA graph would capture weight gradients
// (megatron/training/arguments.py:1910).
func wgradInGraph(c *cfg) bool {
	return c.DelayWgradCompute && c.OverlapGradReduce && (slices.Contains(c.CudaGraphModules, "attn") ||
		slices.Contains(c.CudaGraphModules, "moe_router") && c.MoeSharedExpertIntermediateSize.OK && !c.MoeSharedExpertOverlap)
}
