package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// checkFor bounds what is asked about a job before it is submitted: a cluster
// that does not answer must not keep a person waiting longer.
const checkFor = 10 * time.Second

// OnCluster adds to ps what stands against the job on the cluster. It looks at the files
// that the job opens, as far as they can be seen from here, and at what this person may
// use there; where both find nothing, it asks Slurm itself. A program that is not there
// stops the job too, unless the launcher finds it by itself. released is s with all its
// defaults and the release of Megatron-LM that it runs.
func OnCluster(ctx context.Context, c *ops.Call, cl ops.Cluster, s, released job.Spec, sc job.Script, ps []rules.Problem) []rules.Problem {
	limit := checkFor
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
		ps = append(ps, tried(ctx, c, cl, s, sc)...)
	}
	return ps
}

// Stopped is ps, where a program that is not there is an error unless the launcher
// finds its program by itself. full is the specification with all its defaults.
func Stopped(full job.Spec, ps []rules.Problem) []rules.Problem {
	for i, p := range ps {
		if p.Rule == "script-exists" && full.Program() != "" {
			ps[i].Severity = rules.Error
		}
	}
	return ps
}

// tried is why Slurm would not take the job, if it would not. That no nodes can
// have what it asks for is final only where all nodes are there: Slurm says the
// same of a job that would wait for those that are drained.
func tried(ctx context.Context, c *ops.Call, cl ops.Cluster, s job.Spec, sc job.Script) []rules.Problem {
	t, ok := cl.(interface {
		Test(context.Context, slurm.Submission) (slurm.Estimate, error)
	})
	if !ok || sc.Text == "" {
		return nil
	}
	_, err := t.Test(ctx, slurm.Submission{Script: sc.Text, Dir: s.Worktree})
	if !errors.Is(err, slurm.ErrRejected) {
		return nil
	}
	row := circumstance{id: "slurm-refuses", field: refusedField(err.Error()), fix: slurm.FixOf(err)}
	said := phrase("Slurm would refuse it: %s", "Slurm 会拒绝该作业：%s", slurmWords(err))
	if sv, ok := cl.(ops.Surveyor); ok && noSuchNodes.Match(err.Error()) {
		if nodes, err := sv.Nodes(ctx); err != nil || slices.ContainsFunc(nodes, func(n slurm.Node) bool { return !n.Usable() }) {
			row.severity = rules.Warning
			said = phrase("no nodes that are in service can run it, and others are out of service: it may wait for them", "当前可用的节点都无法运行该作业，另有节点停用：它可能要等这些节点恢复")
		}
	}
	return []rules.Problem{row.problem(said, c.Lang)}
}

var noSuchNodes = slurm.Rejection{Text: "Requested node configuration is not available"}

// slurmWords is what Slurm itself said.
func slurmWords(err error) string {
	said := err.Error()
	if e, ok := errors.AsType[*slurm.Error](err); ok {
		said = e.Msg.EN
	}
	return strings.TrimPrefix(said, "allocation failure: ")
}

// refusedField is the field of the specification that a refusal is about.
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
