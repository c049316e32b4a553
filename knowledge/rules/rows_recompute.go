package rules

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// recomputeModules and offloadModules are the module names that the model
// configuration knows (transformer_config.py:1945 and 2132).
var (
	recomputeModules = []string{"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts", "gdn_norm_out", "gdp_in_proj", "gdp_qkv", "mhc"}
	offloadModules   = []string{"core_attn", "attn_proj", "expert_fc1", "fused_group_mlp", "moe_act", "attn_norm", "mlp_norm", "qkv_linear", "gdp_qkv"}
)

func recomputeRows() []row {
	const (
		granularity = "--recompute-granularity"
		fine        = "--fine-grained-activation-offloading"
	)
	full := t(granularity+" full", "")
	selective := t(granularity+" selective (or --recompute-activations)", granularity+" selective（或 --recompute-activations）")
	offloading := t(fine, "")
	stepOf := func(broken func(*cfg) bool) func(*cfg) bool {
		return func(c *cfg) bool { return c.RecomputeGranularity.V == "selective" && broken(c) }
	}
	offload := func(broken func(*cfg) bool) func(*cfg) bool {
		return func(c *cfg) bool { return c.FineGrainedActivationOffloading && broken(c) }
	}
	return topics("recompute and offload", []row{
		{
			id: "checkpoint-activations-gone", flags: "--checkpoint-activations", source: inArgs + "604",
			when: t("--checkpoint-activations", ""), must: t("--checkpoint-activations must not be given: Megatron prints one line and exits with status 0", "不能使用 --checkpoint-activations：Megatron 打印一行后以状态 0 退出"),
			why: t("the batch system reports success although nothing was trained", "什么也没训练，批处理系统却报告成功"), do: t("use --recompute-activations", "改用 --recompute-activations"),
			broken: func(c *cfg) bool { return c.CheckpointActivations },
		},
		{
			id: "selective-no-method", flags: "--recompute-method " + granularity, source: inArgs + "1426",
			when: selective, must: t("--recompute-method must not be given", "不能给 --recompute-method"),
			why: t("the method counts whole layers; selective recompute names modules", "method 按整层计数，而选择性重计算按模块指定"), do: t("drop --recompute-method, or use "+granularity+" full", "去掉 --recompute-method，或改用 "+granularity+" full"),
			broken: stepOf(func(c *cfg) bool { return c.RecomputeMethod.OK }),
		},
		{
			id: "offload-needs-te", flags: "--transformer-impl " + fine, source: inArgs + "1936",
			when: offloading, must: t("--transformer-impl must be transformer_engine", "--transformer-impl 必须是 transformer_engine"),
			why: t("only its modules have offload hooks", "只有它的模块带卸载钩子"), do: t("use --transformer-impl transformer_engine", "改用 --transformer-impl transformer_engine"),
			broken: offload(func(c *cfg) bool { return c.TransformerImpl != "transformer_engine" }),
		},
		{
			id: "offload-needs-v1", flags: "NVTE_CPU_OFFLOAD_V1 " + fine, source: inArgs + "1939",
			when: t(fine+" with Transformer Engine 2.10 or newer", fine+" 且 Transformer Engine 不低于 2.10"), must: t("NVTE_CPU_OFFLOAD_V1 must be 1 in the environment", "环境变量 NVTE_CPU_OFFLOAD_V1 必须为 1"),
			why: t("the newer offload would move the weights too", "新版卸载会把权重也搬走"), do: t("export NVTE_CPU_OFFLOAD_V1=1", "export NVTE_CPU_OFFLOAD_V1=1"),
			broken: offload(func(c *cfg) bool { return env(c, "NVTE_CPU_OFFLOAD_V1") != "1" }),
		},
		{
			id: "cpu-offload-layer-count", flags: "--cpu-offloading-num-layers --num-layers", source: inConfig + "1887",
			when: t("--cpu-offloading-num-layers N", ""), must: t("N must be below the number of layers", "N 必须小于层数"),
			why: t("the last layer is used at once and never offloaded", "最后一层立即使用，不会被卸载"), do: t("lower N", "减小 N"),
			broken: func(c *cfg) bool { return c.CPUOffload && c.NumLayers.OK && c.CpuOffloadingNumLayers >= c.Layers },
			fix: func(c *cfg) lang.Text {
				return t("use at most %d", "最多 %d").With(c.Layers - 1)
			},
		},
		{
			id: "cpu-offload-no-pp", flags: ppFlag + " --cpu-offloading-num-layers", source: inConfig + "1892",
			when: t("--cpu-offloading-num-layers", ""), must: t("PP must be 1", "PP 必须为 1"),
			why: t("several microbatches in flight would need several copies", "多个在途微批需要多份副本"), do: t("use PP 1, or recompute instead", "改用 PP 1，或改为重计算"),
			broken: func(c *cfg) bool { return c.CPUOffload && c.PP > 1 },
		},
		{
			id: "cpu-offload-no-recompute", flags: granularity + " --cpu-offloading-num-layers", source: inConfig + "1897",
			when: t("--cpu-offloading-num-layers", ""), must: t("recompute must be off", "必须关闭重计算"),
			why: t("an activation is kept on the host or computed again, not both", "激活要么存到主机，要么重算，不能兼用"), do: t("drop one of the two", "去掉其中一个"),
			broken: func(c *cfg) bool { return c.CPUOffload && c.RecomputeGranularity.OK },
		},
		{
			id: "full-needs-method", flags: "--recompute-method " + granularity, source: inConfig + "1914",
			when: full, must: t("--recompute-method uniform or block must be given", "必须给 --recompute-method uniform 或 block"),
			why: t("it says which layers form a checkpoint", "它决定哪些层组成一个检查点"), do: t("add --recompute-method uniform --recompute-num-layers 1", "加 --recompute-method uniform --recompute-num-layers 1"),
			broken: func(c *cfg) bool { return c.RecomputeGranularity.V == "full" && !c.RecomputeMethod.OK },
		},
		{
			id: "full-needs-count", flags: "--recompute-num-layers " + granularity, source: inConfig + "1920",
			when: full, must: t("--recompute-num-layers must be given", "必须给 --recompute-num-layers"),
			why: t("it is the number of layers in a checkpoint (uniform) or in all (block)", "uniform 时是每个检查点的层数，block 时是总层数"), do: t("add --recompute-num-layers 1", "加 --recompute-num-layers 1"),
			broken: func(c *cfg) bool { return c.RecomputeGranularity.V == "full" && !c.RecomputeNumLayers.OK },
		},
		{
			id: "selective-no-count", flags: "--recompute-num-layers " + granularity, source: inConfig + "1929",
			when: selective, must: t("--recompute-num-layers must not be given", "不能给 --recompute-num-layers"),
			why: t("selective recompute applies to every layer", "选择性重计算作用于每一层"), do: t("drop --recompute-num-layers", "去掉 --recompute-num-layers"),
			broken: stepOf(func(c *cfg) bool { return c.RecomputeNumLayers.OK }),
		},
		{
			id: "recompute-modules-known", flags: "--recompute-modules", source: inConfig + "1959",
			when: selective, must: t("--recompute-modules may hold "+strings.Join(recomputeModules, ", ")+" only", "--recompute-modules 只能取 "+strings.Join(recomputeModules, "、")),
			why: t("other names mark nothing to recompute", "其他名称没有对应的模块"), do: t("correct the names", "修正名称"),
			broken: stepOf(func(c *cfg) bool { return !subset(c.Asked.RecomputeModules, recomputeModules) }),
		},
		{
			id: "recompute-moe-act-needs-grouped-gemm", flags: "--moe-grouped-gemm --recompute-modules", source: inConfig + "1965",
			when: t("moe_act in --recompute-modules", "--recompute-modules 含 moe_act"), must: t("--moe-grouped-gemm must be given", "必须加 --moe-grouped-gemm"),
			why: t("only the grouped layer computes its activation separately", "只有分组层单独计算激活函数"), do: t("add --moe-grouped-gemm, or remove moe_act", "加 --moe-grouped-gemm，或去掉 moe_act"),
			broken: stepOf(func(c *cfg) bool { return recomputes(c, "moe_act") && !c.MoeGroupedGemm }),
		},
		{
			id: "recompute-mla-needs-mla", flags: "--recompute-modules --multi-latent-attention", source: inConfig + "1970",
			when: t("mla_up_proj in --recompute-modules", "--recompute-modules 含 mla_up_proj"), must: t("--multi-latent-attention must be given", "必须使用 --multi-latent-attention"),
			why: t("other attention has no such projection", "其他注意力没有该投影"), do: t("remove mla_up_proj", "去掉 mla_up_proj"),
			broken: stepOf(func(c *cfg) bool { return recomputes(c, "mla_up_proj") && !c.MultiLatentAttention }),
		},
		{
			id: "recompute-gdn-needs-gdn", flags: "--recompute-modules --experimental-attention-variant", source: inConfig + "1978",
			when: t("gdn_norm_out in --recompute-modules", "--recompute-modules 含 gdn_norm_out"), must: t("--experimental-attention-variant must be gdn or gdn2", "--experimental-attention-variant 必须是 gdn 或 gdn2"),
			why: t("other attention has no such norm", "其他注意力没有该归一化"), do: t("remove gdn_norm_out", "去掉 gdn_norm_out"),
			broken: stepOf(func(c *cfg) bool { return recomputes(c, "gdn_norm_out") && !gatedDelta(c) }),
		},
		{
			id: "recompute-shared-no-overlap", flags: "--moe-shared-expert-overlap --recompute-modules", source: inConfig + "1996",
			when: t("shared_experts in --recompute-modules, with a shared expert", "--recompute-modules 含 shared_experts 且有共享专家"), must: t("--moe-shared-expert-overlap must not be given", "不能使用 --moe-shared-expert-overlap"),
			why: t("the overlapped expert runs on another stream", "重叠的共享专家在另一条流上运行"), do: t("drop one of the two", "去掉其中一个"),
			broken: stepOf(func(c *cfg) bool {
				return recomputes(c, "shared_experts") && c.MoeSharedExpertIntermediateSize.OK && c.MoeSharedExpertOverlap
			}),
		},
		{
			id: "moe-layer-recompute-not-full", flags: "--moe-layer-recompute " + granularity, source: inConfig + "2020",
			when: t("--moe-layer-recompute", ""), must: t(granularity+" must not be full", granularity+" 不能是 full"),
			why: t("full recompute covers the expert layers already", "完全重计算已包含专家层"), do: t("drop --moe-layer-recompute", "去掉 --moe-layer-recompute"),
			broken: func(c *cfg) bool { return c.MoeLayerRecompute && c.RecomputeGranularity.V == "full" },
		},
		{
			id: "offload-modules-given", flags: "--offload-modules " + fine, source: inConfig + "2131",
			when: offloading, must: t("--offload-modules must be given", "必须给 --offload-modules"),
			why: t("it says what to offload", "它决定卸载哪些激活"), do: t("add --offload-modules moe_act", "加 --offload-modules moe_act"),
			broken: offload(func(c *cfg) bool { return len(c.OffloadModules) == 0 }),
		},
		{
			id: "offload-no-cpu-offload", flags: "--cpu-offloading-num-layers " + fine, source: inConfig + "2128",
			when: offloading, must: t("--cpu-offloading-num-layers must not be given", "不能使用 --cpu-offloading-num-layers"),
			why: t("both move the same activations", "两者搬运同样的激活"), do: t("keep one of the two", "只保留一个"),
			broken: offload(func(c *cfg) bool { return c.CPUOffload }),
		},
		{
			id: "offload-modules-known", flags: "--offload-modules", source: inConfig + "2144",
			when: offloading, must: t("--offload-modules may hold "+strings.Join(offloadModules, ", ")+" only", "--offload-modules 只能取 "+strings.Join(offloadModules, "、")),
			why: t("other names mark nothing to offload", "其他名称没有对应的激活"), do: t("correct the names", "修正名称"),
			broken: offload(func(c *cfg) bool { return !subset(c.OffloadModules, offloadModules) }),
		},
		{
			id: "offload-attn-proj-needs-core", flags: "--offload-modules", source: inConfig + "2149",
			when: t("attn_proj in --offload-modules", "--offload-modules 含 attn_proj"), must: t("core_attn must be in it as well", "必须同时含 core_attn"),
			why: t("the input of the projection is the output of the core, which its backward pass needs", "投影的输入就是 core 的输出，其反向需要它"), do: t("add core_attn", "加上 core_attn"),
			broken: offload(func(c *cfg) bool {
				return slices.Contains(c.OffloadModules, "attn_proj") && !slices.Contains(c.OffloadModules, "core_attn")
			}),
		},
		{
			id: "offload-gdp-no-recompute", flags: "--offload-modules --recompute-modules", source: inConfig + "2159",
			when: t("gdp_qkv in --offload-modules", "--offload-modules 含 gdp_qkv"), must: t("gdp_in_proj must not be recomputed", "不能重计算 gdp_in_proj"),
			why: t("the recompute throws away what would be offloaded", "重计算会丢弃要卸载的内容"), do: t("keep one of the two", "只保留一个"),
			broken: offload(func(c *cfg) bool {
				return slices.Contains(c.OffloadModules, "gdp_qkv") && c.Recompute == "selective" && recomputes(c, "gdp_in_proj")
			}),
		},
		{
			id: "offload-no-moe-recompute", flags: "--offload-modules --recompute-modules", source: inConfig + "2169",
			when: t("recompute of moe with activation offloading", "重计算 moe 且启用激活卸载"), must: t("moe_act, expert_fc1 and fused_group_mlp must not be in --offload-modules", "--offload-modules 不能含 moe_act、expert_fc1、fused_group_mlp"),
			why: t("recomputing the whole expert layer keeps no intermediate result", "重计算整个专家层时，其内部激活不会保留"), do: t("remove moe from --recompute-modules, or those from --offload-modules", "从 --recompute-modules 去掉 moe，或从 --offload-modules 去掉它们"),
			broken: offload(func(c *cfg) bool {
				return c.Recompute == "selective" && recomputes(c, "moe") &&
					slices.ContainsFunc(c.OffloadModules, func(m string) bool { return expertOffload([]string{m}) })
			}),
		},
		{
			id: "offload-min-size", flags: "--min-offloaded-tensor-size", source: inConfig + "2176",
			when: offloading, must: t("--min-offloaded-tensor-size must not be negative", "--min-offloaded-tensor-size 不能为负"),
			why: t("it is a size", "它是大小"), do: t("leave it out", "去掉该参数"),
			broken: offload(func(c *cfg) bool { return c.MinOffloadedTensorSize < 0 }),
		},
		{
			id: "offload-fraction", flags: "--activation-offload-fraction", source: inConfig + "2179",
			when: offloading, must: t("--activation-offload-fraction must lie between 0 and 1", "--activation-offload-fraction 必须在 0 与 1 之间"),
			why: t("it is a share", "它是比例"), do: t("leave it out", "去掉该参数"),
			broken: offload(func(c *cfg) bool { return c.ActivationOffloadFraction < 0 || c.ActivationOffloadFraction > 1 }),
		},
		{
			id: "offload-delta", flags: "--delta-offload-bytes-across-pp-ranks", source: inConfig + "2182",
			when: offloading, must: t("--delta-offload-bytes-across-pp-ranks must not be negative", "--delta-offload-bytes-across-pp-ranks 不能为负"),
			why: t("it is a size", "它是大小"), do: t("leave it out", "去掉该参数"),
			broken: offload(func(c *cfg) bool { return c.DeltaOffloadBytesAcrossPpRanks < 0 }),
		},
		{
			id: "offload-fused-needs-fuser", flags: "--use-transformer-engine-op-fuser --offload-modules", source: inConfig + "2188",
			when: t("fused_group_mlp in --offload-modules", "--offload-modules 含 fused_group_mlp"), must: t("--use-transformer-engine-op-fuser must be given", "必须加 --use-transformer-engine-op-fuser"),
			why: t("only the fuser builds that layer", "只有该融合器会构建这一层"), do: t("remove fused_group_mlp", "去掉 fused_group_mlp"),
			broken: offload(func(c *cfg) bool {
				return slices.Contains(c.OffloadModules, "fused_group_mlp") && !c.UseTransformerEngineOpFuser
			}),
		},
		{
			id: "offload-fused-alone", flags: "--offload-modules", source: inConfig + "2191",
			when: t("fused_group_mlp in --offload-modules", "--offload-modules 含 fused_group_mlp"), must: t("expert_fc1 and moe_act must not be in it", "不能再含 expert_fc1 与 moe_act"),
			why: t("they are parts of it", "它们是其中的一部分"), do: t("remove them", "去掉它们"),
			broken: offload(func(c *cfg) bool {
				return slices.Contains(c.OffloadModules, "fused_group_mlp") && (slices.Contains(c.OffloadModules, "expert_fc1") || slices.Contains(c.OffloadModules, "moe_act"))
			}),
		},
		{
			id: "gtp-opt-in-known", flags: "--gtp-remat-opt-in-modules", source: inConfig + "2205",
			when: t("--gtp-remat-opt-in-modules", ""), must: t("only moe_latent_proj may be given", "只能取 moe_latent_proj"),
			why: t("no other module can be opted in", "没有其他可选模块"), do: t("correct the names", "修正名称"),
			broken: func(c *cfg) bool { return !subset(c.GtpRematOptInModules, []string{"moe_latent_proj"}) },
		},
		{
			id: "paged-stash-no-cpu-offload", flags: "--cpu-offloading-num-layers --moe-paged-stash", source: inConfig + "2212",
			when: t("--moe-paged-stash", ""), must: t("--cpu-offloading-num-layers must not be given", "不能使用 --cpu-offloading-num-layers"),
			why: t("both move the same activations", "两者搬运同样的激活"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.MoePagedStash && c.CPUOffload },
		},
		{
			id: "paged-stash-needs-rank-capacity", flags: "--moe-expert-rank-capacity-factor --moe-paged-stash", source: inConfig + "2214", effect: ChangesExperiment,
			when: t("--moe-paged-stash", ""), must: t("--moe-expert-rank-capacity-factor must be given", "必须给 --moe-expert-rank-capacity-factor"),
			why: t("without a capacity there is nothing to page", "没有容量限制就无需分页"), do: t("drop --moe-paged-stash", "去掉 --moe-paged-stash"),
			broken: func(c *cfg) bool { return c.MoePagedStash && !c.MoeExpertRankCapacityFactor.OK },
		},
		{
			id: "paged-stash-no-expert-offload", flags: "--offload-modules --moe-paged-stash", source: inConfig + "2222",
			when: t("--moe-paged-stash", ""), must: t("expert_fc1, moe_act and fused_group_mlp must not be in --offload-modules", "--offload-modules 不能含 expert_fc1、moe_act、fused_group_mlp"),
			why: t("the stash covers them", "分页暂存已覆盖它们"), do: t("remove them", "去掉它们"),
			broken: func(c *cfg) bool {
				return c.MoePagedStash && slices.ContainsFunc(c.OffloadModules, func(m string) bool { return expertOffload([]string{m}) })
			},
		},
	})
}

func subset(words, of []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(of, w) })
}
