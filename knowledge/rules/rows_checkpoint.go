package rules

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func checkpointRows() []row {
	const local = "--non-persistent-ckpt-type"
	return topics("checkpoint", []row{
		{
			id: "checkpoint-args-need-load", flags: "--load --pretrained-checkpoint --use-checkpoint-args", source: inArgs + "94",
			when: t("--use-checkpoint-args", ""), must: t("--load or --pretrained-checkpoint must be given", "必须给 --load 或 --pretrained-checkpoint"),
			why: t("the arguments are read from that checkpoint", "参数要从该检查点读取"), do: t("add --load", "加上 --load"),
			broken: func(c *cfg) bool {
				return c.UseCheckpointArgs && !c.Load.OK && (!c.PretrainedCheckpoint.OK || c.Release < megatron.V016)
			},
		},
		{
			id: "checkpoint-args-not-local", flags: local + " --use-checkpoint-args", source: inArgs + "95",
			when: t("--use-checkpoint-args", ""), must: t(local+" must not be local (Megatron's message calls the flag --non_persistent_ckpt_type, which does not exist)", local+" 不能是 local（Megatron 的报错写成并不存在的 --non_persistent_ckpt_type）"),
			why: t("local checkpoints are found only once all arguments are known", "要等所有参数确定后才能找到本地检查点"), do: t("drop --use-checkpoint-args", "去掉 --use-checkpoint-args"),
			broken: func(c *cfg) bool { return c.UseCheckpointArgs && c.NonPersistentCkptType.V == "local" },
		},
		{
			id: "convert-needs-save", flags: "--ckpt-convert-save --ckpt-convert-format", source: inArgs + "393",
			when: t("--ckpt-convert-format", ""), must: t("--ckpt-convert-save must be given", "必须给 --ckpt-convert-save"),
			why: t("the converted checkpoint is written there; the assertion has no text", "转换后的检查点写到那里；该断言没有文字说明"), do: t("add --ckpt-convert-save", "加上 --ckpt-convert-save"),
			broken: func(c *cfg) bool { return c.CkptConvertFormat.OK && !c.CkptConvertSave.OK },
		},
		{
			id: "convert-needs-load", flags: "--load --ckpt-convert-format", source: inArgs + "394",
			when: t("--ckpt-convert-format", ""), must: t("--load must be given", "必须给 --load"),
			why: t("the checkpoint to convert is read from there; the assertion has no text", "要转换的检查点从那里读取；该断言没有文字说明"), do: t("add --load", "加上 --load"),
			broken: func(c *cfg) bool { return c.CkptConvertFormat.OK && !c.Load.OK },
		},
		{
			id: "non-persistent-type", flags: local, source: inArgs + "398",
			when: t(local, ""), must: t("the type must be global or local", "类型必须是 global 或 local"),
			why: t("in_memory is listed by the parser but not written yet", "解析器列出了 in_memory，但尚未实现"), do: t("use global or local", "改用 global 或 local"),
			broken: func(c *cfg) bool {
				k := c.NonPersistentCkptType
				return k.OK && k.V != "global" && k.V != "local"
			},
		},
		{
			id: "save-interval-given", flags: "--save-interval --save", source: inArgs + "1362",
			when: t("--save", ""), must: t("--save-interval must be given", "必须给 --save-interval"),
			why: t("it has no default; the assertion has no text", "它没有默认值；该断言没有文字说明"), do: t("add --save-interval 1000", "加上 --save-interval 1000"),
			broken: func(c *cfg) bool { return c.Save.OK && !c.SaveInterval.OK },
		},
		{
			id: "save-interval-positive", flags: "--save-interval --save", source: inArgs + "1363",
			when: t("--save", ""), must: t("--save-interval must be above 0", "--save-interval 必须大于 0"),
			why: t("it counts iterations; the assertion has no text", "它是迭代数；该断言没有文字说明"), do: t("give a positive interval, or drop --save", "给正数，或去掉 --save"),
			broken: func(c *cfg) bool { return c.Save.OK && c.SaveInterval.OK && c.SaveInterval.V <= 0 },
		},
		{
			id: "retain-interval-positive", flags: "--save-retain-interval", source: inArgs + "1365",
			when: t("--save with --save-retain-interval", "--save 且 --save-retain-interval"), must: t("--save-retain-interval must be above 0", "--save-retain-interval 必须大于 0"),
			why: t("it counts iterations; the assertion has no text", "它是迭代数；该断言没有文字说明"), do: t("give a multiple of --save-interval", "取 --save-interval 的倍数"),
			broken: func(c *cfg) bool { return c.Save.OK && c.SaveRetainInterval.OK && c.SaveRetainInterval.V <= 0 },
		},
		{
			id: "retain-interval-multiple", flags: "--save-retain-interval --save-interval", source: inArgs + "1366",
			when: t("--save with --save-retain-interval", "--save 且 --save-retain-interval"), must: t("--save-retain-interval must be a multiple of --save-interval", "--save-retain-interval 必须是 --save-interval 的整数倍"),
			why: t("only checkpoints that were written can be kept; the assertion has no text", "只有写出的检查点才能保留；该断言没有文字说明"), do: t("give a multiple", "取其倍数"),
			broken: func(c *cfg) bool {
				return c.Save.OK && c.SaveRetainInterval.OK && c.SaveRetainInterval.V > 0 && !multiple(c.SaveRetainInterval.V, c.SaveInterval.V)
			},
			fix: func(c *cfg) lang.Text {
				if c.SaveInterval.V <= 0 {
					return lang.Text{}
				}
				up := (c.SaveRetainInterval.V/c.SaveInterval.V + 1) * c.SaveInterval.V
				return t("use --save-retain-interval %d", "改用 --save-retain-interval %d").With(up)
			},
		},
		{
			id: "params-interval-no-gather-overlap", flags: "--overlap-param-gather --save-params-interval", source: inArgs + "1368",
			when: t("--save with --save-params-interval", "--save 且 --save-params-interval"), must: t("--overlap-param-gather must not be given", "不能使用 --overlap-param-gather"),
			why: t("the parameters are still being gathered when they are saved; the assertion has no text", "保存时参数仍在传输途中；该断言没有文字说明"), do: t("drop one of the two", "去掉其中一个"),
			broken: func(c *cfg) bool { return c.Save.OK && c.SaveParamsInterval.OK && c.Asked.OverlapParamGather },
		},
		{
			id: "memory-interval-multiple", flags: "--log-memory-interval --log-interval", source: inArgs + "1370",
			when: t("--log-memory-interval", ""), must: t("it must be a multiple of --log-interval", "必须是 --log-interval 的整数倍"),
			why: t("memory is logged with the other numbers; the assertion has no text", "显存与其他数值一起记录；该断言没有文字说明"), do: t("give a multiple of --log-interval", "取 --log-interval 的倍数"),
			broken: func(c *cfg) bool { return c.LogMemoryInterval.OK && !multiple(c.LogMemoryInterval.V, c.LogInterval) },
		},
		{
			id: "ckpt-cache-same-groups", flags: "--ckpt-fully-parallel-save-process-group --ckpt-fully-parallel-load-process-group --ckpt-pg-tensors-cache-path", source: inArgs + "1799",
			when: t("--ckpt-pg-tensors-cache-path", ""), must: t("the save and the load process group must be the same", "保存与加载的进程组必须相同"),
			why: t("the cache is keyed by the group", "缓存以进程组为键"), do: t("give both the same value", "两者取同一个值"),
			broken: func(c *cfg) bool {
				return c.CkptPgTensorsCachePath.OK && c.CkptFullyParallelSaveProcessGroup != c.CkptFullyParallelLoadProcessGroup
			},
		},
		{
			id: "main-params-need-no-optim", flags: "--no-load-optim --load-main-params-from-ckpt", source: inArgs + "1812",
			when: t("--load-main-params-from-ckpt", ""), must: t("--no-load-optim must be given", "必须加 --no-load-optim"),
			why: t("the main parameters are part of the optimizer otherwise", "否则主参数属于优化器状态"), do: t("add --no-load-optim", "加上 --no-load-optim"),
			broken: func(c *cfg) bool { return c.LoadMainParamsFromCkpt && !c.NoLoadOptim },
		},
		{
			id: "logits-need-top-k", flags: "--logits-save-top-k --logits-save-dir", source: inArgs + "1826",
			when: t("--logits-save-dir", ""), must: t("--logits-save-top-k must be given", "必须给 --logits-save-top-k"),
			why: t("whole logits would fill the disk", "完整 logits 会占满磁盘"), do: t("add --logits-save-top-k", "加上 --logits-save-top-k"),
			broken: func(c *cfg) bool { return c.LogitsSaveDir.OK && !c.LogitsSaveTopK.OK },
		},
		{
			id: "logits-need-async-save", flags: "--async-save --use-persistent-ckpt-worker --logits-save-dir", source: inArgs + "1827",
			when: t("--logits-save-dir", ""), must: t("--async-save and --use-persistent-ckpt-worker must be given", "必须加 --async-save 与 --use-persistent-ckpt-worker"),
			why: t("the logits are written by the checkpoint worker", "logits 由检查点进程写出"), do: t("add both", "两个都加"),
			broken: func(c *cfg) bool { return c.LogitsSaveDir.OK && !c.AsyncSave },
		},
		{
			id: "override-iteration-no-finetune", flags: "--finetune --override-ckpt-iteration", source: inArgs + "1852",
			when: t("--override-ckpt-iteration", ""), must: t("--finetune must not be given", "不能使用 --finetune"),
			why: t("a fine-tuning run starts at iteration 0", "微调从第 0 次迭代开始"), do: t("drop one of the two", "去掉其中一个"),
			broken: func(c *cfg) bool { return c.OverrideCkptIteration.OK && c.Finetune },
		},
		{
			id: "inference-split-needs-pp", flags: ppFlag + " --inference-batch-times-seqlen-threshold", source: inArgs + "1856",
			when: t("--inference-batch-times-seqlen-threshold", ""), must: t("PP must be above 1", "PP 必须大于 1"),
			why: t("it splits batches over the stages", "它把批次拆分到各流水级"), do: t("leave it out", "去掉该参数"),
			broken: func(c *cfg) bool { return c.InferenceBatchTimesSeqlenThreshold > -1 && c.PP <= 1 },
		},
		{
			id: "inference-split-no-graphs", flags: "--cuda-graph-impl --inference-batch-times-seqlen-threshold", source: inArgs + "1858",
			when: t("--inference-batch-times-seqlen-threshold", ""), must: t("CUDA graphs must be off", "必须关闭 CUDA graph"),
			why: t("the split changes the shapes", "拆分会改变形状"), do: t("leave it out", "去掉该参数"),
			broken: func(c *cfg) bool { return c.InferenceBatchTimesSeqlenThreshold > -1 && c.CudaGraphImpl != "none" },
		},
		{
			id: "local-ckpt-needs-dir", flags: "--non-persistent-local-ckpt-dir " + local, source: inArgs + "1895",
			when: t(local+" local", ""), must: t("--non-persistent-local-ckpt-dir must be given (Megatron's message calls it --local-ckpt-dir, which does not exist)", "必须给 --non-persistent-local-ckpt-dir（Megatron 的报错写成并不存在的 --local-ckpt-dir）"),
			why: t("local checkpoints go to the node's own disk", "本地检查点写到节点自己的磁盘"), do: t("add --non-persistent-local-ckpt-dir", "加上 --non-persistent-local-ckpt-dir"),
			broken: func(c *cfg) bool { return c.NonPersistentCkptType.V == "local" && !c.NonPersistentLocalCkptDir.OK },
		},
		{
			id: "replication-needs-jump", flags: "--replication-jump --replication", source: inArgs + "1897",
			when: t("--replication", ""), must: t("--replication-jump must be given", "必须给 --replication-jump"),
			why: t("it says how far away the copies are kept", "它决定副本相隔多远"), do: t("add --replication-jump (the GPUs of a node)", "加 --replication-jump（每节点的 GPU 数）"),
			broken: func(c *cfg) bool { return c.Replication && !c.ReplicationJump.OK },
		},
		{
			id: "replication-needs-local", flags: local + " --replication", source: inArgs + "1898",
			when: t("--replication", ""), must: t(local+" must be local", local+" 必须是 local"),
			why: t("only local checkpoints are replicated", "只有本地检查点需要复制"), do: t("use "+local+" local, or drop --replication", "改用 "+local+" local，或去掉 --replication"),
			broken: func(c *cfg) bool { return c.Replication && c.NonPersistentCkptType.V != "local" },
		},
		{
			id: "verify-integrity-format", flags: "--ckpt-format --verify-integrity", source: "megatron/training/config/training_config.py:671", stage: holding, at: 671,
			when: t("--verify-integrity", ""), must: t("--ckpt-format must be torch_dist", "--ckpt-format 必须是 torch_dist"),
			why: t("only its files are hashed", "只有该格式的文件会计算哈希"), do: t("use --ckpt-format torch_dist, or drop --verify-integrity", "改用 --ckpt-format torch_dist，或去掉 --verify-integrity"),
			broken: func(c *cfg) bool { return c.VerifyIntegrity && c.CkptFormat != "torch_dist" },
		},
	})
}

func overlapRows() []row {
	const step = "--overlap-param-gather-with-optimizer-step"
	on := t(step, "")
	return topics("gradient and parameter overlap", []row{
		{
			id: "gather-overlap-needs-sharding", flags: "--use-distributed-optimizer --overlap-param-gather", source: inArgs + "1025",
			when: t("--overlap-param-gather", ""), must: t("--use-distributed-optimizer, --use-megatron-fsdp or --optimizer dist_muon must be given", "必须使用 --use-distributed-optimizer、--use-megatron-fsdp 或 --optimizer dist_muon"),
			why: t("without sharding there is nothing to gather", "没有分片就无需收集"), do: t("add --use-distributed-optimizer", "加上 --use-distributed-optimizer"),
			broken: func(c *cfg) bool {
				return c.Asked.OverlapParamGather && !c.Asked.UseDistributedOptimizer &&
					!c.UseMegatronFsdp && (c.Asked.Optimizer != "dist_muon" || c.Release < megatron.V017)
			},
		},
		{
			id: "gather-overlap-needs-grad-overlap", flags: "--overlap-grad-reduce --overlap-param-gather", source: inArgs + "1028",
			when: t("--overlap-param-gather", ""), must: t("--overlap-grad-reduce must be given", "必须加 --overlap-grad-reduce"),
			why: t("both use the same buckets", "两者共用同样的桶"), do: t("add --overlap-grad-reduce", "加上 --overlap-grad-reduce"),
			broken: func(c *cfg) bool { return c.Asked.OverlapParamGather && !c.OverlapGradReduce },
		},
		{
			id: "step-overlap-needs-distributed", flags: "--use-distributed-optimizer " + step, source: inArgs + "1067",
			when: on, must: t("--use-distributed-optimizer must be given", "必须使用 --use-distributed-optimizer"),
			why: t("only sharded parameters are gathered", "只有分片的参数才需要收集"), do: t("add --use-distributed-optimizer", "加上 --use-distributed-optimizer"),
			broken: func(c *cfg) bool { return c.OverlapParamGatherWithOptimizerStep && !c.Asked.UseDistributedOptimizer },
		},
		{
			id: "step-overlap-needs-gather-overlap", flags: "--overlap-param-gather " + step, source: inArgs + "1069",
			when: on, must: t("--overlap-param-gather must be given", "必须加 --overlap-param-gather"),
			why: t("it widens that overlap to the step", "它把该重叠扩展到优化器步进"), do: t("add --overlap-param-gather --overlap-grad-reduce", "加上 --overlap-param-gather --overlap-grad-reduce"),
			broken: func(c *cfg) bool { return c.OverlapParamGatherWithOptimizerStep && !c.Asked.OverlapParamGather },
		},
		{
			id: "step-overlap-needs-virtual-stages", flags: vpStages + " " + step, source: inArgs + "1071",
			when: on, must: t("virtual pipeline stages must be used", "必须使用虚拟流水级"),
			why: t("the model chunks are stepped one after the other", "按模型块逐个步进"), do: t("drop "+step, "去掉 "+step),
			broken: func(c *cfg) bool { return c.OverlapParamGatherWithOptimizerStep && !c.VP.OK },
		},
		{
			id: "step-overlap-no-dist-ckpt", flags: "--ckpt-format " + step, source: inArgs + "1073",
			when: on, must: t("--ckpt-format must be torch: the default torch_dist is refused", "--ckpt-format 必须是 torch：默认的 torch_dist 会被拒绝"),
			why: t("distributed checkpoints do not know the order of its steps yet", "分布式检查点尚不支持其步进次序"), do: t("drop "+step+", or use --ckpt-format torch", "去掉 "+step+"，或改用 --ckpt-format torch"),
			broken: func(c *cfg) bool { return c.OverlapParamGatherWithOptimizerStep && c.DistCkpt },
		},
	})
}
