package cluster

import (
	"context"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Steps lists the steps of a job in the accounts.
func (c *CLI) Steps(ctx context.Context, id slurm.JobID) ([]slurm.Step, error) {
	if !slurm.IsJobID(string(id)) {
		return nil, slurm.JobNotFound(id)
	}
	sep := separator()
	out, err := c.ask(ctx, "steps of "+string(id), "sacct", "--noheader", "--parsable2", "--delimiter="+sep, "--format="+slurm.StepFormat, "--jobs="+string(id))
	return slurm.ParseSteps(out, sep), err
}

// RunningSteps lists the steps that run now, of all jobs.
func (c *CLI) RunningSteps(ctx context.Context) ([]slurm.Step, error) { return c.runningSteps(ctx) }

func (c *CLI) runningSteps(ctx context.Context, which ...string) ([]slurm.Step, error) {
	argv := []string{"squeue", "--noheader", "--steps", "--format=" + slurm.RunningStepFormat}
	out, err := c.ask(ctx, "running steps", append(argv, which...)...)
	return slurm.ParseRunningSteps(out), err
}
