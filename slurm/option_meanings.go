package slurm

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// An OptionMeaning explains an option of sbatch or srun.
type OptionMeaning struct {
	// Long and Short are the option's names without dashes; Short may be "".
	Long, Short string
	// Takes names the option's argument; "" for a switch.
	Takes string
	Says  lang.Text
}

// ExplainOption explains an option of sbatch or srun. word is either of its names, with
// or without a value: "--nodes=2", "-N".
func ExplainOption(word string) (OptionMeaning, bool) {
	long, isLong := strings.CutPrefix(word, "--")
	long, _, _ = strings.Cut(long, "=")
	for _, o := range optionMeanings {
		if isLong && (o.Long == long || o.Long == optionAliases[long]) || !isLong && o.Short != "" && word == "-"+o.Short {
			return o, true
		}
	}
	return OptionMeaning{}, false
}

// Usage returns the option as a usage text writes it, such as "--nodes=MIN[-MAX], -N".
func (o OptionMeaning) Usage() string {
	given := "--" + o.Long
	if o.Takes != "" {
		given += "=" + o.Takes
	}
	if o.Short != "" {
		given += ", -" + o.Short
	}
	return given
}

// optionMeanings are the options that people ask about, after sbatch(1), srun(1) and
// pyxis's own help.
var optionMeanings = []OptionMeaning{
	{"account", "A", "NAME", lang.Text{EN: "charges the job to this account; sacctmgr show assoc user=$USER lists yours", ZH: "作业计入该账户；sacctmgr show assoc user=$USER 可列出你的账户"}},
	{"array", "a", "RANGE[%N]", lang.Text{EN: "submits one job for each index, such as 0-9; %N lets at most N run at once, %1 one after the other", ZH: "按索引提交一组作业，如 0-9；%N 限制同时运行 N 个，%1 表示依次运行"}},
	{"begin", "b", "TIME", lang.Text{EN: "starts the job no earlier, such as 16:00 or now+2hours", ZH: "不早于该时间开始，如 16:00 或 now+2hours"}},
	{"chdir", "D", "DIR", lang.Text{EN: "runs the script in this folder instead of where sbatch was typed", ZH: "在该目录运行脚本，而不是提交时的目录"}},
	{"clusters", "M", "NAMES", lang.Text{EN: "sends the job to one of these clusters", ZH: "把作业提交到这些集群之一"}},
	{"comment", "", "TEXT", lang.Text{EN: "a remark that Slurm keeps with the job", ZH: "随作业保存的备注"}},
	{"constraint", "C", "FEATURES", lang.Text{EN: "only nodes with these features; & is and, | is or", ZH: "只用具有这些特性的节点；& 表示与，| 表示或"}},
	{"container-image", "", "IMAGE", lang.Text{EN: "starts the step in this image (the plugin pyxis); better on srun than on sbatch, whose whole script would run inside", ZH: "在该镜像中启动步骤（pyxis 插件）；宜写在 srun 上，写在 sbatch 上会让整个脚本在容器内运行"}},
	{"container-mounts", "", "HOST:INSIDE,…", lang.Text{EN: "shows folders of the node in the container (pyxis)", ZH: "把节点目录挂载进容器（pyxis）"}},
	{"container-workdir", "", "DIR", lang.Text{EN: "the working folder inside the container (pyxis)", ZH: "容器内的工作目录（pyxis）"}},
	{"cpus-per-gpu", "", "N", lang.Text{EN: "CPUs for each GPU", ZH: "每张 GPU 的 CPU 数"}},
	{"cpus-per-task", "c", "N", lang.Text{EN: "CPUs (hardware threads) for each task; since 22.05 srun does not inherit it, so write it there too", ZH: "每个任务的 CPU（硬件线程）数；22.05 起 srun 不再继承，需在 srun 上再写一次"}},
	{"cpu-bind", "", "TYPE", lang.Text{EN: "ties tasks to CPUs: none, cores, sockets, ldoms, rank…", ZH: "把任务绑定到 CPU：none、cores、sockets、ldoms、rank 等"}},
	{"deadline", "", "TIME", lang.Text{EN: "removes the job if it cannot end before", ZH: "若无法在此之前结束则移除作业"}},
	{"dependency", "d", "TYPE:ID", lang.Text{EN: "starts after other jobs: afterok (they succeeded), afterany (they ended), afternotok, after, singleton; a bare id means afterany", ZH: "在其他作业之后开始：afterok（成功）、afterany（结束）、afternotok、after、singleton；只写作业号等于 afterany"}},
	{"distribution", "m", "HOW", lang.Text{EN: "how tasks are laid over nodes and cores: block, cyclic, plane…", ZH: "任务在节点与核上的分布方式：block、cyclic、plane 等"}},
	{"error", "e", "FILE", lang.Text{EN: "file for standard error; the same as --output unless given", ZH: "标准错误的文件；不给时与 --output 相同"}},
	{"exact", "", "", lang.Text{EN: "gives the step only what it asks for, so that steps can share a node", ZH: "步骤只占用所申请的资源，便于多个步骤共用节点"}},
	{"exclude", "x", "NODES", lang.Text{EN: "nodes that the job must not get", ZH: "作业不得使用的节点"}},
	{"exclusive", "", "", lang.Text{EN: "no other job on the nodes; on srun, no other step on its CPUs", ZH: "独占节点；用于 srun 时独占其 CPU"}},
	{"export", "", "ALL|NONE|NAMES", lang.Text{EN: "which variables reach the job; a list without ALL drops the rest, PATH among them", ZH: "哪些变量传给作业；不含 ALL 的列表会丢掉其余变量（包括 PATH）"}},
	{"gpu-bind", "", "TYPE", lang.Text{EN: "ties tasks to GPUs; leave it out with torch.distributed.run, whose task needs all of the node's", ZH: "把任务绑定到 GPU；用 torch.distributed.run 时不要设置，因为单个任务要用节点的全部 GPU"}},
	{"gpus", "G", "N", lang.Text{EN: "GPUs of the whole job", ZH: "整个作业的 GPU 总数"}},
	{"gpus-per-node", "", "N", lang.Text{EN: "GPUs on each node; SLURM_GPUS_PER_NODE is set only with this option", ZH: "每个节点的 GPU 数；只有使用该选项时才会设置 SLURM_GPUS_PER_NODE"}},
	{"gpus-per-task", "", "N", lang.Text{EN: "GPUs for each task", ZH: "每个任务的 GPU 数"}},
	{"gres", "", "gpu[:TYPE]:N", lang.Text{EN: "generic resources of each node, such as gpu:h100:8", ZH: "每个节点的通用资源，如 gpu:h100:8"}},
	{"hint", "", "HINT", lang.Text{EN: "nomultithread uses one thread of a core, so a CPU counts as a core", ZH: "nomultithread 每核只用一个线程，此时一个 CPU 即一个物理核"}},
	{"hold", "H", "", lang.Text{EN: "submits the job held; scontrol release lets it go", ZH: "提交后保持挂起；scontrol release 放行"}},
	{"immediate", "I", "SECONDS", lang.Text{EN: "gives up unless the resources are there within so many seconds", ZH: "若在若干秒内得不到资源则放弃"}},
	{"input", "i", "FILE", lang.Text{EN: "file for standard input", ZH: "标准输入的文件"}},
	{"job-name", "J", "NAME", lang.Text{EN: "the job's name; the script's name unless given", ZH: "作业名；不给时为脚本名"}},
	{"jobid", "", "ID", lang.Text{EN: "starts the step in this job's allocation", ZH: "在该作业的资源内启动步骤"}},
	{"kill-on-bad-exit", "K", "0|1", lang.Text{EN: "ends the whole step as soon as one task ends with an error", ZH: "任一任务出错退出时立即结束整个步骤"}},
	{"label", "l", "", lang.Text{EN: "puts the task's number before each line of output", ZH: "在每行输出前加上任务编号"}},
	{"licenses", "L", "NAMES", lang.Text{EN: "licences that the job needs", ZH: "作业需要的许可证"}},
	{"mail-type", "", "EVENTS", lang.Text{EN: "which events are mailed: BEGIN, END, FAIL, REQUEUE, TIME_LIMIT_90, ALL", ZH: "哪些事件发送邮件：BEGIN、END、FAIL、REQUEUE、TIME_LIMIT_90、ALL"}},
	{"mail-user", "", "ADDRESS", lang.Text{EN: "who gets the mail", ZH: "邮件收件人"}},
	{"mem", "", "SIZE", lang.Text{EN: "host memory of each node, in MB without a unit; 0 is all of it", ZH: "每个节点的主机内存，不带单位时为 MB；0 表示全部"}},
	{"mem-per-cpu", "", "SIZE", lang.Text{EN: "host memory for each CPU", ZH: "每个 CPU 的主机内存"}},
	{"mem-per-gpu", "", "SIZE", lang.Text{EN: "host memory for each GPU", ZH: "每张 GPU 的主机内存"}},
	{"mpi", "", "TYPE", lang.Text{EN: "the interface for MPI programs: pmix, pmi2, none", ZH: "MPI 程序的接口：pmix、pmi2、none"}},
	{"multi-prog", "", "", lang.Text{EN: "runs other programs for other tasks, from a file", ZH: "按文件为不同任务运行不同程序"}},
	{"nice", "", "N", lang.Text{EN: "lowers the job's own priority", ZH: "降低该作业的优先级"}},
	{"no-kill", "k", "", lang.Text{EN: "keeps the job when one of its nodes fails; training with fixed ranks cannot go on then", ZH: "节点故障时不终止作业；固定 rank 的训练此时无法继续"}},
	{"no-requeue", "", "", lang.Text{EN: "never puts the job back into the queue", ZH: "不允许重新排队"}},
	{"nodelist", "w", "NODES", lang.Text{EN: "nodes that the job must have, and more if --nodes asks for more", ZH: "作业必须使用的节点；--nodes 更多时会再补充"}},
	{"nodes", "N", "MIN[-MAX]", lang.Text{EN: "number of nodes; the launcher's --nnodes must be the same, so use $SLURM_NNODES there", ZH: "节点数；启动器的 --nnodes 必须一致，因此那里用 $SLURM_NNODES"}},
	{"ntasks", "n", "N", lang.Text{EN: "tasks of the whole job or step; with torch.distributed.run as many as nodes", ZH: "作业或步骤的任务总数；用 torch.distributed.run 时等于节点数"}},
	{"ntasks-per-gpu", "", "N", lang.Text{EN: "tasks for each GPU", ZH: "每张 GPU 的任务数"}},
	{"ntasks-per-node", "", "N", lang.Text{EN: "tasks on each node: 1 with torch.distributed.run, which forks a worker for each GPU itself; one for each GPU only where srun starts the ranks", ZH: "每个节点的任务数：用 torch.distributed.run 时为 1（它自己为每张 GPU 派生进程）；只有由 srun 直接启动 rank 时才等于 GPU 数"}},
	{"open-mode", "", "append|truncate", lang.Text{EN: "append keeps the log of the run before when a job is requeued", ZH: "append 在重新排队时保留之前的日志"}},
	{"output", "o", "FILE", lang.Text{EN: "file for standard output: %j is the job, %x its name, %A_%a an array's element; its folder must exist before", ZH: "标准输出的文件：%j 为作业号，%x 为作业名，%A_%a 为数组元素；目录必须事先存在"}},
	{"overcommit", "O", "", lang.Text{EN: "lets tasks share CPUs", ZH: "允许任务共用 CPU"}},
	{"overlap", "", "", lang.Text{EN: "lets the step share resources with the job's other steps, as a shell or a monitor beside the training must", ZH: "允许与作业的其他步骤共用资源；在训练旁边开 shell 或监控时必须加"}},
	{"oversubscribe", "s", "", lang.Text{EN: "lets the job share nodes with others where the partition allows it", ZH: "在分区允许时与其他作业共用节点"}},
	{"parsable", "", "", lang.Text{EN: "prints the job's number only", ZH: "只输出作业号"}},
	{"partition", "p", "NAMES", lang.Text{EN: "which queue the job waits in; sinfo lists them", ZH: "作业所在的分区；sinfo 可列出"}},
	{"prefer", "", "FEATURES", lang.Text{EN: "nodes with these features if there are any, others otherwise", ZH: "优先使用具有这些特性的节点"}},
	{"priority", "", "N", lang.Text{EN: "sets the job's priority; for operators", ZH: "设置作业优先级；仅管理员"}},
	{"pty", "", "", lang.Text{EN: "gives the step's first task a terminal; not in a batch script, which has none", ZH: "为步骤的首个任务分配终端；批处理脚本中没有终端，不能使用"}},
	{"qos", "q", "NAME", lang.Text{EN: "quality of service: priority, limits and preemption", ZH: "服务质量：优先级、限额与抢占"}},
	{"quiet", "Q", "", lang.Text{EN: "says less", ZH: "减少输出"}},
	{"relative", "r", "N", lang.Text{EN: "starts the step on nodes from the N-th of the allocation", ZH: "从分配的第 N 个节点起启动步骤"}},
	{"requeue", "", "", lang.Text{EN: "lets Slurm start the job again after a node failure or preemption; add --open-mode=append and --load", ZH: "节点故障或被抢占后允许重新运行；同时加 --open-mode=append 与 --load"}},
	{"reservation", "", "NAME", lang.Text{EN: "uses nodes that were reserved", ZH: "使用预留的节点"}},
	{"segment", "", "N", lang.Text{EN: "nodes in blocks of N that lie together in the network", ZH: "按 N 个一组分配网络上相邻的节点"}},
	{"signal", "", "[B:]SIG[@SECS]", lang.Text{EN: "sends a signal so many seconds before the time limit: to the steps, or with B: to the batch shell alone", ZH: "在时限前若干秒发送信号：默认发给各步骤，带 B: 时只发给批处理 shell"}},
	{"spread-job", "", "", lang.Text{EN: "spreads the job over as many nodes as possible", ZH: "把作业分散到尽可能多的节点"}},
	{"switches", "", "N[@TIME]", lang.Text{EN: "waits up to so long for nodes under at most N switches", ZH: "最多等待一段时间，以获得至多 N 台交换机下的节点"}},
	{"test-only", "", "", lang.Text{EN: "checks the job and estimates its start; nothing is submitted", ZH: "只检查并估计开始时间，不提交"}},
	{"threads-per-core", "", "N", lang.Text{EN: "threads of a core that may be used", ZH: "每个核可用的线程数"}},
	{"time", "t", "TIME", lang.Text{EN: "time limit: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM:SS; without it the partition's default holds", ZH: "时间上限：分钟、MM:SS、HH:MM:SS、D-HH、D-HH:MM:SS；不给则用分区默认值"}},
	{"time-min", "", "TIME", lang.Text{EN: "lets Slurm lower the time limit down to this to start sooner", ZH: "允许 Slurm 把时限降到该值以便更早开始"}},
	{"tmp", "", "SIZE", lang.Text{EN: "local disk that each node must have", ZH: "每个节点需要的本地磁盘"}},
	{"unbuffered", "u", "", lang.Text{EN: "passes output on at once", ZH: "立即转发输出"}},
	{"use-min-nodes", "", "", lang.Text{EN: "prefers the smaller number of a range of nodes", ZH: "节点数为范围时优先取较小值"}},
	{"verbose", "v", "", lang.Text{EN: "says more", ZH: "输出更多信息"}},
	{"wait", "W", "", lang.Text{EN: "sbatch: returns only when the job has ended; srun takes seconds: how long to wait for the other tasks once one has ended", ZH: "sbatch：作业结束后才返回；srun 则带秒数：首个任务结束后等待其余任务的时间"}},
	{"wckey", "", "KEY", lang.Text{EN: "a word for the accounts", ZH: "记账用的关键字"}},
	{"wrap", "", "COMMAND", lang.Text{EN: "submits one command instead of a script", ZH: "直接提交一条命令而不是脚本"}},
}
