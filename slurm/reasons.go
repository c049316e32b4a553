package slurm

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Reasons of this program, not of Slurm.
const (
	// ReasonUnsettled is the reason of a job that has left the queue and whose end is
	// not in the accounts yet. The job has neither failed nor completed: ask again.
	ReasonUnsettled = "AccountingPending"
	// ReasonVanished is the reason of an array element without a record in Slurm, as
	// happens where the element is cancelled before it starts.
	ReasonVanished = "NoRecord"
)

// Reasons lists the reasons with which Slurm 22.05 to 26.05 says why a job waits or how
// it ended, except those that name a limit, and the sentences that Slurm writes in
// their place. A "*" in a pattern matches any text; the first matching row applies.
func Reasons() []Meaning { return reasons }

// KnownReason explains the reason of a job. The reason may be in parentheses and may
// have details after a comma, as in "ReqNodeNotAvail, UnavailableNodes:gpu2".
func KnownReason(reason string) (Meaning, bool) {
	if after, ok := strings.CutPrefix(reason, "("); ok {
		reason = strings.TrimSuffix(after, ")")
	}
	word, _, _ := strings.Cut(reason, ",")
	for _, m := range reasons {
		if matchesPattern(m.Word, reason) || m.Word == word {
			m.Word = reason
			return m, true
		}
	}
	m, ok := explainLimit(word)
	m.Word = reason
	return m, ok
}

// aboutNodesAway begin the reasons of jobs that wait for nodes out of service.
var aboutNodesAway = []string{"ReqNodeNotAvail, UnavailableNodes:", "Nodes required for job are DOWN", "NodeDown"}

// WaitsForNodesAway reports whether the job waits for nodes that may be out of service. Of
// those that ReqNodeNotAvail means, Slurm names such nodes; other words after it are about
// a reservation.
func (j Job) WaitsForNodesAway() bool {
	about := func(begin string) bool { return strings.HasPrefix(j.Reason, begin) }
	return j.State == Pending && (j.Reason == "ReqNodeNotAvail" || slices.ContainsFunc(aboutNodesAway, about))
}

// UnavailableNodes returns the nodes that a reason for waiting names as unavailable, as in
// "ReqNodeNotAvail, UnavailableNodes:gpu[2-3]".
func UnavailableNodes(reason string) []string {
	_, list, _ := strings.Cut(reason, "UnavailableNodes:")
	list, _, _ = strings.Cut(list, " ")
	if list = strings.TrimRight(list, ")"); list == "" {
		return nil
	}
	return nodesOf(list)
}

// matchesPattern reports whether word matches pattern, in which "*" matches any text.
func matchesPattern(pattern, word string) bool {
	head, rest, open := strings.Cut(pattern, "*")
	if !open {
		return pattern == word
	}
	word, begins := strings.CutPrefix(word, head)
	for begins {
		if matchesPattern(rest, word) {
			return true
		}
		if word == "" {
			return false
		}
		word = word[1:]
	}
	return false
}

// ExplainReason explains the reason of a job. For an unknown reason it says so and
// keeps the reason unchanged.
func ExplainReason(reason string) Meaning {
	if m, ok := KnownReason(reason); ok {
		return m
	}
	return Meaning{
		Word: reason,
		Says: lang.Text{EN: "a reason that this version does not know", ZH: "当前版本不认识的原因"},
		Do:   lang.Text{EN: "look it up in squeue(1), or ask the operators", ZH: "请查阅 squeue(1) 或询问管理员"},
	}
}

func reason(word, en, zh, doEN, doZH string) Meaning {
	return Meaning{word, lang.Text{EN: en, ZH: zh}, lang.Text{EN: doEN, ZH: doZH}}
}

var reasons = []Meaning{
	reason("", "no reason is given", "未给出原因", "", ""),
	reason("None", "not looked at by the scheduler yet, or nothing is in the way", "调度器尚未处理，或没有障碍", "", ""),
	reason("Priority", "jobs of higher priority wait for the same nodes", "有更高优先级的作业在等待相同节点", "wait, or ask for less: fewer nodes or a shorter time may start earlier (backfill)", "请等待；减少节点或缩短时间可能更早启动（回填调度）"),
	reason("Resources", "is first in line and waits until enough nodes are free", "已排在最前，等待足够的空闲节点", "wait; fewer nodes or a shorter time may start earlier", "请等待；减少节点或缩短时间可能更早启动"),
	reason("Dependency", "waits for another job", "等待依赖的作业", "look at that job with status: if it is held or fails, this one never starts", "用 status 查看被依赖的作业；若其被保持或失败，本作业永远不会启动"),
	reason("DependencyNeverSatisfied", "waits for a job that did not end as its dependency asks, so it never starts", "依赖的作业未按要求结束，永远不会启动", "cancel it; submit it again with another dependency", "请取消它，并以新的依赖重新提交"),
	reason("BeginTime", "waits for its begin time: --begin, or two minutes after a requeue", "未到开始时间（--begin 指定，或重新排队后两分钟）", "", ""),
	reason("JobHeldUser", "is held by its owner", "被所有者保持", "release it", "执行 release"),
	reason("JobHeldAdmin", "is held by an operator", "被管理员保持", "ask the operators; the owner cannot release it", "请联系管理员；所有者无法释放"),
	reason("job requeued in held state", "was requeued and is held", "已重新排队并保持", "release it", "执行 release"),
	reason("launch failed requeued held", "could not be launched, was requeued and is held", "启动失败，已重新排队并保持", "look at the node's state, then release it", "检查节点状态后 release"),
	reason("launch failure limit exceeded requeued held", "could not be launched as often as the site allows, and is held", "启动失败次数达到站点上限，已保持", "look at the nodes' states, then release it", "检查节点状态后 release"),
	reason("user env retrieval failed requeued held", "its environment could not be fetched (--get-user-env), and it is held", "无法获取用户环境（--get-user-env），已保持", "leave --get-user-env out, then release it", "去掉 --get-user-env 后 release"),
	reason("*requeue-hold exit", "was requeued and is held because of its exit code, by the site's rules", "因退出码按站点规则重新排队并保持", "read its log, then release it", "查看日志后 release"),
	reason("Unable to load job *", "Slurm has lost its script or environment", "Slurm 丢失了作业脚本或环境", "submit it again", "请重新提交"),
	reason("JobHoldMaxRequeue", "was requeued as often as the site allows and is held", "重新排队次数达到站点上限，已保持", "find why it is requeued, then release it", "查明重新排队的原因后 release"),
	reason("JobArrayTaskLimit", "waits because the array's limit of elements at a time (%N) is reached", "已达数组同时运行上限（%N）", "raise the limit: scontrol update ArrayTaskThrottle", "可用 scontrol update ArrayTaskThrottle 提高上限"),
	reason("ReqNodeNotAvail, Reserved for maintenance*", "would run into a maintenance of the nodes", "作业会与节点维护时段冲突", "a job that ends before the maintenance may start: shorten time, or wait", "缩短时限使作业在维护前结束，或等待维护结束"),
	reason("ReqNodeNotAvail, May be reserved for other job*", "the nodes it could use are kept for another job or a maintenance, or down", "可用节点已为其他作业或维护保留，或不可用", "wait; a shorter time or fewer nodes may start earlier (backfill)", "请等待；缩短时间或减少节点可能更早启动（回填调度）"),
	reason("ReqNodeNotAvail", "asks for nodes that are down, drained or reserved", "所需节点处于 down、drain 或被预留", "drop nodelist, or choose other nodes", "去掉 nodelist，或改用其他节点"),
	reason("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions*", "the nodes it could use are down, drained, or kept for partitions of higher priority", "可用节点处于 down、drain 或被更高优先级分区占用", "look at `nodes`; wait, choose another partition, or ask for fewer nodes", "查看 `nodes`；请等待、更换分区或减少节点"),
	reason("Constraints", "no node that satisfies its constraints is free now", "当前没有满足约束的空闲节点", "wait, or change constraint", "请等待，或修改 constraint"),
	reason("NodeDown", "a node that it needs is down", "所需节点宕机", "exclude the node", "排除该节点"),
	reason("BadConstraints", "no node can ever satisfy its constraints", "没有节点能满足其约束", "change constraint, GPU type or memory", "修改 constraint、GPU 型号或内存"),
	reason("PartitionDown", "the partition is down: jobs wait", "分区为 DOWN 状态，作业等待", "choose another partition, or wait for the operators", "更换分区或等待管理员"),
	reason("PartitionInactive", "the partition takes no jobs", "分区为 INACTIVE 状态", "choose another partition", "更换分区"),
	reason("PartitionNodeLimit", "asks for more or fewer nodes than the partition allows, so it never starts as it is", "节点数超出分区限制，按现状永远不会启动", "change nodes or the partition", "修改节点数或分区"),
	reason("PartitionTimeLimit", "asks for more time than the partition allows, so it never starts as it is", "时限超过分区上限，按现状永远不会启动", "shorten time or choose another partition", "缩短时限或更换分区"),
	reason("PartitionConfig", "asks for what the partition is not set up for", "请求与分区配置不符", "compare it with `nodes`", "对照 `nodes` 检查"),
	reason("AccountNotAllowed", "the account may not use the partition", "账户无权使用该分区", "use another account or partition", "更换账户或分区"),
	reason("Job's account not *", "the account may not use the partition", "账户无权使用该分区", "use another account or partition: the reason names those allowed", "更换账户或分区：原因中列出了允许的账户"),
	reason("Job's QOS not *", "the QOS may not use the partition", "该 QOS 不能用于此分区", "use another QOS or partition: the reason names those allowed", "更换 QOS 或分区：原因中列出了允许的 QOS"),
	reason("uid * not in group permitted to use this partition *", "you are in none of the groups that may use the partition", "您不在该分区允许的用户组中", "choose another partition, or ask for membership", "请更换分区，或申请加入用户组"),
	reason("AccountingPolicy", "an accounting policy of the account or QOS is in the way", "受账户或 QOS 的记账策略限制", "compare it with `accounts`", "对照 `accounts` 检查"),
	reason("QOSNotAllowed", "the QOS may not be used with the partition or account", "该 QOS 不能用于此分区或账户", "use another QOS", "更换 QOS"),
	reason("InvalidAccount", "the account is not valid any more", "账户已失效", "use another account", "更换账户"),
	reason("InvalidQOS", "the QOS is not valid any more", "QOS 已失效", "use another QOS", "更换 QOS"),
	reason("Reservation", "waits for its reservation to begin", "等待预留开始", "", ""),
	reason("ReservationDeleted", "its reservation is gone", "预留已被删除", "submit it without the reservation", "去掉预留后重新提交"),
	reason("ReservationInvalid", "its reservation is not valid any more", "预留已失效", "submit it without the reservation", "去掉预留后重新提交"),
	reason("Reservation * was deleted", "its reservation is gone", "预留已被删除", "submit it without the reservation", "去掉预留后重新提交"),
	reason("Reservation * is invalid", "its reservation is not valid any more", "预留已失效", "submit it without the reservation", "去掉预留后重新提交"),
	reason("Reservation *, which this job was running under, has ended", "the reservation that it ran in is over", "作业所在的预留已结束", "submit it again, without the reservation", "去掉预留后重新提交"),
	reason("*: Holding *, reservation * was deleted", "is held because its reservation is gone", "因预留被删除而被保持", "submit it without the reservation", "去掉预留后重新提交"),
	reason("Licenses", "waits for a licence", "等待许可证", "", ""),
	reason("Cleaning", "is being cleaned up after a run before it can start again", "上次运行清理中，完成后才能再次启动", "", ""),
	reason("Prolog", "waits for the nodes' prolog", "等待节点 prolog", "", ""),
	reason("NetworkError", "the nodes could not be reached", "无法联系到节点", "tell the operators", "请告知管理员"),
	reason("FrontEndDown", "no front end node is up", "没有可用的前端节点", "wait for the operators", "等待管理员"),
	reason("BeginTime*", "waits for its begin time", "未到开始时间", "", ""),
	reason("DeadLine", "cannot end before its deadline", "无法在截止时间前完成", "give a later deadline", "推迟 deadline"),
	reason("BurstBufferResources", "waits until its burst buffer has room", "等待 burst buffer 空间", "", ""),
	reason("BurstBufferStageIn", "its files are being copied into its burst buffer", "正在向 burst buffer 预载文件", "", ""),
	reason("BurstBufferOperation", "its burst buffer was refused or failed, and the job is held", "burst buffer 被拒绝或失败，作业已保持", "mend the #BB or #DW lines and submit it again, or release it once the burst buffer is there; `scontrol show job` has its words", "修正 #BB 或 #DW 行后重新提交，或在 burst buffer 就绪后 release；原话见 `scontrol show job`"),
	reason("Burst buffer pre_run error", "its burst buffer could not be made ready, and the job is held", "burst buffer 准备失败，作业已保持", "tell the operators, then release it", "请告知管理员，之后 release"),
	reason("Burst buffer create_persistent error", "its lasting burst buffer could not be made", "无法创建持久 burst buffer", "tell the operators", "请告知管理员"),
	reason("burst_buffer/*", "its burst buffer was refused or failed, and the job is held", "burst buffer 被拒绝或失败，作业已保持", "read the words behind the colon; mend the #BB or #DW lines and submit it again, or release it once the burst buffer is there", "查看冒号后的文字；修正 #BB 或 #DW 行后重新提交，或在 burst buffer 就绪后 release"),
	reason("SchedDefer", "is not tried at submission; the scheduler comes to it", "提交时不立即调度，稍后由调度器处理", "", ""),
	reason("MaxRequeue", "was requeued as often as the site allows", "重新排队次数已达上限", "find why it is requeued", "查明重新排队的原因"),
	reason("TimeLimit", "reached its time limit", "到达时限", "ask for more time or chain jobs", "申请更长时限或使用作业链"),
	reason("InactiveLimit", "was ended for being inactive", "因长时间不活动被终止", "", ""),
	reason("NonZeroExitCode", "ended with another exit code than 0", "以非 0 退出码结束", "diagnose the job", "请诊断该作业"),
	reason("RaisedSignal:53*", "could not be launched: most often its working directory does not exist on the node", "无法启动：多因工作目录在节点上不存在", "make the directory, or give another with --chdir, and submit again", "创建目录或用 --chdir 指定其他目录后重新提交"),
	reason("RaisedSignal:*", "was ended by a signal", "被信号终止", "diagnose the job", "请诊断该作业"),
	reason("RaisedSignal", "was ended by a signal", "被信号终止", "diagnose the job", "请诊断该作业"),
	reason("OutOfMemory", "used more memory than it was given", "内存超出申请量", "ask for more memory", "申请更多内存"),
	reason("JobLaunchFailure", "could not be launched: most often its log directory or working directory does not exist on the node", "无法启动：多因日志目录或工作目录在节点上不存在", "make the directory and submit again", "创建目录后重新提交"),
	reason("SystemFailure", "Slurm or the node failed", "Slurm 或节点故障", "submit it again; tell the operators", "重新提交并告知管理员"),
	reason("PrologFailed", "the node's prolog failed", "节点 prolog 失败", "tell the operators the node", "把节点告诉管理员"),
	reason("FedJobLock", "waits for the other clusters of the federation", "等待联邦中其他集群", "", ""),
	reason("OriginCluster*", "is managed by another cluster of the federation", "由联邦中的另一集群管理", "", ""),
	reason("DelayBoot", "waits for nodes to become free rather than booting others", "等待节点空闲而非启动新节点", "", ""),
	reason("MaxPoweredUpNodes", "as many nodes are powered up as the site allows", "已上电的节点数达到站点上限", "wait until other nodes are powered down", "等待其他节点断电"),
	reason("PowerNotAvail", "there is not enough power for it now", "当前供电不足", "wait", "请等待"),
	reason("PowerReserved", "the power that it needs is reserved", "所需供电已被预留", "wait", "请等待"),
	reason("MpiPortsBusy", "the ports that its step needs are taken", "步骤所需端口被占用", "wait", "请等待"),
	reason("NvidiaImexChannels", "waits for a free NVIDIA IMEX channel on its nodes", "等待节点上空闲的 NVIDIA IMEX 通道", "wait until another job on the NVLink domain ends", "等待同一 NVLink 域中的其他作业结束"),
	reason("BlockMaxError", "too many errors on a block", "block 上的错误过多", "tell the operators", "请告知管理员"),
	reason("BlockFreeAction", "a block is being freed", "block 正在释放", "", ""),
	reason("NodeJobLimit*", "the node has as many jobs as it may", "节点作业数已达上限", "", ""),
	reason("BootFailure", "a node did not boot", "节点启动失败", "tell the operators the node", "把节点告诉管理员"),
	reason("ReservedForMaintenance", "the nodes are reserved for maintenance", "节点预留用于维护", "a job that ends before the maintenance may start: shorten time", "缩短时限使作业在维护前结束，可能提前启动"),
	reason(ReasonUnsettled, "has left the queue; the accounts do not have its end yet", "已离开队列，记账数据库尚无结束记录", "ask again in a minute", "一分钟后再查"),
	reason(ReasonVanished, "Slurm kept no record of it: it was cancelled before it started, or the array has no such task", "Slurm 没有留下记录：启动前已被取消，或数组中没有该任务", "", ""),

	// Limits whose names do not follow the pattern of limitReason.
	reason("QOSJobLimit", "the QOS runs as many jobs as it may", "该 QOS 的作业数已达上限", "wait", "请等待"),
	reason("QOSResourceLimit", "the QOS has used up a resource", "该 QOS 的某项资源已达上限", "wait, or use another QOS", "等待或更换 QOS"),
	reason("QOSTimeLimit", "the QOS has used up its time", "该 QOS 的时间已用完", "wait, or use another QOS", "等待或更换 QOS"),
	reason("Job is at or exceeds QOS *", "its run has used up a limit of the QOS", "运行已用完该 QOS 的限额", "use another QOS, or wait until usage decays", "更换 QOS，或等待使用量衰减"),
	reason("Job is at or exceeds association *", "its run has used up a limit of the account", "运行已用完账户的限额", "use another account, or wait until usage decays", "更换账户，或等待使用量衰减"),
	reason("QOSUsageThreshold", "its usage is over what the QOS allows to start", "使用量超过该 QOS 的启动阈值", "wait until usage decays", "等待使用量衰减"),
	reason("AssociationJobLimit", "your account runs as many jobs as it may", "账户运行的作业数已达上限", "wait until one ends", "等待其中一个结束"),
	reason("AssociationResourceLimit", "your account has used up a resource", "账户的某项资源已达上限", "wait, or use another account", "等待或更换账户"),
	reason("AssociationTimeLimit", "your account has used up its time", "账户的时间已用完", "use another account", "更换账户"),
	reason("MaxMemPerLimit", "asks for more memory per CPU or node than allowed", "每 CPU 或每节点内存超过上限", "lower mem", "降低 mem"),
}
