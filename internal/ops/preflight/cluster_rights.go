package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// An associator is a cluster that tells what a person may use.
type associator interface {
	Associations(ctx context.Context, user string) ([]slurm.Association, error)
}

// A limiter is a cluster that tells what binds a person's jobs.
type limiter interface {
	Limits(ctx context.Context, user, account, qos string) ([]slurm.Limit, error)
}

// rights is what the cluster would not let this person's request have: a
// partition, account or QOS, a time or node limit, more of a node than there is.
// What the cluster does not tell in time is not judged.
func rights(ctx context.Context, c *ops.Call, cl ops.Cluster, s job.Spec) []rules.Problem {
	if cl.Kind() == "local" {
		return nil
	}
	var (
		asking sync.WaitGroup
		parts  []slurm.Partition
		nodes  []slurm.Node
		allows []slurm.PartitionLimits
		mine   []slurm.Association
	)
	if l, ok := cl.(interface {
		PartitionLimits(context.Context) ([]slurm.PartitionLimits, error)
	}); ok {
		asking.Go(func() { allows, _ = l.PartitionLimits(ctx) })
	}
	if sv, ok := cl.(ops.Surveyor); ok {
		asking.Go(func() { parts, _ = sv.Partitions(ctx) })
		asking.Go(func() { nodes, _ = sv.Nodes(ctx) })
	}
	if a, ok := cl.(associator); ok {
		asking.Go(func() { mine, _ = a.Associations(ctx, c.Who.User) })
	}
	asking.Wait()
	var found []rules.Problem
	for _, part := range s.Parts() { // each component of a heterogeneous job is a request of its own
		r := request{spec: part, lang: c.Lang}
		if len(parts) > 0 {
			r.partition(parts)
		}
		r.nodes(nodes, c.SiteOf(s).ThreadsPerCore)
		if len(mine) > 0 {
			r.accounts(mine)
		}
		r.admitted(allows, mine)
		if l, ok := cl.(limiter); ok {
			if all, err := l.Limits(ctx, c.Who.User, part.Account, r.qos(mine)); err == nil {
				r.limits(all, allows)
			}
		}
		found = append(found, slices.DeleteFunc(r.ps, func(p rules.Problem) bool {
			return slices.ContainsFunc(found, func(have rules.Problem) bool { return have.Rule == p.Rule && have.Message == p.Message })
		})...)
	}
	return found
}

type request struct {
	spec job.Spec
	lang lang.Lang
	ps   []rules.Problem
}

func (r *request) add(rule, field string, said, fix lang.Text) {
	r.ps = append(r.ps, circumstance{id: rule, field: field, fix: fix}.problem(said, r.lang))
}

// partition holds the request against the partitions that it names. What is too much
// for one of several, and not for another, is no error: Slurm starts it in the other,
// unless the site wants it to fit in all, which Slurm itself says.
func (r *request) partition(parts []slurm.Partition) {
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	asked := strings.Split(r.spec.Partition, ",")
	if r.spec.Partition == "" {
		i := slices.IndexFunc(parts, func(p slurm.Partition) bool { return p.Default })
		if i < 0 {
			return
		}
		asked = []string{parts[i].Name}
	}
	var over []rules.Problem
	fits := false
	for _, name := range asked {
		i := slices.Index(names, name)
		if i < 0 {
			r.add("partition-unknown", "partition", lang.Text{EN: name + " is no partition here", ZH: "这里没有分区 " + name},
				lang.Text{EN: "one of " + strings.Join(names, ", "), ZH: "可用分区：" + strings.Join(names, ", ")})
			continue
		}
		p := parts[i]
		if !p.Up {
			down := circumstance{id: "partition-down", field: "partition", fix: lang.Text{EN: "another partition", ZH: "换一个分区"}}
			if p.State == "down" { // sbatch takes the job, which waits for the operators
				down.severity = rules.Warning
			}
			r.ps = append(r.ps, down.problem(lang.Text{EN: name + " is " + p.State, ZH: "分区 " + name + " 状态为 " + p.State}, r.lang))
		}
		found := r.tooMuchFor(p)
		fits = fits || p.Up && len(found) == 0
		over = append(over, found...)
	}
	for _, p := range over {
		if fits {
			p.Severity = rules.Warning
		}
		r.ps = append(r.ps, p)
	}
}

// tooMuchFor is what the request asks of a partition beyond what that gives to one job.
func (r *request) tooMuchFor(p slurm.Partition) []rules.Problem {
	of := request{spec: r.spec, lang: r.lang}
	if limit, ok := slurm.ParseDuration(r.spec.Time); ok && r.spec.Time != "" && p.TimeLimitS != nil && int64(limit.Seconds()) > *p.TimeLimitS {
		of.add("partition-time", "time", lang.Text{
			EN: fmt.Sprintf("%s is over the limit of %s, which is %s", r.spec.Time, p.Name, ops.Duration(*p.TimeLimitS)),
			ZH: fmt.Sprintf("%s 超过分区 %s 的上限 %s", r.spec.Time, p.Name, ops.Duration(*p.TimeLimitS)),
		}, lang.Text{EN: "time: " + ops.Duration(*p.TimeLimitS) + " at most, or a chain of jobs", ZH: "time 最多 " + ops.Duration(*p.TimeLimitS) + "，或用作业链"})
	}
	most := p.Total
	if p.MaxNodes > 0 {
		most = min(most, p.MaxNodes)
	}
	if most > 0 && *r.spec.Nodes > most {
		of.add("partition-nodes", "nodes", lang.Text{
			EN: fmt.Sprintf("%d nodes are more than %s gives to one job: %d", *r.spec.Nodes, p.Name, most),
			ZH: fmt.Sprintf("%d 个节点超过分区 %s 单个作业的上限 %d", *r.spec.Nodes, p.Name, most),
		}, lang.Text{EN: fmt.Sprintf("nodes: %d at most, or another partition", most), ZH: fmt.Sprintf("nodes 最多 %d，或换分区", most)})
	}
	return of.ps
}

// FitsPartition refuses a change to what the job's partition gives to nobody:
// Slurm takes it, and the job waits for ever.
func FitsPartition(ctx context.Context, cl ops.Cluster, j slurm.Job, u slurm.Update) error {
	sv, ok := cl.(ops.Surveyor)
	if !ok || cl.Kind() == "local" || j.State != slurm.Pending {
		return nil
	}
	parts, err := sv.Partitions(ctx)
	if err != nil {
		return nil //nolint:nilerr // what the cluster does not tell is not judged
	}
	nodes := cmp.Or(u.NumNodes, j.NumNodes, 1)
	spec := job.Spec{Partition: cmp.Or(u.Partition, j.Partition), Nodes: &nodes}
	if u.TimeLimit > 0 {
		spec.Time = ops.Duration(int64(u.TimeLimit.Seconds()))
	}
	r, zh := request{lang: lang.EN, spec: spec}, request{lang: lang.ZH, spec: spec}
	r.partition(parts)
	zh.partition(parts)
	for i, p := range r.ps {
		if p.Severity == rules.Error {
			return &ops.Error{
				Code: ops.Preflight, Field: p.Field,
				Message: lang.Text{EN: p.Message, ZH: zh.ps[i].Message}, Fix: lang.Text{EN: p.Fix, ZH: zh.ps[i].Fix},
			}
		}
	}
	return nil
}

// nodes compares what is asked of a node with the largest that there is. With
// hint nomultithread a CPU is a core.
func (r *request) nodes(all []slurm.Node, threads int) {
	cpus, gpus := 0, 0
	for _, n := range all {
		if r.spec.Partition == "" || slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(strings.Split(r.spec.Partition, ","), p) }) {
			cpus, gpus = max(cpus, n.CPUs), max(gpus, n.GPUs)
		}
	}
	if r.spec.Hint == "nomultithread" && threads > 1 {
		cpus /= threads
	}
	if n := r.spec.CPUsPerTask; n != nil && cpus > 0 && *n > cpus {
		r.add("cpus-over-node", "cpus_per_task", lang.Text{
			EN: fmt.Sprintf("%d CPUs a task are more than a node has: %d", *n, cpus), ZH: fmt.Sprintf("每个任务 %d 个 CPU 超过单节点的 %d 个", *n, cpus),
		}, lang.Text{EN: fmt.Sprintf("cpus_per_task: %d at most; with nomultithread only cores count", cpus), ZH: fmt.Sprintf("cpus_per_task 最多 %d；使用 nomultithread 时只计物理核", cpus)})
	}
	if gpus > 0 && *r.spec.GPUsPerNode > gpus {
		r.add("gpus-over-node", "gpus_per_node", lang.Text{
			EN: fmt.Sprintf("%d GPUs a node are more than any has: %d", *r.spec.GPUsPerNode, gpus), ZH: fmt.Sprintf("每节点 %d 张 GPU 超过实际的 %d 张", *r.spec.GPUsPerNode, gpus),
		}, lang.Text{EN: fmt.Sprintf("gpus_per_node: %d", gpus), ZH: fmt.Sprintf("gpus_per_node: %d", gpus)})
	}
}

func (r *request) accounts(mine []slurm.Association) {
	var accounts, qos []string
	for _, a := range mine {
		if !slices.Contains(accounts, a.Account) {
			accounts = append(accounts, a.Account)
		}
		if r.spec.Account == "" || a.Account == r.spec.Account {
			for _, q := range a.QOS {
				if !slices.Contains(qos, q) {
					qos = append(qos, q)
				}
			}
		}
	}
	if r.spec.Account != "" && !slices.Contains(accounts, r.spec.Account) {
		r.add("account-not-yours", "account", lang.Text{EN: "you are not in the account " + r.spec.Account, ZH: "你不在账户 " + r.spec.Account + " 中"},
			lang.Text{EN: "one of yours: " + strings.Join(accounts, ", "), ZH: "你的账户：" + strings.Join(accounts, ", ")})
		return
	}
	if r.spec.QOS != "" && len(qos) > 0 && !slices.Contains(qos, r.spec.QOS) {
		r.add("qos-not-yours", "qos", lang.Text{EN: "you may not use the QOS " + r.spec.QOS, ZH: "你不能使用 QOS " + r.spec.QOS},
			lang.Text{EN: "one of yours: " + strings.Join(qos, ", "), ZH: "你可用的 QOS：" + strings.Join(qos, ", ")})
	}
}
