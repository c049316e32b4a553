package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

const (
	tpFlag = "--tensor-model-parallel-size"
	ppFlag = "--pipeline-model-parallel-size"
	cpFlag = "--context-parallel-size"
	epFlag = "--expert-model-parallel-size"
)

func parallelRows() []row {
	return topics("parallel sizes", []row{
		{
			id: "sizes-positive", flags: tpFlag + " " + ppFlag + " " + cpFlag + " " + epFlag + " --expert-tensor-parallel-size", source: inArgs + "432", at: 430,
			when: t("always", "任何情况"),
			must: t("every parallel size and the number of GPUs must be at least 1", "所有并行度以及 GPU 数都必须不小于 1"),
			why:  t("the sizes divide the world; a zero causes a division by zero", "世界大小要除以各并行度，取 0 会直接除零崩溃"),
			do:   t("give 1 where you do not want the axis", "不需要某一维并行时写 1"),
			broken: func(c *cfg) bool {
				return min(c.TP, c.PP, c.CP, c.EP, c.ETP, c.World) < 1
			},
		},
		{
			id: "weight-shards-at-least-tp", flags: "--tensor-parallel-num-weight-shards " + tpFlag, source: inParallel + "32", at: 418,
			when:   t("--tensor-parallel-num-weight-shards S", ""),
			must:   t("S must be at least TP", "S 必须不小于 TP"),
			why:    t("weights are cut by tensor parallelism first; fewer shards than TP cannot exist", "权重首先被张量并行切开，份数不可能比 TP 还少"),
			do:     t("leave the flag out, or give a multiple of TP", "去掉该参数，或改成 TP 的倍数"),
			broken: func(c *cfg) bool { s := c.TensorParallelNumWeightShards; return s.OK && s.V < c.TP },
		},
		{
			id: "weight-shards-multiple-of-tp", flags: "--tensor-parallel-num-weight-shards " + tpFlag, source: inParallel + "37", at: 419,
			when: t("--tensor-parallel-num-weight-shards S", ""),
			must: t("S must be a multiple of TP", "S 必须是 TP 的整数倍"),
			why:  t("each tensor-parallel shard is cut into equally many pieces", "每个张量并行分片会被再等分"),
			do:   t("give a multiple of TP", "改成 TP 的倍数"),
			broken: func(c *cfg) bool {
				s := c.TensorParallelNumWeightShards
				return s.OK && s.V >= c.TP && !multiple(s.V, c.TP)
			},
		},
		{
			id: "world-multiple-of-model-size", flags: tpFlag + " " + ppFlag + " " + cpFlag + " WORLD_SIZE", source: inArgs + "432", effect: PerformanceOnly,
			when:   t("always", "任何情况"),
			must:   t("WORLD_SIZE must be a multiple of TP × PP × CP (times the weight-shard factor)", "WORLD_SIZE 必须是 TP × PP × CP（再乘权重分片系数）的整数倍"),
			why:    t("one copy of the model takes TP × PP × CP ranks, and the world holds a whole number of copies (DP)", "一个模型副本占 TP × PP × CP 个 rank，整个作业只能容纳整数个副本（即 DP）"),
			do:     t("change the number of GPUs or one of the sizes", "调整 GPU 数或某个并行度"),
			broken: func(c *cfg) bool { return min(c.TP, c.PP, c.CP) > 0 && !multiple(c.World, c.TP*c.PP*c.CP*c.GTP) },
			fix:    fixWorld, after: "sizes-positive",
		},
		{
			id: "attention-local-needs-spec", flags: "--attention-backend --spec", source: inArgs + "437", effect: ChangesExperiment,
			when:   t("--attention-backend local", ""),
			must:   t("--spec must be local", "必须同时给 --spec local"),
			why:    t("the local backend exists in the local layer specification only; without --spec Megatron crashes here", "local 后端只存在于 local 层规格里；不给 --spec 会在此处直接崩溃"),
			do:     t("drop --attention-backend local, or use unfused", "去掉 --attention-backend local，或改用 unfused"),
			broken: func(c *cfg) bool { return c.AttentionBackend == "local" && (len(c.Spec) == 0 || c.Spec[0] != "local") },
		},
		{
			id: "hierarchical-cp-product", flags: "--hierarchical-context-parallel-sizes " + cpFlag, source: inArgs + "582",
			when:   t("--hierarchical-context-parallel-sizes a b …", ""),
			must:   t("the product of the sizes must equal CP", "各级大小之积必须等于 CP"),
			why:    t("the levels divide the context-parallel group without rest", "各级刚好划分整个上下文并行组"),
			do:     t("give factors of CP, or leave the flag out", "给出乘积为 CP 的因子，或去掉该参数"),
			broken: func(c *cfg) bool { h := c.HierarchicalContextParallelSizes; return len(h) > 0 && product(h) != c.CP },
			fix: func(c *cfg) lang.Text {
				if c.CP == 1 {
					return t("leave --hierarchical-context-parallel-sizes out: CP is 1", "CP 为 1，去掉 --hierarchical-context-parallel-sizes")
				}
				return t("give sizes whose product is %d", "给出乘积为 %d 的大小").With(c.CP)
			},
		},
		{
			id: "a2a-p2p-needs-hierarchy", flags: "--cp-comm-type --hierarchical-context-parallel-sizes", source: inArgs + "584",
			when: t("--cp-comm-type a2a+p2p (even where CP is 1)", "--cp-comm-type a2a+p2p（CP 为 1 时也一样）"),
			must: t("--hierarchical-context-parallel-sizes must be given", "必须给出 --hierarchical-context-parallel-sizes"),
			why:  t("all-to-all runs on the inner level and point-to-point on the outer one; Megatron must know both", "内层用 all-to-all、外层用点对点，Megatron 需要知道两级大小"),
			do:   t("give the two sizes, or use --cp-comm-type p2p", "给出两级大小，或改用 --cp-comm-type p2p"),
			broken: func(c *cfg) bool {
				return slices.Contains(c.CpCommType, "a2a+p2p") && c.HierarchicalContextParallelSizes == nil
			},
		},
		{
			id: "expert-weight-shards-at-least-etp", flags: "--expert-tensor-parallel-num-weight-shards --expert-tensor-parallel-size", source: inParallel + "32", at: 1506,
			when:   t("--expert-tensor-parallel-num-weight-shards S", ""),
			must:   t("S must be at least ETP", "S 必须不小于 ETP"),
			why:    t("expert weights are cut by expert tensor parallelism first", "专家权重首先被专家张量并行切开"),
			do:     t("leave the flag out, or give a multiple of ETP", "去掉该参数，或改成 ETP 的倍数"),
			broken: func(c *cfg) bool { s := c.ExpertTensorParallelNumWeightShards; return s.OK && s.V < c.ETP },
		},
		{
			id: "expert-weight-shards-multiple-of-etp", flags: "--expert-tensor-parallel-num-weight-shards --expert-tensor-parallel-size", source: inParallel + "37", at: 1507,
			when: t("--expert-tensor-parallel-num-weight-shards S", ""),
			must: t("S must be a multiple of ETP", "S 必须是 ETP 的整数倍"),
			why:  t("each expert shard is cut into equally many pieces", "每个专家分片会被再等分"),
			do:   t("give a multiple of ETP", "改成 ETP 的倍数"),
			broken: func(c *cfg) bool {
				s := c.ExpertTensorParallelNumWeightShards
				return s.OK && s.V >= c.ETP && !multiple(s.V, c.ETP)
			},
		},
		{
			id: "weight-shards-fp4-param-gather", flags: "--fp4-param-gather --fp4-format --tensor-parallel-num-weight-shards", source: inArgs + "1517", effect: ChangesExperiment,
			when:   t("weight shards above TP and --fp4-format", "权重分片数大于 TP 且使用 --fp4-format"),
			must:   t("--fp4-param-gather must be given", "必须加 --fp4-param-gather"),
			why:    t("the weights are gathered as native NVFP4; there is no other copy", "权重以原生 NVFP4 聚合，没有别的副本"),
			do:     t("add --fp4-param-gather", "加上 --fp4-param-gather"),
			broken: func(c *cfg) bool { return gtp(c) && c.Fp4.OK && !c.Fp4ParamGather },
		},
		{
			id: "weight-shards-graph-priority", flags: "CUDA_GRAPHS_USE_NODE_PRIORITY --tensor-parallel-num-weight-shards --cuda-graph-impl", source: inArgs + "1541",
			when: t("weight shards above TP, Blackwell or newer, CUDA graphs on", "权重分片数大于 TP、Blackwell 及以后架构、启用 CUDA graph"),
			must: t("CUDA_GRAPHS_USE_NODE_PRIORITY must be 1 in the environment", "环境变量 CUDA_GRAPHS_USE_NODE_PRIORITY 必须为 1"),
			why:  t("the gathers only overlap with the GEMMs when graph nodes keep their priority", "只有图节点保留优先级，权重聚合才能与 GEMM 重叠"),
			do:   t("export CUDA_GRAPHS_USE_NODE_PRIORITY=1", "export CUDA_GRAPHS_USE_NODE_PRIORITY=1"),
			broken: func(c *cfg) bool {
				return gtp(c) && c.Arch >= 10 && c.CudaGraphImpl != "none" && env(c, "CUDA_GRAPHS_USE_NODE_PRIORITY") != "1"
			},
		},
		{
			id: "weight-shards-no-ddp-average", flags: "--ddp-average-in-collective --tensor-parallel-num-weight-shards", source: inArgs + "1553",
			when:   t("weight shards above TP", "权重分片数大于 TP"),
			must:   t("--ddp-average-in-collective must be off", "不能使用 --ddp-average-in-collective"),
			why:    t("averaging inside the collective would scale each buffer wrongly", "在集合通信里取平均会让各缓冲区的缩放出错"),
			do:     t("drop --ddp-average-in-collective", "去掉 --ddp-average-in-collective"),
			broken: func(c *cfg) bool { return gtp(c) && c.DdpAverageInCollective },
		},
		{
			id: "weight-shards-ckpt-format", flags: "--ckpt-format --tensor-parallel-num-weight-shards", source: inArgs + "1558",
			when:   t("weight shards above TP (or ETP)", "权重分片数大于 TP（或 ETP）"),
			must:   t("--ckpt-format must be torch or torch_dist", "--ckpt-format 必须是 torch 或 torch_dist"),
			why:    t("the other formats do not support the extra shard axis", "其他格式不认识这一额外的分片维度"),
			do:     t("use --ckpt-format torch_dist", "改用 --ckpt-format torch_dist"),
			broken: func(c *cfg) bool { return gtp(c) && c.CkptFormat != "torch" && c.CkptFormat != "torch_dist" },
		},
		{
			id: "weight-shards-reshardable", flags: "--distrib-optim-fully-reshardable-mem-efficient --dist-ckpt-optim-fully-reshardable", source: inArgs + "1562",
			when: t("weight shards above TP and --dist-ckpt-optim-fully-reshardable", "权重分片数大于 TP 且使用 --dist-ckpt-optim-fully-reshardable"),
			must: t("--distrib-optim-fully-reshardable-mem-efficient must be off", "不能使用 --distrib-optim-fully-reshardable-mem-efficient"),
			why:  t("the memory-saving way of saving is not written for the extra shard axis", "省内存的保存方式不支持额外的分片维度"),
			do:   t("drop --distrib-optim-fully-reshardable-mem-efficient", "去掉 --distrib-optim-fully-reshardable-mem-efficient"),
			broken: func(c *cfg) bool {
				return gtp(c) && c.DistCkptOptimFullyReshardable && c.DistribOptimFullyReshardableMemEfficient
			},
		},
		{
			id: "weight-shards-mxfp8-gather", flags: "--fp8-param-gather --fp8-recipe --tensor-parallel-num-weight-shards", source: inArgs + "1576", effect: ChangesExperiment,
			when:   t("weight shards above TP and --fp8-recipe mxfp8", "权重分片数大于 TP 且 --fp8-recipe mxfp8"),
			must:   t("--fp8-param-gather must be given", "必须加 --fp8-param-gather"),
			why:    t("no bf16 weight is kept, so the fp8 shard is the one that the optimizer updates", "不保留 bf16 权重，优化器更新的就是 fp8 分片"),
			do:     t("add --fp8-param-gather", "加上 --fp8-param-gather"),
			broken: func(c *cfg) bool { return gtp(c) && c.Fp8Recipe == "mxfp8" && !c.Fp8ParamGather },
		},
		{
			id: "weight-shards-mxfp8-buffer", flags: "--reuse-grad-buf-for-mxfp8-param-ag --fp8-recipe --tensor-parallel-num-weight-shards", source: inArgs + "1583",
			when:   t("weight shards above TP and --fp8-recipe mxfp8", "权重分片数大于 TP 且 --fp8-recipe mxfp8"),
			must:   t("--reuse-grad-buf-for-mxfp8-param-ag must be given", "必须加 --reuse-grad-buf-for-mxfp8-param-ag"),
			why:    t("MXFP8 parameters cannot live in the contiguous parameter buffer", "MXFP8 参数无法映射到连续参数缓冲区"),
			do:     t("add --reuse-grad-buf-for-mxfp8-param-ag", "加上 --reuse-grad-buf-for-mxfp8-param-ag"),
			broken: func(c *cfg) bool { return gtp(c) && c.Fp8Recipe == "mxfp8" && !c.ReuseGradBufForMxfp8ParamAg },
		},
		{
			id: "weight-shards-symmetric-registration", flags: "--disable-symmetric-registration --gtp-remat-nccl-ub --gtp-expert-remat-nccl-ub", source: inArgs + "1592",
			when: t("weight shards above TP with --gtp-remat-nccl-ub or --gtp-expert-remat-nccl-ub", "权重分片数大于 TP 且使用 --gtp-remat-nccl-ub 或 --gtp-expert-remat-nccl-ub"),
			must: t("--disable-symmetric-registration must not be given", "不能使用 --disable-symmetric-registration"),
			why:  t("the user buffers are registered as symmetric windows", "用户缓冲区要以对称窗口注册"),
			do:   t("drop --disable-symmetric-registration", "去掉 --disable-symmetric-registration"),
			broken: func(c *cfg) bool {
				return gtp(c) && (c.GtpRematNcclUb || c.GtpExpertRematNcclUb) && c.DisableSymmetricRegistration
			},
		},
		{
			id: "sharp-group-needs-sharp", flags: "--sharp-enabled-group --use-sharp", source: inState + "789",
			when:   t("--sharp-enabled-group", ""),
			must:   t("--use-sharp must be given", "必须加 --use-sharp"),
			why:    t("a group for SHARP means nothing while SHARP is off", "没有启用 SHARP，指定 SHARP 组没有意义"),
			do:     t("add --use-sharp, or drop --sharp-enabled-group", "加上 --use-sharp，或去掉 --sharp-enabled-group"),
			broken: func(c *cfg) bool { return !c.UseSharp && c.SharpEnabledGroup.OK },
		},
		{
			id: "sharp-replica-only", flags: "--use-sharp --sharp-enabled-group", source: inState + "1806",
			when:   t("--use-sharp", ""),
			must:   t("--sharp-enabled-group must be dp_replica", "--sharp-enabled-group 必须为 dp_replica"),
			why:    t("since 0.19 the SHARP set-up of the group dp asks for a process group that is made only later", "自 0.19 起，dp 组的 SHARP 准备步骤要用到之后才创建的进程组"),
			do:     t("drop --use-sharp, or give --sharp-enabled-group dp_replica with 2 or more --num-distributed-optimizer-instances", "去掉 --use-sharp，或使用 --sharp-enabled-group dp_replica 且 --num-distributed-optimizer-instances 不小于 2"),
			broken: func(c *cfg) bool { return c.UseSharp && c.SharpEnabledGroup.V != "dp_replica" },
		},
		{
			id: "sharp-replica-needs-instances", flags: "--sharp-enabled-group --num-distributed-optimizer-instances", source: inState + "785",
			when: t("--use-sharp --sharp-enabled-group dp_replica", ""),
			must: t("--num-distributed-optimizer-instances must be above 1", "--num-distributed-optimizer-instances 必须大于 1"),
			why:  t("with one optimizer instance there is no replica group", "只有一个优化器实例时不存在副本组"),
			do:   t("give 2 or more instances, or drop --use-sharp", "实例数设为不小于 2，或去掉 --use-sharp"),
			broken: func(c *cfg) bool {
				return c.UseSharp && c.SharpEnabledGroup.V == "dp_replica" && c.NumDistributedOptimizerInstances <= 1
			},
		},
		{
			id: "weight-shards-one-instance", flags: "--num-distributed-optimizer-instances --tensor-parallel-num-weight-shards", source: inState + "808",
			when:   t("weight shards above TP", "权重分片数大于 TP"),
			must:   t("--num-distributed-optimizer-instances must be 1", "--num-distributed-optimizer-instances 必须为 1"),
			why:    t("splitting the optimizer into instances does not support the extra shard axis yet", "优化器分实例尚不支持额外的分片维度"),
			do:     t("drop --num-distributed-optimizer-instances", "去掉 --num-distributed-optimizer-instances"),
			broken: func(c *cfg) bool { return gtp(c) && c.NumDistributedOptimizerInstances > 1 },
		},
		{
			id: "world-multiple-of-expert-size", flags: "--expert-tensor-parallel-size " + epFlag + " " + ppFlag + " WORLD_SIZE", source: inState + "882",
			when:   t("always, dense models too", "任何情况，稠密模型也一样"),
			must:   t("WORLD_SIZE must be a multiple of ETP × EP × PP, where ETP is TP unless given", "WORLD_SIZE 必须是 ETP × EP × PP 的整数倍，ETP 不给时等于 TP"),
			why:    t("the expert layers have a rank grid of their own, and ETP defaults to TP", "专家层有自己的 rank 网格，而 ETP 默认等于 TP"),
			do:     t("give --expert-tensor-parallel-size 1, or a smaller EP", "加 --expert-tensor-parallel-size 1，或减小 EP"),
			broken: func(c *cfg) bool { return min(c.ETP, c.EP, c.PP) > 0 && !multiple(c.World, c.ETP*c.EP*c.PP*c.EGTP) },
			fix:    fixExpertGrid, after: "world-multiple-of-model-size",
		},
		{
			id: "tp-pp-dp-mapping-same-dp", flags: "--use-tp-pp-dp-mapping " + epFlag + " --expert-tensor-parallel-size " + ppFlag, source: inState + "898",
			when:   t("--use-tp-pp-dp-mapping and PP > 1", "--use-tp-pp-dp-mapping 且 PP > 1"),
			must:   t("the data-parallel size of the dense and of the expert layers must be the same", "稠密层与专家层的数据并行大小必须相同"),
			why:    t("with the pipeline inside the data-parallel order both grids must lay the stages on the same ranks", "流水线排在数据并行之内时，两套网格必须把各级放在同样的 rank 上"),
			do:     t("drop --use-tp-pp-dp-mapping, or choose ETP × EP = TP × CP", "去掉 --use-tp-pp-dp-mapping，或让 ETP × EP = TP × CP"),
			broken: func(c *cfg) bool { return c.UseTpPpDpMapping && c.PP > 1 && c.EDP != c.DP },
			after:  "world-multiple-of-expert-size",
		},
		{
			id: "pipeline-groups-same", flags: epFlag + " --expert-tensor-parallel-size " + cpFlag, source: inState + "904",
			when: t("--use-tp-pp-dp-mapping and PP > 1", "--use-tp-pp-dp-mapping 且 PP > 1"),
			must: t("dense and expert layers must have the same pipeline groups", "稠密层与专家层的流水线组必须一致"),
			why:  t("a rank is in one pipeline stage only", "一个 rank 只能属于一个流水级"),
			do:   t("choose ETP × EP = TP × CP", "让 ETP × EP = TP × CP"),
			broken: func(c *cfg) bool {
				return c.UseTpPpDpMapping && c.PP > 1 && c.EDP == c.DP && c.TP*c.GTP*c.CP != c.ETP*c.EP*c.EGTP
			},
		},
		{
			id: "optimizer-instances-divide-dp", flags: "--num-distributed-optimizer-instances DP " + cpFlag, source: inState + "922",
			when:   t("--num-distributed-optimizer-instances N", ""),
			must:   t("DP × CP must be a multiple of N", "DP × CP 必须是 N 的整数倍"),
			why:    t("each instance takes an equal part of the data-parallel ranks", "每个实例平分数据并行的 rank"),
			do:     t("give a divisor of DP × CP", "改成 DP × CP 的约数"),
			broken: func(c *cfg) bool { return c.DP > 0 && !multiple(c.DP*c.CP, c.NumDistributedOptimizerInstances) },
			fix: func(c *cfg) lang.Text {
				return t("give one of %s (the divisors of DP × CP = %d)", "取 %s 之一（DP × CP = %d 的约数）").With(divisors(c.DP*c.CP), c.DP*c.CP)
			},
		},
		{
			id: "hybrid-cp-even-ranks", flags: "--hybrid-context-parallel DP " + cpFlag, source: inState + "1043",
			when:   t("--hybrid-context-parallel", ""),
			must:   t("DP × CP must be even", "DP × CP 必须是偶数"),
			why:    t("the hybrid groups halve the data-parallel ranks again and again", "混合分组会反复对半划分数据并行 rank"),
			do:     t("use an even number of data-parallel ranks", "使用偶数个数据并行 rank"),
			broken: func(c *cfg) bool { return c.HybridContextParallel && c.DP > 0 && (c.DP*c.CP)%2 != 0 },
		},
		{
			id: "optimizer-instances-divide-expert-dp", flags: "--num-distributed-optimizer-instances " + epFlag, source: inState + "1447",
			when:   t("--num-distributed-optimizer-instances N, dense models too", "--num-distributed-optimizer-instances N，稠密模型也一样"),
			must:   t("the expert data-parallel size must be a multiple of N", "专家数据并行大小必须是 N 的整数倍"),
			why:    t("the expert layers are sharded into the same instances", "专家层按同样的实例分片"),
			do:     t("give a divisor of WORLD_SIZE / (ETP × EP × PP)", "改成 WORLD_SIZE / (ETP × EP × PP) 的约数"),
			broken: func(c *cfg) bool { return c.EDP > 0 && !multiple(c.EDP, c.NumDistributedOptimizerInstances) },
			fix: func(c *cfg) lang.Text {
				return t("give one of %s (the expert data-parallel size is %d)", "取 %s 之一（专家数据并行大小为 %d）").With(divisors(c.EDP), c.EDP)
			}, after: "optimizer-instances-divide-dp",
		},
		{
			id: "seed-positive", flags: "--seed", source: inInit + "484", effect: ChangesExperiment,
			when:   t("always", "任何情况"),
			must:   t("--seed must be above 0", "--seed 必须大于 0"),
			why:    t("found only after the process groups are up; 0 is not accepted as a seed", "要等通信组建立后才发现；0 不是合法种子"),
			do:     t("give --seed 1234 (the default), or any positive number", "改成 --seed 1234（默认值）或任意正整数"),
			broken: func(c *cfg) bool { return c.Seed <= 0 },
		},
	})
}

// gtp reports whether weights are sharded beyond the tensor-parallel sizes.
func gtp(c *cfg) bool { return c.GTP > 1 || c.EGTP > 1 }

// env returns the value of an environment variable; empty where it is unset.
func env(c *cfg, name string) string {
	v, _ := c.Env(name)
	return v
}

func product(sizes []int) int {
	p := 1
	for _, s := range sizes {
		p *= s
	}
	return p
}

// largest limits the search for fixes. A command line may contain any number, but
// no real job has a larger size.
const largest = 1 << 14

// divisors lists up to twelve divisors of n, the smallest first.
func divisors(n int) string {
	var list []string
	for d := 1; d <= min(n, largest) && len(list) < 12; d++ {
		if n%d == 0 {
			list = append(list, fmt.Sprint(d))
		}
	}
	return strings.Join(list, ", ")
}

// fixWorld proposes the nearest valid GPU counts, and a smaller PP, TP or CP where one
// fits.
func fixWorld(c *cfg) lang.Text {
	size := c.TP * c.PP * c.CP * c.GTP
	if max(c.TP, c.PP, c.CP, c.GTP) > largest || size <= 0 {
		return lang.Text{}
	}
	below, above := c.World/size*size, (c.World/size+1)*size
	counts := fmt.Sprint(above)
	if below > 0 {
		counts = fmt.Sprintf("%d / %d", below, above)
	}
	en := fmt.Sprintf("TP × PP × CP = %d: use %s GPUs", size, counts)
	zh := fmt.Sprintf("TP × PP × CP = %d：改用 %s 张 GPU", size, counts)
	for pp := min(c.PP, largest) - 1; pp > 0; pp-- {
		if multiple(c.World, c.TP*pp*c.CP*c.GTP) && multiple(c.Layers, pp) {
			return t(fmt.Sprintf("%s, or PP %d", en, pp), fmt.Sprintf("%s，或 PP %d", zh, pp))
		}
	}
	for tp := min(c.TP, largest) - 1; tp > 0; tp-- {
		if multiple(c.World, tp*c.PP*c.CP) && multiple(c.NumAttentionHeads.Or(0), tp) {
			return t(fmt.Sprintf("%s, or TP %d", en, tp), fmt.Sprintf("%s，或 TP %d", zh, tp))
		}
	}
	if cp := smallerCP(c); cp > 0 {
		return t(fmt.Sprintf("%s, or CP %d", en, cp), fmt.Sprintf("%s，或 CP %d", zh, cp))
	}
	return t(en, zh)
}

// fixExpertGrid proposes ETP 1, else a smaller EP, else a multiple of GPUs.
func fixExpertGrid(c *cfg) lang.Text {
	if c.ETP > 1 && multiple(c.World, c.EP*c.PP*c.EGTP) {
		return t("add --expert-tensor-parallel-size 1: then EP %d × PP %d divides %d GPUs", "加 --expert-tensor-parallel-size 1：EP %d × PP %d 即可整除 %d 张 GPU").With(c.EP, c.PP, c.World)
	}
	for ep := min(c.EP, largest) - 1; ep > 0; ep-- {
		if multiple(c.World, c.ETP*ep*c.PP*c.EGTP) && (c.Experts == 0 || multiple(c.Experts, ep)) {
			return t("use EP %d: ETP %d × EP %d × PP %d divides %d GPUs", "改用 EP %d：ETP %d × EP %d × PP %d 可整除 %d 张 GPU").With(ep, c.ETP, ep, c.PP, c.World)
		}
	}
	size := c.ETP * c.EP * c.PP * c.EGTP
	return t("use a multiple of %d GPUs", "GPU 数改为 %d 的倍数").With(size)
}
