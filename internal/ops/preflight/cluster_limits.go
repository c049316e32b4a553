package preflight

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// checkAdmission checks the request against the accounts, QOS and sizes that its
// partitions admit.
func (r *request) checkAdmission(allows []slurm.PartitionLimits, mine []slurm.Association) {
	account := r.account(mine)
	for _, p := range r.partitionLimits(allows) {
		if account != "" && len(p.Accounts) > 0 && !slices.Contains(p.Accounts, account) {
			r.add("partition-account", "partition", phrase("%s takes no jobs of the account %s", "分区 %s 不接受账户 %s 的作业", p.Name, account),
				phrase("another partition, or one of the accounts %s", "换分区，或使用账户 %s", strings.Join(p.Accounts, ", ")))
		}
		if qos := r.qos(mine); qos != "" && len(p.QOS) > 0 && !slices.Contains(p.QOS, qos) {
			r.add("partition-qos", "qos", phrase("%s takes no jobs under the QOS %s", "分区 %s 不接受 QOS %s 的作业", p.Name, qos),
				phrase("qos: one of %s", "qos：%s 之一", strings.Join(p.QOS, ", ")))
		}
		if n := *r.spec.Nodes; p.MinNodes > 1 && n < p.MinNodes {
			r.add("partition-nodes", "nodes", phrase("%s is fewer than %s gives to one job: %d", "%s少于分区 %s 单个作业的下限 %d", ops.Counted(n, "node"), p.Name, p.MinNodes),
				phrase("nodes: %d at least, or another partition", "nodes 至少 %d，或换分区", p.MinNodes))
		}
		if n := r.spec.CPUsPerTask; n != nil && p.MaxCPUs > 0 && *n > p.MaxCPUs {
			r.add("cpus-over-node", "cpus_per_task", phrase("%d CPUs on a node, and %s gives a job %d", "每节点 %d 个 CPU，而分区 %s 只给 %d 个", *n, p.Name, p.MaxCPUs),
				phrase("cpus_per_task: %d at most", "cpus_per_task 最多 %d", p.MaxCPUs))
		}
	}
}

// partitionLimits returns the limits of those of all partitions that the request names.
func (r *request) partitionLimits(all []slurm.PartitionLimits) []slurm.PartitionLimits {
	names := strings.Split(r.spec.Partition, ",")
	return slices.DeleteFunc(slices.Clone(all), func(p slurm.PartitionLimits) bool { return !slices.Contains(names, p.Name) })
}

// account returns the account that the job would run under, or "" where that is
// unknown.
func (r *request) account(mine []slurm.Association) string {
	if r.spec.Account == "" && len(mine) == 1 {
		return mine[0].Account
	}
	return r.spec.Account
}

// qos returns the QOS that the job would run under: its own, the account's default, or
// Slurm's.
func (r *request) qos(mine []slurm.Association) string {
	if r.spec.QOS != "" {
		return r.spec.QOS
	}
	account := r.account(mine)
	for _, a := range mine {
		if a.Account == account && a.DefaultQOS != "" {
			return a.DefaultQOS
		}
	}
	return "normal"
}

// limits reports the limits that the request would exceed, and how much of each is
// left. A limit that only makes the job wait for others is a warning.
func (r *request) limits(all []slurm.Limit, allows []slurm.PartitionLimits) {
	ask := slurm.ResourceRequest{TRES: map[string]int64{"node": int64(*r.spec.Nodes), "gres/gpu": int64(*r.spec.Nodes) * int64(*r.spec.GPUsPerNode)}}
	if n := r.spec.CPUsPerTask; n != nil {
		ask.TRES["cpu"] = int64(*n) * int64(*r.spec.Nodes)
	}
	if d, ok := slurm.ParseDuration(r.spec.Time); ok && r.spec.Time != "" {
		ask.Minutes = int64(d.Minutes())
	} else if at := r.partitionLimits(allows); len(at) == 1 && at[0].DefaultTimeS != nil {
		ask.Minutes = *at[0].DefaultTimeS / 60
	}
	for _, l := range all {
		b, broken := l.Breach(ask)
		if !broken {
			continue
		}
		field, amount := breachField(b), func(n int64) string { return strconv.FormatInt(n, 10) }
		if strings.Contains(l.Name, "Wall") {
			amount = func(n int64) string { return ops.Duration(n * 60) }
		}
		what := strings.TrimSpace(l.Name + " " + l.TRES)
		message := phrase("%s of %s: %s at most, %s taken, %s left, and the job asks for %s", "%[2]s 的 %[1]s：上限 %[3]s，已用 %[4]s，剩余 %[5]s，而作业需要 %[6]s",
			what, l.Of, amount(l.Max), amount(l.Used), amount(l.Left()), amount(b.Asked))
		if strings.HasSuffix(l.Name, "PJ") || strings.HasSuffix(l.Name, "PN") { // a limit of a single job: other jobs use nothing of it
			message = phrase("%s of %s: %s at most, and the job asks for %s", "%[2]s 的 %[1]s：上限 %[3]s，而作业需要 %[4]s", what, l.Of, amount(l.Max), amount(b.Asked))
		}
		rule, fix := "limit-waits", phrase("ask for %s or less to start now; otherwise it waits until others end", "减到 %s 以内可立即开始；否则要等其他作业结束", amount(l.Left()))
		if strings.Contains(l.Name, "Mins") {
			fix = lang.Text{EN: "less time or fewer GPUs: what was used comes back only as it decays, or when the operators raise the budget", ZH: "减少时长或 GPU：已用机时只会随衰减恢复，或由管理员提高预算"}
		}
		if b.Never {
			rule, fix = "limit-never", neverFix(b, amount(l.Max))
		}
		r.add(rule, field, message, fix)
	}
}

func neverFix(b slurm.Breach, most string) lang.Text {
	if strings.Contains(b.Name, "SubmitJobs") {
		return lang.Text{EN: "wait until one of your jobs has ended, or cancel one", ZH: "等某个作业结束，或取消一个"}
	}
	return phrase("%s at most, another QOS or account, or ask the operators", "最多 %s；或换 QOS、账户，或联系管理员", most)
}

// breachField returns the specification's field that a limit is about.
func breachField(b slurm.Breach) string {
	switch {
	case strings.Contains(b.Name, "Wall"), strings.Contains(b.Name, "Mins"):
		return "time"
	case b.TRES == "gres/gpu", strings.HasPrefix(b.TRES, "gres/gpu:"):
		return "gpus_per_node"
	case b.TRES == "cpu":
		return "cpus_per_task"
	case b.TRES == "node":
		return "nodes"
	case strings.HasPrefix(b.Of, "QOS"), strings.Contains(b.Of, " under QOS "):
		return "qos"
	}
	return "account"
}
