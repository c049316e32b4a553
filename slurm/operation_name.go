package slurm

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// operationName returns an operation in both languages. op is a verb and its object,
// such as "cancel 4711", or the program that was started, such as "squeue".
func operationName(op string) lang.Text {
	if op == "" {
		return lang.Text{}
	}
	if zh, ok := operations[op]; ok {
		return lang.Text{EN: op, ZH: zh}
	}
	if i := strings.LastIndexByte(op, ' '); i > 0 {
		if zh, ok := operations[op[:i]+" %s"]; ok {
			return lang.Text{EN: op, ZH: strings.ReplaceAll(zh, "%s", op[i+1:])}
		}
	}
	return lang.Text{EN: op, ZH: op + " "}
}

// operations translates the verbs; %s stands for the object.
var operations = map[string]string{
	"licenses":             "查询许可证",
	"reservations":         "查询预留",
	"usage":                "查询用量",
	"quotas":               "查询配额",
	"list":                 "查询作业",
	"history":              "查询作业历史",
	"submit":               "提交",
	"job %s":               "查询作业 %s ",
	"jobs":                 "查询作业",
	"find submission %s":   "查找提交记录 %s ",
	"script of %s":         "读取作业 %s 的脚本",
	"steps of %s":          "查询 %s 的步骤",
	"running steps":        "查询运行中的步骤",
	"cancel %s":            "取消 %s ",
	"hold %s":              "暂停 %s 的排队",
	"release %s":           "恢复 %s 的排队",
	"requeue %s":           "重新排队 %s ",
	"update %s":            "修改 %s ",
	"launch in %s":         "在作业 %s 中启动步骤",
	"run on %s":            "在作业 %s 的节点上执行命令",
	"visit %s":             "在 %s 上执行",
	"processes of %s":      "查看 %s 上的进程",
	"resume":               "恢复节点",
	"nodes":                "查询节点",
	"partitions":           "查询分区",
	"partition limits":     "查询分区限制",
	"accounts of %s":       "查询 %s 的账户",
	"limits of %s":         "查询 %s 的限额",
	"quotas of %s":         "查询 %s 的配额",
	"qualities of service": "查询 QOS",
	"priorities":           "查询优先级",
	"priority weights":     "查询优先级权重",
	"fair share":           "查询公平共享",
	"configuration":        "读取配置",
	"topology":             "查询网络拓扑",
	"read files":           "读取文件",
	"connect":              "连接",
	"act as %s":            "以 %s 的身份执行",
	"ssh %s":               "ssh %s ",
}
