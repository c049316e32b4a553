package compute

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Code is a job state, a node state or a suffix of a node state, as squeue and sinfo
// print it, with its meaning.
type Code struct {
	Kind        string // job, node or suffix
	Short, Long string
	EN, ZH      string
}

// Codes are the job states, node states and node state suffixes of squeue(1)
// and sinfo(1).
var Codes = []Code{
	{"job", "BF", "BOOT_FAIL", "the job ended because its nodes failed to boot; Slurm may requeue it", "节点启动失败导致作业终止,可被重新排队"},
	{"job", "CA", "CANCELLED", "cancelled by the user or an administrator, before or after it started", "被用户或管理员取消(开始前后都可能)"},
	{"job", "CD", "COMPLETED", "completed with success: all processes ended with exit code zero (0)", "已完成:成功结束,所有进程退出码为 0"},
	{"job", "CF", "CONFIGURING", "resources are allocated, nodes are being made ready (booting)", "已分配资源,节点正在准备(如启动)"},
	{"job", "CG", "COMPLETING", "completing: the job is ending, some processes are still active on nodes (cleanup, epilog)", "正在完成:作业正在结束,部分进程仍在活动(清理、epilog)"},
	{"job", "DL", "DEADLINE", "ended at its deadline (--deadline)", "到达截止时间(--deadline)而终止"},
	{"job", "F", "FAILED", "failed: it ended with a non-zero exit code or another failure", "失败:以非零退出码或其他故障终止"},
	{"job", "NF", "NODE_FAIL", "ended because one or more of its nodes failed; requeue or resubmit without the node", "所用节点发生故障而终止;重新排队或排除该节点重交"},
	{"job", "OOM", "OUT_OF_MEMORY", "out of memory: it hit its host memory limit (cgroup, --mem), not GPU memory", "内存不足:超出主机内存上限(cgroup、--mem),不是显存"},
	{
		"job", "PD", "PENDING", "pending: it waits for resources (the reason is in squeue's last column) and will run in the end",
		"待处理:正在等待资源分配(原因在 squeue 最后一列),最终会运行",
	},
	{"job", "PR", "PREEMPTED", "preempted: ended because another job with higher priority took its resources", "已抢占:被另一个更高优先级的作业抢占而终止"},
	{"job", "R", "RUNNING", "running: it has its allocation and is executing", "运行中:已分配到节点并正在运行"},
	{"job", "RD", "RESV_DEL_HOLD", "held because its reservation was deleted", "所用预留被删除,作业被挂起(hold)"},
	{"job", "RF", "REQUEUE_FED", "being requeued by a federation", "正被联邦集群重新排队"},
	{"job", "RH", "REQUEUE_HOLD", "requeued and held; release it with scontrol release", "被重新排队并挂起;用 scontrol release 释放"},
	{"job", "RQ", "REQUEUED", "a completing job is being requeued", "正在结束的作业被重新排队"},
	{"job", "RS", "RESIZING", "about to change its size", "正在改变大小"},
	{"job", "RV", "REVOKED", "removed because it started on another cluster of the federation", "在联邦中的其他集群启动,本地被撤销"},
	{"job", "S", "SUSPENDED", "suspended: its execution is stopped and its cores (CPUs) are released to other jobs", "已暂停(suspended):运行被停止,核心已释放给其他作业"},
	{"job", "SE", "SPECIAL_EXIT", "requeued in a special state, held, after an exit code the site chose", "以特殊退出码结束,被重新排队并挂起"},
	{"job", "SI", "SIGNALING", "being sent a signal", "正在接收信号"},
	{"job", "SO", "STAGE_OUT", "files are being staged out (burst buffer)", "正在导出文件(burst buffer)"},
	{"job", "ST", "STOPPED", "stopped with SIGSTOP, but its cores (CPUs) are retained (kept)", "已停止(stopped):被 SIGSTOP 停止,但核心被保留"},
	{
		"job", "TO", "TIMEOUT", "timeout: it reached its time limit (--time) and was ended; ask for more or save before the limit",
		"超时:到达时间限制(--time)被终止;加长时限或提前保存",
	},

	{"node", "alloc", "ALLOCATED", "the node is allocated to one or more jobs, all its CPUs are in use", "节点已分配给正在执行的作业,CPU 全部占用"},
	{"node", "boot", "BOOT", "the node is booting", "节点正在启动"},
	{"node", "comp", "COMPLETING", "jobs on the node are ending; it takes new ones when their processes are gone", "节点上的作业正在结束,进程退净后才接新作业"},
	{
		"node", "down", "DOWN", "the node is unavailable: it failed or does not respond; an administrator (or its return) brings it back",
		"节点不可用:故障或无响应,需管理员处理或自行恢复",
	},
	{
		"node", "drain", "DRAINED", "unavailable for administrative reasons: no jobs run on it and it takes no new work; `sinfo -R` tells the reason",
		"因管理原因不可用:没有作业在运行,也不再接受新作业;`sinfo -R` 看原因",
	},
	{"node", "drng", "DRAINING", "the node still runs a job, which goes on to its end; after that the node becomes unavailable (drained) for " +
		"administrative reasons; no new jobs", "节点仍在运行作业,作业会继续跑完;完成后因管理原因不可用(排空),不接新作业"},
	{"node", "fail", "FAIL", "expected to fail soon: no new work, by the administrator", "预计即将故障,管理员已停止分配新作业"},
	{"node", "failg", "FAILING", "runs a job but is expected to fail soon", "正在运行作业,但预计即将故障"},
	{"node", "futr", "FUTURE", "defined but not yet existing", "已定义但尚不存在"},
	{"node", "idle", "IDLE", "no job runs on it; it is available", "没有作业运行,可用(空闲)"},
	{"node", "inval", "INVAL", "the node registered with a configuration that does not fit slurm.conf (e.g. fewer GPUs)", "节点注册的配置与 slurm.conf 不符(如 GPU 变少)"},
	{"node", "maint", "MAINT", "in a reservation for maintenance", "处于维护预留中"},
	{"node", "mix", "MIXED", "some of its CPUs are allocated to jobs while others are idle", "部分 CPU 已分配,其他 CPU 空闲"},
	{"node", "npc", "PERFCTRS", "performance counters in use by a job, so it takes no other", "性能计数器被作业占用,不能分配给别的作业"},
	{"node", "plnd", "PLANNED", "planned by the backfill scheduler for a higher priority job", "已被回填调度器安排给更高优先级作业"},
	{"node", "pow_dn", "POWERING_DOWN", "being powered down", "正在关机"},
	{"node", "pow_up", "POWERING_UP", "being powered up", "正在开机"},
	{"node", "resv", "RESERVED", "in an advanced reservation and not generally available", "处于预留中,一般用户不可用"},
	{"node", "unk", "UNKNOWN", "the controller has just started and has not yet heard of the node", "控制器刚启动,尚不知道节点状态"},

	{"suffix", "*", "*", "the node is not responding and gets no new work; if it stays so it is set DOWN (except nodes that are completing, drained " +
		"or failing)", "节点当前没有响应,不会分配新工作;持续无响应会被置为 DOWN(正在完成、已排空、故障中的除外)"},
	{"suffix", "~", "~", "the node is powered off (power saving)", "节点已关机(省电模式)"},
	{"suffix", "#", "#", "the node is being powered up or configured", "节点正在启动或配置"},
	{"suffix", "!", "!", "the node is pending power down", "节点等待关机"},
	{"suffix", "%", "%", "the node is being powered down", "节点正在关机"},
	{"suffix", "$", "$", "the node is in a reservation with the flag maintenance", "节点处于标志为“维护(maintenance)”的预留中"},
	{"suffix", "@", "@", "the node is pending a reboot", "节点等待重启"},
	{"suffix", "^", "^", "a reboot of the node was issued", "节点的重启命令已发出"},
	{"suffix", "-", "-", "the node is planned by the backfill scheduler for a higher priority job", "该节点已被回填(backfill)调度器计划给更高优先级的作业"},
}

var (
	tokenForm = lazy.New(`[A-Za-z_]+`)
	han       = lazy.New(`\p{Han}`)
	suffixed  = lazy.New(`(?:idle|alloc|mix(?:ed)?|drain(?:ed)?|drng|down|comp|maint|resv|allocated)([*~#!%$@^-])(?:[^\w-]|$)`)
	quoted    = lazy.New("(?:^|[\\s\"'`“‘(（「带是的码缀号])([*~#!%$@^-])(?:[\\s\"'`”’)）」,，?？是表代什]|$)")
	// asksMeaning matches questions about the meaning of a state.
	asksMeaning = lazy.New(`\bdifferences?\b|区别|差别|\b(?:flagged|marked|shown)\b|标着|标了|\bstates?\b|\bstatus\b|\bcodes?\b|\bmeans?\b` +
		`|\bmeaning\b|stands? for|st column|suffix|symbol|what(?:'s| is| are)|says|shows|显示|explain|definition|状态|代码|含义` +
		`|意思|代表|是什么|是啥|表示|啥|后缀|符号|什么叫|怎么理解|定义|指的是`)
	// asksOtherwise matches questions about something else than the meaning.
	asksOtherwise = lazy.New(`\bcancelled by\b|\bpart(?:ly|ially)\b|部分|kill task failed|\beta\b|能不|能直接|怎么改|可以改|改吗|怎么清|怎么处理|怎么解决|清掉|一直|依赖|失败了` +
		`|\bforever\b|get rid|\bclear\b|\bstays?\b|\bkeeps\b|\balias\b|别名|how do i|do i type|to see|exit code|退出码` +
		`|how to|how can|怎么办|怎么取消|列出|\blist\b|avoid|排除|command|命令|right\?|correct\?|yes\?|isn't it|\b(?:open(?:ing|ed)?` +
		`|submit(?:ting)?|send(?:ing)?|before|merg\w+|review|create|creating|make) (?:a |an |the |my )?prs?\b|(?:提|开|发` +
		`|合|交|合并) ?个? ?pr\b|对吧|对吗|是吧|\bmy (?:running|pending)|马上|^why |为什么|原因|reason|error|报错|due to|_%a|%a_|--array` +
		`|--begin|--output|checkpoint|训练|tests?\b|label|标签|pull request|\bwait\b|还要等|result file|结果文件|artifact|产物`)
)

// column matches the heading ST of squeue's column of codes, because ST is also a code.
var column = lazy.New(`\bST (?:column|列)|\bST\b的?列`)

// pendingReason matches the reason that squeue prints for a pending job.
var pendingReason = lazy.New(`\([A-Z][A-Za-z]{5,}`)

// signWords are regular expressions for the names of the characters after a node state.
var signWords = []struct{ sign, words string }{
	{"*", `asterisk|\bstar\b|星号`},
	{"~", `tilde|波浪`},
	{"#", `\bhash\b|pound|井号`},
	{"!", `exclamation|感叹号|叹号`},
	{"%", `percent sign|百分号`},
	{"$", `dollar|美元符|美元号|钱号`},
	{"@", `\bat[- ]sign\b|at 符号|艾特`},
	{"^", `caret|circumflex|脱字符|尖号|上尖`},
	{"-", `\bminus\b|\bdash\b|hyphen|减号|横杠|连字符`},
}

// shortHan is the maximal number of Chinese characters in a question that only names a
// state.
const shortHan = 10

// state explains the state, the state code or the suffix in a question.
func state(q *question) string {
	if len([]rune(q.text)) > 120 || asksOtherwise.MatchString(q.low) || pendingReason.MatchString(q.text) {
		return ""
	}
	if texts := q.suffixes(); len(texts) > 1 {
		return strings.Join(append(texts, q.comparedStates()...), "\n")
	}
	if m := suffixed.FindStringSubmatch(q.low); m != nil {
		return strings.Join(append([]string{q.explain("suffix", m[1])}, q.comparedStates()...), "\n")
	}
	short := len(tokenForm.FindAllString(q.text, -1)) <= 3 && len(han.FindAllString(q.text, -1)) <= shortHan
	talk := asksMeaning.MatchString(q.low)
	if !short && !talk {
		return ""
	}
	if q.has("node", "节点", "sinfo", "状态", "state", "suffix", "后缀", "idle", "alloc", "mix", "drain", "down") {
		for _, s := range signWords {
			if compiled(s.words).MatchString(q.low) {
				return q.explain("suffix", s.sign)
			}
		}
		if m := quoted.FindStringSubmatch(q.low); m != nil {
			return q.explain("suffix", m[1])
		}
	}
	var found []string
	nodeTalk := q.has("node", "节点", "sinfo", "机器")
	jobTalk := q.has("job", "squeue", "作业", "任务", "sacct", "st column")
	for _, w := range tokenForm.FindAllString(column.ReplaceAllString(q.text, "state"), -1) {
		for _, c := range Codes {
			switch {
			case c.Kind == "suffix" || !c.named(w, q, talk):
			case c.Kind == "job" && nodeTalk && !jobTalk && c.Long != w:
			case c.Kind == "node" && jobTalk && !nodeTalk && !strings.EqualFold(c.Short, w):
			case c.Kind == "node" && c.Long == "COMPLETING" && !nodeTalk:
			default:
				if t := q.sentence(c); !slices.Contains(found, t) {
					found = append(found, t)
				}
			}
		}
	}
	if len(found) == 0 || len(found) > 3 {
		return ""
	}
	return strings.Join(found, "\n")
}

// named reports whether word is a name of c. Short codes of jobs count only in capitals.
// Long names count in any case where the question is about the meaning of states (talk).
func (c Code) named(word string, q *question, talk bool) bool {
	switch {
	case c.Kind == "job" && word == c.Short:
		return len(word) > 1 && (talk || q.has("squeue", "job", "作业")) || q.has("state", "status", "code", "squeue", "st ", "状态", "代码")
	case c.Kind == "node" && strings.EqualFold(word, c.Short):
		// down, fail and boot are also ordinary words.
		alone := strings.EqualFold(strings.Trim(q.text, "?？ `.!"), word)
		return (talk || alone) && (word != "down" && word != "fail" && word != "boot" || q.has("node", "节点", "sinfo", "状态", "state"))
	}
	of := []string{"state", "status", "状态", "code"}
	if c.Kind == "node" { // "node is drained, meaning?"
		of = append(of, "node is", "node was", "节点是", "节点变")
	}
	return strings.EqualFold(word, c.Long) && (word == strings.ToUpper(word) || talk && q.has(of...))
}

func (q *question) explain(kind, short string) string {
	for _, c := range Codes {
		if c.Kind == kind && c.Short == short {
			return q.sentence(c)
		}
	}
	return ""
}

func (q *question) sentence(c Code) string {
	meaning := lang.Text{EN: c.EN, ZH: c.ZH}.In(q.lang)
	switch c.Kind {
	case "suffix":
		return q.say("`%s` after a node state: %s.", "节点状态后的 `%s`:%s。", c.Short, meaning)
	case "node":
		return q.say("`%[1]s` (%[2]s, node state): %[3]s.", "`%[1]s`(%[2]s,节点状态):%[3]s。", c.Short, c.Long, meaning)
	}
	return q.say("`%[1]s` = %[2]s (job state): %[3]s.", "`%[1]s` = %[2]s(作业状态):%[3]s。", c.Short, c.Long, meaning)
}

var (
	// suffixTalk matches questions in which a sign is a suffix of a node state.
	suffixTalk = lazy.New(`\bsinfo\b|\bnodes?\b|节点|suffix|后缀|状态|\bstates?\b`)
	// suffixSign matches a sign alone or after a state's name.
	suffixSign = lazy.New(`(?:^|[\s"'` + "`" + `“‘「(,/:]|\p{Han}|idle|alloc|mix|mixed|drain|drained|drng|down|comp|maint|resv|allocated)([*~#!%$@^])(?:[\s"'` + "`" + `”’」),/?;:.]|\p{Han}|$)`)
	// stateName matches the name of a node state, with or without a sign.
	stateName = lazy.New(`\b(idle|alloc|mix|drain|drng|down|comp|maint|resv)(?:ed)?\b`)
)

// suffixes explains every suffix of a node state in a question.
func (q *question) suffixes() []string {
	if !suffixTalk.MatchString(q.low) && len(suffixed.FindAllString(q.low, 2)) < 2 {
		return nil
	}
	var texts []string
	add := func(sign string) {
		if t := q.explain("suffix", sign); t != "" && !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	for rest := q.low; rest != ""; {
		at := suffixSign.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		add(rest[at[2]:at[3]])
		rest = rest[at[3]:] // the character after one sign may be the one before the next
	}
	for _, m := range suffixed.FindAllStringSubmatch(q.low, -1) {
		add(m[1])
	}
	found := len(texts) > 0
	for _, s := range signWords {
		if found && s.sign == "-" {
			continue // "dash" and "minus" have other meanings too
		}
		if compiled(s.words).MatchString(q.low) {
			add(s.sign)
		}
	}
	return texts
}

// comparedStates explains the node states in a question that compares two. A single
// state only carries the sign and is not explained.
func (q *question) comparedStates() []string {
	var texts []string
	for _, m := range stateName.FindAllStringSubmatch(q.low, -1) {
		if t := q.explain("node", m[1]); t != "" && !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	if len(texts) != 2 {
		return nil
	}
	return texts
}
