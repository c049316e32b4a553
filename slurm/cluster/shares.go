package cluster

import (
	"context"
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Priorities returns the parts of the priorities of pending jobs: of ids, or of all
// pending jobs where ids is empty.
func (c *CLI) Priorities(ctx context.Context, ids ...slurm.JobID) ([]slurm.Priority, error) {
	argv := []string{"sprio", "--noheader", "--format=" + slurm.PriorityFormat}
	if len(ids) > 0 {
		argv = append(argv, "--jobs="+joinIDs(ids))
	}
	out, err := c.ask(ctx, "priorities", argv...)
	return slurm.ParsePriorities(out), err
}

// Shares returns the fair-share data of a user in each account, or of every user where
// user is "".
func (c *CLI) Shares(ctx context.Context, user string) ([]slurm.Share, error) {
	argv := []string{"sshare", "--parsable2", "--noheader", "--format=" + slurm.ShareFormat}
	if user == "" {
		argv = append(argv, "--all")
	} else {
		argv = append(argv, "--users="+user)
	}
	out, err := c.ask(ctx, "fair share", argv...)
	return slices.DeleteFunc(slurm.ParseShares(out), func(s slurm.Share) bool { return user != "" && s.User != user }), err
}

// Associations returns the accounts that a user may use, with their limits.
func (c *CLI) Associations(ctx context.Context, user string) ([]slurm.Association, error) {
	out, err := c.ask(ctx, "accounts of "+user, "sacctmgr", "--noheader", "--parsable2", "--readonly",
		"show", "associations", "user="+user, "format="+slurm.AssociationFormat)
	return slurm.ParseAssociations(out), err
}
