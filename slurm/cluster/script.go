package cluster

import (
	"context"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// BatchScript is the script that a job was submitted with, for its owner.
func (c *CLI) BatchScript(ctx context.Context, id slurm.JobID) (string, error) {
	if !slurm.IsJobID(string(id)) {
		return "", slurm.JobNotFound(id)
	}
	return c.ask(ctx, "script of "+string(id), "scontrol", "write", "batch_script", string(id.Array()), "-")
}
