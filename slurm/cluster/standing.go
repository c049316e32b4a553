package cluster

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Steps lists the steps of a job, from the accounts.
func (c *CLI) Steps(ctx context.Context, id slurm.JobID) ([]slurm.Step, error) {
	if !slurm.IsJobID(string(id)) {
		return nil, slurm.JobNotFound(id)
	}
	sep := separator()
	out, err := c.ask(ctx, "steps of "+string(id), "sacct", "--noheader", "--parsable2", "--delimiter="+sep, "--format="+slurm.StepFormat, "--jobs="+string(id))
	return slurm.ParseSteps(out, sep), err
}

// RunningSteps lists the steps that run now, of one user's jobs or, with "", of
// all.
func (c *CLI) RunningSteps(ctx context.Context, user string) ([]slurm.Step, error) {
	if user == "" {
		return c.runningSteps(ctx)
	}
	return c.runningSteps(ctx, "--user="+user)
}

func (c *CLI) runningSteps(ctx context.Context, which ...string) ([]slurm.Step, error) {
	argv := []string{"squeue", "--noheader", "--steps", "--format=" + slurm.RunningStepFormat}
	out, err := c.ask(ctx, "running steps", append(argv, which...)...)
	return slurm.ParseRunningSteps(out), err
}

// Priorities tells what the priorities of pending jobs are made of; without ids,
// of all pending jobs.
func (c *CLI) Priorities(ctx context.Context, ids ...slurm.JobID) ([]slurm.Priority, error) {
	argv := []string{"sprio", "--noheader", "--format=" + slurm.PriorityFormat}
	if len(ids) > 0 {
		argv = append(argv, "--jobs="+joinIDs(ids))
	}
	out, err := c.ask(ctx, "priorities", argv...)
	return slurm.ParsePriorities(out), err
}

// Shares tells the standing of a user in each account; with "" of every user.
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

// Associations tells which accounts a user may use, and how far.
func (c *CLI) Associations(ctx context.Context, user string) ([]slurm.Association, error) {
	out, err := c.ask(ctx, "accounts of "+user, "sacctmgr", "--noheader", "--parsable2", "--readonly",
		"show", "associations", "user="+user, "format="+slurm.AssociationFormat)
	return slurm.ParseAssociations(out), err
}

// tester tries submissions.
type tester interface {
	Test(ctx context.Context, s slurm.Submission) (slurm.Estimate, error)
}

// A Variant is a submission that asks for less, and when it would start.
type Variant struct {
	Nodes    int           // 0: as given
	Time     time.Duration // 0: as given
	Estimate slurm.Estimate
}

// Earlier tries s as it is, with half and a quarter of its time, and with half
// and a quarter of its nodes, and returns the estimate for s itself and the
// variants that would start sooner, by at least a minute; any that has an estimate,
// where s itself has none. Nothing is queued. It
// takes at most five questions.
func Earlier(ctx context.Context, c tester, s slurm.Submission) (asGiven slurm.Estimate, sooner []Variant, err error) {
	if asGiven, err = c.Test(ctx, s); err != nil {
		return asGiven, nil, err
	}
	options, err := slurm.ReadDirectives(s.Script)
	if err != nil {
		return asGiven, nil, err
	}
	args, err := slurm.ReadOptions(s.Args)
	if err != nil {
		return asGiven, nil, err
	}
	options = append(options, args...)
	var tries []Variant
	if d, ok := slurm.ParseDuration(options.Value("time")); ok && d >= 4*time.Minute {
		tries = append(tries, Variant{Time: d / 2}, Variant{Time: d / 4})
	}
	var nodes int
	if _, err := fmt.Sscanf(options.Value("nodes"), "%d", &nodes); err == nil {
		for _, n := range []int{nodes / 2, nodes / 4} {
			if n > 0 {
				tries = append(tries, Variant{Nodes: n})
			}
		}
	}
	for _, v := range tries {
		less := s
		less.Args = append([]string{}, s.Args...)
		if v.Nodes > 0 {
			less.Args = append(less.Args, fmt.Sprintf("--nodes=%d", v.Nodes))
		} else {
			less.Args = append(less.Args, fmt.Sprintf("--time=%d", int(math.Ceil(v.Time.Minutes()))))
		}
		var refused error
		if v.Estimate, refused = c.Test(ctx, less); refused != nil {
			if ctx.Err() != nil {
				return asGiven, sooner, ctx.Err()
			}
			continue // the partition may want more nodes, for one
		}
		if at := v.Estimate.Start; !at.IsZero() && (asGiven.Start.IsZero() || asGiven.Start.Sub(at) >= time.Minute) {
			sooner = append(sooner, v)
		}
	}
	return asGiven, sooner, nil
}
