package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Nodes lists the cluster's nodes.
func (c *CLI) Nodes(ctx context.Context) ([]slurm.Node, error) {
	sep := separator()
	out, err := c.ask(ctx, "nodes", "sinfo", "--noheader", "--Node", "--all", "--format="+slurm.NodeFormat(sep))
	if err != nil {
		return nil, err
	}
	nodes, err := slurm.ParseNodes(out, sep)
	if err != nil {
		return nil, broken("nodes", err)
	}
	if out, err := c.ask(ctx, "nodes", "sinfo", "--noheader", "--Node", "--all", "--Format=NodeList:128,GresUsed:256"); err == nil {
		slurm.AddGPUsUsed(nodes, out)
	}
	return nodes, nil
}

// Partitions lists the cluster's partitions.
func (c *CLI) Partitions(ctx context.Context) ([]slurm.Partition, error) {
	sep := separator()
	out, err := c.ask(ctx, "partitions", "sinfo", "--noheader", "--format="+slurm.PartitionFormat(sep))
	if err != nil {
		return nil, err
	}
	all, err := slurm.ParsePartitions(out, sep)
	return all, broken("partitions", err)
}

// Topology gives the switch of each node, where the cluster knows its network.
func (c *CLI) Topology(ctx context.Context) (map[string]string, error) {
	out, err := c.ask(ctx, "topology", "scontrol", "show", "topology")
	if err != nil {
		return nil, err
	}
	return slurm.ParseTopology(out), nil
}

// Exec runs a command on the nodes of a running job, beside its own steps. What
// the nodes said comes back even where the command failed on some.
func (c *CLI) Exec(ctx context.Context, e slurm.Exec) ([]slurm.NodeOutput, error) {
	j, err := c.Job(ctx, e.Job)
	if err != nil {
		return nil, err
	}
	if e.Job == e.Job.Array() {
		if parts := c.components(ctx, e.Job); len(parts) > 0 {
			return c.execParts(ctx, e, parts)
		}
	}
	nodes, err := slurm.ExecNodes(j, e.Nodes)
	if err != nil {
		return nil, err
	}
	op := fmt.Sprintf("run on %s", e.Job)
	if _, component, ok := strings.Cut(string(e.Job), "+"); ok {
		e.Job, e.HetGroup = e.Job.Array(), component
	} else if j.RawID != "" && e.Job.Array() != e.Job {
		e.Job = j.RawID // srun takes an array's element by its own number only
	}
	e.Limit = cmp.Or(e.Limit, time.Minute)
	env := append(queryEnviron(JobEnviron(c.Environ())), "SLURM_EXPORT_ENV=ALL")
	r, err := c.run(ctx, command{argv: append([]string{"srun"}, e.Args(nodes)...), env: env, limit: e.Limit + execGrace})
	outputs := slurm.Outputs(r.stdout+r.stderr, nodes)
	if err != nil {
		return outputs, named(op, err)
	}
	if r.code == timedOut {
		return outputs, e.OutOfTime()
	}
	if r.code != 0 {
		return outputs, &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: lang.Text{
			EN: "exit status %d: %s",
			ZH: "以状态 %d 退出：%s",
		}.With(r.code, slurm.FromStderr("", errorLines(r.stderr)).Msg)}
	}
	return outputs, nil
}

// execGrace is how long srun may take beside its command; timedOut is how
// timeout(1) ends where the command did not.
const (
	execGrace = 20 * time.Second
	timedOut  = 124
)

// components are the running parts of a heterogeneous job; none where id is no
// such job.
func (c *CLI) components(ctx context.Context, id slurm.JobID) []slurm.Job {
	rows, err := c.queue(ctx, "components of "+string(id), "--jobs="+string(id))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(rows, func(r slurm.Job) bool {
		return !strings.Contains(string(r.ID), "+") || r.State != slurm.Running
	})
}

// execParts runs e on each component: a step belongs to one of them.
func (c *CLI) execParts(ctx context.Context, e slurm.Exec, parts []slurm.Job) (all []slurm.NodeOutput, err error) {
	for _, p := range parts {
		on := e
		on.Job = p.ID
		if len(e.Nodes) > 0 {
			on.Nodes = slices.DeleteFunc(slices.Clone(e.Nodes), func(n string) bool { return !slices.Contains(p.Nodes, n) })
			if len(on.Nodes) == 0 {
				continue
			}
		}
		said, failed := c.Exec(ctx, on)
		all, err = append(all, said...), errors.Join(err, failed)
	}
	return all, err
}
