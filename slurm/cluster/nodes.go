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
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
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
		return nil, unparsable("nodes", err)
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
	return all, unparsable("partitions", err)
}

// Topology returns the switch of each node, where the cluster has a topology.
func (c *CLI) Topology(ctx context.Context) (map[string]string, error) {
	out, err := c.ask(ctx, "topology", "scontrol", "show", "topology")
	if err != nil {
		return nil, err
	}
	return slurm.ParseTopology(out), nil
}

// Exec runs a command on the nodes of a running job, beside the job's own steps. It
// returns the nodes' output even where the command failed on some of them.
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
		e.Job = j.RawID // srun accepts an array element only by its own job number
	}
	e.Limit = cmp.Or(e.Limit, time.Minute)
	env := append(queryEnviron(JobEnviron(c.Environ())), "SLURM_EXPORT_ENV=ALL")
	r, err := c.run(ctx, command{argv: append([]string{"srun"}, e.Args(nodes)...), env: env, limit: e.Limit + execGrace})
	outputs := slurm.Outputs(r.stdout+r.stderr, nodes)
	if err != nil {
		return outputs, withOp(op, err)
	}
	if r.code == timedOut {
		return outputs, e.OutOfTime()
	}
	if r.code != 0 {
		return outputs, srunFailed(op, r)
	}
	return outputs, nil
}

// srunFailed returns the error of a command that srun ran and that failed.
func srunFailed(op string, r result) *slurm.Error {
	return &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: lang.Text{
		EN: "exit status %d: %s",
		ZH: "以状态 %d 退出：%s",
	}.With(r.code, slurm.FromStderr("", errorLines(r.stderr)).Msg)}
}

// execGrace is the time that srun may take in addition to its command; timedOut is the
// exit code of timeout(1) at its limit.
const (
	execGrace = 20 * time.Second
	timedOut  = 124
)

// components returns the running components of a heterogeneous job; none for any other
// job.
func (c *CLI) components(ctx context.Context, id slurm.JobID) []slurm.Job {
	rows, err := c.queue(ctx, "components of "+string(id), "--jobs="+string(id))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(rows, func(r slurm.Job) bool {
		return !strings.Contains(string(r.ID), "+") || r.State != slurm.Running
	})
}

// execParts runs e on each component, because a step belongs to exactly one component.
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

// ResumeNodes returns drained or failed nodes to the scheduler. Slurm allows only its
// operators to do so.
func (c *CLI) ResumeNodes(ctx context.Context, nodes []string) error {
	if len(nodes) == 0 {
		return &slurm.Error{Op: "resume", Kind: slurm.Rejected, Msg: lang.Text{EN: "no node is named", ZH: "没有指明节点"}}
	}
	list := hostlist.Compress(nodes)
	_, err := c.ask(ctx, "resume "+list, "scontrol", "update", "NodeName="+list, "State=RESUME")
	return err
}
