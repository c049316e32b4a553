package rules

import (
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func optimizerRows() []row {
	const aware = "--use-precision-aware-optimizer"
	dtype := func(id, flag, line string, value func(*cfg) string) row {
		return row{
			id: id, flags: flag + " " + aware, source: inOptim + line, effect: ChangesExperiment,
			when: t("no "+aware, "未使用 "+aware), must: t(flag+" must be fp32", flag+" 必须是 fp32"),
			why: t("only the precision-aware optimizer keeps narrower states", "只有精度感知优化器能保存更窄的状态"), do: t("drop "+flag+", or add "+aware, "去掉 "+flag+"，或加 "+aware),
			broken: func(c *cfg) bool { return !c.UsePrecisionAwareOptimizer && value(c) != "fp32" },
		}
	}
	return topics("optimizer", []row{
		{
			id: "emerging-optimizer-ckpt-format", flags: "--ckpt-format --optimizer", source: inArgs + "1741",
			when: t("--optimizer muon, lion, soap and the like", "--optimizer muon、lion、soap 等"), must: t("--ckpt-format must be torch or torch_dist", "--ckpt-format 必须是 torch 或 torch_dist"),
			why: t("their states are whole matrices, which the other formats do not support", "其状态是整块矩阵，其他格式不支持"), do: t("use --ckpt-format torch_dist", "改用 --ckpt-format torch_dist"),
			broken: func(c *cfg) bool { return muonOnly(c) && c.CkptFormat != "torch" && c.CkptFormat != "torch_dist" },
		},
		{
			id: "no-gloo-needs-dist-ckpt", flags: "--ckpt-format --disable-gloo-process-groups --use-distributed-optimizer", source: inArgs + "1750",
			when: t("--disable-gloo-process-groups with the distributed optimizer", "--disable-gloo-process-groups 且使用分布式优化器"), must: t("--ckpt-format must not be torch", "--ckpt-format 不能是 torch"),
			why: t("the old format collects the optimizer on the host through Gloo; the assertion has no text", "旧格式通过 Gloo 在主机上汇集优化器状态；该断言没有文字说明"), do: t("use --ckpt-format torch_dist", "改用 --ckpt-format torch_dist"),
			broken: func(c *cfg) bool { return !c.UseGlooProcessGroups && shardedAtGloo(c) && !c.DistCkpt },
		},
		{
			id: "no-gloo-reshardable", flags: "--distrib-optim-fully-reshardable-mem-efficient --disable-gloo-process-groups", source: inArgs + "1753",
			when: t("--disable-gloo-process-groups with --dist-ckpt-optim-fully-reshardable", ""), must: t("--distrib-optim-fully-reshardable-mem-efficient must not be given", "不能使用 --distrib-optim-fully-reshardable-mem-efficient"),
			why: t("it moves the states over Gloo", "它通过 Gloo 搬运状态"), do: t("drop it", "去掉它"),
			broken: func(c *cfg) bool {
				return !c.UseGlooProcessGroups && shardedAtGloo(c) && c.DistCkptOptimFullyReshardable && c.DistribOptimFullyReshardableMemEfficient
			},
		},
		{
			id: "fake-group-no-flex", flags: "--moe-token-dispatcher-type --fake-process-group", source: inArgs + "1757",
			when: t("--fake-process-group", ""), must: t("--moe-token-dispatcher-type must not be flex", "--moe-token-dispatcher-type 不能是 flex"),
			why: t("its back ends talk to the network themselves", "其后端自行访问网络"), do: t("use alltoall", "改用 alltoall"),
			broken: func(c *cfg) bool { return c.FakeProcessGroup && c.MoeTokenDispatcherType == "flex" },
		},
		{
			id: "cpu-offload-needs-precision-aware", flags: aware + " --optimizer-cpu-offload", source: inArgs + "1885",
			when: t("--optimizer-cpu-offload", ""), must: t(aware+" must be given", "必须使用 "+aware),
			why: t("the offloaded optimizer is built on it", "卸载优化器建立在它之上"), do: t("add "+aware, "加上 "+aware),
			broken: func(c *cfg) bool { return c.OptimizerCpuOffload && !c.UsePrecisionAwareOptimizer },
		},
		{
			id: "cpu-offload-fp8-recipe", flags: "--fp8-recipe --optimizer-cpu-offload --fp8-param-gather", source: inArgs + "1889", effect: ChangesExperiment,
			when: t("--optimizer-cpu-offload with --fp8-param-gather", "--optimizer-cpu-offload 且 --fp8-param-gather"), must: t("--fp8-recipe must be delayed", "--fp8-recipe 必须是 delayed"),
			why: t("only its per-tensor scales can be updated on the host", "只有按张量的缩放能在主机上更新"), do: t("drop --fp8-param-gather", "去掉 --fp8-param-gather"),
			broken: func(c *cfg) bool { return c.OptimizerCpuOffload && c.Fp8ParamGather && c.Fp8Recipe != "delayed" },
		},
		{
			id: "mxfp8-buffer-no-step-overlap", flags: "--overlap-param-gather-with-optimizer-step --reuse-grad-buf-for-mxfp8-param-ag", source: inOptim + "428",
			when: t("--reuse-grad-buf-for-mxfp8-param-ag", ""), must: t("--overlap-param-gather-with-optimizer-step must not be given", "不能使用 --overlap-param-gather-with-optimizer-step"),
			why: t("the gradient buffer is still in use during the step", "优化器步进时梯度缓冲区仍在使用"), do: t("drop one of the two", "去掉其中一个"),
			broken: func(c *cfg) bool { return c.ReuseGradBufForMxfp8ParamAg && c.OverlapParamGatherWithOptimizerStep },
		},
		{
			id: "precision-aware-needs-adam", flags: "--optimizer " + aware, source: inOptim + "434", effect: ChangesExperiment,
			when: t(aware, ""), must: t("--optimizer must be adam", "--optimizer 必须是 adam"),
			why: t("only the fused Adam keeps narrow states", "只有融合 Adam 支持窄精度状态"), do: t("drop "+aware, "去掉 "+aware),
			broken: func(c *cfg) bool { return c.UsePrecisionAwareOptimizer && c.Optimizer != "adam" },
		},
		dtype("main-grads-fp32", "--main-grads-dtype", "469", func(c *cfg) string { return c.MainGradsDtype }),
		dtype("main-params-fp32", "--main-params-dtype", "472", func(c *cfg) string { return c.MainParamsDtype }),
		dtype("exp-avg-fp32", "--exp-avg-dtype", "475", func(c *cfg) string { return c.ExpAvgDtype }),
		dtype("exp-avg-sq-fp32", "--exp-avg-sq-dtype", "478", func(c *cfg) string { return c.ExpAvgSqDtype }),
		{
			id: "mxfp8-buffer-needs-gather", flags: "--fp8-param-gather --reuse-grad-buf-for-mxfp8-param-ag", source: inDDP + "260",
			when: t("--reuse-grad-buf-for-mxfp8-param-ag", ""), must: t("--fp8-param-gather must be given", "必须加 --fp8-param-gather"),
			why: t("the buffer is shared with parameters kept in MXFP8", "该缓冲区与以 MXFP8 保存的参数共用"), do: t("add --fp8-param-gather, or drop the flag", "加 --fp8-param-gather，或去掉该参数"),
			broken: func(c *cfg) bool { return !c.UseTorchFsdp2 && c.ReuseGradBufForMxfp8ParamAg && !c.Fp8ParamGather },
		},
		{
			id: "fp32-patterns-need-narrow-grads", flags: "--ddp-param-name-patterns-for-fp32-local-accumulation --accumulate-allreduce-grads-in-fp32", source: inDDP + "270",
			when: t("--ddp-param-name-patterns-for-fp32-local-accumulation", ""), must: t("gradients must not be reduced in fp32 already (the default with bf16)", "梯度不能已经以 fp32 归约（bf16 的默认）"),
			why: t("with fp32 main gradients every parameter is summed in fp32", "主梯度为 fp32 时所有参数都以 fp32 累加"), do: t("drop the patterns, or add --grad-reduce-in-bf16", "去掉该参数，或加 --grad-reduce-in-bf16"),
			broken: func(c *cfg) bool {
				return !c.UseTorchFsdp2 && len(c.DdpParamNamePatternsForFp32LocalAccumulation) > 0 && c.AccumulateAllreduceGradsInFp32
			},
		},
		{
			id: "buckets-by-number-or-size", flags: "--ddp-bucket-size --ddp-num-buckets", source: inDDP + "276",
			when: t("--ddp-num-buckets", ""), must: t("--ddp-bucket-size must not be given as well", "不能同时给 --ddp-bucket-size"),
			why: t("one follows from the other", "两者可互相推出"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return !c.UseTorchFsdp2 && c.DdpNumBuckets.OK && c.DdpBucketSize.OK },
		},
		{
			id: "buckets-positive", flags: "--ddp-num-buckets", source: inDDP + "277",
			when: t("--ddp-num-buckets", ""), must: t("the number must be above 0", "桶数必须大于 0"),
			why: t("gradients need at least one bucket", "梯度至少需要一个桶"), do: t("leave it out", "去掉该参数"),
			broken: func(c *cfg) bool { return !c.UseTorchFsdp2 && c.DdpNumBuckets.OK && c.DdpNumBuckets.V <= 0 },
		},
		{
			id: "layerwise-no-step-overlap", flags: "--overlap-param-gather-with-optimizer-step --optimizer", source: inOptimize + "766",
			when: t("an emerging optimizer with --use-distributed-optimizer", "新式优化器且 --use-distributed-optimizer"), must: t("--overlap-param-gather-with-optimizer-step must not be given", "不能使用 --overlap-param-gather-with-optimizer-step"),
			why: t("it does not step chunk by chunk", "它不按模型块分步"), do: t("drop it", "去掉它"),
			broken: func(c *cfg) bool {
				return c.Trains() && emerging(c) && c.LayerWise && c.OverlapParamGatherWithOptimizerStep
			},
		},
		{
			id: "emerging-optimizer-no-fp16", flags: "--fp16 --optimizer", source: inOptimize + "775", effect: ChangesExperiment,
			when: t("--optimizer muon, lion, soap and the like", "--optimizer muon、lion、soap 等"), must: t("--fp16 must not be given", "不能使用 --fp16"),
			why: t("they do not unscale the loss", "它们不处理损失缩放"), do: t("use --bf16", "改用 --bf16"),
			broken: func(c *cfg) bool { return c.Trains() && emerging(c) && c.Fp16 },
		},
		{
			// A warning, as the configurations judged by Megatron's own code never build the optimizer.
			id: "distributed-optimizer-no-sgd", flags: "--optimizer --use-distributed-optimizer --use-megatron-fsdp", source: "megatron/core/optimizer/distrib_optimizer.py:688",
			stage: optimizing, severity: Warning, effect: ChangesExperiment,
			when: t("--use-distributed-optimizer, which --use-megatron-fsdp version 1 switches on", "--use-distributed-optimizer（--use-megatron-fsdp 版本 1 会自动打开）"),
			must: t("--optimizer must not be sgd: every rank ends where the optimizer is built", "--optimizer 不能是 sgd：各 rank 会在构建优化器时退出"),
			why:  t("its checkpoints know Adam's states only", "它的检查点只支持 Adam 的状态"), do: t("use --optimizer adam, or drop --use-distributed-optimizer", "改用 --optimizer adam，或去掉 --use-distributed-optimizer"),
			broken: func(c *cfg) bool {
				return c.Trains() && c.Optimizer == "sgd" && c.UseDistributedOptimizer && !c.OptimizerCpuOffload
			},
		},
		{
			id: "precision-aware-needs-distributed", flags: "--use-distributed-optimizer " + aware, source: inOptimize + "1058",
			when: t(aware+", unless Megatron-FSDP 2", aware+"，Megatron-FSDP 2 除外"), must: t("--use-distributed-optimizer must be given", "必须使用 --use-distributed-optimizer"),
			why: t("found only when the optimizer is built", "要到构建优化器时才发现"), do: t("add --use-distributed-optimizer", "加上 --use-distributed-optimizer"),
			broken: func(c *cfg) bool {
				if c.Release < megatron.Main { // the configuration's constructor checks
					return c.UsePrecisionAwareOptimizer && !c.UseDistributedOptimizer
				}
				return c.Trains() && !emerging(c) && (!c.UseMegatronFsdp || c.MegatronFsdpVersion != 2) &&
					c.UsePrecisionAwareOptimizer && !c.UseDistributedOptimizer
			},
		},
	})
}

// shardedAtGloo reports whether the distributed optimizer is on when Megatron checks
// the Gloo groups. --freeze-all-layers switches it off only later.
func shardedAtGloo(c *cfg) bool {
	if c.Release < megatron.V018 {
		return c.UseDistributedOptimizer
	}
	return !emerging(c) && (c.Asked.UseDistributedOptimizer || c.UseMegatronFsdp && c.MegatronFsdpVersion != 2)
}
