package rules

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

func fsdpRows() []row {
	torch := t("--use-torch-fsdp2", "")
	mega := t("--use-megatron-fsdp", "")
	return topics("FSDP", []row{
		{
			id: "torch-fsdp2-no-pp", flags: ppFlag + " --use-torch-fsdp2", source: inArgs + "1034",
			when: torch, must: t("PP must be 1", "PP 必须为 1"),
			why: t("FSDP2 wraps the whole model; stages are not supported", "FSDP2 包住整个模型，不支持流水级"), do: t("use PP 1", "改用 PP 1"),
			broken: func(c *cfg) bool { return c.UseTorchFsdp2 && c.PP != 1 },
		},
		{
			id: "torch-fsdp2-no-ep", flags: epFlag + " --use-torch-fsdp2", source: inArgs + "1036",
			when: torch, must: t("EP must be 1", "EP 必须为 1"),
			why: t("the sharding does not distinguish expert parameters", "分片时不区分专家参数"), do: t("use EP 1", "改用 EP 1"),
			broken: func(c *cfg) bool { return c.UseTorchFsdp2 && c.EP != 1 },
		},
		{
			id: "torch-fsdp2-no-distributed-optimizer", flags: "--use-distributed-optimizer --use-torch-fsdp2", source: inArgs + "1038",
			when: torch, must: t("--use-distributed-optimizer must not be given", "不能使用 --use-distributed-optimizer"),
			why: t("FSDP2 shards the optimizer itself", "FSDP2 自己会切分优化器"), do: t("drop --use-distributed-optimizer", "去掉 --use-distributed-optimizer"),
			broken: func(c *cfg) bool { return c.UseTorchFsdp2 && c.Asked.UseDistributedOptimizer },
		},
		{
			id: "torch-fsdp2-no-gradient-fusion", flags: "--no-gradient-accumulation-fusion --use-torch-fsdp2", source: inArgs + "1040",
			when: torch, must: t("--no-gradient-accumulation-fusion must be given (fusion is the default)", "必须加 --no-gradient-accumulation-fusion（默认启用融合）"),
			why: t("the fused kernel writes into a buffer that FSDP2 does not have", "融合内核写入的缓冲区在 FSDP2 中不存在"), do: t("add --no-gradient-accumulation-fusion", "加上 --no-gradient-accumulation-fusion"),
			broken: func(c *cfg) bool { return c.UseTorchFsdp2 && c.GradientAccumulationFusion },
		},
		{
			id: "torch-fsdp2-ckpt-format", flags: "--ckpt-format --use-torch-fsdp2", source: inArgs + "1042",
			when: torch, must: t("--ckpt-format must be torch_dist (the default) or torch_dcp", "--ckpt-format 必须是 torch_dist（默认）或 torch_dcp"),
			why: t("the parameters are DTensors that the other formats cannot save", "参数是 DTensor，其他格式无法保存"), do: t("use --ckpt-format torch_dist", "改用 --ckpt-format torch_dist"),
			broken: func(c *cfg) bool {
				return c.UseTorchFsdp2 && c.CkptFormat != "torch_dist" && c.CkptFormat != "torch_dcp"
			},
		},
		{
			id: "torch-fsdp2-untied", flags: "--untie-embeddings-and-output-weights --use-torch-fsdp2", source: inArgs + "1044", effect: ChangesExperiment,
			when: torch, must: t("--untie-embeddings-and-output-weights must be given", "必须加 --untie-embeddings-and-output-weights"),
			why: t("one shared weight in two wrapped modules cannot be sharded", "被两个模块共享的权重无法分片"), do: t("add --untie-embeddings-and-output-weights, or use --use-megatron-fsdp", "加 --untie-embeddings-and-output-weights，或改用 --use-megatron-fsdp"),
			broken: func(c *cfg) bool { return c.UseTorchFsdp2 && !c.UntieEmbeddingsAndOutputWeights },
		},
		{
			id: "torch-fsdp2-no-fp16", flags: "--fp16 --use-torch-fsdp2", source: inArgs + "1046", effect: ChangesExperiment,
			when: torch, must: t("--fp16 must not be given", "不能使用 --fp16"),
			why: t("its loss scaling does not support FSDP2", "其损失缩放不支持 FSDP2"), do: t("use --bf16", "改用 --bf16"),
			broken: func(c *cfg) bool { return c.UseTorchFsdp2 && c.Fp16 },
		},
		{
			id: "megatron-fsdp-2-no-distributed-optimizer", flags: "--use-distributed-optimizer --megatron-fsdp-version", source: inArgs + "1125",
			when: t("--use-megatron-fsdp --megatron-fsdp-version 2", ""), must: t("--use-distributed-optimizer must not be given", "不能使用 --use-distributed-optimizer"),
			why: t("version 2 shards the optimizer itself (version 1, the default, switches the flag on)", "版本 2 自己切分优化器（默认的版本 1 则会自动打开该参数）"), do: t("drop --use-distributed-optimizer", "去掉 --use-distributed-optimizer"),
			broken: func(c *cfg) bool {
				return c.UseMegatronFsdp && c.MegatronFsdpVersion == 2 && c.Asked.UseDistributedOptimizer
			},
		},
		{
			id: "megatron-fsdp-no-single-grouped", flags: "--moe-single-grouped-weight --moe-single-grouped-bias --use-megatron-fsdp", source: inArgs + "1143",
			when: mega, must: t("--moe-single-grouped-weight and --moe-single-grouped-bias must not be given", "不能使用 --moe-single-grouped-weight 与 --moe-single-grouped-bias"),
			why: t("grouped expert tensors cannot be remapped into its buffers", "成组的专家张量无法映射到它的缓冲区"), do: t("drop both flags", "去掉这两个参数"),
			broken: func(c *cfg) bool { return c.UseMegatronFsdp && (c.MoeSingleGroupedWeight || c.MoeSingleGroupedBias) },
		},
		{
			id: "megatron-fsdp-optimizer", flags: "--optimizer --use-megatron-fsdp", source: inArgs + "1150", effect: ChangesExperiment,
			when: mega, must: t("--optimizer must be adam or sgd", "--optimizer 必须是 adam 或 sgd"),
			why: t("other optimizers need whole matrices, and its shards are flat", "其他优化器需要完整矩阵，而它的分片是扁平的"), do: t("use --optimizer adam", "改用 --optimizer adam"),
			broken: func(c *cfg) bool {
				return c.UseMegatronFsdp && c.Asked.Optimizer != "adam" && c.Asked.Optimizer != "sgd"
			},
		},
		{
			id: "megatron-fsdp-no-weight-hash", flags: "--check-weight-hash-across-dp-replicas-interval --data-parallel-sharding-strategy", source: inArgs + "1163",
			when: t("--use-megatron-fsdp with --data-parallel-sharding-strategy optim_grads_params", "--use-megatron-fsdp 且 --data-parallel-sharding-strategy optim_grads_params"),
			must: t("--check-weight-hash-across-dp-replicas-interval must not be given", "不能使用 --check-weight-hash-across-dp-replicas-interval"),
			why:  t("there are no replicas to compare: parameters are sharded", "参数已被切分，没有可比较的副本"), do: t("drop it", "去掉它"),
			broken: func(c *cfg) bool {
				return c.UseMegatronFsdp && c.DataParallelShardingStrategy == "optim_grads_params" && c.CheckWeightHashAcrossDpReplicasInterval.OK
			},
		},
		{
			id: "megatron-fsdp-ckpt-format", flags: "--ckpt-format --use-megatron-fsdp", source: inArgs + "1169",
			when: mega, must: t("--ckpt-format must be fsdp_dtensor", "--ckpt-format 必须是 fsdp_dtensor"),
			why: t("the default torch_dist cannot save its sharded tensors", "默认的 torch_dist 无法保存其分片张量"), do: t("add --ckpt-format fsdp_dtensor", "加上 --ckpt-format fsdp_dtensor"),
			broken: func(c *cfg) bool { return c.UseMegatronFsdp && c.CkptFormat != "fsdp_dtensor" },
		},
		{
			id: "meta-device-needs-sharding", flags: "--init-model-with-meta-device --data-parallel-sharding-strategy", source: inArgs + "1184",
			when: t("--use-megatron-fsdp with --init-model-with-meta-device", "--use-megatron-fsdp 且 --init-model-with-meta-device"),
			must: t("--data-parallel-sharding-strategy must not be no_shard", "--data-parallel-sharding-strategy 不能是 no_shard"),
			why:  t("without sharding there is nothing to gain, and the code is not written", "不分片时没有意义，也没有实现"), do: t("use optim_grads_params, or drop --init-model-with-meta-device", "改用 optim_grads_params，或去掉 --init-model-with-meta-device"),
			broken: func(c *cfg) bool {
				return c.UseMegatronFsdp && c.InitModelWithMetaDevice && c.DataParallelShardingStrategy == "no_shard"
			},
		},
		{
			id: "manual-registration-needs-fsdp", flags: "--fsdp-manual-registration --use-megatron-fsdp", source: inArgs + "1190",
			when: t("--fsdp-manual-registration", ""), must: t("--use-megatron-fsdp must be given", "必须使用 --use-megatron-fsdp"),
			why: t("only its buffers are registered", "只有它的缓冲区需要注册"), do: t("drop --fsdp-manual-registration", "去掉 --fsdp-manual-registration"),
			broken: func(c *cfg) bool { return c.FsdpManualRegistration && !c.UseMegatronFsdp },
		},
		{
			id: "manual-registration-needs-nccl-ub", flags: "--use-nccl-ub --fsdp-manual-registration", source: inArgs + "1191",
			when: t("--fsdp-manual-registration", ""), must: t("--use-nccl-ub must be given (Megatron's message calls it --nccl-ub, which does not exist)", "必须加 --use-nccl-ub（Megatron 的报错写成并不存在的 --nccl-ub）"),
			why: t("registration is about NCCL user buffers", "注册的就是 NCCL 用户缓冲区"), do: t("add --use-nccl-ub", "加上 --use-nccl-ub"),
			broken: func(c *cfg) bool { return c.FsdpManualRegistration && !c.NcclUb },
		},
		{
			id: "ckpt-torch-dcp-needs-fsdp2", flags: "--ckpt-format --use-torch-fsdp2", source: inArgs + "1668",
			when: t("--ckpt-format torch_dcp", ""), must: t("--use-torch-fsdp2 must be given", "必须使用 --use-torch-fsdp2"),
			why: t("the format is tested with FSDP2 only", "该格式只在 FSDP2 下测试过"), do: t("use --ckpt-format torch_dist", "改用 --ckpt-format torch_dist"),
			broken: func(c *cfg) bool { return c.CkptFormat == "torch_dcp" && !c.UseTorchFsdp2 },
		},
		{
			id: "ckpt-torch-dcp-no-tp", flags: tpFlag + " --ckpt-format", source: inArgs + "1669",
			when: t("--ckpt-format torch_dcp", ""), must: t("TP must be 1", "TP 必须为 1"),
			why: t("the format is not tested with tensor parallelism", "该格式未在张量并行下测试"), do: t("use TP 1, or --ckpt-format torch_dist", "改用 TP 1，或 --ckpt-format torch_dist"),
			broken: func(c *cfg) bool { return c.CkptFormat == "torch_dcp" && c.TP > 1 },
		},
		{
			id: "ckpt-torch-dcp-no-pp", flags: ppFlag + " --ckpt-format", source: inArgs + "1671",
			when: t("--ckpt-format torch_dcp", ""), must: t("PP must be 1", "PP 必须为 1"),
			why: t("the format is not tested with pipeline parallelism", "该格式未在流水并行下测试"), do: t("use PP 1, or --ckpt-format torch_dist", "改用 PP 1，或 --ckpt-format torch_dist"),
			broken: func(c *cfg) bool { return c.CkptFormat == "torch_dcp" && c.PP > 1 },
		},
		{
			id: "ckpt-fsdp-dtensor-needs-fsdp", flags: "--ckpt-format --use-megatron-fsdp", source: inArgs + "1676",
			when: t("--ckpt-format fsdp_dtensor", ""), must: t("--use-megatron-fsdp must be given", "必须使用 --use-megatron-fsdp"),
			why: t("the format saves Megatron-FSDP's shards", "该格式保存的是 Megatron-FSDP 的分片"), do: t("use --ckpt-format torch_dist", "改用 --ckpt-format torch_dist"),
			broken: func(c *cfg) bool { return c.CkptFormat == "fsdp_dtensor" && !c.UseMegatronFsdp },
		},
		{
			id: "emerging-optimizer-no-torch-fsdp2", flags: "--optimizer --use-torch-fsdp2", source: inArgs + "1739", effect: ChangesExperiment,
			when: torch, must: t("--optimizer must be adam or sgd", "--optimizer 必须是 adam 或 sgd"),
			why: t("the emerging optimizers need whole matrices", "新式优化器需要完整矩阵"), do: t("use --optimizer adam", "改用 --optimizer adam"),
			broken: func(c *cfg) bool { return c.UseTorchFsdp2 && muonOnly(c) },
		},
		{
			id: "megatron-fsdp-version", flags: "--megatron-fsdp-version", source: inDDP + "257",
			when: t("always", "任何情况"), must: t("--megatron-fsdp-version must be 1 or 2", "--megatron-fsdp-version 必须是 1 或 2"),
			why: t("there are two versions", "只有两个版本"), do: t("leave it out for version 1", "去掉即为版本 1"),
			broken: func(c *cfg) bool { return !c.UseTorchFsdp2 && c.MegatronFsdpVersion != 1 && c.MegatronFsdpVersion != 2 },
		},
		{
			id: "one-fsdp", flags: "--use-torch-fsdp2 --use-megatron-fsdp", source: "megatron/training/models/dist_utils.py:295", stage: building,
			when: t("--use-megatron-fsdp", ""), must: t("--use-torch-fsdp2 must not be given as well", "不能同时给 --use-torch-fsdp2"),
			why: t("the model is wrapped once", "模型只能被包一次"), do: t("keep one of the two", "只保留一个"),
			broken: func(c *cfg) bool { return c.UseTorchFsdp2 && c.UseMegatronFsdp },
		},
	})
}

// muonOnly is emerging, but up to 0.17 it is true for Muon alone.
func muonOnly(c *cfg) bool {
	return emerging(c) && (c.Release >= megatron.V018 || strings.Contains(c.Optimizer, "muon"))
}

// emerging reports whether the optimizer is neither adam nor sgd.
func emerging(c *cfg) bool { return !slices.Contains([]string{"adam", "sgd"}, c.Asked.Optimizer) }
