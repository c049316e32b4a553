package slurm

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// nodeSuffixes explain the marks that sinfo appends to a node's state (sinfo(1), "NODE
// STATE CODES").
var nodeSuffixes = []Meaning{
	reason("+", "some of its jobs are ending", "部分作业正在收尾", "", ""),
	reason("*", "does not answer", "没有响应", "it takes no new work; tell the operators if it lasts", "不会接受新作业；若持续请告知管理员"),
	reason("~", "is powered down to save power", "为节能已断电", "it boots when a job needs it", "有作业需要时会启动"),
	reason("#", "is being powered up or configured", "正在上电或配置", "", ""),
	reason("!", "is waiting to be powered down", "等待断电", "", ""),
	reason("%", "is being powered down", "正在断电", "", ""),
	reason("$", "is in a reservation for maintenance", "处于维护预留中", "", ""),
	reason("@", "is waiting to be rebooted", "等待重启", "", ""),
	reason("^", "a reboot has been issued", "已下达重启命令", "", ""),
	reason("-", "is planned for a job of higher priority by the backfill scheduler", "已被回填调度器预定给更高优先级作业", "", ""),
}

var nodeStates = []Meaning{
	reason("allocated", "is given to jobs in full", "已全部分配给作业", "", ""),
	reason("mixed", "is given to jobs in part", "部分分配给作业", "", ""),
	reason("idle", "is free", "空闲", "", ""),
	reason("completing", "is cleaning up after a job", "作业收尾中", "if it lasts, a process hangs: tell the operators", "若持续，说明有进程卡住：请告知管理员"),
	reason("down", "is out of use", "不可用", "exclude it; the operators bring it back (scontrol update state=resume)", "排除它；由管理员恢复（scontrol update state=resume）"),
	reason("drained", "takes no jobs, by an operator's or a health check's order; none runs on it", "按管理员或健康检查的指令不接受作业，且没有作业在运行", "read its reason", "请查看原因"),
	reason("draining", "takes no new jobs; those on it run to their end", "不接受新作业；现有作业运行到结束", "read its reason", "请查看原因"),
	reason("fail", "is about to fail and takes no jobs", "即将故障，不接受作业", "", ""),
	reason("failing", "is about to fail while jobs run on it", "运行作业时即将故障", "save a checkpoint", "请尽快保存检查点"),
	reason("future", "is defined but not there yet", "已定义但尚未存在", "", ""),
	reason("inval", "did not register as configured, as with a GPU missing", "注册信息与配置不符（如缺少 GPU）", "tell the operators", "请告知管理员"),
	reason("maint", "is reserved for maintenance", "处于维护预留", "", ""),
	reason("blocked", "is blocked by a job that has it exclusively by topology", "因拓扑独占作业而被阻塞", "", ""),
	reason("perfctrs", "counts network performance for a job and takes no other", "正在为作业采集网络性能计数，不接受其他作业", "", ""),
	reason("planned", "is planned for a job of higher priority", "已预定给更高优先级作业", "", ""),
	reason("powered_down", "is powered down to save power", "为节能已断电", "", ""),
	reason("powering_down", "is being powered down", "正在断电", "", ""),
	reason("powering_up", "is being powered up", "正在上电", "", ""),
	reason("power_down", "is about to be powered down", "即将断电", "", ""),
	reason("power_up", "is being powered up", "正在上电", "", ""),
	reason("reboot_issued", "a reboot has been issued", "已下达重启命令", "", ""),
	reason("reboot_requested", "is waiting to be rebooted", "等待重启", "", ""),
	reason("reboot", "is waiting to be rebooted", "等待重启", "", ""),
	reason("reserved", "is in a reservation", "处于预留中", "", ""),
	reason("cloud", "is started in a cloud when a job needs it", "云节点，有作业需要时启动", "", ""),
	reason("external", "is kept outside of Slurm's own launching", "由 Slurm 之外的系统启动作业", "", ""),
	reason("dynamic_future", "is defined to be there one day", "动态节点，已定义但尚未存在", "", ""),
	reason("dynamic_norm", "registered by itself", "动态节点，自行注册", "", ""),
	reason("cancel_reboot", "its reboot is called off", "已取消重启", "", ""),
	reason("reboot_canceled", "its reboot is called off", "已取消重启", "", ""),
	reason("resume", "is being given back to the scheduler", "正在恢复到调度", "", ""),
	reason("undrain", "is being given back to the scheduler", "正在恢复到调度", "", ""),
	reason("error", "is out of use because of an error", "因错误不可用", "tell the operators", "请告知管理员"),
	reason("unknown", "has not reported since the controller started", "控制器启动后尚未上报", "", ""),
}

// nodeShort maps sinfo's short codes (%t) to the long words.
var nodeShort = map[string]string{
	"alloc": "allocated", "mix": "mixed", "comp": "completing", "drain": "drained", "drng": "draining",
	"failg": "failing", "futr": "future", "npc": "perfctrs", "plnd": "planned", "pow_dn": "powered_down",
	"pow_up": "powering_up", "resv": "reserved", "unk": "unknown", "block": "blocked",
}

// nodeMarks are the characters that sinfo may append to a state.
const nodeMarks = "*~#!%$@^-+"

// stateWord splits a node's state into its word and its marks. It turns a short code
// into the long word, and several states joined by "+", as scontrol writes them, into
// the one that sinfo would show.
func stateWord(state string) (word, mark string) {
	state = strings.ToLower(state)
	word = strings.TrimRight(state, nodeMarks)
	mark = state[len(word):]
	if base, flags, several := strings.Cut(word, "+"); several {
		word, more := stateWord(nodeState(base, strings.Split(flags, "+")))
		return word, more + mark
	}
	if long := nodeShort[word]; long != "" {
		word = long
	}
	return word, mark
}

// Usable reports whether the node is in service: it runs or accepts jobs, or is kept
// from accepting them only temporarily and on purpose, as by maintenance or power
// saving.
func (n Node) Usable() bool {
	word, mark := stateWord(n.State)
	if strings.Contains(mark, "*") {
		return false
	}
	switch word {
	case "allocated", "mixed", "idle", "completing", "planned", "reserved", "maint", "blocked", "perfctrs",
		"powered_down", "powering_down", "power_down", "powering_up", "power_up", "reboot", "reboot_issued", "reboot_requested":
		return true
	}
	return false
}

// Free reports whether a job could start now on the node or on a part of it. A node
// that is powered down counts, because it boots for a job. A node that is reserved, in
// maintenance, draining, or about to reboot or power down does not count.
func (n Node) Free() bool {
	word, mark := stateWord(n.State)
	if strings.ContainsAny(mark, "*#!%$@^") {
		return false
	}
	switch word {
	case "idle", "mixed", "planned", "powered_down":
		return true
	}
	return false
}

// share returns the count of a partition that the node belongs to: "allocated", "idle"
// or "other", as sinfo counts, except that only a Free node counts as idle.
func (n Node) share() string {
	word, _ := stateWord(n.State)
	switch {
	case slices.Contains([]string{"allocated", "mixed", "completing", "draining", "failing"}, word):
		return "allocated"
	case n.Free():
		return "idle"
	}
	return "other"
}

// powerMarks are the flags that sinfo shows as a mark after the state. The first flag
// that a node has wins (node_state_string of slurm_protocol_defs.c).
var powerMarks = []struct{ flag, mark string }{
	{"MAINTENANCE", "$"},
	{"REBOOT_ISSUED", "^"},
	{"REBOOT_REQUESTED", "@"},
	{"POWERING_UP", "#"},
	{"POWERING_DOWN", "%"},
	{"POWERED_DOWN", "~"},
	{"POWER_DOWN", "!"},
	{"NOT_RESPONDING", "*"},
}

// nodeState combines a base state and flags, in upper or lower case, into the word that
// sinfo prints.
func nodeState(base string, flags []string) string {
	base = strings.ToLower(base)
	has := map[string]bool{}
	for _, f := range flags {
		has[strings.ToUpper(f)] = true
	}
	has["POWER_DOWN"] = has["POWER_DOWN"] || has["POWER_DOWN_ASAP"] || has["POWER_DOWN_FORCE"]
	mark := ""
	for _, m := range slices.Backward(powerMarks) {
		if has[m.flag] {
			mark = m.mark
		}
	}
	silent := ""
	if has["NOT_RESPONDING"] {
		silent = "*"
	}
	taken := base == "allocated" || base == "mixed"
	busy := taken || has["COMPLETING"]
	word := func(whileBusy, idle string) string {
		if busy {
			return whileBusy
		}
		return idle
	}
	switch {
	case has["INVALID_REG"]:
		return "inval"
	case has["MAINTENANCE"] && !has["DRAIN"] && !taken && base != "down":
		return "maint" + silent
	case has["REBOOT_ISSUED"] && !taken:
		return "reboot^"
	case has["REBOOT_REQUESTED"] && !taken:
		return "reboot" + silent
	case has["DRAIN"]:
		return word("draining", "drained") + mark
	case has["FAIL"]:
		return word("failing", "fail") + silent
	case base == "allocated" && mark == "" && has["COMPLETING"]:
		return "allocated+"
	case base == "down", base == "allocated":
		return base + mark
	case has["COMPLETING"]:
		return "completing" + mark
	case mark != "":
		return base + mark
	case base == "idle" && has["PERFCTRS"]:
		return "perfctrs"
	case base == "idle" && has["RESERVED"]:
		return "reserved"
	case base == "idle" && has["BLOCKED"]:
		return "blocked"
	case base == "idle" && has["PLANNED"]:
		return "planned"
	case base == "mixed" && has["PLANNED"]:
		return "mixed-"
	}
	return base
}

// ExplainNode explains a node's state, such as "down*" or "mix-".
func ExplainNode(state string) Meaning {
	word, marked := stateWord(state)
	m := Meaning{Word: state, Says: lang.Text{EN: "a state that this version does not know", ZH: "当前版本不认识的状态"}}
	for _, s := range nodeStates {
		if s.Word == word {
			m.Says, m.Do = s.Says, s.Do
		}
	}
	if word == "idle" && !(Node{State: state}).Free() { // no job can start on it now
		m.Says = lang.Text{EN: "has no job", ZH: "没有作业"}
	}
	for _, mark := range marked {
		for _, s := range nodeSuffixes {
			if s.Word == string(mark) {
				m.Says.EN += "; " + s.Says.EN
				m.Says.ZH += "；" + s.Says.ZH
				if m.Do == (lang.Text{}) {
					m.Do = s.Do
				}
			}
		}
	}
	return m
}
