package rules

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func graphRows() []row {
	const (
		impl    = "--cuda-graph-impl"
		modules = "--cuda-graph-modules"
	)
	captured := t("a graph records fixed shapes and addresses", "图记录的是固定的形状与地址")
	graph := func(m string) func(*cfg) bool { return func(c *cfg) bool { return slices.Contains(c.GraphModules, m) } }
	return topics("CUDA graphs", []row{
		{
			id: "one-graph-flag", flags: impl + " --enable-cuda-graph --external-cuda-graph", source: inArgs + "612",
			when: t("--enable-cuda-graph or --external-cuda-graph (both old)", "--enable-cuda-graph 或 --external-cuda-graph（均为旧参数）"), must: t(impl+" must not be given as well", "不能同时给 "+impl),
			why: t("the old flags set it", "旧参数会设置它"), do: t("keep "+impl, "只保留 "+impl),
			broken: func(c *cfg) bool { return oldGraph(c) && c.Asked.CudaGraphImpl != "none" },
		},
		{
			id: "one-old-graph-flag", flags: "--enable-cuda-graph --external-cuda-graph", source: inArgs + "615",
			when: t("--enable-cuda-graph", ""), must: t("--external-cuda-graph must not be given as well", "不能同时给 --external-cuda-graph"),
			why: t("they name two implementations", "两者是两种实现"), do: t("use "+impl+" local or transformer_engine", "改用 "+impl+" local 或 transformer_engine"),
			broken: func(c *cfg) bool { return c.EnableCudaGraph && c.ExternalCudaGraph },
		},
		{
			id: "one-graph-module-list", flags: modules + " --cuda-graph-scope", source: inArgs + "634",
			when: t("--cuda-graph-scope (old)", "--cuda-graph-scope（旧参数）"), must: t(modules+" must not be given as well", "不能同时给 "+modules),
			why: t("the first is the old name of the second", "前者是后者的旧名"), do: t("keep "+modules, "只保留 "+modules),
			broken: func(c *cfg) bool { return c.CudaGraphScopeDeprecated != nil && len(c.Asked.CudaGraphModules) > 0 },
		},
		{
			id: "full-scope-alone", flags: modules + " --cuda-graph-scope", asked: true, source: inGraph + "40", at: 642,
			when: t(modules+" full (old)", modules+" full（旧写法）"), must: t("full must be the only value", "full 必须是唯一取值"),
			why: t("it means the whole layer", "它表示整层"), do: t("leave "+modules+" out: that is the whole layer", "去掉 "+modules+"：即整层"),
			broken: func(c *cfg) bool { m := askedModules(c); return slices.Contains(m, "full") && len(m) > 1 },
		},
		{
			id: "one-old-graph-module", flags: modules + " --cuda-graph-scope", asked: true, source: inGraph + "98", at: 643,
			when: t(modules+" with old values", modules+" 含旧取值"), must: t("full_iteration and full_iteration_inference must not be given together", "full_iteration 与 full_iteration_inference 不能同时给"),
			why: t("each sets another flag", "两者各自设置不同的参数"), do: t("use "+impl+" full_iteration", "改用 "+impl+" full_iteration"),
			broken: func(c *cfg) bool {
				return slices.Contains(c.GraphDeprecated, "full_iteration") && slices.Contains(c.GraphDeprecated, "full_iteration_inference")
			},
		},
		{
			id: "full-iteration-module-impl", flags: impl + " " + modules, source: inGraph + "108", at: 644,
			when: t(modules+" full_iteration (old)", modules+" full_iteration（旧写法）"), must: t(impl+" must be none, local or full_iteration", impl+" 必须是 none、local 或 full_iteration"),
			why: t("it turns into "+impl+" full_iteration", "它会变成 "+impl+" full_iteration"), do: t("use "+impl+" full_iteration alone", "只用 "+impl+" full_iteration"),
			broken: func(c *cfg) bool { return onlyOld(c, "full_iteration") && graphBefore(c) == "transformer_engine" },
		},
		{
			id: "full-iteration-module-scope", flags: "--inference-cuda-graph-scope " + modules, source: inGraph + "112", at: 645,
			when: t(modules+" full_iteration (old)", modules+" full_iteration（旧写法）"), must: t("--inference-cuda-graph-scope must be none or not given", "--inference-cuda-graph-scope 必须为 none 或不给"),
			why: captured, do: t("drop --inference-cuda-graph-scope", "去掉 --inference-cuda-graph-scope"),
			broken: func(c *cfg) bool {
				return onlyOld(c, "full_iteration") && c.Asked.InferenceCudaGraphScope.Or("none") != "none"
			},
		},
		{
			id: "full-inference-module-impl", flags: impl + " " + modules, source: inGraph + "118", at: 646,
			when: t(modules+" full_iteration_inference (old)", modules+" full_iteration_inference（旧写法）"), must: t(impl+" must be none or local", impl+" 必须是 none 或 local"),
			why: t("it turns into --inference-cuda-graph-scope block", "它会变成 --inference-cuda-graph-scope block"), do: t("use "+impl+" local --inference-cuda-graph-scope block", "改用 "+impl+" local --inference-cuda-graph-scope block"),
			broken: func(c *cfg) bool {
				g := graphBefore(c)
				return onlyOld(c, "full_iteration_inference") && g != "none" && g != "local"
			},
		},
		{
			id: "full-inference-module-scope", flags: "--inference-cuda-graph-scope " + modules, source: inGraph + "122", at: 646,
			when: t(modules+" full_iteration_inference (old)", modules+" full_iteration_inference（旧写法）"), must: t("--inference-cuda-graph-scope must be block or not given", "--inference-cuda-graph-scope 必须为 block 或不给"),
			why: captured, do: t("drop "+modules, "去掉 "+modules),
			broken: func(c *cfg) bool {
				return onlyOld(c, "full_iteration_inference") && c.Asked.InferenceCudaGraphScope.Or("block") != "block"
			},
		},
		{
			id: "inference-graph-scope", flags: "--inference-cuda-graph-scope " + impl, source: inArgs + "647",
			when: t("--inference-cuda-graph-scope", ""), must: t("it must be layer or block with "+impl+" local, and none otherwise", impl+" 为 local 时取 layer 或 block，否则取 none"),
			why: t("only the local implementation has inference graphs", "只有 local 实现支持推理图"), do: t("drop --inference-cuda-graph-scope", "去掉 --inference-cuda-graph-scope"),
			broken: func(c *cfg) bool {
				s := c.InferenceCudaGraphScope.V
				return (c.CudaGraphImpl == "local") == (s == "none")
			},
		},
		{
			id: "full-iteration-no-nan-check", flags: "--no-check-for-nan-in-loss-and-grad " + impl, source: inArgs + "1236",
			when: t(impl+" full_iteration", ""), must: t("--no-check-for-nan-in-loss-and-grad must be given", "必须加 --no-check-for-nan-in-loss-and-grad"),
			why: t("the check reads a value on the host in the middle of the graph", "该检查要在图中间由主机读取数值"), do: t("add --no-check-for-nan-in-loss-and-grad", "加上 --no-check-for-nan-in-loss-and-grad"),
			broken: func(c *cfg) bool {
				return c.CudaGraphImpl == "full_iteration" && c.CheckForNanInLossAndGrad && (c.Release >= megatron.V017 || !c.InferenceDynamicBatching)
			},
		},
		{
			id: "inference-graph-count", flags: "--inference-dynamic-batching-num-cuda-graphs " + impl, source: inArgs + "1248",
			when: t(impl+" local", ""), must: t("--inference-dynamic-batching-num-cuda-graphs must be above 0, or -1", "--inference-dynamic-batching-num-cuda-graphs 必须大于 0 或为 -1"),
			why: t("it counts the graphs to record; -1 leaves it to Megatron", "它是要录制的图数；-1 由 Megatron 决定"), do: t("leave it out", "去掉该参数"),
			broken: func(c *cfg) bool {
				n := c.InferenceDynamicBatchingNumCudaGraphs
				return c.CudaGraphImpl == "local" && n <= 0 && n != -1
			},
		},
		{
			id: "te-graph-register", flags: "NCCL_GRAPH_REGISTER PYTORCH_CUDA_ALLOC_CONF " + impl, source: inArgs + "1962",
			when: t(impl+" transformer_engine with expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF", impl+" transformer_engine 且 PYTORCH_CUDA_ALLOC_CONF 含 expandable_segments:True"), must: t("NCCL_GRAPH_REGISTER must be 0", "NCCL_GRAPH_REGISTER 必须为 0"),
			why: t("NCCL would register memory that the allocator moves: an illegal access", "否则 NCCL 注册的内存会被分配器移动，导致非法访问"), do: t("export NCCL_GRAPH_REGISTER=0", "export NCCL_GRAPH_REGISTER=0"),
			broken: func(c *cfg) bool {
				return c.CudaGraphImpl == "transformer_engine" && strings.Contains(env(c, "PYTORCH_CUDA_ALLOC_CONF"), "expandable_segments:True") && env(c, "NCCL_GRAPH_REGISTER") != "0"
			},
		},
		{
			id: "full-iteration-no-modules", flags: modules + " " + impl, source: inArgs + "1969",
			when: t(impl+" full_iteration", ""), must: t(modules+" must not be given", "不能给 "+modules),
			why: t("the whole iteration is one graph", "整个迭代就是一张图"), do: t("drop "+modules, "去掉 "+modules),
			broken: func(c *cfg) bool { return c.CudaGraphImpl == "full_iteration" && len(c.CudaGraphModules) > 0 },
		},
		{
			id: "graphs-no-cpu-offload", flags: impl + " --cpu-offloading-num-layers", source: inConfig + "2801",
			when: t("CUDA graphs other than full_iteration", "CUDA graph（非 full_iteration）"), must: t("--cpu-offloading-num-layers must not be given", "不能使用 --cpu-offloading-num-layers"),
			why: captured, do: t("drop one of the two", "去掉其中一个"),
			broken: func(c *cfg) bool {
				return c.CPUOffload && c.CudaGraphImpl != "none" && (c.CudaGraphImpl != "full_iteration" || c.Release < megatron.V018)
			},
		},
		{
			id: "graph-moe-or-router", flags: modules, source: inConfig + "2817",
			when: t("CUDA graph modules", "CUDA graph 模块"), must: t("moe and moe_router must not both be given", "不能同时含 moe 与 moe_router"),
			why: t("moe contains the router", "moe 已包含路由器"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return perLayerGraph(c) && graph("moe")(c) && graph("moe_router")(c) },
		},
		{
			id: "graph-preprocess-needs-router", flags: modules, source: inConfig + "2822",
			when: t("moe_preprocess as a CUDA graph module (transformer_engine; local adds its partner)", "CUDA graph 模块含 moe_preprocess（transformer_engine；local 会自动补齐）"), must: t("moe_router must be given as well", "必须同时给 moe_router"),
			why: t("the two are recorded together", "两者一起录制"), do: t("add moe_router", "加上 moe_router"),
			broken: func(c *cfg) bool { return perLayerGraph(c) && graph("moe_preprocess")(c) && !graph("moe_router")(c) },
		},
		{
			id: "graph-moe-needs-experts", flags: modules + " --num-experts", source: inConfig + "2826",
			when: t("moe or moe_router as a CUDA graph module", "CUDA graph 模块含 moe 或 moe_router"), must: t("the model must have experts (more than one)", "模型必须是 MoE（专家数大于 1）"),
			why: t("there is nothing to record", "没有可录制的部分"), do: t("remove them from "+modules, "从 "+modules+" 去掉"),
			broken: func(c *cfg) bool {
				return perLayerGraph(c) && c.Experts <= 1 && (graph("moe")(c) || graph("moe_router")(c))
			},
		},
		{
			id: "graph-mlp-needs-dense", flags: modules + " --moe-layer-freq", source: inConfig + "2834",
			when: t("mlp as a CUDA graph module of a MoE model", "MoE 模型的 CUDA graph 模块含 mlp"), must: t("some layer must be dense", "必须有稠密层"),
			why: t("mlp is the feed-forward part of a dense layer", "mlp 指稠密层的前馈部分"), do: t("remove mlp from "+modules, "从 "+modules+" 去掉 mlp"),
			broken: func(c *cfg) bool {
				f := c.MoeLayerFreq
				all := !f.IsList && f.N == 1 || f.IsList && !slices.Contains(f.List, 0)
				return perLayerGraph(c) && c.Experts > 1 && all && graph("mlp")(c)
			},
		},
		{
			id: "graph-moe-needs-padding", flags: modules + " --moe-pad-expert-input-to-capacity --moe-expert-capacity-factor", source: inConfig + "2842",
			when: t("moe as a CUDA graph module", "CUDA graph 模块含 moe"), must: t("--moe-expert-capacity-factor and --moe-pad-expert-input-to-capacity must be given", "必须给 --moe-expert-capacity-factor 与 --moe-pad-expert-input-to-capacity"),
			why: t("without padding the shapes change with the routing", "不填充时形状随路由变化"), do: t("use moe_router instead of moe", "改用 moe_router 代替 moe"),
			broken: func(c *cfg) bool { return perLayerGraph(c) && c.Experts > 1 && !dropAndPad(c) && graph("moe")(c) },
		},
		{
			id: "graph-preprocess-no-sync", flags: modules + " --moe-expert-capacity-factor --moe-router-padding-for-fp8", source: inConfig + "2849",
			when: t("moe_preprocess with the alltoall dispatcher and a capacity or fp8 padding", "moe_preprocess 且 alltoall 分发器并有容量或 fp8 填充"), must: t("moe_preprocess must not be a CUDA graph module", "moe_preprocess 不能是 CUDA graph 模块"),
			why: t("the step copies counts to the host", "该步要把计数拷回主机"), do: t("remove moe_preprocess", "去掉 moe_preprocess"),
			broken: func(c *cfg) bool {
				return perLayerGraph(c) && c.Experts > 1 && !dropAndPad(c) && c.MoeTokenDispatcherType == "alltoall" &&
					(hasCapacity(c) || c.MoeRouterPaddingForFp8) && graph("moe_preprocess")(c)
			},
		},
		{
			id: "graph-full-recompute", flags: impl + " --recompute-granularity", source: inConfig + "2856",
			when: t("CUDA graphs with --recompute-granularity full", "CUDA graph 且 --recompute-granularity full"), must: t(impl+" must be full_iteration", impl+" 必须是 full_iteration"),
			why: t("recomputing a whole layer would record the graph twice", "重计算整层会把图录制两次"), do: t("use selective recompute, or "+impl+" full_iteration", "改用选择性重计算，或 "+impl+" full_iteration"),
			broken: func(c *cfg) bool {
				return c.CudaGraphImpl != "none" && c.Recompute == "full" && c.CudaGraphImpl != "full_iteration"
			},
		},
		{
			id: "graph-moe-recompute-no-router", flags: modules + " --recompute-modules", source: inConfig + "2866",
			when: t(impl+" transformer_engine with recompute of moe", impl+" transformer_engine 且重计算 moe"), must: t("moe_router must not be a CUDA graph module", "moe_router 不能是 CUDA graph 模块"),
			why: t("the recomputed part would cover a graph", "重计算的范围会覆盖图"), do: t("remove moe_router, or moe from --recompute-modules", "去掉 moe_router，或从 --recompute-modules 去掉 moe"),
			broken: func(c *cfg) bool {
				return graphRecompute(c) && c.CudaGraphImpl == "transformer_engine" && recomputes(c, "moe") && graph("moe_router")(c)
			},
		},
		{
			id: "graph-attention-dropout", flags: "--attention-dropout --recompute-modules " + modules, source: inConfig + "2879", effect: ChangesExperiment,
			when: t("CUDA graphs over attention with recompute of core_attn (the default module)", "CUDA graph 覆盖注意力且重计算 core_attn（默认模块）"), must: t("--attention-dropout must be 0 (the default is 0.1)", "--attention-dropout 必须为 0（默认 0.1）"),
			why: t("a recorded recompute cannot draw the same random numbers again", "录制的重计算无法再次得到相同的随机数"), do: t("add --attention-dropout 0.0", "加上 --attention-dropout 0.0"),
			broken: func(c *cfg) bool {
				return graphRecompute(c) && c.AttentionDropout != 0 && (wholeGraph(c) || graph("attn")(c)) && recomputes(c, "core_attn")
			},
		},
		{
			id: "graph-hidden-dropout", flags: "--hidden-dropout --recompute-modules " + modules, source: inConfig + "2887", effect: ChangesExperiment,
			when: t("CUDA graphs over mlp or moe that are recomputed", "CUDA graph 覆盖被重计算的 mlp 或 moe"), must: t("--hidden-dropout must be 0 (the default is 0.1)", "--hidden-dropout 必须为 0（默认 0.1）"),
			why: t("a recorded recompute cannot draw the same random numbers again", "录制的重计算无法再次得到相同的随机数"), do: t("add --hidden-dropout 0.0", "加上 --hidden-dropout 0.0"),
			broken: func(c *cfg) bool {
				return graphRecompute(c) && c.HiddenDropout != 0 &&
					((wholeGraph(c) || graph("mlp")(c)) && recomputes(c, "mlp") || (wholeGraph(c) || graph("moe")(c)) && recomputes(c, "moe"))
			},
		},
		{
			id: "graph-input-jitter", flags: "--moe-input-jitter-eps --recompute-modules " + modules, source: inConfig + "2901", effect: ChangesExperiment,
			when: t("CUDA graphs over moe that is recomputed", "CUDA graph 覆盖被重计算的 moe"), must: t("--moe-input-jitter-eps must not be given", "不能使用 --moe-input-jitter-eps"),
			why: t("a recorded recompute cannot draw the same random numbers again", "录制的重计算无法再次得到相同的随机数"), do: t("drop --moe-input-jitter-eps", "去掉 --moe-input-jitter-eps"),
			broken: func(c *cfg) bool {
				return graphRecompute(c) && c.MoeInputJitterEps.OK && (wholeGraph(c) || graph("moe")(c)) && recomputes(c, "moe")
			},
		},
		{
			id: "graph-weight-shards-shared-experts", flags: "--recompute-modules --tensor-parallel-num-weight-shards " + impl, source: inConfig + "2920",
			when: t("weight shards above TP, local graphs over shared experts, fp8 or fp4", "权重分片数大于 TP、local 图覆盖共享专家、使用 fp8 或 fp4"), must: t("shared_experts must not be in --recompute-modules", "--recompute-modules 不能含 shared_experts"),
			why: t("the warm-up of local graphs cannot run that checkpoint", "local 图的预热无法执行该检查点"), do: t("remove shared_experts", "去掉 shared_experts"),
			broken: func(c *cfg) bool {
				return graphRecompute(c) && c.GTP > 1 && c.CudaGraphImpl == "local" && (c.Fp8.OK || c.Fp4.OK) &&
					c.MoeSharedExpertIntermediateSize.OK && !c.MoeSharedExpertOverlap &&
					(wholeGraph(c) || graph("moe")(c) || graph("moe_router")(c)) && recomputes(c, "shared_experts")
			},
		},
		{
			id: "local-graph-offload-modules", flags: "--offload-modules " + impl, source: inConfig + "2934",
			when: t(impl+" local with activation offloading", impl+" local 且启用激活卸载"), must: t("--offload-modules may hold expert_fc1, moe_act and fused_group_mlp only", "--offload-modules 只能含 expert_fc1、moe_act、fused_group_mlp"),
			why: captured, do: t("remove the others, or use "+impl+" transformer_engine", "去掉其余模块，或改用 "+impl+" transformer_engine"),
			broken: func(c *cfg) bool {
				return graphOffload(c) && c.CudaGraphImpl == "local" && !expertOffload(c.OffloadModules)
			},
		},
		{
			id: "local-graph-offload-whole-layer", flags: modules + " --fine-grained-activation-offloading", source: inConfig + "2940",
			when: t(impl+" local with activation offloading", impl+" local 且启用激活卸载"), must: t(modules+" must name the modules to record", "必须用 "+modules+" 指明要录制的模块"),
			why: t("a graph of the whole layer leaves nothing to offload", "整层入图后没有可卸载的激活"), do: t("give "+modules+" attn", "给 "+modules+" attn"),
			broken: func(c *cfg) bool { return graphOffload(c) && c.CudaGraphImpl == "local" && len(c.GraphModules) == 0 },
		},
		{
			id: "graph-offload-impl", flags: impl + " --offload-modules", source: inConfig + "2950",
			when: t("CUDA graphs with activation offloading", "CUDA graph 且启用激活卸载"), must: t(impl+" must be transformer_engine or full_iteration, or local without the moe module", impl+" 必须是 transformer_engine 或 full_iteration，或 local 且不含 moe 模块"),
			why: captured, do: t("use "+impl+" transformer_engine", "改用 "+impl+" transformer_engine"),
			broken: func(c *cfg) bool {
				partial := c.Release >= megatron.V019 && c.CudaGraphImpl == "local" && len(c.OffloadModules) > 0 && expertOffload(c.OffloadModules) && !graph("moe")(c)
				return graphOffload(c) && c.CudaGraphImpl == "local" && !partial
			},
			after: "local-graph-offload-modules",
		},
		{
			id: "graph-offload-no-moe", flags: modules + " --fine-grained-activation-offloading", source: inConfig + "2960",
			when: t("CUDA graphs with activation offloading", "CUDA graph 且启用激活卸载"), must: t("moe must not be a CUDA graph module", "CUDA graph 模块不能含 moe"),
			why: t("token-dropping experts are not supported with offloading yet", "丢弃 token 的专家层尚不支持卸载"), do: t("remove moe", "去掉 moe"),
			broken: func(c *cfg) bool { return graphOffload(c) && graph("moe")(c) },
		},
		{
			id: "graph-offload-warmup", flags: "--cuda-graph-warmup-steps --fine-grained-activation-offloading", source: inConfig + "2963",
			when: t("CUDA graphs with activation offloading", "CUDA graph 且启用激活卸载"), must: t("--cuda-graph-warmup-steps must be above 0", "--cuda-graph-warmup-steps 必须大于 0"),
			why: t("the offloading learns its sizes in the warm-up", "卸载要在预热中得知大小"), do: t("leave it at the default", "用默认值"),
			broken: func(c *cfg) bool { return graphOffload(c) && c.CudaGraphWarmupSteps <= 0 },
		},
		{
			id: "graph-offload-inflight", flags: "--fine-grained-offloading-max-inflight-offloads " + impl, source: inConfig + "2968",
			when: t(impl+" full_iteration with activation offloading", impl+" full_iteration 且启用激活卸载"), must: t("--fine-grained-offloading-max-inflight-offloads must be 0 or more", "--fine-grained-offloading-max-inflight-offloads 必须不小于 0"),
			why: t("a graph needs a fixed number of buffers", "图需要固定数量的缓冲区"), do: t("add --fine-grained-offloading-max-inflight-offloads 1", "加 --fine-grained-offloading-max-inflight-offloads 1"),
			broken: func(c *cfg) bool {
				n := c.FineGrainedOffloadingMaxInflightOffloads
				return graphOffload(c) && c.CudaGraphImpl == "full_iteration" && (!n.OK || n.V < 0)
			},
		},
	})
}

func oldGraph(c *cfg) bool { return c.EnableCudaGraph || c.ExternalCudaGraph }

// graphBefore returns the CUDA graph implementation before deprecated module names
// change it.
func graphBefore(c *cfg) string {
	switch {
	case c.ExternalCudaGraph:
		return "transformer_engine"
	case c.EnableCudaGraph:
		return "local"
	}
	return c.Asked.CudaGraphImpl
}

func askedModules(c *cfg) []string {
	if c.CudaGraphScopeDeprecated != nil {
		return c.CudaGraphScopeDeprecated
	}
	return c.Asked.CudaGraphModules
}

// onlyOld reports whether name is the only deprecated module name on the command
// line.
func onlyOld(c *cfg, name string) bool {
	return len(c.GraphDeprecated) > 0 && !slices.ContainsFunc(c.GraphDeprecated, func(d string) bool { return d != name })
}

func perLayerGraph(c *cfg) bool {
	return c.CudaGraphImpl == "local" || c.CudaGraphImpl == "transformer_engine"
}

func dropAndPad(c *cfg) bool { return hasCapacity(c) && c.MoePadExpertInputToCapacity }

func graphRecompute(c *cfg) bool { return c.CudaGraphImpl != "none" && c.Recompute == "selective" }

// wholeGraph reports whether CUDA graphs capture whole layers.
func wholeGraph(c *cfg) bool { return c.CudaGraphImpl == "full_iteration" || len(c.GraphModules) == 0 }

func recomputes(c *cfg, module string) bool { return slices.Contains(c.RecomputeModules, module) }

func graphOffload(c *cfg) bool { return c.CudaGraphImpl != "none" && c.FineGrainedActivationOffloading }

func expertOffload(modules []string) bool {
	return !slices.ContainsFunc(modules, func(m string) bool {
		return !slices.Contains([]string{"expert_fc1", "moe_act", "fused_group_mlp"}, m)
	})
}
