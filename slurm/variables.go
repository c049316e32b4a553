package slurm

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A VariableMeaning explains a variable that Slurm sets for a job.
type VariableMeaning struct {
	Name string
	// With is the option without which Slurm does not set the variable, or "".
	With string
	Says lang.Text
}

// WithoutVariables returns environ without the variables in names: whole names, or
// prefixes that end in "_".
func WithoutVariables(environ, names []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(names, func(n string) bool {
			return name == n || strings.HasSuffix(n, "_") && strings.HasPrefix(name, n)
		})
	})
}

// ExplainVariable explains the variable called name.
func ExplainVariable(name string) (VariableMeaning, bool) {
	if now, old := oldVariables[name]; old {
		name = now
	}
	i := slices.IndexFunc(variableMeanings, func(v VariableMeaning) bool { return v.Name == name })
	if i < 0 {
		return VariableMeaning{}, false
	}
	return variableMeanings[i], true
}

var oldVariables = map[string]string{"SLURM_JOBID": "SLURM_JOB_ID", "SLURM_NODELIST": "SLURM_JOB_NODELIST", "SLURM_STEPID": "SLURM_STEP_ID"}

// variableMeanings are the output variables of sbatch(1) and srun(1).
var variableMeanings = []VariableMeaning{
	{"SLURM_JOB_ID", "", lang.Text{EN: "the job's number (SLURM_JOBID is the old name)", ZH: "作业号（旧名 SLURM_JOBID）"}},
	{"SLURM_JOB_NAME", "", lang.Text{EN: "the job's name", ZH: "作业名"}},
	{"SLURM_JOB_USER", "", lang.Text{EN: "the login name of the job's owner", ZH: "作业所有者的登录名"}},
	{"SLURM_JOB_ACCOUNT", "", lang.Text{EN: "the account that is charged", ZH: "计费账户"}},
	{"SLURM_JOB_PARTITION", "", lang.Text{EN: "the partition in which the job runs", ZH: "作业所在分区"}},
	{"SLURM_JOB_QOS", "", lang.Text{EN: "the job's QOS", ZH: "作业的 QOS"}},
	{"SLURM_JOB_RESERVATION", "", lang.Text{EN: "the reservation that the job uses", ZH: "作业使用的预留"}},
	{"SLURM_JOB_NODELIST", "", lang.Text{EN: "the allocated nodes, compressed, such as gpu[01-04]; scontrol show hostnames expands it (SLURM_NODELIST is the old name)", ZH: "分配到的节点（压缩形式，如 gpu[01-04]）；用 scontrol show hostnames 展开（旧名 SLURM_NODELIST）"}},
	{"SLURM_JOB_NUM_NODES", "", lang.Text{EN: "the number of nodes; SLURM_NNODES is the same", ZH: "节点数；与 SLURM_NNODES 相同"}},
	{"SLURM_NNODES", "", lang.Text{EN: "the number of nodes: what --nnodes of the launcher takes", ZH: "节点数：即启动器 --nnodes 的取值"}},
	{"SLURM_NTASKS", "", lang.Text{EN: "the number of tasks of the job or step; with one task on each node that is the number of nodes, not of GPUs", ZH: "作业或步骤的任务数；每节点一个任务时等于节点数，而不是 GPU 数"}},
	{"SLURM_NPROCS", "", lang.Text{EN: "the same as SLURM_NTASKS, an old name", ZH: "与 SLURM_NTASKS 相同的旧名"}},
	{"SLURM_TASKS_PER_NODE", "", lang.Text{EN: "tasks of each node, compressed, such as 1(x4)", ZH: "各节点的任务数（压缩形式，如 1(x4)）"}},
	{"SLURM_NTASKS_PER_NODE", "--ntasks-per-node", lang.Text{EN: "tasks on each node", ZH: "每个节点的任务数"}},
	{"SLURM_PROCID", "", lang.Text{EN: "the task's number in the step, from 0; in the batch script it is 0", ZH: "任务在步骤中的编号，从 0 开始；在批处理脚本中为 0"}},
	{"SLURM_NODEID", "", lang.Text{EN: "the node's number in the job, from 0: the node rank; in the batch script it is 0", ZH: "节点在作业中的编号，从 0 开始，即节点序号；在批处理脚本中为 0"}},
	{"SLURM_LOCALID", "", lang.Text{EN: "the task's number on its node, from 0", ZH: "任务在本节点上的编号，从 0 开始"}},
	{"SLURM_GTIDS", "", lang.Text{EN: "the numbers of the step's tasks on this node", ZH: "本节点上各任务的编号"}},
	{"SLURM_TASK_PID", "", lang.Text{EN: "the process id of the task", ZH: "任务的进程号"}},
	{"SLURM_CPUS_PER_TASK", "--cpus-per-task", lang.Text{EN: "CPUs for each task; since 22.05 srun does not take it from the job", ZH: "每个任务的 CPU 数；22.05 起 srun 不再自动继承"}},
	{"SLURM_CPUS_ON_NODE", "", lang.Text{EN: "CPUs of this node that the job may use", ZH: "作业在本节点可用的 CPU 数"}},
	{"SLURM_JOB_CPUS_PER_NODE", "", lang.Text{EN: "CPUs of each node, compressed, such as 96(x4)", ZH: "各节点的 CPU 数（压缩形式，如 96(x4)）"}},
	{"SLURM_CPU_BIND", "", lang.Text{EN: "how srun tied the tasks to CPUs", ZH: "srun 对任务的 CPU 绑定方式"}},
	{"SLURM_GPUS", "--gpus", lang.Text{EN: "GPUs of the whole job", ZH: "整个作业的 GPU 总数"}},
	{"SLURM_GPUS_PER_NODE", "--gpus-per-node", lang.Text{EN: "GPUs on each node; with --gres it is not set: SLURM_GPUS_ON_NODE is", ZH: "每个节点的 GPU 数；用 --gres 时不会设置，请用 SLURM_GPUS_ON_NODE"}},
	{"SLURM_GPUS_PER_TASK", "--gpus-per-task", lang.Text{EN: "GPUs for each task", ZH: "每个任务的 GPU 数"}},
	{"SLURM_GPUS_ON_NODE", "", lang.Text{EN: "GPUs of this node that the job may use: good for --nproc-per-node", ZH: "作业在本节点可用的 GPU 数：适合用于 --nproc-per-node"}},
	{"SLURM_JOB_GPUS", "", lang.Text{EN: "the numbers of the job's GPUs on the batch node", ZH: "批处理节点上作业的 GPU 编号"}},
	{"SLURM_STEP_GPUS", "", lang.Text{EN: "the numbers of the step's GPUs on this node", ZH: "步骤在本节点上的 GPU 编号"}},
	{"SLURM_STEP_ID", "", lang.Text{EN: "the step's number within the job", ZH: "步骤在作业中的编号"}},
	{"SLURM_STEP_NODELIST", "", lang.Text{EN: "the step's nodes, compressed", ZH: "步骤的节点（压缩形式）"}},
	{"SLURM_STEP_NUM_NODES", "", lang.Text{EN: "the step's number of nodes", ZH: "步骤的节点数"}},
	{"SLURM_STEP_NUM_TASKS", "", lang.Text{EN: "the step's number of tasks", ZH: "步骤的任务数"}},
	{"SLURM_MEM_PER_NODE", "--mem", lang.Text{EN: "host memory of each node, in MB", ZH: "每个节点的主机内存（MB）"}},
	{"SLURM_MEM_PER_CPU", "--mem-per-cpu", lang.Text{EN: "host memory for each CPU, in MB", ZH: "每个 CPU 的主机内存（MB）"}},
	{"SLURM_MEM_PER_GPU", "--mem-per-gpu", lang.Text{EN: "host memory for each GPU, in MB", ZH: "每张 GPU 的主机内存（MB）"}},
	{"SLURM_HINT", "--hint", lang.Text{EN: "the value of --hint", ZH: "--hint 的取值"}},
	{"SLURM_DISTRIBUTION", "--distribution", lang.Text{EN: "how tasks are laid over nodes", ZH: "任务的分布方式"}},
	{"SLURM_ARRAY_JOB_ID", "--array", lang.Text{EN: "the array's own job number", ZH: "数组作业的作业号"}},
	{"SLURM_ARRAY_TASK_ID", "--array", lang.Text{EN: "this element's index", ZH: "本元素的索引"}},
	{"SLURM_ARRAY_TASK_COUNT", "--array", lang.Text{EN: "the number of elements", ZH: "元素个数"}},
	{"SLURM_ARRAY_TASK_MIN", "--array", lang.Text{EN: "the smallest index", ZH: "最小索引"}},
	{"SLURM_ARRAY_TASK_MAX", "--array", lang.Text{EN: "the largest index", ZH: "最大索引"}},
	{"SLURM_ARRAY_TASK_STEP", "--array", lang.Text{EN: "the step between indices", ZH: "索引步长"}},
	{"SLURM_RESTART_COUNT", "", lang.Text{EN: "how often the job was requeued; not set in the first run", ZH: "重新排队的次数；首次运行时不设置"}},
	{"SLURM_SUBMIT_DIR", "", lang.Text{EN: "the folder in which sbatch was typed", ZH: "提交作业时所在的目录"}},
	{"SLURM_SUBMIT_HOST", "", lang.Text{EN: "the host on which sbatch was typed", ZH: "提交作业的主机"}},
	{"SLURM_LAUNCH_NODE_IPADDR", "", lang.Text{EN: "the address of the node from which srun was started; from a batch script that is the first node", ZH: "启动 srun 的节点地址；在批处理脚本中即首节点"}},
	{"SLURM_SRUN_COMM_HOST", "", lang.Text{EN: "the address that the tasks report to srun at", ZH: "任务与 srun 通信的地址"}},
	{"SLURM_TOPOLOGY_ADDR", "", lang.Text{EN: "the switches above the node, and its name", ZH: "节点所在的交换机路径与节点名"}},
	{"SLURM_CLUSTER_NAME", "", lang.Text{EN: "the cluster's name", ZH: "集群名"}},
	{"SLURM_CONF", "", lang.Text{EN: "the slurm.conf that Slurm's commands read", ZH: "Slurm 命令读取的 slurm.conf"}},
	{"SLURM_EXPORT_ENV", "--export", lang.Text{EN: "what --export was; srun in the job obeys it too", ZH: "--export 的取值；作业内的 srun 也会遵守"}},
	{"SLURM_JOB_START_TIME", "", lang.Text{EN: "when the job started, in seconds since 1970", ZH: "作业开始时间（自 1970 年的秒数）"}},
	{"SLURM_JOB_END_TIME", "", lang.Text{EN: "when the time limit will be reached, in seconds since 1970", ZH: "时限到达时间（自 1970 年的秒数）"}},
	{"SLURM_JOB_DEPENDENCY", "--dependency", lang.Text{EN: "the value of --dependency", ZH: "--dependency 的取值"}},
	{"SLURM_KILL_BAD_EXIT", "--kill-on-bad-exit", lang.Text{EN: "whether one task's error ends the step", ZH: "单个任务出错时是否终止步骤"}},
	{"SLURM_OVERLAP", "--overlap", lang.Text{EN: "srun shares resources with the job's other steps", ZH: "srun 与其他步骤共用资源"}},
	{"SLURM_UNBUFFEREDIO", "--unbuffered", lang.Text{EN: "output is passed on at once", ZH: "立即转发输出"}},
	{"SLURM_DEBUG", "", lang.Text{EN: "how much srun says: 0 to 7", ZH: "srun 的输出详细程度：0 到 7"}},
	{"SLURM_TIMELIMIT", "", lang.Text{EN: "srun's own: the time limit of the step", ZH: "srun 自用：步骤的时间上限"}},
	{"SLURM_JWT", "", lang.Text{EN: "a token that stands for a person: never print it, never pass it to a job", ZH: "代表个人身份的令牌：切勿打印，也不要传给作业"}},
	{"SLURMD_NODENAME", "", lang.Text{EN: "the name of the node on which the code runs", ZH: "当前节点名"}},
}
