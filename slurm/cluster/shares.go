package cluster

import (
	"context"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Priorities returns the parts of the priority of a pending job, or of those of an array.
func (c *CLI) Priorities(ctx context.Context, id slurm.JobID) ([]slurm.Priority, error) {
	out, err := c.ask(ctx, "priorities", "sprio", "--noheader", "--format="+slurm.PriorityFormat, "--jobs="+string(id))
	return slurm.ParsePriorities(out), err
}

// Shares returns the fair-share data of every user in each account.
func (c *CLI) Shares(ctx context.Context) ([]slurm.Share, error) {
	out, err := c.ask(ctx, "fair share", "sshare", "--parsable2", "--noheader", "--format="+slurm.ShareFormat, "--all")
	return slurm.ParseShares(out), err
}

// Associations returns the accounts that a user may use, with their limits.
func (c *CLI) Associations(ctx context.Context, user string) ([]slurm.Association, error) {
	out, err := c.ask(ctx, "accounts of "+user, "sacctmgr", "--noheader", "--parsable2", "--readonly",
		"show", "associations", "user="+user, "format="+slurm.AssociationFormat)
	return slurm.ParseAssociations(out), err
}
