package rules

func activationRows() []row {
	return topics("model", []row{
		{
			id: "bias-fusion-activation", flags: "--no-bias-gelu-fusion --squared-relu --disable-bias-linear", source: inConfig + "2422",
			when:   t("bias fusion on (the default with linear biases)", "启用偏置融合（有线性偏置时为默认）"),
			must:   t("the activation must be gelu, swiglu or quick_geglu", "激活函数必须是 gelu、swiglu 或 quick_geglu"),
			why:    t("there is no fused kernel for other activations", "其他激活函数没有融合内核"),
			do:     t("add --no-bias-gelu-fusion (or --disable-bias-linear, which changes the model)", "加 --no-bias-gelu-fusion（或 --disable-bias-linear，但会改变模型）"),
			broken: func(c *cfg) bool { return c.BiasActivationFusion && c.Activation == "squared_relu" },
		},
		{
			id: "gelu-fusion-needs-bias", flags: "--no-bias-gelu-fusion --disable-bias-linear", source: inConfig + "2431",
			when: t("gelu with bias fusion", "gelu 且启用偏置融合"),
			must: t("linear layers must have biases", "线性层必须有偏置"),
			why:  t("there is no bias to fuse", "没有可融合的偏置"),
			do:   t("add --no-bias-gelu-fusion", "加上 --no-bias-gelu-fusion"),
			broken: func(c *cfg) bool {
				return c.BiasActivationFusion && c.Activation == "gelu" && !c.Gated && !c.AddBiasLinear
			},
		},
		{
			id: "glu-offset-needs-quick-gelu", flags: "--glu-linear-offset --quick-geglu", source: inConfig + "2441", effect: ChangesExperiment,
			when: t("bias fusion on and --glu-linear-offset not 0", "启用偏置融合且 --glu-linear-offset 非 0"),
			must: t("the activation must be quick_geglu", "激活函数必须是 quick_geglu"),
			why:  t("only its fused kernel adds an offset", "只有它的融合内核支持偏移"),
			do:   t("use --quick-geglu, or drop the offset", "改用 --quick-geglu，或去掉偏移"),
			broken: func(c *cfg) bool {
				return c.BiasActivationFusion && c.GluLinearOffset != 0 && c.Activation != "quick_gelu"
			},
		},
		{
			id: "te-activation-no-bias-fusion", flags: "--use-te-activation-func --no-bias-gelu-fusion", source: inConfig + "2447",
			when:   t("--use-te-activation-func", ""),
			must:   t("bias fusion must be off", "必须关闭偏置融合"),
			why:    t("the activation is computed either by Transformer Engine or by the fused kernel", "激活函数要么由 Transformer Engine 计算，要么由融合内核计算"),
			do:     t("add --no-bias-gelu-fusion or --no-bias-swiglu-fusion", "加 --no-bias-gelu-fusion 或 --no-bias-swiglu-fusion"),
			broken: func(c *cfg) bool { return c.BiasActivationFusion && c.UseTeActivationFunc },
		},
		{
			id: "te-activation-known", flags: "--use-te-activation-func --squared-relu --quick-geglu", source: inConfig + "2461", effect: ChangesExperiment,
			when:   t("--use-te-activation-func", ""),
			must:   t("the activation must be gelu or swiglu", "激活函数必须是 gelu 或 swiglu"),
			why:    t("Transformer Engine has no other activation modules", "Transformer Engine 没有其他激活模块"),
			do:     t("drop --use-te-activation-func", "去掉 --use-te-activation-func"),
			broken: func(c *cfg) bool { return c.UseTeActivationFunc && c.Activation != "gelu" && c.Activation != "silu" },
		},
		{
			id: "fused-residual-needs-rmsnorm", flags: "--normalization --fused-residual-rmsnorm", source: inConfig + "2455", effect: ChangesExperiment,
			when:   t("--fused-residual-rmsnorm", ""),
			must:   t("--normalization must be RMSNorm", "--normalization 必须是 RMSNorm"),
			why:    t("the fused kernel computes an RMS norm", "融合内核计算的是 RMSNorm"),
			do:     t("drop --fused-residual-rmsnorm", "去掉 --fused-residual-rmsnorm"),
			broken: func(c *cfg) bool { return c.FusedResidualRmsnorm && c.Normalization != "RMSNorm" },
		},
		{
			id: "swiglu-clamp-positive", flags: "--activation-func-clamp-value --swiglu", source: inConfig + "2480", effect: ChangesExperiment,
			when: t("--activation-func-clamp-value with --swiglu", "--activation-func-clamp-value 与 --swiglu 同用"),
			must: t("the clamp must be finite and above 0", "截断值必须有限且大于 0"),
			why:  t("activations are clamped to it on both sides", "激活值会被双向截断到该值"),
			do:   t("give a positive number", "改成正数"),
			broken: func(c *cfg) bool {
				return clampedSwiglu(c) && !(c.ActivationFuncClampValue.V > 0 && c.ActivationFuncClampValue.V < 1e308)
			},
		},
		{
			id: "swiglu-clamp-needs-moe", flags: "--activation-func-clamp-value --num-experts", source: inConfig + "2484", effect: ChangesExperiment,
			when:   t("--activation-func-clamp-value with --swiglu", "--activation-func-clamp-value 与 --swiglu 同用"),
			must:   t("the model must have experts", "模型必须是 MoE"),
			why:    t("only the expert layers clamp SwiGLU", "只有专家层支持截断 SwiGLU"),
			do:     t("drop --activation-func-clamp-value", "去掉 --activation-func-clamp-value"),
			broken: func(c *cfg) bool { return clampedSwiglu(c) && c.Experts == 0 },
		},
		{
			id: "swiglu-clamp-no-offset", flags: "--glu-linear-offset --activation-func-clamp-value", source: inConfig + "2488", effect: ChangesExperiment,
			when:   t("--activation-func-clamp-value with --swiglu", "--activation-func-clamp-value 与 --swiglu 同用"),
			must:   t("--glu-linear-offset must be 0", "--glu-linear-offset 必须为 0"),
			why:    t("the clamped kernel adds no offset", "带截断的内核不支持偏移"),
			do:     t("drop --glu-linear-offset", "去掉 --glu-linear-offset"),
			broken: func(c *cfg) bool { return clampedSwiglu(c) && c.GluLinearOffset != 0 },
		},
	})
}
