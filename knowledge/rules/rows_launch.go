package rules

import "strings"

// launchRows are what the documents add to Megatron's own checks, as far as a
// command line and its environment show it.
func launchRows() []row {
	const docs = "skill run-on-slurm"
	return topics("launch", []row{
		{
			id: "half-precision", flags: "--bf16 --fp16", source: docs, severity: Warning, effect: ChangesExperiment,
			when: t("training", "训练"), must: t("--bf16 (or --fp16) should be given", "宜使用 --bf16（或 --fp16）"),
			why: t("in fp32 the tensor cores stay nearly idle and memory doubles", "fp32 下张量核心几乎闲置，显存翻倍"), do: t("add --bf16 on Ampere or newer", "Ampere 及以后加 --bf16"),
			broken: func(c *cfg) bool { return c.Trains() && !c.Bf16 && !c.Fp16 },
		},
		{
			id: "nccl-timeout-does-not-exist", flags: "NCCL_TIMEOUT --distributed-timeout-minutes", source: "NCCL environment variables: no such name", severity: Warning,
			when: t("NCCL_TIMEOUT in the environment", "环境中有 NCCL_TIMEOUT"), must: t("NCCL_TIMEOUT has no effect: NCCL has no such variable", "NCCL_TIMEOUT 不起作用：NCCL 没有这个变量"),
			why: t("the time-out belongs to PyTorch's process groups", "超时属于 PyTorch 的进程组"), do: t("use --distributed-timeout-minutes", "改用 --distributed-timeout-minutes"),
			broken: func(c *cfg) bool { _, ok := c.Env("NCCL_TIMEOUT"); return ok },
		},
		{
			id: "nccl-interface-loopback", flags: "NCCL_SOCKET_IFNAME", source: docs, severity: Warning,
			when: t("more than one node's worth of GPUs", "GPU 数超过一个节点"), must: t("NCCL_SOCKET_IFNAME should not be lo", "NCCL_SOCKET_IFNAME 不宜为 lo"),
			why: t("the loopback interface reaches no other node", "回环网卡到不了其他节点"), do: t("name the cluster's interface, or unset it", "写集群网卡名，或取消设置"),
			broken: func(c *cfg) bool { return c.World > 8 && strings.TrimPrefix(env(c, "NCCL_SOCKET_IFNAME"), "=") == "lo" },
		},
		{
			id: "world-size-from-slurm-ntasks", flags: "WORLD_SIZE", source: docs, severity: Warning,
			when: t("WORLD_SIZE in the environment", "环境中有 WORLD_SIZE"), must: t("WORLD_SIZE should be the number of GPUs, not of tasks", "WORLD_SIZE 应为 GPU 数而不是任务数"),
			why: t("with one task per node SLURM_NTASKS is the number of nodes", "每节点一个任务时 SLURM_NTASKS 只是节点数"), do: t("export WORLD_SIZE=$((NNODES * GPUS_PER_NODE))", "export WORLD_SIZE=$((NNODES * GPUS_PER_NODE))"),
			broken: func(c *cfg) bool {
				w, n := env(c, "WORLD_SIZE"), env(c, "SLURM_NTASKS")
				return w != "" && w == n && w == env(c, "SLURM_NNODES") && w != "1"
			},
		},
		{
			id: "tp-within-node", flags: tpFlag, source: docs, severity: Warning,
			when: t("TP above 8", "TP 大于 8"), must: t("TP should stay within a node", "TP 宜限制在一个节点内"),
			why: t("tensor parallelism communicates in every layer and needs NVLink", "张量并行每层都要通信，需要 NVLink"), do: t("use TP 8 and a larger PP", "改用 TP 8 并增大 PP"),
			broken: func(c *cfg) bool { return c.TP > 8 && c.Arch < 10 },
		},
	})
}
