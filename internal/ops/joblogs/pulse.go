package joblogs

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

// Pulse is how the output of a running job goes on, or nil where its logs cannot
// be read from here or it does not run.
func Pulse(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job) *diagnose.Pulse {
	if j.State != slurm.Running {
		return nil
	}
	paths := logFiles(ctx, c, cl.Name(), j)
	if len(paths) == 0 {
		return nil
	}
	src, done, err := openLogs(c, j, paths)
	if err != nil {
		return nil
	}
	defer done()
	return pulseOf(ctx, src, diagnose.FromJob(j))
}

// pulseOf is the pulse of a job with these logs, or nil where it has none.
func pulseOf(ctx context.Context, src diagnose.Source, known diagnose.Context) *diagnose.Pulse {
	r, err := diagnose.Run(ctx, src, known)
	if err != nil {
		return nil
	}
	p, runs := r.Pulse()
	if !runs {
		return nil
	}
	return &p
}
