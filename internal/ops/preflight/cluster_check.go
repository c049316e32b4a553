package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// checkTimeout is how long the checks on the cluster may take before a submission, so
// that a cluster that does not answer does not keep a person waiting.
const checkTimeout = 10 * time.Second

// OnCluster appends to ps the problems that the job would have on the cluster. It
// checks the files that the job opens, as far as this machine sees them, and what the
// caller may use there; where these checks find no error, it asks Slurm itself. A
// missing program is an error too, unless the launcher finds the program by itself.
// released is s with all its defaults and the release of Megatron-LM that it runs.
func OnCluster(ctx context.Context, c *ops.Call, cl ops.Cluster, s, released job.Spec, sc job.Script, ps []rules.Problem) []rules.Problem {
	limit := checkTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	full := s.WithDefaults()
	ps = Stopped(full, ps)
	if SharesFiles(c, s) && c.OwnHands() {
		ps = append(ps, checkFiles(ctx, c, released)...)
	}
	ps = append(ps, rights(ctx, c, cl, full)...)
	if !rules.Blocking(ps) {
		ps = append(ps, testOnly(ctx, c, cl, s, sc)...)
	}
	return ps
}

// Stopped returns ps with a missing program as an error, unless the launcher finds its
// program by itself. full is the specification with all its defaults.
func Stopped(full job.Spec, ps []rules.Problem) []rules.Problem {
	for i, p := range ps {
		if p.Rule == "script-exists" && full.Program() != "" {
			ps[i].Severity = rules.Error
		}
	}
	return ps
}

// testOnly returns the reason why Slurm would refuse the job, if it would. That no
// nodes can satisfy the request is an error only where all nodes are in service: Slurm
// says the same about a job that would wait for drained nodes.
func testOnly(ctx context.Context, c *ops.Call, cl ops.Cluster, s job.Spec, sc job.Script) []rules.Problem {
	if sc.Text == "" {
		return nil
	}
	_, err := cl.Test(ctx, slurm.Submission{Script: sc.Text, Dir: s.Worktree})
	if !errors.Is(err, slurm.ErrRejected) {
		return nil
	}
	row := documentRule{id: "slurm-refuses", field: refusedField(err.Error()), fix: slurm.FixOf(err)}
	said := phrase("Slurm would refuse it: %s", "Slurm 会拒绝该作业：%s", slurmWords(err))
	if noSuchNodes.Match(err.Error()) {
		nodes, err := cl.Nodes(ctx)
		if all, left, few := TooFewLeft(ctx, cl, nodes, s); few {
			row.field = "exclude"
			row.fix = lang.Text{EN: "exclude fewer nodes", ZH: "减少排除的节点"}
			if left > 0 {
				row.fix = lang.Text{EN: "exclude fewer nodes, or ask for at most %d", ZH: "减少排除的节点，或最多申请 %d 个"}.With(left)
			}
			said = phrase("it leaves %d of %s, and the job asks for %d", "排除后 %[2]s只剩 %[1]d 个，而作业申请 %[3]d 个", left, ops.Counted(all, "node"), *s.Nodes)
			return []rules.Problem{row.problem(said, c.Lang)}
		}
		if err != nil || slices.ContainsFunc(nodes, func(n slurm.Node) bool { return !n.Usable() }) {
			row.severity = rules.Warning
			said = phrase("no nodes that are in service can run it, and others are out of service: it may wait for them", "当前可用的节点都无法运行该作业，另有节点停用：它可能要等这些节点恢复")
		}
	}
	return []rules.Problem{row.problem(said, c.Lang)}
}

// TooFewLeft counts the nodes of the job's partitions, or of the cluster's default one, and
// those that the job does not exclude, and reports whether only what it excludes leaves fewer
// than it asks for. Where the partition is unknown, it counts the nodes of all.
func TooFewLeft(ctx context.Context, cl ops.Cluster, nodes []slurm.Node, s job.Spec) (all, left int, few bool) {
	excluded, err := hostlist.Expand(s.Exclude)
	if err != nil || s.Exclude == "" || s.Nodes == nil || len(s.Components) > 0 {
		return 0, 0, false
	}
	partitions := strings.Split(s.Partition, ",")
	if s.Partition == "" {
		known, _ := cl.Partitions(ctx)
		partitions = nil
		for _, p := range known {
			if p.Default {
				partitions = append(partitions, p.Name)
			}
		}
	}
	for _, n := range nodes {
		if partitions != nil && !slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(partitions, p) }) {
			continue
		}
		all++
		if !slices.Contains(excluded, n.Name) {
			left++
		}
	}
	return all, left, left < *s.Nodes && *s.Nodes <= all
}

var noSuchNodes = slurm.Rejection{Text: "Requested node configuration is not available"}

// slurmWords returns what Slurm itself says.
func slurmWords(err error) string {
	said := err.Error()
	if e, ok := errors.AsType[*slurm.Error](err); ok {
		said = e.Msg.EN
	}
	return strings.TrimPrefix(said, "allocation failure: ")
}

// refusedField returns the specification's field that a refusal is about.
func refusedField(said string) string {
	for _, f := range []struct{ word, field string }{
		{"reservation", "reservation"},
		{"feature", "constraint"},
		{"node name", "nodelist"},
		{"partition", "partition"},
		{"account", "account"},
		{"qos", "qos"},
		{"array", "array"},
		{"dependency", "dependency"},
		{"memory", "mem"},
		{"license", "sbatch"},
		{"time limit", "time"},
		{"--begin", "begin"},
		{"gres", "gpus_per_node"},
	} {
		if strings.Contains(strings.ToLower(said), f.word) {
			return f.field
		}
	}
	return "nodes"
}
