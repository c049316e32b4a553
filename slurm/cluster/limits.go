package cluster

import (
	"context"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// PartitionLimits tells what the partitions allow one job.
func (c *CLI) PartitionLimits(ctx context.Context) ([]slurm.PartitionLimits, error) {
	out, err := c.ask(ctx, "partition limits", "scontrol", "--oneliner", "show", "partition")
	return slurm.ParsePartitionLimits(out), err
}

// QOS lists the qualities of service and their limits.
func (c *CLI) QOS(ctx context.Context) ([]slurm.QOS, error) {
	out, err := c.ask(ctx, "qualities of service", "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "qos", "format="+slurm.QOSFormat)
	return slurm.ParseQOS(out), err
}

// PriorityWeights tells the most that each part of a priority can count here.
func (c *CLI) PriorityWeights(ctx context.Context) (slurm.Priority, error) {
	out, err := c.ask(ctx, "priority weights", "sprio", "--noheader", "--weights", "--format="+slurm.PriorityFormat)
	if all := slurm.ParsePriorities(out); err == nil && len(all) > 0 {
		return all[0], nil
	}
	return slurm.Priority{}, err
}
