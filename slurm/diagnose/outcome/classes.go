// Package outcome holds the classes of outcomes of a job. For each failure it says who can act, whether
// a retry is worth it, and the first remedies.
package outcome

import "github.com/megatron-ops/megatron-ops/internal/lang"

// A Retry says whether the same job, unchanged, is worth running again.
type Retry string

// The values of Retry.
const (
	RetryNo        Retry = "no"
	RetryYes       Retry = "yes"
	RetryOnce      Retry = "once"      // worth one more try
	RetryElsewhere Retry = "elsewhere" // worth it if the job avoids the named node
)

// Worth reports whether the unchanged job is worth another try of any kind.
func (r Retry) Worth() bool { return r != RetryNo && r != "" }

// A Class is a kind of outcome and what is known about it in general.
type Class struct {
	ID     string
	Name   lang.Text
	Who    lang.Text // who can act
	Retry  Retry
	Advice []lang.Text // first remedies, most useful first
	Source string      // where the remedy is documented
}

// UserActs reports whether only the job's user can act: the job itself is at fault, and no node.
func (c Class) UserActs() bool { return c.Who == userConfig || c.Who == userCode }

// The ids of the classes, in the order of the table.
const (
	CUDAOOM             = "cuda_oom"
	HostOOM             = "host_oom"
	ShapeMismatch       = "shape_mismatch"
	ParallelConfig      = "parallel_config"
	MaxConnections      = "cuda_device_max_connections"
	BadArgs             = "bad_args"
	ImportError         = "import_error"
	ExtensionABI        = "extension_abi"
	EnvLaunch           = "env_launch"
	NCCLTimeout         = "nccl_timeout"
	NCCLConnection      = "nccl_connection"
	NCCLIB              = "nccl_ib"
	Rendezvous          = "rendezvous"
	PortInUse           = "port_in_use"
	NodeCountMismatch   = "node_count_mismatch"
	GPUHardware         = "gpu_hardware"
	CUDADriver          = "cuda_driver"
	CUDAIllegalAccess   = "cuda_illegal_access"
	DeviceAssert        = "device_assert"
	Segfault            = "segfault"
	ShmBusError         = "shm_bus_error"
	NaNLoss             = "nan_loss"
	DatasetMissing      = "dataset_missing"
	HFHub               = "hf_hub"
	CheckpointLoad      = "checkpoint_load"
	DiskFull            = "disk_full"
	Filesystem          = "filesystem"
	SlurmTimeLimit      = "slurm_time_limit"
	SlurmPreempted      = "slurm_preempted"
	SlurmNodeFail       = "slurm_node_fail"
	SlurmCancelled      = "slurm_cancelled"
	SlurmSubmitRejected = "slurm_submit_rejected"
	Container           = "container"
	Hang                = "hang"
	Running             = "running"
	Success             = "success"
	UserException       = "user_exception"
	UnknownExit         = "unknown_exit"
)

var (
	userConfig = lang.Text{EN: "the user: configuration", ZH: "用户：检查配置"}
	userCode   = lang.Text{EN: "the user: code", ZH: "用户：检查代码"}
	adminNode  = lang.Text{EN: "the administrators: node", ZH: "管理员：检查节点"}
	configNode = lang.Text{EN: "the user: configuration, or the administrators: node", ZH: "用户检查配置，或由管理员检查节点"}
	codeNode   = lang.Text{EN: "the user: code, or the administrators: node", ZH: "用户检查代码，或由管理员检查节点"}
	nobody     = lang.Text{EN: "nobody", ZH: "无需处理"}
	unknownWho = lang.Text{EN: "not known yet", ZH: "尚不确定"}
)

func said(en, zh string) lang.Text { return lang.Text{EN: en, ZH: zh} }

// Classes returns the table of failure classes.
func Classes() []Class { return classes }

var classes = []Class{
	{CUDAOOM, said("GPU out of memory", "GPU 显存不足"), userConfig, RetryNo, []lang.Text{
		said("Halve --micro-batch-size; the global batch size stays as it is and gradient accumulation makes up for it.", "把 --micro-batch-size 减半；全局批大小不变，由梯度累积补足。"),
		said("Recompute more activations: --recompute-granularity full --recompute-method uniform --recompute-num-layers 1.",
			"增加激活重计算：--recompute-granularity full --recompute-method uniform --recompute-num-layers 1。"),
		said("Raise tensor, pipeline or context parallelism, with --sequence-parallel when TP > 1.", "提高张量、流水线或上下文并行度，TP > 1 时加 --sequence-parallel。"),
		said("Shard the optimizer's state over the data-parallel ranks: --use-distributed-optimizer.", "用 --use-distributed-optimizer 把优化器状态分片到各数据并行 rank。"),
		said("If reserved but unallocated memory is large, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
			"若“已保留但未分配”的显存较大，设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True。"),
	}, "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"},
	{HostOOM, said("host memory exhausted", "主机内存耗尽"), userConfig, RetryNo, []lang.Text{
		said("Ask for more with --mem (or --exclusive --mem=0 for the whole node).", "用 --mem 申请更多内存（或用 --exclusive --mem=0 占用整个节点）。"),
		said("Use fewer --num-workers; keep the data index memory-mapped; do not load a full checkpoint on every rank.",
			"减少 --num-workers；数据索引保持内存映射；不要让每个 rank 都加载完整检查点。"),
	}, "sbatch(1) --mem, slurm.conf(5) JobAcctGatherParams"},
	{ShapeMismatch, said("tensor shapes disagree", "张量形状不匹配"), userCode, RetryNo, []lang.Text{
		said("Compare --seq-length, --max-position-embeddings, hidden size and heads with the data and with the TP and CP split at the frame named above.",
			"在上述堆栈处，对照数据以及 TP、CP 切分，检查 --seq-length、--max-position-embeddings、hidden size 与注意力头数。"),
	}, ""},
	{ParallelConfig, said("the parallel layout does not divide", "并行划分不能整除"), userConfig, RetryNo, []lang.Text{
		said("Change the one number that the message names; `plan` checks the whole layout before the next submission.", "修改报错信息中点名的那个数值；下次提交前先用 `plan` 检查整个并行划分。"),
	}, "megatron/training/arguments.py validate_args"},
	{MaxConnections, said("CUDA_DEVICE_MAX_CONNECTIONS is wrong", "CUDA_DEVICE_MAX_CONNECTIONS 设置有误"), userConfig, RetryNo, []lang.Text{
		said("Export CUDA_DEVICE_MAX_CONNECTIONS=1 before srun for TP or CP on Ampere and Hopper, and leave it unset (never 1) with FSDP.",
			"在 Ampere、Hopper 上使用 TP 或 CP 时，在 srun 之前 export CUDA_DEVICE_MAX_CONNECTIONS=1；使用 FSDP 时不要设置（更不能为 1）。"),
		said("With a container, pass the variable into it.", "使用容器时，要把该变量传入容器。"),
	}, "megatron/training/arguments.py validate_args"},
	{BadArgs, said("invalid command line or configuration", "命令行或配置无效"), userConfig, RetryNo, []lang.Text{
		said("Fix the argument that the message names; check this Megatron version for renamed or removed flags.", "修正报错信息中的参数；核对当前 Megatron 版本是否改名或移除了该参数。"),
	}, "megatron/training/arguments.py"},
	{ImportError, said("Python module not found", "找不到 Python 模块"), userConfig, RetryNo, []lang.Text{
		said("Run `uv sync` in the worktree that the job uses, and start Python through that environment.", "在作业所用的 worktree 中运行 `uv sync`，并用该环境启动 Python。"),
		said("Check that the job changes to the right worktree and that PYTHONPATH does not point to another checkout.",
			"检查作业是否进入了正确的 worktree，且 PYTHONPATH 没有指向别的代码目录。"),
	}, "https://docs.astral.sh/uv/"},
	{ExtensionABI, said("compiled extension does not fit", "编译扩展不兼容"), userConfig, RetryNo, []lang.Text{
		said("Rebuild Transformer Engine, flash-attn or apex against the installed torch, CUDA and Python, on the GPU architecture of the job.",
			"针对已安装的 torch、CUDA、Python 以及作业的 GPU 架构重新编译 Transformer Engine、flash-attn 或 apex。"),
	}, ""},
	{EnvLaunch, said("the launch command could not start", "启动命令无法运行"), userConfig, RetryNo, []lang.Text{
		said("What the launch names (interpreter, virtual environment, script) must exist on every node, and in the container where one is used: "+
			"put it on a file system that every node mounts, and name it by its path there.",
			"启动命令所用的解释器、虚拟环境和脚本必须在每个节点上都存在（使用容器时还须在容器内）：放在所有节点都挂载的文件系统上，并使用在那里存在的路径。"),
	}, "https://docs.astral.sh/uv/"},
	{NCCLTimeout, said("a collective timed out", "集合通信超时"), codeNode, RetryYes, []lang.Text{
		said("Look at the rank that did not join, named above if the logs show it; its last lines tell what it was doing.",
			"查看没有参与集合通信的 rank（若日志能确定，上文已指出）；它最后的输出说明它当时在做什么。"),
		said("Rerun with TORCH_FR_BUFFER_SIZE=20000 (older PyTorch: TORCH_NCCL_TRACE_BUFFER_SIZE) and TORCH_NCCL_DUMP_ON_TIMEOUT=1 to get a flight recorder dump of every rank.",
			"设置 TORCH_FR_BUFFER_SIZE=20000（旧版 PyTorch：TORCH_NCCL_TRACE_BUFFER_SIZE）与 TORCH_NCCL_DUMP_ON_TIMEOUT=1 重跑，可得到每个 rank 的 flight recorder 转储。"),
		said("Raise --distributed-timeout-minutes only for a phase that is known to be slow.", "只有确知某阶段本来就慢时，才提高 --distributed-timeout-minutes。"),
	}, "https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html"},
	{NCCLConnection, said("NCCL could not connect", "NCCL 无法建立连接"), configNode, RetryYes, []lang.Text{
		said("Set NCCL_SOCKET_IFNAME to an interface that all nodes share, and check the firewall between them.", "把 NCCL_SOCKET_IFNAME 设为所有节点共有的网卡，并检查节点间防火墙。"),
		said("Rerun with the debug-nccl preset (NCCL_DEBUG=INFO) for the peer and the interface.", "用 debug-nccl 预设（NCCL_DEBUG=INFO）重跑，以得到对端与网卡信息。"),
	}, "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"},
	{NCCLIB, said("InfiniBand or RoCE failure", "InfiniBand/RoCE 故障"), adminNode, RetryElsewhere, []lang.Text{
		said("Exclude the node whose port or queue pair failed, and give the line to the administrators.", "排除端口或队列对出错的节点，并把该行日志交给管理员。"),
		said("On RoCE check NCCL_IB_GID_INDEX and NCCL_IB_HCA; raise NCCL_IB_TIMEOUT only on a large fabric.",
			"RoCE 环境检查 NCCL_IB_GID_INDEX 与 NCCL_IB_HCA；只有大规模网络才需提高 NCCL_IB_TIMEOUT。"),
	}, "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"},
	{Rendezvous, said("rendezvous failed", "进程汇合（rendezvous）失败"), configNode, RetryYes, []lang.Text{
		said("Check from every node that MASTER_ADDR resolves and MASTER_PORT answers; take the address from `scontrol show hostnames`.",
			"在每个节点上检查 MASTER_ADDR 能否解析、MASTER_PORT 能否连通；地址取自 `scontrol show hostnames`。"),
	}, "https://docs.pytorch.org/docs/stable/elastic/rendezvous.html"},
	{PortInUse, said("the master port is taken", "主端口已被占用"), userConfig, RetryYes, []lang.Text{
		said("Choose MASTER_PORT from the job id, and look for leftovers of an earlier job or for two launchers that both believe that they are the master.",
			"按作业号选择 MASTER_PORT，并检查是否有旧作业残留，或有两个启动器都以为自己是主节点。"),
	}, "https://docs.pytorch.org/docs/stable/elastic/run.html"},
	{NodeCountMismatch, said("ranks do not agree with the allocation", "rank 数与分配的节点不一致"), userConfig, RetryNo, []lang.Text{
		said("Expand SLURM_NODEID and SLURM_PROCID inside the command that srun starts (single quotes), and compare --nnodes × --nproc-per-node with "+
			"the allocation.", "在 srun 启动的命令内部展开 SLURM_NODEID 与 SLURM_PROCID（用单引号），并核对 --nnodes × --nproc-per-node 与分配是否一致。"),
	}, "srun(1) OUTPUT ENVIRONMENT VARIABLES"},
	{GPUHardware, said("GPU or NVLink hardware fault", "GPU 或 NVLink 硬件故障"), adminNode, RetryElsewhere, []lang.Text{
		said("Restart without the node; ask the administrators to drain it and to reset or replace the GPU.", "排除该节点后重启作业；请管理员将节点 drain，并重置或更换 GPU。"),
	}, "https://docs.nvidia.com/deploy/xid-errors/"},
	{CUDADriver, said("driver or device set-up", "驱动或设备设置问题"), configNode, RetryElsewhere, []lang.Text{
		said("Compare the driver and CUDA versions of the node with the container's or the wheel's; check --gres or --gpus-per-node and "+
			"CUDA_VISIBLE_DEVICES.", "比较节点驱动与容器（或 wheel）的 CUDA 版本；检查 --gres 或 --gpus-per-node 以及 CUDA_VISIBLE_DEVICES。"),
	}, "https://docs.nvidia.com/deploy/cuda-compatibility/"},
	{CUDAIllegalAccess, said("illegal memory access in a kernel", "内核非法访存"), userCode, RetryOnce, []lang.Text{
		said("Rerun once with CUDA_LAUNCH_BLOCKING=1 to see the kernel; then without fused kernels to find which one.",
			"先设置 CUDA_LAUNCH_BLOCKING=1 重跑一次以定位内核；再逐个关闭融合内核排查。"),
	}, "https://docs.nvidia.com/deploy/xid-errors/"},
	{DeviceAssert, said("device-side assert", "设备端断言失败"), userCode, RetryNo, []lang.Text{
		said("Compare the largest token id with the padded vocabulary size, and labels with their range.", "比较最大 token id 与填充后的词表大小，并检查标签取值范围。"),
	}, ""},
	{Segfault, said("process crashed", "进程崩溃"), userCode, RetryOnce, []lang.Text{
		said("Get a stack: PYTHONFAULTHANDLER=1, or a core file; suspect a compiled extension first.", "获取堆栈：PYTHONFAULTHANDLER=1 或 core 文件；优先怀疑编译扩展。"),
	}, ""},
	{ShmBusError, said("shared memory exhausted", "共享内存不足"), userConfig, RetryNo, []lang.Text{
		said("Give the container a larger /dev/shm (--ipc=host or --shm-size), or use fewer --num-workers.",
			"为容器提供更大的 /dev/shm（--ipc=host 或 --shm-size），或减少 --num-workers。"),
	}, ""},
	{NaNLoss, said("the numbers diverged", "数值发散"), userCode, RetryNo, []lang.Text{
		said("Go back to a checkpoint before it, lower the learning rate or skip the data of those iterations.", "回退到之前的检查点，降低学习率或跳过这些迭代的数据。"),
		said("If one rank alone saw it and it does not reproduce, test that GPU.", "若只有一个 rank 出现且不能复现，检测该 GPU。"),
	}, "megatron/core/rerun_state_machine.py"},
	{DatasetMissing, said("data not found or unusable", "数据缺失或不可用"), userConfig, RetryNo, []lang.Text{
		said("Check the --data-path prefix (without .bin or .idx), the vocabulary files, and that every node sees them.",
			"检查 --data-path 前缀（不带 .bin/.idx）、词表文件，并确认每个节点都能访问。"),
	}, "megatron/core/datasets/indexed_dataset.py"},
	{HFHub, said("model hub or tokenizer download", "模型仓库或分词器下载失败"), userConfig, RetryNo, []lang.Text{
		said("Download once to shared storage, set HF_HOME to it and HF_HUB_OFFLINE=1; for gated models log in with a token that has access.",
			"先下载到共享存储，把 HF_HOME 指向它并设置 HF_HUB_OFFLINE=1；受限模型需使用有权限的 token 登录。"),
	}, "https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables"},
	{CheckpointLoad, said("checkpoint cannot be loaded", "检查点无法加载"), userConfig, RetryNo, []lang.Text{
		said("Load an older iteration (edit latest_checkpointed_iteration.txt or pass --ckpt-step), or match the model arguments with the checkpoint's.",
			"加载更早的迭代（修改 latest_checkpointed_iteration.txt 或使用 --ckpt-step），或使模型参数与检查点一致。"),
	}, "megatron/training/checkpointing.py"},
	{DiskFull, said("no space, quota or inodes", "磁盘空间、配额或 inode 用尽"), userConfig, RetryNo, []lang.Text{
		said("Free space or raise the quota; keep fewer checkpoints; put caches on scratch.", "释放空间或提高配额；少保留检查点；把缓存放到 scratch。"),
	}, ""},
	{Filesystem, said("storage fault or permissions", "存储故障或权限问题"), adminNode, RetryElsewhere, []lang.Text{
		said("Check the mount on that node and give the line to the administrators; for permissions, check owner and mode of the path.",
			"检查该节点的挂载并把该行交给管理员；若是权限问题，检查路径的属主与模式。"),
	}, ""},
	{SlurmTimeLimit, said("time limit reached", "达到时间限制"), userConfig, RetryYes, []lang.Text{
		said("Resubmit to continue from the last checkpoint; save before the limit with --exit-duration-in-mins or --signal, or ask for more --time.",
			"重新提交以从最近的检查点继续；用 --exit-duration-in-mins 或 --signal 在到时前保存，或申请更长的 --time。"),
	}, "sbatch(1) --time, --signal"},
	{SlurmPreempted, said("preempted or requeued", "被抢占或重新排队"), said("nobody: it is transient", "无需处理：暂时性事件"), RetryYes, []lang.Text{
		said("Nothing is wrong with the job. If it is in the queue again, it starts by itself; otherwise submit it again. It goes on from its last checkpoint if it loads one (--load).",
			"作业本身没有问题。若已回到队列，它会自动再次启动；否则请重新提交。配置了 --load 时会从最近的检查点继续。"),
		said("With `requeue: true` Slurm itself puts a preempted job back into the queue, where the site preempts by requeueing (PreemptMode=REQUEUE).",
			"若站点以重新排队方式抢占（PreemptMode=REQUEUE），设置 `requeue: true` 后 Slurm 会自动把被抢占的作业放回队列。"),
	}, "https://slurm.schedmd.com/preempt.html"},
	{SlurmNodeFail, said("a node failed", "节点故障"), adminNode, RetryElsewhere, []lang.Text{
		said("Resubmit without the node; the administrators find the reason in slurmctld's log.", "排除该节点后重新提交；管理员可在 slurmctld 日志中查明原因。"),
	}, "sbatch(1) --exclude, --no-kill"},
	{SlurmCancelled, said("cancelled", "被取消"), said("the person who cancelled it", "取消作业的人"), RetryNo, []lang.Text{
		said("Nothing to do, unless nobody meant to cancel it.", "若确为有意取消，则无需处理。"),
	}, "scancel(1)"},
	{SlurmSubmitRejected, said("Slurm refused the job or step", "Slurm 拒绝了作业或作业步"), userConfig, RetryNo, []lang.Text{
		said("Fix the option that Slurm names: partition, account, QOS, limits, memory or GPUs as `sinfo` and `sacctmgr show assoc` list them.",
			"修正 Slurm 指出的选项：分区、账户、QOS、限制、内存或 GPU，以 `sinfo` 与 `sacctmgr show assoc` 所列为准。"),
	}, "sbatch(1)"},
	{Container, said("the container did not start", "容器未能启动"), configNode, RetryNo, []lang.Text{
		said("The image does not exist, or is not an image: give a file that every node sees (.sqsh for pyxis and enroot, .sif for "+
			"Apptainer and Singularity), or a name that the registry knows.",
			"镜像不存在或格式不对：请给出各节点都能看到的文件（pyxis、enroot 用 .sqsh，Apptainer、Singularity 用 .sif），或仓库中存在的镜像名。"),
		said("A mount's source does not exist on the node: make the folder, or correct the mount (pyxis --container-mounts, Apptainer -B, "+
			"enroot --mount: SOURCE:TARGET, absolute paths).",
			"挂载源在节点上不存在：创建该目录，或修正挂载（pyxis 用 --container-mounts，Apptainer 用 -B，enroot 用 --mount：源:目标，绝对路径）。"),
		said("The working directory does not exist in the container: mount it, or correct it (pyxis --container-workdir, Apptainer --cwd).",
			"容器内没有该工作目录：请挂载它，或修正（pyxis 用 --container-workdir，Apptainer 用 --cwd）。"),
		said("The node cannot reach the registry, or is not allowed to pull from it: import the image where the network and the login are (enroot import, or "+
			"apptainer build), and use the file.", "节点无法访问镜像仓库或无权拉取：在有网络和登录凭据的机器上导入镜像（enroot import 或 apptainer build），改用该文件。"),
		said("The node itself cannot start containers (user namespaces, loop devices, FUSE or the runtime's folders): use other nodes, and tell the "+
			"administrators.", "该节点自身无法启动容器（用户命名空间、loop 设备、FUSE 或运行时目录）：请换用其他节点，并告知管理员。"),
		said("You cannot read the image: ask its owner for access, or copy it to a folder of yours that every node sees.",
			"没有读取该镜像的权限：请让其所有者授权，或复制到各节点都能看到的自己的目录。"),
		said("The folder in which the node unpacks images is full: clean it, or use another one (ENROOT_CACHE_PATH, ENROOT_TEMP_PATH and ENROOT_DATA_PATH, "+
			"for pyxis in enroot.conf; APPTAINER_TMPDIR and APPTAINER_CACHEDIR).",
			"节点解包镜像所用的目录已满：请清理，或改用其他目录（ENROOT_CACHE_PATH、ENROOT_TEMP_PATH、ENROOT_DATA_PATH，pyxis 下写在 enroot.conf；APPTAINER_TMPDIR、APPTAINER_CACHEDIR）。"),
		said("Import the image once to shared storage as a file, and check that every mount exists on every node.",
			"先把镜像导入共享存储保存为文件，并检查每个挂载路径在所有节点上都存在。"),
	}, "https://github.com/NVIDIA/pyxis/wiki"},
	{Hang, said("no error and no progress", "无报错但无进展"), unknownWho, RetryYes, []lang.Text{
		said("Take stacks on all ranks (py-spy dump) or read the flight recorder before ending it; then restart.",
			"结束作业前，在所有 rank 上用 py-spy dump 取堆栈或读取 flight recorder；然后重启。"),
	}, "https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html"},
	{Running, said("goes on", "正在运行"), nobody, RetryNo, nil, ""},
	{Success, said("no failure", "没有失败"), nobody, RetryNo, nil, ""},
	{UserException, said("other Python exception", "其他 Python 异常"), userCode, RetryNo, []lang.Text{
		said("Read the innermost frame of your own code, named above.", "查看上文给出的、属于自己代码的最内层堆栈帧。"),
	}, ""},
	{UnknownExit, said("ended without saying why", "无说明地退出"), unknownWho, RetryOnce, []lang.Text{
		said("Look at the node's kernel log and at `sacct -j`; run once more with more logging.", "查看节点内核日志与 `sacct -j`；打开更详细的日志再运行一次。"),
	}, ""},
}

var classByID = func() map[string]*Class {
	m := make(map[string]*Class, len(classes))
	for i := range classes {
		m[classes[i].ID] = &classes[i]
	}
	return m
}()

// Of returns the class with the given id, or the class UnknownExit for any other id.
func Of(id string) *Class {
	if c := classByID[id]; c != nil {
		return c
	}
	return classByID[UnknownExit]
}
