package report

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// lineSpecific replaces the class's name and advice for lines that say more than the class does.
var lineSpecific = []struct {
	class  string
	says   *lazy.Pattern
	name   lang.Text // empty: keep the class's name
	advice []lang.Text
	asks   []string // conditions, as in AsksFor
}{
	{outcome.EnvLaunch, lazy.New(`(?i)\bfork(?: failed)?: (?:retry: )?resource temporarily|: cannot fork$`), lang.Text{}, []lang.Text{said(
		"The limit on processes is reached (`ulimit -u`, or the job's cgroup): start fewer processes and threads (data workers, OMP_NUM_THREADS), or have the limit raised.",
		"进程数已达上限（`ulimit -u` 或作业的 cgroup）：减少进程与线程（数据加载 worker、OMP_NUM_THREADS），或请管理员提高上限。",
	)}, nil},
	{outcome.EnvLaunch, lazy.New(`(?i)execve\(\): \S*/slurm_script: no such file`), lang.Text{}, []lang.Text{said(
		"The node could not run the batch script: the interpreter in its first line does not exist there (with Windows line ends it asks for `bash\\r`), or the "+
			"node lost the script. If the first line is right, use other nodes, and tell the administrators.",
		"节点无法运行批处理脚本：脚本首行的解释器在该节点上不存在（若为 Windows 换行，则会寻找 `bash\\r`），或节点上的脚本已丢失。若首行无误，请换用其他节点，并告知管理员。",
	)}, nil},
	{outcome.SlurmSubmitRejected, lazy.New(`(?i)\bmunge\b|authentication`), said("Slurm could not tell who you are", "Slurm 无法确认你的身份"), []lang.Text{said(
		"MUNGE, with which Slurm's commands prove who you are, did not answer where this command ran. Run it on a login or compute node and outside of a "+
			"container (or mount /run/munge into it); if it fails there too, tell the administrators that munged does not run.",
		"Slurm 命令用于证明身份的 MUNGE 在运行该命令的机器上没有应答。请在登录节点或计算节点上、容器之外运行（或把 /run/munge 挂载进容器）；若仍失败，请告知管理员 munged 未运行。",
	)}, nil},
	{
		outcome.ExtensionABI, lazy.New(`(?i)failed building wheel|wheel-build|cmake error|error compiling objects|error building extension|ninja: build stopped`),
		said("a package could not be built", "软件包编译失败"),
		[]lang.Text{
			said("Read the compiler's first error above this line (fatal error, CMake Error, Killed): mostly CUDA or cuDNN is not found (CUDA_HOME, CUDNN_PATH), or "+
				"memory is short (MAX_JOBS=4).",
				"查看该行之前编译器的第一个错误（fatal error、CMake Error、Killed）：多为找不到 CUDA 或 cuDNN（CUDA_HOME、CUDNN_PATH），或内存不足（MAX_JOBS=4）。"),
			said("Build once, into the image or the environment, and not at the start of every job.", "在镜像或环境中编译一次，不要在每个作业开始时编译。"),
		},
		nil,
	},
	{outcome.UserException, lazy.New(`(?i)too many open files`), said("too many open files", "打开的文件过多"), []lang.Text{said(
		"Raise the limit in the batch script before the program (`ulimit -n 65536`, at most `ulimit -Hn`), use fewer --num-workers, or call "+
			"torch.multiprocessing.set_sharing_strategy('file_system').",
		"在批处理脚本中、程序之前提高上限（`ulimit -n 65536`，不超过 `ulimit -Hn`），减少 --num-workers，或调用 torch.multiprocessing.set_sharing_strategy('file_system')。",
	)}, nil},
	{outcome.UserException, lazy.New(`unsupported operand type\(s\) for //: 'int' and 'NoneType'`), lang.Text{}, []lang.Text{said(
		"In Megatron-LM's get_train_valid_test_num_samples this means that --eval-interval is missing, which has no default since 0.16: add --eval-interval 1000. "+
			"Elsewhere read the innermost frame of your own code.",
		"若出自 Megatron-LM 的 get_train_valid_test_num_samples，则是缺少 --eval-interval（0.16 起没有默认值）：加上 --eval-interval 1000。否则查看自己代码最内层的栈帧。",
	)}, nil},
	{outcome.UserException, lazy.New(`sequence parallel not supported by torch (?:Layer|RMS)?Norm`), said("Apex or Transformer Engine is missing", "缺少 Apex 或 Transformer Engine"), []lang.Text{said(
		"Without them Megatron-LM falls back to PyTorch's norms, which do not know --sequence-parallel: use an image or environment that has Transformer Engine and drop "+
			"--transformer-impl local, or drop --sequence-parallel.",
		"没有它们时 Megatron-LM 会退回 PyTorch 的 norm，而后者不支持 --sequence-parallel：换用装有 Transformer Engine 的镜像或环境并去掉 --transformer-impl local，或去掉 --sequence-parallel。",
	)}, nil},
	{outcome.Filesystem, lazy.New(`(?i)unable to lock file|unable to create file.*file exists`), said("a file is locked by another process", "文件被其他进程锁定"), []lang.Text{said(
		"HDF5 locks the files that it opens, and another process has this one open, or the file system has no locks. Let one process write it and the others open it "+
			"read-only (mode \"r\"); if nobody writes it, set HDF5_USE_FILE_LOCKING=FALSE.",
		"HDF5 会锁定其打开的文件：另有进程正打开此文件，或文件系统不支持锁。只让一个进程写入，其余以只读方式（mode \"r\"）打开；若无人写入，可设置 HDF5_USE_FILE_LOCKING=FALSE。",
	)}, nil},
	{outcome.UserException, lazy.New(`^=* ?\d+ failed\b|^FAILED \(`), said("tests failed", "测试未通过"), []lang.Text{said(
		"The report above the line shows each failed test; `pytest --lf` runs them alone.", "该行之前的报告列出了每个失败的测试；`pytest --lf` 可只运行它们。",
	)}, nil},
	{outcome.UnknownExit, lazy.New(`(?i)\breceived \S+ death signal\b`), said("a launcher was told to end", "启动器被信号终止"), []lang.Text{sentBy}, nil},
	{outcome.NodeCountMismatch, lazy.New(`(?i)not enough slots available`), lang.Text{}, []lang.Text{said(
		"mpirun has as many slots as the job has tasks: ask for as many tasks (--ntasks-per-node) as -np says, or start fewer.",
		"mpirun 的 slot 数等于作业的任务数：申请与 -np 相同的任务数（--ntasks-per-node），或减少启动的进程。",
	)}, nil},
	{
		outcome.NCCLTimeout, OtherCollective,
		said("ranks disagree about a collective", "各 rank 的集合通信不一致"),
		[]lang.Text{
			said("One rank called another collective, or passed a tensor of another size: look for a branch on the rank or on its data before this call, and for settings that "+
				"differ between nodes.",
				"有 rank 调用了不同的集合操作，或传入了大小不同的张量：检查此调用之前依赖 rank 或其数据的分支，以及各节点不一致的设置。"),
			said("Where no rank is named, rerun with TORCH_DISTRIBUTED_DEBUG=DETAIL: torch then compares every collective and says which rank differs.",
				"若未指出 rank，用 TORCH_DISTRIBUTED_DEBUG=DETAIL 重跑：torch 会逐一比较集合操作，并指出哪个 rank 不同。"),
		},
		nil,
	},
	// Slurm could not run the container's runtime itself; the image was not looked at.
	{
		outcome.Container, runtimeMissing,
		said("the container's runtime is not on the node", "节点上没有容器运行时"),
		[]lang.Text{
			said("The node does not find this command on its PATH, which is not always the login node's: load its module in the job, or use the runtime that the nodes have "+
				"(`container.runtime`).",
				"节点在其 PATH 中找不到该命令（PATH 可能与登录节点不同）：在作业中加载相应的 module，或改用节点上有的运行时（`container.runtime`）。"),
		},
		nil,
	},
	{outcome.Segfault, lazy.New(`^Fatal Python error: `), lang.Text{}, []lang.Text{said(
		"Python wrote its stacks below this line: the thread headed \"Current thread\" crashed, and its first frame is what it ran; if that is a compiled extension, rebuild "+
			"or disable it.",
		"Python 已在该行之后输出各线程的堆栈：标有“Current thread”的线程发生崩溃，其第一帧即当时执行的代码；若它属于编译扩展，重新编译或停用该扩展。",
	)}, nil},
	{outcome.CheckpointLoad, lazy.New(`--exit-on-missing-checkpoint`), said("no checkpoint to load", "没有可加载的检查点"), []lang.Text{said(
		"The folder of --load has no checkpoint (no latest_checkpointed_iteration.txt), and --exit-on-missing-checkpoint ends the run for that: correct --load, or leave "+
			"the flag out to begin anew.",
		"--load 指定的目录中没有检查点（缺少 latest_checkpointed_iteration.txt），而 --exit-on-missing-checkpoint 要求此时结束：更正 --load；若要从头训练，则去掉该参数。",
	)}, nil},
	// A process that loses an established connection mostly reports the end of its peer.
	{
		outcome.NCCLConnection, lostPeer,
		said("the connection to a peer was lost", "与对端的连接中断"),
		[]lang.Text{
			said("Usually the other end had exited before. Find out why: read the logs of the ranks that do not say this, and this log from its beginning.",
				"多半是对端已先退出。先查明原因：阅读没有报此错的 rank 的日志，并从头阅读本日志。"),
			said("A killed process writes nothing: `sacct -j JOBID --format=JobID,State,ExitCode,MaxRSS` and the node's kernel log show it.",
				"被杀死的进程不会留下任何信息：`sacct -j JOBID --format=JobID,State,ExitCode,MaxRSS` 与节点的内核日志会有记录。"),
			said("If all processes lived until then, it was the network: rerun with the debug-nccl preset (NCCL_DEBUG=INFO) for the peer and the interface.",
				"若此前所有进程都在运行，则是网络问题：用 debug-nccl 预设（NCCL_DEBUG=INFO）重跑，以得到对端与网卡信息。"),
		},
		[]string{"", "", DebugNCCL},
	},
}

// stateSpecific replaces the class's name where Slurm's state of the job says more.
var stateSpecific = []struct {
	class, state string
	name         lang.Text
}{
	{outcome.SlurmPreempted, string(slurm.Preempted), said("preempted", "被抢占")},
	{outcome.SlurmPreempted, string(slurm.Requeued), said("requeued", "被重新排队")},
	{outcome.Running, "suspended", said("suspended", "已暂停（suspend）")},
}

// sentBy is the advice on a signal of which no line says who sent it.
var sentBy = said(
	"The signal came from outside of the program: a person, a time limit, a node's health check or drain, a preemption, or srun after another task had failed. See "+
		"`sacct -j JOBID` and `scontrol show node NODE` (Reason), or ask the administrators.",
	"信号来自程序之外：有人操作、时间限制、节点健康检查或 drain、抢占，或另一任务失败后由 srun 发出。可查看 `sacct -j JOBID`、`scontrol show node NODE`（Reason），或询问管理员。",
)

// OwnWords is the Why of a process that ended itself and said why, without an exception.
const OwnWords = "its own words"

// OtherCollective matches gloo's and torch's reports of ranks in different collectives, or in one with tensors of different sizes. The
// same job does so again.
var OtherCollective = lazy.New(`(?i)mismatch between collectives|\bop\.preamble\.length\b`)

// runtimeMissing matches Slurm's report of a step whose command is not there.
var runtimeMissing = lazy.New(`(?i)execve\(\): \S+: No such file`)

// lostPeer matches gloo's and NCCL's reports of an established connection that was closed.
var lostPeer = lazy.New(`(?i)closed by (?:remote )?peer|reset by (?:remote )?peer|closed by localrank|remote process exited`)

// classInfo returns the report's class with the name and advice that fit its line, and the conditions
// of each piece of advice.
func (r Report) classInfo() (c outcome.Class, asks []string) {
	c = *outcome.Of(r.Class)
	for _, w := range stateSpecific {
		if w.class == r.Class && (w.state == r.State || w.state == r.Why) {
			c.Name = w.name
		}
	}
	if r.Class == outcome.UserException && r.Why == OwnWords {
		c.Name, c.Advice = said("the program ended itself and said why", "程序自行退出并说明了原因"), []lang.Text{said(
			"The line is the program's own: do what it says; its words, searched for in the program's code, show what was checked.",
			"这一行是程序自己的说明：照其所说处理；在程序代码中搜索这句话，可找到对应的检查。",
		)}
		return c, nil
	}
	if r.Class == outcome.SlurmCancelled && r.Why == "nothing says why" {
		c.Name, c.Advice = said("a signal told it to end, and no line says who sent it", "被信号终止，日志未说明由谁发出"), []lang.Text{sentBy}
		return c, nil
	}
	for _, w := range lineSpecific {
		if w.class == r.Class && w.says.MatchString(r.RootLine) {
			c.Advice = w.advice
			if w.name != (lang.Text{}) {
				c.Name = w.name
			}
			return c, w.asks
		}
	}
	if _, ok := r.slurmMark(); ok && r.Class == outcome.EnvLaunch {
		c.Name = said("Slurm could not launch the job", "Slurm 无法启动作业")
		c.Advice = []lang.Text{said(
			"See that the work directory and the folder of the log (--output) exist on the node and can be written to, and submit it again: `ls -ld` there, and `df` for its space.",
			"确认工作目录和日志目录（--output）在节点上存在且可写，然后重新提交：在节点上用 `ls -ld` 查看，用 `df` 查看空间。",
		)}
		return c, nil
	}
	if r.Class == outcome.HostOOM && r.State != string(slurm.OutOfMemory) && onlyKilled.MatchString(r.RootLine) && !saysMemory.MatchString(r.RootLine) {
		c.Name = said("killed (signal 9, mostly for memory)", "被杀死（信号 9，多因内存不足）")
		c.Advice = append([]lang.Text{said(
			"See first whether it was memory: `sacct -j JOBID --format=JobID,State,MaxRSS`, or `dmesg -T | grep -i oom` on the node. A person's `kill -9` and a limit on "+
				"CPU time (`ulimit -t`) look the same.",
			"先确认是否因为内存：`sacct -j JOBID --format=JobID,State,MaxRSS`，或在节点上运行 `dmesg -T | grep -i oom`。人为的 `kill -9` 和 CPU 时间上限（`ulimit -t`）看起来相同。",
		)}, c.Advice...)
		return c, append([]string{""}, AsksFor[r.Class]...)
	}
	return c, AsksFor[r.Class]
}

// onlyKilled matches reports of a process that signal 9 ended. Memory is the usual reason, and saysMemory matches
// those that tell it.
var (
	onlyKilled = lazy.New(`(?i)\bexit ?code *[:=]? *(?:-9|137)\b|(?:: |^|[^\s:])killed$|\bline \d+: +\d+ killed\b|已杀死|\bSIGKILL\b|\bsignal 9\b`)
	saysMemory = lazy.New(`(?i)memory|oom`)
)
