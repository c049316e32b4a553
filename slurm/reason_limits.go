package slurm

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// limitReason matches the roughly hundred and fifty reasons of Slurm that name a limit.
// Each is composed of the limit's owner, the resource and the scope: QOSMaxGRESPerUser,
// AssocGrpCPUMinutesLimit, MaxNodeRunMinsPerAccount.
var limitReason = lazy.New(`^(QOS|Assoc|)(Grp|Max|Min)` +
	`(SubmitJobs?|Jobs|WallDuration|Wall|Cpu|CPU|Memory|Mem|Node|GRES|License|BB|Billing|Energy|Unknown)` +
	`(RunMinutes|RunMins|Minutes|)(PerJob|PerUser|PerNode|PerAccount|)(?:NotSatisfied)?(?:Limit)?$`)

// resources name what a limit counts.
var resources = map[string]lang.Text{
	"Cpu": {EN: "CPUs", ZH: "CPU"}, "CPU": {EN: "CPUs", ZH: "CPU"},
	"Mem": {EN: "memory", ZH: "内存"}, "Memory": {EN: "memory", ZH: "内存"},
	"Node": {EN: "nodes", ZH: "节点"}, "GRES": {EN: "GPUs", ZH: "GPU"}, "License": {EN: "licences", ZH: "许可证"},
	"BB": {EN: "burst buffers", ZH: "burst buffer"}, "Billing": {EN: "budget", ZH: "计费额度"},
	"Energy": {EN: "energy", ZH: "能耗"}, "Unknown": {EN: "a resource", ZH: "某项资源"},
}

// owners name the owner of a limit.
var owners = map[string]lang.Text{
	"QOS": {EN: "the QOS", ZH: "该 QOS"}, "Assoc": {EN: "your account", ZH: "您的账户"}, "": {EN: "the site", ZH: "站点"},
}

// alternatives name what a person could use in place of the limit's owner.
var alternatives = map[string]lang.Text{
	"QOS": {EN: "use another QOS", ZH: "更换 QOS"}, "Assoc": {EN: "use another account", ZH: "更换账户"},
	"": {EN: "use another account or QOS", ZH: "更换账户或 QOS"},
}

// explainLimit explains a reason that names a limit.
func explainLimit(word string) (Meaning, bool) {
	m := limitReason.FindStringSubmatch(word)
	if m == nil {
		return Meaning{}, false
	}
	owner, another := owners[m[1]], alternatives[m[1]]
	bound, what, minutes, per := m[2], m[3], m[4], m[5]
	// counted is the resource, or the minutes of its use.
	counted, isResource := resources[what]
	switch minutes {
	case "Minutes":
		counted = lang.Text{EN: "minutes of %s", ZH: "%s 机时"}.With(counted)
	case "RunMinutes", "RunMins":
		counted = lang.Text{EN: "minutes of %s in running jobs", ZH: "运行中作业的 %s 机时"}.With(counted)
	}
	wait := lang.Text{EN: "wait until a job of yours ends, ask for less, or %s", ZH: "等待您的作业结束、减少请求，或%s"}.With(another)
	less := lang.Text{EN: "ask for less, or %s", ZH: "减少请求，或%s"}.With(another)
	var says lang.Text
	do := wait
	switch {
	case bound == "Grp":
		do = lang.Text{EN: "wait until others' jobs end, or %s", ZH: "等待其他作业结束，或%s"}.With(another)
		switch {
		case what == "Jobs":
			says = lang.Text{EN: "as many jobs run as %s allows for all together", ZH: "运行中的作业合计已达%s上限"}.With(owner)
		case what == "SubmitJobs" || what == "SubmitJob":
			says = lang.Text{EN: "as many jobs are in the queue as %s allows for all together", ZH: "排队作业合计已达%s上限"}.With(owner)
		case !isResource:
			says = lang.Text{EN: "all jobs together have used up the time of %s", ZH: "所有作业合计已用完%s的时间"}.With(owner)
		case minutes == "Minutes":
			says = lang.Text{EN: "all jobs together have used up the %[2]s of %[1]s", ZH: "所有作业合计已用完%s的 %s"}.With(owner, counted)
			do = lang.Text{EN: "%s, or ask who looks after it for more", ZH: "%s，或联系其负责人增加额度"}.With(another)
		default:
			says = lang.Text{EN: "all jobs together have reached the limit of %s on %s", ZH: "所有作业合计已达%s对 %s 的上限"}.With(owner, counted)
		}
	case bound == "Min":
		says = lang.Text{EN: "asks for less %[2]s than %[1]s wants, so it never starts as it is", ZH: "请求低于%s对 %s 的下限，按现状永远不会启动"}.With(owner, counted)
		do = lang.Text{EN: "ask for more, or %s", ZH: "增加请求，或%s"}.With(another)
	case what == "Jobs":
		says = lang.Text{EN: "as many of your jobs run as %s allows one user", ZH: "您运行的作业数已达%s的单用户上限"}.With(owner)
		if per == "PerAccount" {
			says = lang.Text{EN: "as many of the account's jobs run as %s allows one account", ZH: "该账户运行的作业数已达%s的单账户上限"}.With(owner)
		}
	case what == "SubmitJobs" || what == "SubmitJob":
		says = lang.Text{EN: "you have as many jobs in the queue as %s allows one user", ZH: "您排队的作业数已达%s的单用户上限"}.With(owner)
		if per == "PerAccount" {
			says = lang.Text{EN: "the account has as many jobs in the queue as %s allows one account", ZH: "该账户排队的作业数已达%s的单账户上限"}.With(owner)
		}
	case !isResource:
		says = lang.Text{EN: "asks for more time than %s allows, so it never starts as it is", ZH: "时限超过%s的上限，按现状永远不会启动"}.With(owner)
		do = lang.Text{EN: "shorten time, or %s", ZH: "缩短时限，或%s"}.With(another)
	case per == "PerUser":
		says = lang.Text{EN: "your jobs hold all the %[2]s that %[1]s allows one user", ZH: "您的作业占用已达%s对 %s 的单用户上限"}.With(owner, counted)
	case per == "PerAccount":
		says = lang.Text{EN: "the account's jobs hold all the %[2]s that %[1]s allows one account", ZH: "该账户的作业占用已达%s对 %s 的单账户上限"}.With(owner, counted)
	case per == "PerNode":
		says = lang.Text{EN: "asks for more %[2]s on a node than %[1]s allows, so it never starts as it is", ZH: "单节点请求超过%s对 %s 的上限，按现状永远不会启动"}.With(owner, counted)
		do = less
	default:
		says = lang.Text{EN: "asks for more %[2]s than %[1]s allows one job, so it never starts as it is", ZH: "请求超过%s对 %s 的单作业上限，按现状永远不会启动"}.With(owner, counted)
		do = less
	}
	return Meaning{Word: word, Says: says, Do: do}, true
}
