package rules

import "slices"

func precisionRows() []row {
	return topics("precision", []row{
		{
			id: "fp8-gather-needs-sharding", flags: "--fp8-param-gather --use-distributed-optimizer", source: inArgs + "1096",
			when: t("--fp8-param-gather", ""), must: t("the distributed optimizer or an FSDP must be used", "必须使用分布式优化器或 FSDP"),
			why: t("it gathers the shards of the parameters in fp8; without shards there is nothing to gather", "它以 fp8 收集参数分片；没有分片就无可收集"), do: t("add --use-distributed-optimizer", "加上 --use-distributed-optimizer"),
			broken: func(c *cfg) bool {
				return c.Fp8ParamGather && !c.Asked.UseDistributedOptimizer && !c.UseTorchFsdp2 && !c.UseMegatronFsdp
			},
		},
		{
			id: "fp4-or-fp8", flags: "--fp4-format --fp8-format", source: inArgs + "1101", effect: ChangesExperiment,
			when: t("--fp4-format", ""), must: t("--fp8-format must not be given as well", "不能同时给 --fp8-format"),
			why: t("a GEMM runs in one format", "一次 GEMM 只能用一种格式"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.Fp4.OK && c.Fp8.OK },
		},
		{
			id: "fp4-gather-needs-fp4", flags: "--fp4-param-gather --fp4-format", source: inArgs + "1105", effect: ChangesExperiment,
			when: t("--fp4-param-gather", ""), must: t("--fp4-format must be given", "必须给 --fp4-format"),
			why: t("parameters are only kept in fp4 when they are used in fp4", "只有以 fp4 计算时才以 fp4 保存参数"), do: t("drop --fp4-param-gather, or add --fp4-format e2m1", "去掉 --fp4-param-gather，或加 --fp4-format e2m1"),
			broken: func(c *cfg) bool { return c.Fp4ParamGather && !c.Fp4.OK },
		},
		{
			id: "bf16-or-fp16", flags: "--bf16 --fp16", source: inArgs + "1196", effect: ChangesExperiment,
			when: t("--fp16", ""), must: t("--bf16 must not be given as well", "不能同时给 --bf16"),
			why: t("parameters have one type; the assertion has no text", "参数只有一种类型；该断言没有文字说明"), do: t("use --bf16 on Ampere or newer", "Ampere 及以后用 --bf16"),
			broken: func(c *cfg) bool { return c.Bf16 && c.Fp16 },
		},
		{
			id: "fp32-accumulation-grads", flags: "--main-grads-dtype --accumulate-allreduce-grads-in-fp32", source: inArgs + "1210", effect: ChangesExperiment,
			when: t("--bf16 with --accumulate-allreduce-grads-in-fp32", "--bf16 且 --accumulate-allreduce-grads-in-fp32"), must: t("--main-grads-dtype must be fp32", "--main-grads-dtype 必须是 fp32"),
			why: t("one flag asks for fp32 sums and the other for a narrower type", "一个要求 fp32 累加，另一个要求更窄的类型"), do: t("drop one of the two", "去掉其中一个"),
			broken: func(c *cfg) bool {
				return c.Bf16 && c.Asked.AccumulateAllreduceGradsInFp32 && c.MainGradsDtype != "fp32"
			},
		},
		{
			id: "fp16-cross-entropy-needs-fp16", flags: "--fp16 --fp16-lm-cross-entropy", source: inArgs + "1373", effect: ChangesExperiment,
			when: t("--fp16-lm-cross-entropy", ""), must: t("--fp16 must be given", "必须用 --fp16"),
			why: t("the loss is only computed in fp16 in a fp16 run", "只有 fp16 训练才以 fp16 计算损失"), do: t("drop --fp16-lm-cross-entropy", "去掉 --fp16-lm-cross-entropy"),
			broken: func(c *cfg) bool { return c.Fp16LmCrossEntropy && !c.Fp16 },
		},
		{
			id: "fp32-residual-needs-half", flags: "--bf16 --fp16 --fp32-residual-connection", source: inArgs + "1375", effect: ChangesExperiment,
			when: t("--fp32-residual-connection", ""), must: t("--bf16 or --fp16 must be given", "必须用 --bf16 或 --fp16"),
			why: t("a fp32 run has fp32 residuals anyway", "fp32 训练的残差本来就是 fp32"), do: t("add --bf16, or drop --fp32-residual-connection", "加 --bf16，或去掉 --fp32-residual-connection"),
			broken: func(c *cfg) bool { return c.Fp32ResidualConnection && !c.Fp16 && !c.Bf16 },
		},
		{
			id: "no-te-cross-entropy-fusion", flags: "--cross-entropy-fusion-impl --cross-entropy-loss-fusion", source: inArgs + "1697",
			when: t("--cross-entropy-loss-fusion", ""), must: t("--cross-entropy-fusion-impl must not be te", "--cross-entropy-fusion-impl 不能是 te"),
			why: t("Transformer Engine's fused loss is switched off for its instability", "Transformer Engine 的融合损失因不稳定已被禁用"), do: t("use --cross-entropy-fusion-impl native", "改用 --cross-entropy-fusion-impl native"),
			broken: func(c *cfg) bool { return c.CrossEntropyLossFusion && c.CrossEntropyFusionImpl == "te" },
		},
		{
			id: "delayed-no-bf16-layers", flags: "--fp8-recipe --first-last-layers-bf16", source: inConfig + "1530", effect: ChangesExperiment,
			when: t("--fp8-format with --first-last-layers-bf16", "--fp8-format 且 --first-last-layers-bf16"), must: t("--fp8-recipe must not be delayed, which is the default", "--fp8-recipe 不能是默认的 delayed"),
			why: t("delayed scaling keeps one history for all layers", "延迟缩放为所有层共用一份历史"), do: t("use --fp8-recipe tensorwise, blockwise or mxfp8", "改用 --fp8-recipe tensorwise、blockwise 或 mxfp8"),
			broken: func(c *cfg) bool { return c.Fp8.OK && c.FirstLastLayersBf16 && c.Fp8Recipe == "delayed" },
		},
		bf16Layers("bf16-layers-at-start", "--num-layers-at-start-in-bf16", "1543", func(c *cfg) int { return c.NumLayersAtStartInBf16 }),
		bf16Layers("bf16-layers-at-end", "--num-layers-at-end-in-bf16", "1552", func(c *cfg) int { return c.NumLayersAtEndInBf16 }),
		{
			id: "fp8-custom-needs-factory", flags: "--fp8-quantizer-factory --fp8-recipe", source: inConfig + "1560", effect: ChangesExperiment,
			when: t("--fp8-format --fp8-recipe custom", ""), must: t("--fp8-quantizer-factory must be given", "必须给 --fp8-quantizer-factory"),
			why: t("the recipe is a Python function of yours", "该配方由你的 Python 函数给出"), do: t("give the function's import path", "给出函数的导入路径"),
			broken: func(c *cfg) bool { return c.Fp8.OK && c.Fp8Recipe == "custom" && c.Fp8QuantizerFactory.V == "" },
		},
		{
			id: "fp8-gather-needs-fp8", flags: "--fp8-param-gather --fp8-format", source: inConfig + "1567", effect: ChangesExperiment,
			when: t("--fp8-param-gather", ""), must: t("--fp8-format must be given", "必须给 --fp8-format"),
			why: t("parameters are only kept in fp8 when they are used in fp8", "只有以 fp8 计算时才以 fp8 保存参数"), do: t("drop --fp8-param-gather, or add --fp8-format hybrid", "去掉 --fp8-param-gather，或加 --fp8-format hybrid"),
			broken: func(c *cfg) bool { return c.Fp8ParamGather && !c.Fp8.OK },
		},
		{
			id: "fp8-output-needs-fp8", flags: "--fp8-output-proj --fp8-format", source: inConfig + "1571", effect: ChangesExperiment,
			when: t("--fp8-output-proj", ""), must: t("--fp8-format must be given", "必须给 --fp8-format"),
			why: t("it widens fp8 to the output layer", "它把 fp8 扩展到输出层"), do: t("drop --fp8-output-proj", "去掉 --fp8-output-proj"),
			broken: func(c *cfg) bool { return c.Fp8OutputProj && !c.Fp8.OK },
		},
		{
			id: "fp8-output-needs-mxfp8", flags: "--fp8-recipe --fp8-output-proj", source: inConfig + "1573", effect: ChangesExperiment,
			when: t("--fp8-output-proj", ""), must: t("--fp8-recipe must be mxfp8", "--fp8-recipe 必须是 mxfp8"),
			why: t("only its blocks keep the logits exact enough", "只有它的分块精度足以保住 logits"), do: t("drop --fp8-output-proj", "去掉 --fp8-output-proj"),
			broken: func(c *cfg) bool { return c.Fp8OutputProj && c.Fp8.OK && c.Fp8Recipe != "mxfp8" },
		},
		{
			id: "fp4-custom-needs-factory", flags: "--fp4-quantizer-factory --fp4-recipe", source: inConfig + "1586", effect: ChangesExperiment,
			when: t("--fp4-format --fp4-recipe custom", ""), must: t("--fp4-quantizer-factory must be given", "必须给 --fp4-quantizer-factory"),
			why: t("the recipe is a Python function of yours", "该配方由你的 Python 函数给出"), do: t("give the function's import path", "给出函数的导入路径"),
			broken: func(c *cfg) bool { return c.Fp4.OK && c.Fp4Recipe == "custom" && c.Fp4QuantizerFactory.V == "" },
		},
		{
			id: "delayed-no-cheap-recompute", flags: "--fp8-recipe --recompute-modules", source: inConfig + "2003", effect: ChangesExperiment,
			when: t("selective recompute of moe_act or layernorm with fp8", "fp8 下选择性重计算 moe_act 或 layernorm"), must: t("--fp8-recipe must not be delayed, which is the default", "--fp8-recipe 不能是默认的 delayed"),
			why: t("recomputing would advance the scaling history twice", "重计算会让缩放历史前进两次"), do: t("use another recipe, or recompute other modules", "换配方，或重计算其他模块"),
			broken: func(c *cfg) bool {
				return c.RecomputeGranularity.V == "selective" && c.Fp8.OK && c.Fp8Recipe == "delayed" &&
					(slices.Contains(c.RecomputeModules, "moe_act") || slices.Contains(c.RecomputeModules, "layernorm"))
			},
		},
		{
			id: "fp8-inference-block-impl", flags: "--transformer-impl --inference-cuda-graph-scope --fp8-format", source: inArgs + "1241",
			when: t("--inference-cuda-graph-scope block with fp8", "--inference-cuda-graph-scope block 且用 fp8"), must: t("--transformer-impl must be inference_optimized", "--transformer-impl 必须是 inference_optimized"),
			why: t("other layers change their fp8 state while a graph is replayed", "其他实现在重放图时会改变 fp8 状态"), do: t("drop --inference-cuda-graph-scope", "去掉 --inference-cuda-graph-scope"),
			broken: func(c *cfg) bool {
				return c.InferenceCudaGraphScope.V == "block" && c.Fp8.OK && c.TransformerImpl != "inference_optimized"
			},
		},
		{
			id: "fp8-inference-block-recipe", flags: "--fp8-recipe --inference-cuda-graph-scope", source: inArgs + "1244",
			when: t("--inference-cuda-graph-scope block with fp8", "--inference-cuda-graph-scope block 且用 fp8"), must: t("--fp8-recipe must be mxfp8", "--fp8-recipe 必须是 mxfp8"),
			why: t("only its block scales stay fixed while a graph is replayed", "只有它的分块缩放在重放图时保持不变"), do: t("drop --inference-cuda-graph-scope", "去掉 --inference-cuda-graph-scope"),
			broken: func(c *cfg) bool {
				return c.InferenceCudaGraphScope.V == "block" && c.Fp8.OK && c.Fp8Recipe != "mxfp8"
			},
		},
	})
}

func bf16Layers(id, flag, line string, count func(*cfg) int) row {
	return row{
		id: id, flags: flag + " --num-layers " + ppFlag, source: inConfig + line, effect: ChangesExperiment,
		when: t("--fp8-format with --first-last-layers-bf16", "--fp8-format 且 --first-last-layers-bf16"), must: t("the count must lie between 0 and the layers of a pipeline rank", "层数必须在 0 与每个流水级的层数之间"),
		why: t("the layers in bf16 must lie on one rank", "bf16 层必须都在同一个 rank 上"), do: t("lower the count", "减小层数"),
		broken: func(c *cfg) bool {
			return c.Fp8.OK && c.FirstLastLayersBf16 && c.PP > 0 && (count(c) < 0 || count(c) > c.Layers/c.PP)
		},
	}
}
