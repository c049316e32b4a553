package slurm

import (
	"slices"
	"strconv"
	"strings"
)

// A Signal is a signal that can end processes of a training job, with its usual
// senders.
type Signal struct {
	Number int
	Meaning
}

// The advice for ends that only the log explains.
const (
	diagnoseEN = "`megatron-ops diagnose JOB` names the rank that died first and of what"
	diagnoseZH = "`megatron-ops diagnose JOB` 会指出最先失败的 rank 及原因"
)

// signals are in the order of their numbers, as signal(7) lists them for x86 and ARM.
var signals = []Signal{
	{1, reason("SIGHUP", "the terminal or the ssh session that it belonged to was closed", "所属终端或 ssh 会话已关闭", "submit it as a batch job, or run it in tmux",
		"用批处理作业提交，或在 tmux 中运行")},
	{2, reason("SIGINT", "interrupted: Ctrl-C, or scancel --signal=INT", "被中断：按了 Ctrl-C，或 scancel --signal=INT", "", "")},
	{3, reason("SIGQUIT", "Ctrl-\\, which also writes a core file", "按了 Ctrl-\\，并可能生成 core 文件", "", "")},
	{4, reason("SIGILL", "the processor does not know an instruction: a library built for other processors", "处理器不认识某条指令：库是为其他处理器编译的",
		"use an image or wheel built for these nodes", "使用为该节点编译的镜像或 wheel")},
	{6, reason("SIGABRT", "abort: the process gave itself up over a failed assertion in C++ or CUDA, or NCCL's watchdog after a time-out",
		"abort：进程因 C++ 或 CUDA 断言失败、或 NCCL watchdog 超时而自行中止", diagnoseEN, diagnoseZH)},
	{7, reason("SIGBUS", "bus error: memory behind a mapping is gone, most often because /dev/shm is full, or a file became shorter",
		"总线错误，内存映射失效：多为 /dev/shm 已满，或文件变短", "give the container more /dev/shm (docker --shm-size, --ipc=host), or fewer data workers",
		"增大容器的 /dev/shm（docker --shm-size、--ipc=host），或减少数据加载进程")},
	{8, reason("SIGFPE", "an arithmetic fault such as a division of integers by zero", "算术错误，例如整数除以零", diagnoseEN, diagnoseZH)},
	{9, reason("SIGKILL", "killed, without a chance to save: usually out of host memory (the kernel's OOM killer, or Slurm's --mem); else by Slurm, "+
		"KillWait after it had asked with SIGTERM (time limit, scancel, preemption), or by srun when another rank had failed",
		"被强制终止，来不及保存：通常是主机内存不足（内核的 OOM killer，或 Slurm 的 --mem）；达到时限、scancel 或抢占时，Slurm 先发 SIGTERM，KillWait 之后强制终止；或其他 rank 失败后由 "+
			"srun 终止",
		"`status JOB` says OUT_OF_MEMORY, TIMEOUT, CANCELLED or PREEMPTED where Slurm did it; for host memory raise mem or lower "+
			"data workers; `diagnose JOB` tells whether another rank came first",
		"若由 Slurm 终止，`status JOB` 显示 OUT_OF_MEMORY、TIMEOUT、CANCELLED 或 PREEMPTED；主机内存不足时增大 mem 或减少数据加载进程；`diagnose JOB` 会判断是否其他 "+
			"rank 先失败")},
	{10, reason("SIGUSR1", "what sbatch --signal=USR1@… sends ahead of the time limit; whoever does not handle it ends by it",
		"sbatch --signal=USR1@… 在时限前发送；未处理该信号的进程会因此退出",
		"let the program save on it (--exit-signal-handler of Megatron takes SIGTERM), or send it to the batch shell with B:",
		"让程序收到后保存（Megatron 的 --exit-signal-handler 处理 SIGTERM），或用 B: 只发给批处理 shell")},
	{11, reason("SIGSEGV", "segmentation fault: memory that is not the process's was touched, by a fault in a C++ or CUDA extension, or libraries "+
		"that do not fit each other",
		"段错误，访问了非法内存：C++ 或 CUDA 扩展有缺陷，或库版本互不匹配", diagnoseEN, diagnoseZH)},
	{12, reason("SIGUSR2", "a signal for the program's own use; whoever does not handle it ends by it", "供程序自用的信号；未处理该信号的进程会因此退出", "", "")},
	{13, reason("SIGPIPE", "the reader of its output has gone, as with `… | head`", "输出的读取方已退出，例如 `… | head`", "", "")},
	{14, reason("SIGALRM", "a timer of the program's own ran out", "程序自身的定时器到期", "", "")},
	{15, reason("SIGTERM", "asked to end: scancel, the time limit, preemption, a requeue, or torchrun because another rank had failed",
		"被要求退出：scancel、达到时限、抢占、重新排队，或其他 rank 失败后由 torchrun 发出", diagnoseEN, diagnoseZH)},
	{24, reason("SIGXCPU", "the limit on processor time (ulimit -t) was reached, often on a login node", "达到 CPU 时间限制（ulimit -t），常见于登录节点", "run it as a job",
		"以作业方式运行")},
	{25, reason("SIGXFSZ", "a file became larger than ulimit -f allows", "文件超过 ulimit -f 的上限", "ulimit -f unlimited, or a smaller file",
		"设置 ulimit -f unlimited，或减小文件")},
}

// noFile explains 0:53, and 53 where only the number is handed on.
var noFile = reason("", "of Slurm: the log file or the work directory could not be opened", "由 Slurm 返回：无法打开日志文件或工作目录",
	"make the folder of --output before sbatch", "在 sbatch 之前创建 --output 所在目录")

// programsOwn explains the exit codes without a conventional meaning.
var programsOwn = reason("", "a number of the program's own: it failed, and its log says why", "程序自定义的退出码：运行失败，原因见其日志", diagnoseEN, diagnoseZH)

// signalMarks explains numbers that Slurm itself writes in the signal's place of
// ExitCode, as in 0:53. The numbers are Slurm's exit codes 181 and 253 less 128, the
// offset of a signal.
var signalMarks = map[int]Meaning{
	53: noFile,
	125: reason("", "of Slurm: OUT_OF_MEMORY, the job or a step went over its host memory", "由 Slurm 返回：OUT_OF_MEMORY，作业或作业步超出了主机内存",
		"raise mem, or lower data workers; GPU memory has nothing to do with it", "增大 mem，或减少数据加载进程；与显存无关"),
}

var exitCodes = map[int]Meaning{
	53: noFile,
	0:  reason("", "ended well", "正常结束", "", ""),
	1: reason("", "the program said that it failed; Python does so after an exception that nobody caught", "程序报告失败；Python 在异常未被捕获时返回该值", diagnoseEN,
		diagnoseZH),
	2: reason("", "wrong usage: argparse refused a flag or value, or the shell a command", "用法错误：argparse 拒绝了参数或取值，或 shell 命令有误",
		"`megatron-ops plan` names the flag before the job queues", "`megatron-ops plan` 可在排队前指出有问题的参数"),
	3: reason("", "of a script that megatron-ops rendered: a guard stopped the job before the launch", "由 megatron-ops 渲染的脚本返回：启动前检查中止了作业",
		"the line `guard: stop:` in its log says why", "日志中 `guard: stop:` 一行说明原因"),
	124: reason("", "timeout(1) ended it", "被 timeout(1) 终止", "", ""),
	126: reason("", "found, and not executable: permission, or a file system mounted noexec", "找到了但无法执行：没有权限，或文件系统以 noexec 挂载", "chmod +x, or another folder",
		"执行 chmod +x，或换目录"),
	127: reason("", "a command was not found on the node", "节点上找不到该命令",
		"the nodes' PATH is not the login node's: name it in full, load the module in the job, or use a container",
		"计算节点的 PATH 与登录节点不同：写完整路径、在作业中加载 module，或使用容器"),
	255: reason("", "ssh could not connect, or the program returned -1", "ssh 连接失败，或程序返回 -1", "", ""),
}

// KnownSignal returns the signal with that number.
func KnownSignal(number int) (Signal, bool) {
	i := slices.IndexFunc(signals, func(s Signal) bool { return s.Number == number })
	if i < 0 {
		return Signal{}, false
	}
	return signals[i], true
}

// SignalNamed returns the signal for a name or a number: "SIGKILL", "kill", "9".
func SignalNamed(word string) (Signal, bool) {
	if number, err := strconv.Atoi(word); err == nil {
		return KnownSignal(number)
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(word), "SIG")
	i := slices.IndexFunc(signals, func(s Signal) bool { return s.Word == name })
	if i < 0 {
		return Signal{}, false
	}
	return signals[i], true
}

// NotLaunched reports whether a job's exit code says that Slurm could not open its log or
// enter its work directory, and so never ran the script.
func NotLaunched(exitCode string) bool { return exitCode == "0:53" }

// KnownSignalMark explains a number that Slurm writes in the signal's place and that is
// no signal of the program, such as the 125 of 0:125.
func KnownSignalMark(number int) (Meaning, bool) {
	m, ok := signalMarks[number]
	return m, ok
}

// ExplainExitCode explains an exit code of 0 to 255. Where a shell uses the code to say
// that a signal ended the program (128 plus the signal's number), ExplainExitCode
// returns that number for KnownSignal, and no meaning.
func ExplainExitCode(code int) (m Meaning, signal int) {
	if m, known := exitCodes[code]; known {
		return m, 0
	}
	if code > 128 && code <= 128+64 {
		return Meaning{}, code - 128
	}
	return programsOwn, 0
}
