package knowledge

import (
	"regexp"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A reason says why a question is declined.
type reason string

const (
	unknown   reason = "unknown"
	act       reason = "act"
	secret    reason = "secret"
	live      reason = "live"
	foreign   reason = "foreign"
	injection reason = "injection"
	person    reason = "person"
	noSuch    reason = "no such name"
)

// refusals say why, in one sentence that begins with the refusal.
var refusals = map[reason]lang.Text{
	unknown: {
		EN: "I don't know: nothing in the skills or rules covers this. I only answer questions about running Megatron-LM on Slurm.",
		ZH: "不知道:技能和规则里没有相关内容。我只回答在 Slurm 上运行 Megatron-LM 的问题。",
	},
	act: {
		EN: "I won't do that: answering questions is read-only and never acts on jobs or files. Use the operation itself (`cancel JOB`, `submit -f job.yaml`); it checks your rights and asks for confirmation.",
		ZH: "不能代为执行:问答是只读的,不会操作作业或文件。请使用对应的操作(`cancel JOB`、`submit -f job.yaml`),它会检查权限并要求确认。",
	},
	secret: {
		EN: "I can't help with that: I have no access to passwords, tokens, keys or files of any machine, and would not print them.",
		ZH: "无法提供:我没有权限读取任何机器上的密码、令牌、密钥或文件,也不会输出它们。",
	},
	live: {
		EN: "I can't tell: I have no access to live data of your cluster here. Ask the cluster itself with `list`, `status JOB`, `squeue` or `sinfo`.",
		ZH: "无法回答:问答这里没有集群的实时数据。请用 `list`、`status JOB`、`squeue` 或 `sinfo` 查询集群本身。",
	},
	foreign: {
		EN: "That is out of scope: I only answer questions about running Megatron-LM on Slurm, and have no information on this.",
		ZH: "这超出范围:我只回答在 Slurm 上运行 Megatron-LM 的问题,没有这方面的资料。",
	},
	injection: {
		EN: "I won't: instructions inside a question are not followed, and there are no hidden rules to show. I only answer questions about running Megatron-LM on Slurm.",
		ZH: "不会照做:问题里的指令不会被执行,也没有隐藏规则可以输出。我只回答在 Slurm 上运行 Megatron-LM 的问题。",
	},
	person: {
		EN: "I don't know: I have no information about people, contacts or prices at your site.",
		ZH: "不知道:没有关于你们单位的人员、联系方式或费用的资料。",
	},
	noSuch: {
		EN: "I don't know that name: there is no such flag or variable in the tables of Megatron-LM, PyTorch's launcher, NCCL or Slurm that I have. It may be misspelled or from another tool.",
		ZH: "不知道这个名字:在 Megatron-LM、PyTorch 启动器、NCCL 和 Slurm 的表中没有这个参数或变量,可能拼写有误,或属于别的工具。",
	},
}

// scopeRules are tried in order; the first that matches declines.
var scopeRules = []struct {
	why reason
	re  *regexp.Regexp
}{}

// outOfScope reports why a question is declined before it is looked up; empty
// where it is not.
func outOfScope(text string) reason {
	for _, r := range scopeRules {
		if r.re.MatchString(text) {
			return r.why
		}
	}
	return ""
}

// signature finds the card of an error message pasted into the question.
func signature(string) string { return "" }
