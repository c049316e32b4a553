package cluster

import (
	"context"
	"fmt"
	"time"

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
	nodes, err := slurm.ExecNodes(j, e.Nodes)
	if err != nil {
		return nil, err
	}
	op := fmt.Sprintf("run on %s", e.Job)
	if e.Limit == 0 {
		e.Limit = time.Minute
	}
	env := append(queryEnviron(JobEnviron(c.Environ())), "SLURM_EXPORT_ENV=ALL")
	r, err := c.runner.run(ctx, command{argv: append([]string{"srun"}, e.Args(nodes)...), env: env, limit: e.Limit})
	outputs := slurm.Outputs(r.stdout+r.stderr, nodes)
	if err != nil {
		return outputs, named(op, err)
	}
	if r.code != 0 {
		return outputs, &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: fmt.Sprintf("exit status %d: %s", r.code, slurm.FromStderr("", errorLines(r.stderr)).Msg)}
	}
	return outputs, nil
}
