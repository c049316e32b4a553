package rules

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// launchRows are rules that documents add to Megatron's own checks.
func launchRows() []row {
	const docs = "skill run-on-slurm"
	// seen returns a row about the script or the machine, which a command line does
	// not show: lint checks it in a script, plan in a specification.
	seen := func(id, fields string, when, must, why, do lang.Text) row {
		return row{id: id, flags: fields, source: docs, when: when, must: must, why: why, do: do, broken: elsewhere}
	}
	advised := func(r row) row {
		r.severity = Warning
		return r
	}
	always := t("always", "任何情况")
	several := t("several nodes", "多个节点")
	return topics("launch", []row{
		seen("worktree-shared", "worktree", several, t("the worktree must lie on a file system that every node sees, and the script must cd into it before srun", "工作树必须在所有节点都能访问的文件系统上，脚本须在 srun 之前 cd 进去"),
			t("otherwise a node imports another copy of the code, or none", "否则某个节点会导入另一份代码，或根本导入不了"), t("use a path on NFS, Lustre or the like", "使用 NFS、Lustre 等共享路径")),
		seen("one-task-per-node", "nodes", always, t("there must be one task on each node", "每个节点必须只有一个任务"),
			t("the launcher forks a process for each GPU itself: N tasks make N × N workers", "启动器会为每张 GPU 派生进程：N 个任务会变成 N × N 个进程"), t("--ntasks-per-node=1", "--ntasks-per-node=1")),
		advised(seen("no-bare-torchrun", "launcher", always, t("training should be started as uv run python -m torch.distributed.run, not as bare torchrun", "应以 uv run python -m torch.distributed.run 启动，而不是裸 torchrun"),
			t("a torchrun on the PATH may belong to a Python that does not see the worktree's .venv", "PATH 上的 torchrun 可能属于另一个看不到工作树 .venv 的 Python"), t("write uv run python -m torch.distributed.run", "改写为 uv run python -m torch.distributed.run"))),
		seen("nnodes-match-allocation", "nodes", always, t("--nnodes must equal the nodes of the allocation", "--nnodes 必须等于分配的节点数"),
			t("the rendezvous waits for nodes that never come, or leaves some out", "会合会等待永远不来的节点，或漏掉一些"), t("NNODES=$SLURM_NNODES", "NNODES=$SLURM_NNODES")),
		seen("nproc-match-gpus", "gpus_per_node", always, t("--nproc-per-node must equal the GPUs on a node", "--nproc-per-node 必须等于每节点的 GPU 数"),
			t("more workers than GPUs end in invalid device ordinal, fewer leave GPUs idle", "进程多于 GPU 会报 invalid device ordinal，少于则有 GPU 闲置"), t("use the same number for both", "两处使用同一个数")),
		advised(around("gpu-kind-known", "gpu", "NVIDIA's data sheets", t("gpu is given", "给出了 gpu"), t("the kind of GPU should be one that is known here", "GPU 型号宜为已知型号"),
			t("rules, memory and speed depend on it; another kind is judged as Hopper", "规则、显存与速度都取决于它；未知型号按 Hopper 判断"), t("gpu: a kind such as h100, b200 or gb200", "gpu：型号如 h100、b200 或 gb200"))),
		seen("world-size-counts-gpus", "WORLD_SIZE", always, t("WORLD_SIZE must be nodes × GPUs per node, never SLURM_NTASKS", "WORLD_SIZE 必须是节点数 × 每节点 GPU 数，绝不是 SLURM_NTASKS"),
			t("with one task per node SLURM_NTASKS is the number of nodes", "每节点一个任务时 SLURM_NTASKS 只是节点数"), t("WORLD_SIZE=$((NNODES * GPUS_PER_NODE))", "WORLD_SIZE=$((NNODES * GPUS_PER_NODE))")),
		seen("rank-evaluated-on-node", "SLURM_NODEID", several, t("rank variables must be expanded on each node, not in the batch script", "rank 变量必须在各节点上展开，而不是在批处理脚本里"),
			t("in the batch script SLURM_NODEID is 0, so every node believes that it is the first", "在批处理脚本里 SLURM_NODEID 为 0，每个节点都以为自己是第一个"), t("single quotes under srun bash -c", "在 srun bash -c 后用单引号")),
		seen("environment-synced", "venv", always, t("uv sync must have been run, and every node must see .venv", "必须先执行过 uv sync，且所有节点都能看到 .venv"),
			t("otherwise every job builds it again on GPU time, or all nodes write it at once", "否则每个作业都会占用 GPU 时间重建，或各节点同时写入"), t("uv sync once, in the worktree, before submitting", "提交前在工作树里执行一次 uv sync")),
		seen("outputs-shared", "log_dir --save --tensorboard-dir", several, t("logs, checkpoints and TensorBoard files must lie on shared storage", "日志、检查点与 TensorBoard 文件必须放在共享存储上"),
			t("what a node writes to its own disk is lost with the job, and a checkpoint is never whole", "写到节点本地盘的内容会随作业丢失，检查点也不完整"), t("use paths on shared storage", "使用共享存储上的路径")),
		seen("container-sees-venv", "container.mounts", t("a container", "使用容器"), t("the worktree with its .venv must be mounted", "必须挂载带 .venv 的工作树"),
			t("the container starts without the code otherwise", "否则容器里没有代码"), t("mount the worktree at the same path", "把工作树挂载到同一路径")),
		advised(seen("container-image-matches", "container.image", t("a container", "使用容器"), t("the image should carry what docker/.ngc_version.* of the worktree names", "镜像应与工作树中 docker/.ngc_version.* 所写的一致"),
			t("another PyTorch or Transformer Engine changes what is accepted and how fast it runs", "不同的 PyTorch 或 Transformer Engine 会改变可用选项与速度"), t("use the named image", "使用所写的镜像"))),
		seen("cpus-fit-node", "cpus_per_task", always, t("CPUs per task must not exceed a node's CPUs (its cores with nomultithread)", "每任务 CPU 数不得超过节点 CPU 数（nomultithread 时为核数）"),
			t("Slurm refuses the job, or it waits for ever", "Slurm 会拒绝作业，或一直排队"), t("lower cpus_per_task", "减小 cpus_per_task")),
		seen("own-script-agrees", "args", t("a script that is not Megatron's", "非 Megatron 的脚本"), t("a literal world size or tcp:// address must agree with the job", "写死的 world size 或 tcp:// 地址必须与作业一致"),
			t("the ranks wait for others that never come", "rank 会一直等待不存在的同伴"), t("take both from the environment", "两者都从环境变量取得")),
		seen("signal-saves", "signal kill_switch --save", t("signal or kill_switch", "signal 或 kill_switch"), t("--save must be given", "必须给 --save"),
			t("Megatron writes a checkpoint on the signal only where it has a folder for it", "只有给了目录，Megatron 才会在收到信号时写检查点"),
			t("add --save FOLDER, or drop signal and kill_switch: scancel ends a job too", "加上 --save 目录，或去掉 signal 与 kill_switch：scancel 也能结束作业")),
		seen("signal-heard", "signal kill_switch --exit-signal", t("signal or kill_switch", "signal 或 kill_switch"), t("the ranks must be sent the signal on which Megatron saves", "发给各 rank 的必须是 Megatron 会保存的那个信号"),
			t("another signal ends the ranks at once", "其他信号会让各 rank 立即结束"),
			t("name the same signal in signal and --exit-signal; up to 0.15 that is TERM, as in signal: TERM@300", "signal 与 --exit-signal 写同一个信号；0.15 及以前只能是 TERM，例如 signal: TERM@300")),
		seen("arguments-not-expanded", "args", always, t("paths in arguments must be written out", "参数中的路径必须写完整"),
			t("the script quotes every argument, so that ~ and $HOME would name a folder of that name", "脚本会给每个参数加引号，~ 与 $HOME 会成为同名的目录"),
			t("write the path out, such as /home/alice/checkpoints", "把路径写完整，例如 /home/alice/checkpoints")),
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
