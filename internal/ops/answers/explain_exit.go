package answers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A signal is one that ends processes of a training job, with what sends it.
type signal struct {
	number int
	name   string
	says   lang.Text
	do     lang.Text
}

var diagnoseIt = lang.Text{EN: "`megatron-ops diagnose JOB` names the rank that died first and of what", ZH: "`megatron-ops diagnose JOB` 会指出最先失败的 rank 及原因"}

var signals = []signal{
	{1, "SIGHUP", lang.Text{EN: "the terminal or the ssh session that it belonged to was closed", ZH: "所属终端或 ssh 会话已关闭"}, lang.Text{EN: "submit it as a batch job, or run it in tmux", ZH: "用批处理作业提交，或在 tmux 中运行"}},
	{2, "SIGINT", lang.Text{EN: "Ctrl-C, or scancel --signal=INT", ZH: "按了 Ctrl-C，或 scancel --signal=INT"}, lang.Text{}},
	{3, "SIGQUIT", lang.Text{EN: "Ctrl-\\, which also writes a core file", ZH: "按了 Ctrl-\\，并可能生成 core 文件"}, lang.Text{}},
	{4, "SIGILL", lang.Text{EN: "the processor does not know an instruction: a library built for other processors", ZH: "处理器不认识某条指令：库是为其他处理器编译的"}, lang.Text{EN: "use an image or wheel built for these nodes", ZH: "使用为该节点编译的镜像或 wheel"}},
	{6, "SIGABRT", lang.Text{EN: "the process gave itself up: a failed assertion in C++ or CUDA, or NCCL's watchdog after a time-out", ZH: "进程自行中止：C++ 或 CUDA 断言失败，或 NCCL watchdog 超时"}, diagnoseIt},
	{7, "SIGBUS", lang.Text{EN: "memory behind a mapping is gone: most often /dev/shm is full, or a file became shorter", ZH: "内存映射失效：多为 /dev/shm 已满，或文件变短"}, lang.Text{EN: "give the container more /dev/shm (docker --shm-size, --ipc=host), or fewer data workers", ZH: "增大容器的 /dev/shm（docker --shm-size、--ipc=host），或减少数据加载进程"}},
	{8, "SIGFPE", lang.Text{EN: "an arithmetic fault such as a division of integers by zero", ZH: "算术错误，例如整数除以零"}, diagnoseIt},
	{9, "SIGKILL", lang.Text{
		EN: "killed, without a chance to save: by the kernel or Slurm for want of host memory (OOM), by Slurm some seconds after it had asked with SIGTERM (time limit, scancel, preemption), or by srun when another rank had failed",
		ZH: "被强制终止，来不及保存：主机内存不足时由内核或 Slurm 终止（OOM）；达到时限、scancel 或抢占时，Slurm 先发 SIGTERM，数秒后强制终止；或其他 rank 失败后由 srun 终止",
	}, lang.Text{
		EN: "`status JOB` says OUT_OF_MEMORY, TIMEOUT, CANCELLED or PREEMPTED where Slurm did it; for host memory raise mem or lower data workers; `diagnose JOB` tells whether another rank came first",
		ZH: "若由 Slurm 终止，`status JOB` 显示 OUT_OF_MEMORY、TIMEOUT、CANCELLED 或 PREEMPTED；主机内存不足时增大 mem 或减少数据加载进程；`diagnose JOB` 会判断是否其他 rank 先失败",
	}},
	{10, "SIGUSR1", lang.Text{EN: "what sbatch --signal=USR1@… sends ahead of the time limit; whoever does not handle it ends by it", ZH: "sbatch --signal=USR1@… 在时限前发送；未处理该信号的进程会因此退出"}, lang.Text{EN: "let the program save on it (--exit-signal-handler of Megatron takes SIGTERM), or send it to the batch shell with B:", ZH: "让程序收到后保存（Megatron 的 --exit-signal-handler 处理 SIGTERM），或用 B: 只发给批处理 shell"}},
	{11, "SIGSEGV", lang.Text{EN: "memory that is not the process's was touched: a fault in a C++ or CUDA extension, or libraries that do not fit each other", ZH: "访问了非法内存：C++ 或 CUDA 扩展有缺陷，或库版本互不匹配"}, diagnoseIt},
	{12, "SIGUSR2", lang.Text{EN: "a signal for the program's own use; whoever does not handle it ends by it", ZH: "供程序自用的信号；未处理该信号的进程会因此退出"}, lang.Text{}},
	{13, "SIGPIPE", lang.Text{EN: "the reader of its output has gone, as with `… | head`", ZH: "输出的读取方已退出，例如 `… | head`"}, lang.Text{}},
	{14, "SIGALRM", lang.Text{EN: "a timer of the program's own ran out", ZH: "程序自身的定时器到期"}, lang.Text{}},
	{15, "SIGTERM", lang.Text{
		EN: "asked to end: scancel, the time limit, preemption, a requeue, or torchrun because another rank had failed",
		ZH: "被要求退出：scancel、达到时限、抢占、重新排队，或其他 rank 失败后由 torchrun 发出",
	}, diagnoseIt},
	{24, "SIGXCPU", lang.Text{EN: "the limit on processor time (ulimit -t) was reached, often on a login node", ZH: "达到 CPU 时间限制（ulimit -t），常见于登录节点"}, lang.Text{EN: "run it as a job", ZH: "以作业方式运行"}},
	{25, "SIGXFSZ", lang.Text{EN: "a file became larger than ulimit -f allows", ZH: "文件超过 ulimit -f 的上限"}, lang.Text{EN: "ulimit -f unlimited, or a smaller file", ZH: "设置 ulimit -f unlimited，或减小文件"}},
}

// These are no signals, but Slurm's own marks where a signal stands: of files
// that it could not open, and of host memory that ran out.
const (
	noFile      = 53
	outOfMemory = 125
)

// ranOut explains outOfMemory, which as an exit code would be the program's own.
var ranOut = struct{ says, do lang.Text }{
	lang.Text{EN: "of Slurm: OUT_OF_MEMORY, the job or a step went over its host memory", ZH: "由 Slurm 返回：OUT_OF_MEMORY，作业或作业步超出了主机内存"},
	lang.Text{EN: "raise mem, or lower data workers; GPU memory has nothing to do with it", ZH: "增大 mem，或减少数据加载进程；与显存无关"},
}

// exits are exit codes that mean something of their own.
var exits = map[int]struct{ says, do lang.Text }{
	0:      {lang.Text{EN: "ended well", ZH: "正常结束"}, lang.Text{}},
	1:      {lang.Text{EN: "the program said that it failed; Python does so after an exception that nobody caught", ZH: "程序报告失败；Python 在异常未被捕获时返回该值"}, diagnoseIt},
	2:      {lang.Text{EN: "wrong usage: argparse refused a flag or value, or the shell a command", ZH: "用法错误：argparse 拒绝了参数或取值，或 shell 命令有误"}, lang.Text{EN: "`megatron-ops plan` names the flag before the job queues", ZH: "`megatron-ops plan` 可在排队前指出有问题的参数"}},
	3:      {lang.Text{EN: "of a script that megatron-ops rendered: a guard stopped the job before the launch", ZH: "由 megatron-ops 渲染的脚本返回：启动前检查中止了作业"}, lang.Text{EN: "the line `guard: stop:` in its log says why", ZH: "日志中 `guard: stop:` 一行说明原因"}},
	noFile: {lang.Text{EN: "of Slurm: the log file or the work directory could not be opened", ZH: "由 Slurm 返回：无法打开日志文件或工作目录"}, lang.Text{EN: "make the folder of --output before sbatch", ZH: "在 sbatch 之前创建 --output 所在目录"}},
	124:    {lang.Text{EN: "timeout(1) ended it", ZH: "被 timeout(1) 终止"}, lang.Text{}},
	126:    {lang.Text{EN: "found, and not executable: permission, or a file system mounted noexec", ZH: "找到了但无法执行：没有权限，或文件系统以 noexec 挂载"}, lang.Text{EN: "chmod +x, or another folder", ZH: "执行 chmod +x，或换目录"}},
	127:    {lang.Text{EN: "a command was not found on the node", ZH: "节点上找不到该命令"}, lang.Text{EN: "the nodes' PATH is not the login node's: name it in full, load the module in the job, or use a container", ZH: "计算节点的 PATH 与登录节点不同：写完整路径、在作业中加载 module，或使用容器"}},
	255:    {lang.Text{EN: "ssh could not connect, or the program returned -1", ZH: "ssh 连接失败，或程序返回 -1"}, lang.Text{}},
}

var (
	exitForm   = lazy.New(`^(?i:exit(?:ed)?(?: (?:code|status))?[ :]*)?([0-9]{1,3})$`)
	slurmForm  = lazy.New(`^(?i:exit ?code[ :]*)?([0-9]{1,3}):([0-9]{1,3})$`)
	signalForm = lazy.New(`^(?i:(?:signal|sig)[ -]?)?([0-9]{1,2}|[A-Za-z]+[0-9]?)$`)
)

// explainExit explains an exit code, Slurm's code:signal, or a signal.
func explainExit(c *ops.Call, word string) (ExplainOut, bool) {
	if m := slurmForm.FindStringSubmatch(word); m != nil {
		code, _ := strconv.Atoi(m[1])
		number, _ := strconv.Atoi(m[2])
		switch number {
		case 0:
			return exitCode(c, word, code)
		case noFile:
			return exitCode(c, word, noFile)
		case outOfMemory:
			return ExplainOut{Word: word, Kind: "exit code", Says: ranOut.says.In(c.Lang), Do: ranOut.do.In(c.Lang)}, true
		}
		return signalled(c, word, number, fmt.Sprintf(lang.Text{EN: "in Slurm's code:signal, signal %d ended it", ZH: "Slurm 的 退出码:信号 形式：被信号 %d 终止"}.In(c.Lang), number))
	}
	if m := exitForm.FindStringSubmatch(word); m != nil {
		code, _ := strconv.Atoi(m[1])
		return exitCode(c, word, code)
	}
	m := signalForm.FindStringSubmatch(word)
	if m == nil {
		return ExplainOut{}, false
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(m[1]), "SIG")
	number, _ := strconv.Atoi(m[1])
	i := slices.IndexFunc(signals, func(s signal) bool { return s.name == name || s.number == number })
	if i < 0 {
		return ExplainOut{}, false
	}
	return signalled(c, word, signals[i].number, "")
}

func exitCode(c *ops.Call, word string, code int) (ExplainOut, bool) {
	e, known := exits[code]
	switch {
	case known:
		return ExplainOut{Word: word, Kind: "exit code", Says: e.says.In(c.Lang), Do: e.do.In(c.Lang)}, true
	case code > 128 && code < 128+65:
		return signalled(c, word, code-128, fmt.Sprintf(lang.Text{EN: "128 + %d: signal %d ended it", ZH: "128 + %d：被信号 %d 终止"}.In(c.Lang), code-128, code-128))
	case code > 255:
		return ExplainOut{}, false
	}
	return ExplainOut{
		Word: word, Kind: "exit code", Do: diagnoseIt.In(c.Lang),
		Says: lang.Text{EN: "a number of the program's own: it failed, and its log says why", ZH: "程序自定义的退出码：运行失败，原因见其日志"}.In(c.Lang),
	}, true
}

func signalled(c *ops.Call, word string, number int, how string) (ExplainOut, bool) {
	out := ExplainOut{Word: word, Kind: "signal", Says: how}
	i := slices.IndexFunc(signals, func(s signal) bool { return s.number == number })
	if i < 0 {
		return out, how != ""
	}
	s := signals[i]
	out.Says, out.Do = strings.TrimSpace(how+"\n"+s.says.In(c.Lang)), s.do.In(c.Lang)
	out.Facts = []view.Fact{
		{Name: lang.Text{EN: "signal", ZH: "信号"}.In(c.Lang), Value: fmt.Sprintf("%d %s", s.number, s.name)},
		{Name: lang.Text{EN: "exit code in a shell", ZH: "shell 中的退出码"}.In(c.Lang), Value: strconv.Itoa(128 + number)},
		{Name: lang.Text{EN: "in Slurm", ZH: "Slurm 中的写法"}.In(c.Lang), Value: "0:" + strconv.Itoa(number)},
	}
	return out, true
}
