package cluster

import (
	"context"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// PartitionLimits returns the limits of each partition for one job.
func (c *CLI) PartitionLimits(ctx context.Context) ([]slurm.PartitionLimits, error) {
	out, err := c.ask(ctx, "partition limits", "scontrol", "--oneliner", "show", "partition")
	return slurm.ParsePartitionLimits(out), err
}

// Reservations lists the reservations that this account may see.
func (c *CLI) Reservations(ctx context.Context) ([]slurm.Reservation, error) {
	out, err := c.ask(ctx, "reservations", "scontrol", "--oneliner", "show", "reservation")
	return slurm.ParseReservations(out), err
}

// QOS lists the qualities of service and their limits.
func (c *CLI) QOS(ctx context.Context) ([]slurm.QOS, error) {
	out, err := c.ask(ctx, "qualities of service", "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "qos", "format="+slurm.QOSFormat)
	return slurm.ParseQOS(out), err
}

// PriorityWeights returns the largest value that each part of a priority can have on
// this cluster.
func (c *CLI) PriorityWeights(ctx context.Context) (slurm.Priority, error) {
	out, err := c.ask(ctx, "priority weights", "sprio", "--noheader", "--weights", "--format="+slurm.PriorityFormat)
	if all := slurm.ParsePriorities(out); err == nil && len(all) > 0 {
		return all[0], nil
	}
	return slurm.Priority{}, err
}

// Limits returns the limits on a user's jobs in an account under a QOS, with the
// amounts in use. An empty account means the user's default account. The result is
// empty where the cluster does not enforce limits.
func (c *CLI) Limits(ctx context.Context, user, account, qos string) ([]slurm.Limit, error) {
	config, err := c.ask(ctx, "configuration", "scontrol", "show", "config")
	if err != nil || !enforcesLimits(config) {
		return nil, err
	}
	out, err := c.ask(ctx, "limits of "+user, "scontrol", "--oneliner", "show", "assoc_mgr", "users="+user, "flags=assoc,qos")
	return slurm.ParseLimits(out, user, account, qos), err
}

// enforcesLimits reports whether AccountingStorageEnforce enforces limits. By
// slurm.conf(5), qos and safe imply limits.
func enforcesLimits(config string) bool {
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "AccountingStorageEnforce" {
			return strings.Contains(value, "limits") || strings.Contains(value, "qos") || strings.Contains(value, "safe")
		}
	}
	return false
}
