package slurm

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Meaning explains a word of Slurm, with advice for a person.
type Meaning struct {
	Word string
	Says lang.Text
	Do   lang.Text // advice; empty where nothing needs doing
}

// A StateMeaning explains a job state.
type StateMeaning struct {
	Meaning
	// Short is squeue's two-letter code.
	Short string
	// Ended reports whether a job in the state does not run again by itself.
	Ended bool
}

// States lists the job states and state flags of Slurm (squeue(1), "JOB STATE
// CODES"; sacct(1)).
func States() []StateMeaning { return states }

// KnownState returns the state that a person or a script names as Slurm's commands print
// it: in either case, by squeue's code, or as sacct's "CANCELLED by 1001" and its
// "OUT_OF_ME+" of a narrow column.
func KnownState(word string) (State, bool) {
	s := ParseState(strings.TrimSpace(word))
	i := slices.IndexFunc(states, func(m StateMeaning) bool { return m.Word == string(s) || m.Short == string(s) })
	if i < 0 && len(s) >= 9 && strings.HasSuffix(word, "+") {
		i = slices.IndexFunc(states, func(m StateMeaning) bool { return strings.HasPrefix(m.Word, string(s)) })
	}
	if i < 0 {
		return "", false
	}
	return State(states[i].Word), true
}

// Explain explains s. For a word that this version does not know it says so.
func (s State) Explain() StateMeaning {
	for _, m := range states {
		if m.Word == string(s) {
			return m
		}
	}
	if s == Ended {
		return state(string(s), "", true, "has left the queue; how it ended is not known while Slurm's accounts do not answer", "已离开队列；Slurm 的记账数据库没有应答，暂不知道如何结束", "ask again later; `logs` and `diagnose` read its files meanwhile", "请稍后再查；其间可用 `logs` 与 `diagnose` 读取其日志")
	}
	return StateMeaning{Meaning: Meaning{
		Word: string(s),
		Says: lang.Text{EN: "a state that this version does not know; Slurm may be newer", ZH: "当前版本不认识该状态；Slurm 可能更新"},
		Do:   lang.Text{EN: "look it up in squeue(1) of your site's Slurm", ZH: "请查阅站点 Slurm 的 squeue(1)"},
	}}
}

func state(word, short string, ended bool, en, zh, doEN, doZH string) StateMeaning {
	return StateMeaning{Meaning{word, lang.Text{EN: en, ZH: zh}, lang.Text{EN: doEN, ZH: doZH}}, short, ended}
}

var states = []StateMeaning{
	state("PENDING", "PD", false, "waits for resources, or for what its reason names", "等待资源，或等待其原因所述的条件", "look at the reason", "请查看原因（reason）"),
	state("CONFIGURING", "CF", false, "has its nodes, which are being made ready or booted", "已分配节点，节点正在准备或启动", "", ""),
	state("RUNNING", "R", false, "runs on its nodes", "正在节点上运行", "", ""),
	state("COMPLETING", "CG", false, "is ending: processes or the epilog still run on some node", "正在收尾：部分节点上仍有进程或 epilog 在运行", "if it lasts more than some minutes, a process hangs; tell the operators the node", "若持续数分钟以上，说明有进程卡住；请把节点告诉管理员"),
	state("COMPLETED", "CD", true, "ended with exit code 0 on all nodes", "在所有节点上以退出码 0 结束", "", ""),
	state("FAILED", "F", true, "ended with another exit code than 0", "以非 0 退出码结束", "diagnose the job", "请诊断（diagnose）该作业"),
	state("CANCELLED", "CA", true, "was cancelled by its owner or an operator, before or while it ran", "被所有者或管理员取消（运行前或运行中）", "submit it again if that was not meant", "若并非有意取消，请重新提交"),
	state("TIMEOUT", "TO", true, "was ended at its time limit", "到达时限而被终止", "resume from the last checkpoint; ask for more time or chain jobs", "从最近的检查点恢复；申请更长时限或使用作业链"),
	state("NODE_FAIL", "NF", true, "was ended because a node of it failed or stopped answering", "因节点故障或失联而被终止", "submit it again without the node", "排除该节点后重新提交"),
	state("OUT_OF_MEMORY", "OOM", true, "was ended because it used more host memory than it was given", "因主机内存超出申请量而被终止", "ask for more memory (mem), or use fewer data loader workers", "申请更多内存（mem），或减少数据加载进程"),
	state("PREEMPTED", "PR", true, "was ended to make room for a job of higher priority", "为更高优先级的作业让位而被终止", "it can be submitted again as it is; resume from the last checkpoint", "可原样重新提交；从最近的检查点恢复"),
	state("BOOT_FAIL", "BF", true, "was ended because a node did not boot", "因节点启动失败而被终止", "submit it again; tell the operators the node", "请重新提交，并把节点告诉管理员"),
	state("DEADLINE", "DL", true, "was ended because it could not finish before its deadline", "因无法在截止时间（deadline）前完成而被终止", "give a later deadline or a shorter time limit", "推迟 deadline 或缩短时限"),
	state("SUSPENDED", "S", false, "is stopped; it keeps its nodes but not its CPUs", "已暂停（suspend）；保留节点但让出 CPU", "an operator resumes it; a long NCCL time-out may pass meanwhile", "由管理员恢复；期间可能触发 NCCL 超时"),
	state("STOPPED", "ST", false, "is stopped by a signal and keeps all its resources", "被信号停止，仍占有全部资源", "continue it with scancel --signal=CONT", "用 scancel --signal=CONT 继续"),
	state("REQUEUED", "RQ", false, "was put back into the queue after a run", "运行后被放回队列", "it starts again by itself; look whether it resumes from a checkpoint", "会自动再次启动；请确认能从检查点恢复"),
	state("REQUEUE_HOLD", "RH", false, "was put back into the queue and is held", "被放回队列并处于保持状态", "release it when the cause is mended", "排除原因后 release"),
	state("REQUEUE_FED", "RF", false, "is being requeued by a federation of clusters", "正由集群联邦重新排队", "", ""),
	state("SPECIAL_EXIT", "SE", false, "was requeued in a special state, held, by its site's rules", "按站点规则以特殊状态重新排队并保持", "read its log, then release it", "查看日志后再 release"),
	state("EXPEDITING", "EX", false, "is requeued at once, ahead of others, because its node or launch failed", "因节点或启动失败而立即优先重新排队", "", ""),
	state("RESV_DEL_HOLD", "RD", false, "is held because its reservation is gone", "因预留被删除而被保持", "submit it without the reservation", "去掉预留后重新提交"),
	state("RESIZING", "RS", false, "is about to change its size", "即将改变规模", "", ""),
	state("SIGNALING", "SI", false, "is being signalled", "正在接收信号", "", ""),
	state("STAGE_OUT", "SO", false, "copies its results out", "正在转出结果文件", "", ""),
	state("REVOKED", "RV", true, "was taken over by another cluster of the federation", "已由联邦中的另一集群接管", "look for it on the other cluster", "请在另一集群上查看"),
}

// NeverStarts reports whether a job waits for what can no longer happen.
func (j Job) NeverStarts() bool { return j.State == Pending && j.Reason == "DependencyNeverSatisfied" }

// ExplainState explains the state that the job is in. A job that Slurm ended as at a time
// limit, and that was still within its own, ran into another limit.
func (j Job) ExplainState() Meaning {
	if j.State != Timeout || j.TimeLimitS == nil || j.ElapsedS+limitSlack >= *j.TimeLimitS {
		return j.State.Explain().Meaning
	}
	return Meaning{
		string(j.State),
		lang.Text{
			EN: "was ended as at a time limit, before it had run for its own: its reservation ended, or what its account or QOS may use was used up",
			ZH: "在达到自身时限之前就被按超时终止：所在预留已结束，或账户、QOS 的额度已用完",
		},
		lang.Text{
			EN: "resume from the last checkpoint, without the reservation if it had one; more time alone does not help: compare `accounts`",
			ZH: "从最近的检查点恢复（若用过预留请去掉）；仅延长时限无效，请对照 `accounts`",
		},
	}
}

// limitSlack is how many seconds before its time limit a job counts as ended by it.
const limitSlack = 60

// Preemption says that Slurm takes or took the nodes of the job's run for a job of
// higher priority, where the state does not. It is empty for any other job.
func (j Job) Preemption() lang.Text {
	switch {
	case j.PreemptedAt == nil || j.State == Preempted:
		return lang.Text{}
	case j.State.Ended():
		return lang.Text{
			EN: "Slurm preempted it: it had been asked to end, to make room for a job of higher priority; unless it had finished, submit it again as it is",
			ZH: "被 Slurm 抢占：此前已要求它结束，为更高优先级的作业让位；若尚未完成，可原样重新提交",
		}
	}
	return lang.Text{
		EN: "Slurm is preempting it for a job of higher priority: it has been asked to end, and is killed when its grace time is over",
		ZH: "Slurm 正在为更高优先级的作业抢占它：已要求其结束，宽限时间一到即被终止",
	}
}

// RunBefore says how the run before ended, for a job that waits again. It is empty for any
// other job, and where that is unknown.
func (j Job) RunBefore() lang.Text {
	if j.State != Pending || len(j.Requeues) == 0 {
		return lang.Text{}
	}
	how := j.Requeues[len(j.Requeues)-1].Explain()
	return lang.Text{EN: "the run before is %s: it %s", ZH: "上一次运行为 %s：%s"}.With(how.Word, how.Says)
}
