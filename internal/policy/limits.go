package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Limits are what a site lets people use without approval. A zero limit is no limit.
type Limits struct {
	GPUHours   float64  `json:"gpu_hours,omitempty" min:"0"` // of one request
	GPUs       int      `json:"gpus,omitempty" min:"0"`      // at one time
	Hours      float64  `json:"hours,omitempty" min:"0"`     // of one job
	Partitions []string `json:"partitions,omitempty"`
	QOS        []string `json:"qos,omitempty"`
	Accounts   []string `json:"accounts,omitempty"`
}

// None reports whether there are no limits.
func (l Limits) None() bool {
	return l.GPUHours <= 0 && l.GPUs <= 0 && l.Hours <= 0 && len(l.Partitions)+len(l.QOS)+len(l.Accounts) == 0
}

// Over returns every reason why a use needs approval, or nothing if it needs none. An
// unknown part of a use exceeds every limit that concerns it.
func (l Limits) Over(u Use) (why []lang.Text) {
	add := func(en, zh string, values ...any) { why = append(why, lang.Text{EN: en, ZH: zh}.With(values...)) }
	for _, p := range u.Partitions {
		if slices.Contains(l.Partitions, p) {
			add("partition %s is for approved jobs", "分区 %s 只接受已审批的作业", p)
		}
	}
	if len(l.Partitions) > 0 && slices.Contains(u.Unknown, PartitionUnknown) {
		add("which partition it goes to is not known", "不知道会进入哪个分区")
	}
	for _, q := range limited(l.QOS, u.QOS) {
		add("QOS %s is for approved jobs", "QOS %s 只接受已审批的作业", q)
	}
	for _, a := range limited(l.Accounts, u.Account) {
		add("account %s is for approved jobs", "账户 %s 只接受已审批的作业", a)
	}
	gpusUnknown := slices.Contains(u.Unknown, GPUsUnknown)
	if (l.GPUs > 0 || l.GPUHours > 0) && gpusUnknown {
		add("how many GPUs it takes is not known", "不知道会占用多少张 GPU")
	}
	if (l.GPUs > 0 || l.GPUHours > 0) && slices.Contains(u.Unknown, TasksUnknown) && (u.GPUs > 0 || gpusUnknown) {
		add("how many tasks its array has is not known", "不知道其作业数组有多少个任务")
	}
	timeMatters := l.Hours > 0 || l.GPUHours > 0 && (u.GPUs > 0 || gpusUnknown)
	switch {
	case timeMatters && slices.Contains(u.Unknown, TimeUnknown):
		add("its time limit is not known", "时间上限未知")
	case timeMatters && math.IsInf(u.Hours, 1):
		add("it has no time limit", "没有时间上限")
	default:
		if l.Hours > 0 && u.Hours > l.Hours {
			add("it may run for %s hours, more than %s", "最多可能运行 %s 小时，超过 %s", round(u.Hours), round(l.Hours))
		}
		if l.GPUHours > 0 && math.IsInf(u.GPUHours, 1) {
			add("it starts itself again without end", "它会无限次地再次启动")
		} else if l.GPUHours > 0 && u.GPUHours > l.GPUHours {
			add("it may use %s GPU hours, more than %s", "最多可能使用 %s GPU 小时，超过 %s", round(u.GPUHours), round(l.GPUHours))
		}
	}
	if l.GPUs > 0 && u.GPUs > l.GPUs {
		add("it takes %d GPUs at one time, more than %d", "同时占用 %d 张 GPU，超过 %d", u.GPUs, l.GPUs)
	}
	return why
}

// limited returns those of the names, a list with commas, that a limit names. Slurm does
// not distinguish capitals in the names of QOS and accounts.
func limited(limit []string, names string) (found []string) {
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if slices.ContainsFunc(limit, func(l string) bool { return strings.EqualFold(strings.TrimSpace(l), name) }) {
			found = append(found, name)
		}
	}
	return found
}

func round(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
