// Package diagnose reads the logs of a job and finds what broke first: the class of the cause, its
// rank, node, file and line, who should act, and whether a retry is worth it. If nothing broke, it says
// so. It starts no process, opens only regular files, and bounds what it reads.
//
// It reads each log from its end back to where it sees healthy progress (logfile), removes launchers'
// prefixes from the lines (logline), and looks each line up in a table of patterns in one pass
// (pattern). It assembles tracebacks per rank (python), and collects the facts of each file (scan).
// This package combines the files: attempts, clocks, ranks, nodes (job.go, place.go). The steps of
// Method decide (survival.go, judge.go, health.go), and the report carries the lines on which the
// verdict rests (answer.go, report).
package diagnose

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// A Step is one step of the method. A report's Why holds the ID of the step that decided.
type Step struct {
	ID  string
	How lang.Text
}

// Method returns the steps in the order of their use. The first step that finds something decides.
func Method() []Step { return method }

var method = []Step{
	{"first cause", said(
		"The earliest exception, crash or fault that is none of NCCL's, in the last attempt, and of several runs in one file in the last. An event counts unless its process went on: iterations, "+
			"or programs that the script started, came after it; of programs that failed one after the other, the last decides, unless it lacked what the "+
			"one before was to make, or only the one before reported iterations. What is logged below error, announced, listed or shown in a table never counts, nor what "+
			"a rank prints because another one died. Clocks of two nodes are brought together by a moment that both name (the end of a rendezvous, "+
			"iterations that both report), and else believed to five seconds; within that, the line that says more wins. What the kernel, the driver or "+
			"Slurm state of hardware and memory overrules the error that Python made of it. "+
			"If most ranks raised it, each one that failed by itself among them, the answer says so: the rank of its line only wrote first.",
		"最后一次尝试（一个文件含多次运行时为最后一次运行）中最早出现的、与 NCCL 无关的异常、崩溃或故障。若其进程之后仍在继续（其后有迭代，或脚本启动的其他程序），则该事件不算；多个程序先后失败时以最后一个为准，除非它缺少的正是前一个本应生成的东西，或只有前一个报告过迭代；低于 error 级别的日志、进度提示、列表与表格，以及因其他 rank 死亡而打印的内容也不算。若两节点都记录了同一时刻（rendezvous "+
			"结束、共同报告的迭代），先据此校正时钟；否则时钟差在五秒内不分先后，此时以信息更明确的那一行为准。内核、驱动或 Slurm 关于硬件与内存的陈述优先于 Python 由此产生的报错。"+
			"若多数 rank 都抛出同一错误，且自行失败的 rank 无一例外，则会说明这一点：所示行的 rank 只是最先写出它。")},
	{"slurm ended it", said(
		"Slurm says that it ended the job: time limit, preemption, node failure, cancellation. A step that is cancelled right after a task failed is "+
			"a consequence. Except after a node failure, the node that Slurm names is the one that wrote this, and not at fault.",
		"Slurm 说明由它结束了作业：时间限制、抢占、节点故障、取消。任务失败后随即被取消的作业步只是后果。除节点故障外，Slurm 写出的节点只是写下该信息的节点，并无过错。")},
	{"slurm's state", said(
		"Slurm's state of the job, where no line says more.",
		"没有更明确的日志时，以 Slurm 记录的作业状态为准。")},
	{report.OwnWords, said(
		"A rank that left with an exit code of its own, and a last statement that says why: a sentence that it alone wrote, on its standard error or below its prefix, as Python's "+
			"sys.exit(message) writes it, or an error of its own that it logged last.",
		"某个 rank 以自己的退出码退出，且最后一条输出说明了原因：只有它写下的一句话（在其标准错误上，或带有其前缀；如 Python 的 sys.exit(message)），或最后记录的一条自身错误。")},
	{"only the network complained", said(
		"Where only the network between ranks complained: the earliest error of InfiniBand, sockets or rendezvous, unless the run went on after it. "+
			"An error of a node's own port comes before the complaints within two minutes of it; else the node is that of the peer that several nodes could not reach.",
		"只有 rank 之间的网络报错时：取最早的 InfiniBand、套接字或 rendezvous 错误，除非之后训练仍在推进。"+
			"节点自身端口的错误优先于两分钟内其他节点的报错；否则若多个节点都无法连通同一对端，则取该对端的节点。")},
	{"only collectives complained", said(
		"Where only collectives timed out: the rank that the others waited for, from flight recorder dumps, from errors that name it, from the "+
			"watchdogs' sequence numbers, or because it alone is silent. A rank that NVIDIA's resiliency extension killed because its monitor heard nothing of it hung.",
		"只有集合通信超时时：找出其他 rank 在等待的那个 rank，依据 flight recorder 转储、点名它的报错、watchdog 的序号，或只有它没有输出。"+
			"若 NVIDIA resiliency extension 的监控进程因收不到心跳而终止某个 rank，则该 rank 已挂起。")},
	{"the numbers", said(
		"Iteration lines whose loss or gradient norm stays NaN or infinite, or whose loss jumped and did not come back; or a program "+
			"that tells its loss several times, or once as the result of an evaluation, and never a number.",
		"迭代日志中损失或梯度范数持续为 NaN/无穷大，或损失跳升后未回落；或程序多次报告损失（仅作评估时一次即可），却从未是数值。")},
	// "first cause" runs here again, for less certain events: lines without the form of an error, and
	// tracebacks introduced as handled.
	{"nothing says why", said(
		"Processes that died without a message: the exit code or signal, and the last lines of the rank.",
		"进程无声退出：给出退出码或信号，以及该 rank 最后的输出。")},
	{"no progress", said(
		"A running job that has been silent for longer than fifteen of its own iterations and at least ten minutes (twenty while it saves, loads, "+
			"evaluates or builds) hangs, unless its last line tells of a failure. From five iterations on, the report says that it may hang.",
		"运行中的作业若静默时间超过其自身 15 次迭代且至少 10 分钟（保存、加载、评估或构建期间为 20 分钟），判为挂起，除非最后一行报告失败；超过 5 次迭代即提示可能挂起。")},
	{"finished", said(
		"A message that the run completed, a counter that reached its end, Slurm's COMPLETED or exit code 0. A line that a log repeats after "+
			"every round of its work, with other numbers, is not an end.",
		"正常结束的日志、计数到达最后一次，或 Slurm 的 COMPLETED 状态、退出码 0。每一轮之后都会出现、仅数字不同的输出不算结束。")},
	{"progress", said("A job that runs at its own pace.", "作业在运行，并按自身节奏推进。")},
	{"nothing says how it ended", said(
		"A job that ended, and whose logs show neither a failure nor an end.",
		"作业已结束，但日志中既没有报错，也没有正常结束的输出。")},
}

func said(en, zh string) lang.Text { return lang.Text{EN: en, ZH: zh} }
