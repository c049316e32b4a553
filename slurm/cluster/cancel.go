package cluster

import (
	"context"
	"errors"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// CancelStep ends one step of a job, such as "4711.0", and leaves the job running. It
// always names the step, so scancel never runs without an id.
func (c *CLI) CancelStep(ctx context.Context, step string) error {
	op := "cancel " + step
	if !slurm.IsStepID(step) {
		return &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: lang.Text{EN: "%q is not a step; a step is written like 4711.0", ZH: "%q 不是作业步骤；步骤的写法如 4711.0"}.With(step)}
	}
	err := c.scancel(ctx, op, step)
	if errors.Is(err, slurm.ErrNotFound) {
		return &slurm.Error{Op: op, Kind: slurm.NotFound, Msg: lang.Text{EN: "job %s has no such step", ZH: "作业 %s 没有该步骤"}.With(slurm.JobID(step).Job())}
	}
	return err
}

// Signal sends a signal, such as TERM, to the tasks of a running job, but not to its batch
// script. Whether the job ends is up to its program.
func (c *CLI) Signal(ctx context.Context, id slurm.JobID, name string) error {
	if !slurm.IsJobID(string(id)) {
		return slurm.JobNotFound(id)
	}
	return c.scancel(ctx, "signal "+string(id), "--signal="+name, string(id))
}
