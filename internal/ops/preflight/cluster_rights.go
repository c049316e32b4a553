package preflight

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// An associator is a cluster that tells which accounts and QOS a person may use.
type associator interface {
	Associations(ctx context.Context, user string) ([]slurm.Association, error)
}

// A limiter is a cluster that tells the limits of a person's jobs.
type limiter interface {
	Limits(ctx context.Context, user, account, qos string) ([]slurm.Limit, error)
}

// rights returns what the cluster would deny to the caller's request: a partition,
// account or QOS, a time or node limit, more than a node has. Information that does not
// arrive in time is not judged.
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
	asking.Go(func() { parts, _ = cl.Partitions(ctx) })
	asking.Go(func() { nodes, _ = cl.Nodes(ctx) })
	if a, ok := cl.(associator); ok {
		asking.Go(func() { mine, _ = a.Associations(ctx, c.Who.User) })
	}
	asking.Wait()
	var found []rules.Problem
	for _, part := range s.Parts() { // each component of a heterogeneous job is its own request
		r := request{spec: part, lang: c.Lang}
		if len(parts) > 0 {
			r.partition(parts)
		}
		r.nodes(nodes, c.SiteOf(s).ThreadsPerCore)
		if len(mine) > 0 {
			r.accounts(mine)
		}
		r.checkAdmission(allows, mine)
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
	r.ps = append(r.ps, documentRule{id: rule, field: field, fix: fix}.problem(said, r.lang))
}

// partition checks the request against the partitions that it names. Where the request
// is too large for one of them and fits another, that is only a warning, because Slurm
// starts the job in the other one. If the site requires that it fits all, Slurm itself
// refuses it.
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
			r.add("partition-unknown", "partition", phrase("%s is no partition here", "这里没有分区 %s", name),
				phrase("one of %s", "可用分区：%s", strings.Join(names, ", ")))
			continue
		}
		p := parts[i]
		if !p.Up {
			down := documentRule{id: "partition-down", field: "partition", fix: lang.Text{EN: "another partition", ZH: "换一个分区"}}
			if p.State == "down" { // sbatch accepts the job, which waits until the operators bring the partition up
				down.severity = rules.Warning
			}
			r.ps = append(r.ps, down.problem(phrase("%s is %s", "分区 %s 状态为 %s", name, p.State), r.lang))
		}
		found := r.excess(p)
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

// excess returns the parts of the request that exceed what a partition gives to one
// job.
func (r *request) excess(p slurm.Partition) []rules.Problem {
	of := request{spec: r.spec, lang: r.lang}
	if limit, ok := slurm.ParseDuration(r.spec.Time); ok && r.spec.Time != "" && p.TimeLimitS != nil && int64(limit.Seconds()) > *p.TimeLimitS {
		most := ops.Duration(*p.TimeLimitS)
		of.add("partition-time", "time", phrase("%s is over the limit of %s, which is %s", "%s 超过分区 %s 的上限 %s", r.spec.Time, p.Name, most),
			phrase("time: %s at most, or a chain of jobs", "time 最多 %s，或用作业链", most))
	}
	most := p.Total
	if p.MaxNodes > 0 {
		most = min(most, p.MaxNodes)
	}
	if most > 0 && *r.spec.Nodes > most {
		of.add("partition-nodes", "nodes", phrase("%d nodes are more than %s gives to one job: %d", "%d 个节点超过分区 %s 单个作业的上限 %d", *r.spec.Nodes, p.Name, most),
			phrase("nodes: %d at most, or another partition", "nodes 最多 %d，或换分区", most))
	}
	return of.ps
}

// FitsPartition refuses a change beyond what the job's partition gives to any job:
// Slurm would accept it, and the job would wait for ever.
func FitsPartition(ctx context.Context, cl ops.Cluster, j slurm.Job, u slurm.Update) error {
	if cl.Kind() == "local" || j.State != slurm.Pending {
		return nil
	}
	parts, err := cl.Partitions(ctx)
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

// nodes compares what the request asks of a node with the largest node. With the hint
// nomultithread, a CPU is a core.
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
		r.add("cpus-over-node", "cpus_per_task", phrase("%d CPUs per task are more than a node has: %d", "每个任务 %d 个 CPU 超过单节点的 %d 个", *n, cpus),
			phrase("cpus_per_task: %d at most; with nomultithread only cores count", "cpus_per_task 最多 %d；使用 nomultithread 时只计物理核", cpus))
	}
	if gpus > 0 && *r.spec.GPUsPerNode > gpus {
		r.add("gpus-over-node", "gpus_per_node", phrase("%d GPUs per node are more than any node has: %d", "每节点 %d 张 GPU 超过实际的 %d 张", *r.spec.GPUsPerNode, gpus),
			phrase("gpus_per_node: %d", "gpus_per_node: %d", gpus))
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
		r.add("account-not-yours", "account", phrase("you are not in the account %s", "你不在账户 %s 中", r.spec.Account),
			phrase("one of yours: %s", "你的账户：%s", strings.Join(accounts, ", ")))
		return
	}
	if r.spec.QOS != "" && len(qos) > 0 && !slices.Contains(qos, r.spec.QOS) {
		r.add("qos-not-yours", "qos", phrase("you may not use the QOS %s", "你不能使用 QOS %s", r.spec.QOS),
			phrase("one of yours: %s", "你可用的 QOS：%s", strings.Join(qos, ", ")))
	}
}
