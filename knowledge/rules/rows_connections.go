package rules

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

const connections = "CUDA_DEVICE_MAX_CONNECTIONS"

// Unset is the result of Connections where the variable should not be set.
const Unset = "unset"

// Connections returns the recommended value of CUDA_DEVICE_MAX_CONNECTIONS ("1",
// "32" or "unset") and the reason. arch is the compute capability's major number.
func Connections(arch, tp, cp int, torchFSDP2, megatronFSDP, moeOverlap bool) (value string, reason lang.Text) {
	switch {
	case moeOverlap:
		return "32", t("--overlap-moe-expert-parallel-comm runs the expert all-to-all beside the computation and needs many hardware queues; Megatron accepts any value here",
			"--overlap-moe-expert-parallel-comm 让专家 all-to-all 与计算并行，需要较多硬件队列；此时 Megatron 接受任意取值")
	case torchFSDP2 || megatronFSDP:
		return Unset, t("FSDP overlaps its gathers with the computation: a single queue would serialise them, and Megatron refuses the value 1",
			"FSDP 要让参数聚合与计算重叠：只有一条队列会把它们串行化，且 Megatron 拒绝取值 1")
	case arch >= 10:
		return Unset, t("Blackwell and newer no longer need it; setting it does no harm", "Blackwell 及以后的架构不再需要它；设置了也无害")
	case tp > 1 || cp > 1:
		return "1", t("on Ampere and Hopper, tensor and context parallelism rely on kernels starting in the order of launch; Megatron refuses to start without exactly 1",
			"在 Ampere 与 Hopper 上，张量并行与上下文并行依赖内核按发射顺序启动；不等于 1 时 Megatron 拒绝启动")
	}
	return Unset, t("neither tensor nor context parallelism: nothing depends on the order of kernel launches", "没有张量并行也没有上下文并行，不依赖内核的发射顺序")
}

func recommendedConnections(c *cfg) (string, lang.Text) {
	return Connections(c.Arch, c.TP, c.CP, c.UseTorchFsdp2, c.UseMegatronFsdp, c.OverlapMoeExpertParallelComm)
}

// needsOne reports whether Megatron requires the value 1.
func needsOne(c *cfg) bool {
	return (c.TP > 1 || c.CP > 1) && c.Arch < 10
}

func connectionRows() []row {
	fsdpWhy := t("the gathers of FSDP must run beside the computation; one hardware queue would serialise them", "FSDP 的参数聚合要与计算并行，只有一条硬件队列会把它们串行化")
	fsdpDo := t("unset "+connections+" (or give 8 or 32)", "取消设置 "+connections+"（或设为 8、32）")
	return topics(connections, []row{
		{
			id: "connections-torch-fsdp2", flags: connections + " --use-torch-fsdp2", source: inArgs + "1048",
			when: t("--use-torch-fsdp2, on any GPU", "--use-torch-fsdp2，任何 GPU"),
			must: t(connections+" must not be 1", connections+" 不能为 1"), why: fsdpWhy, do: fsdpDo,
			broken: func(c *cfg) bool { return c.UseTorchFsdp2 && env(c, connections) == "1" },
		},
		{
			id: "connections-megatron-fsdp", flags: connections + " --use-megatron-fsdp", source: inArgs + "1166",
			when: t("--use-megatron-fsdp, on any GPU", "--use-megatron-fsdp，任何 GPU"),
			must: t(connections+" must not be 1", connections+" 不能为 1"), why: fsdpWhy, do: fsdpDo,
			broken: func(c *cfg) bool { return c.UseMegatronFsdp && env(c, connections) == "1" },
		},
		{
			id: "connections-one", flags: connections + " " + tpFlag + " " + cpFlag, source: inArgs + "1477",
			when: t("TP > 1 or CP > 1 before Blackwell, without FSDP and without --overlap-moe-expert-parallel-comm", "Blackwell 之前的架构上 TP > 1 或 CP > 1，且不用 FSDP、不用 --overlap-moe-expert-parallel-comm"),
			must: t(connections+" must be exactly 1", connections+" 必须恰好为 1"),
			why:  t("tensor and context parallelism overlap communication by the order of kernel launches, which only one hardware queue keeps", "张量并行与上下文并行依靠内核发射顺序来重叠通信，只有单一硬件队列才能保证顺序"),
			do:   t("export "+connections+"=1", "export "+connections+"=1"),
			broken: func(c *cfg) bool {
				return needsOne(c) && !c.UseTorchFsdp2 && !c.UseMegatronFsdp && !c.OverlapMoeExpertParallelComm && env(c, connections) != "1"
			},
		},
		{
			id: "connections-fsdp-with-tp", flags: connections + " --use-megatron-fsdp --use-torch-fsdp2 " + tpFlag, source: inArgs + "1460", severity: Warning,
			when:   t("FSDP with TP > 1 or CP > 1 before Blackwell", "Blackwell 之前的架构上 FSDP 与 TP > 1 或 CP > 1 同用"),
			must:   t("FSDP and TP/CP should not be used together before Blackwell", "Blackwell 之前不宜把 FSDP 与 TP/CP 一起用"),
			why:    t("one wants a single hardware queue and the other wants several; a job cannot have both", "一个需要单队列，另一个需要多队列，无法两全"),
			do:     t("use TP 1 and CP 1 with FSDP, or the distributed optimizer with TP", "用 FSDP 时取 TP 1、CP 1，或改用分布式优化器加 TP"),
			broken: func(c *cfg) bool { return needsOne(c) && (c.UseTorchFsdp2 || c.UseMegatronFsdp) },
		},
		{
			id: "connections-moe-overlap-with-tp", flags: connections + " --overlap-moe-expert-parallel-comm " + tpFlag, source: inArgs + "1468", severity: Warning,
			when: t("--overlap-moe-expert-parallel-comm with TP > 1 or CP > 1 before Blackwell", "Blackwell 之前的架构上 --overlap-moe-expert-parallel-comm 与 TP > 1 或 CP > 1 同用"),
			must: t("expert overlap and TP/CP want different queues: choose 32 for the overlap, 1 for TP", "专家通信重叠与 TP/CP 对队列数的要求相反：偏向重叠取 32，偏向 TP 取 1"),
			why:  t("Megatron only warns; which of the two loses is your choice", "Megatron 只警告，由你决定牺牲哪一个"),
			do:   t("export "+connections+"=32", "export "+connections+"=32"),
			broken: func(c *cfg) bool {
				return needsOne(c) && c.OverlapMoeExpertParallelComm && !c.UseTorchFsdp2 && !c.UseMegatronFsdp
			},
		},
		{
			id: "connections-moe-overlap", flags: connections + " --overlap-moe-expert-parallel-comm", source: "CUDA_DEVICE_MAX_CONNECTIONS matrix", severity: Warning,
			when: t("--overlap-moe-expert-parallel-comm", ""),
			must: t(connections+" should be 32", connections+" 宜为 32"),
			why:  t("with few hardware queues the all-to-all waits behind the computation that it should hide behind", "硬件队列太少时，all-to-all 会排在本应与之重叠的计算后面"),
			do:   t("export "+connections+"=32", "export "+connections+"=32"),
			broken: func(c *cfg) bool {
				return c.OverlapMoeExpertParallelComm && env(c, connections) != "32" && !needsOne(c)
			},
		},
	})
}
