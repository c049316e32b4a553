package joblogs

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// A Glance is what a job's own files tell of it at once; each part is empty where
// they do not, or cannot be read from here.
type Glance struct {
	Pulse   *report.Pulse // how the output of a running job goes on
	GPUUse  *GPUWatch     // how busy the GPUs of a running job are, where it looks at them itself
	Tracked string        // the address of the run at its tracker of experiments
}

// LookAtFiles glances at a job's files. They are listed once: to tell those of other
// jobs in the same folder, Slurm may be asked.
func LookAtFiles(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job) (g Glance) {
	if j.State == slurm.Pending {
		return g
	}
	paths := logFiles(ctx, c, cl.Name(), j)
	if len(paths) == 0 {
		return g
	}
	if folders, err := holding(c, j, paths); err == nil {
		defer folders.Close()
		g.Tracked, g.GPUUse = trackedBy(folders, paths, j), gpuWatch(folders, paths, j, c.Now())
	}
	if j.State == slurm.Running {
		g.Pulse = pulse(ctx, c, j, paths)
	}
	return g
}

func pulse(ctx context.Context, c *ops.Call, j slurm.Job, paths []string) *report.Pulse {
	src, done, err := openLogs(c, j, paths)
	if err != nil {
		return nil
	}
	defer done()
	return pulseOf(ctx, src, diagnose.FromJob(j))
}

// pulseOf is the pulse of a job with these logs, or nil where it has none.
func pulseOf(ctx context.Context, src logfile.Source, known diagnose.Context) *report.Pulse {
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
