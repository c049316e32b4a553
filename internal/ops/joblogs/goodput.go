package joblogs

import (
	"context"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// Goodput splits the time for which an ended job held its GPUs by purpose. It returns
// false where the logs cannot be read from here, have no times, or are not a
// training's.
func Goodput(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job) (metrics.Goodput, bool) {
	var none metrics.Goodput
	if j.StartedAt == nil || j.EndedAt == nil || j.GPUs == 0 {
		return none, false
	}
	paths := logFiles(ctx, c, cl.Name(), j)
	if len(paths) == 0 {
		return none, false
	}
	folders, err := openFolders(c, j, paths)
	if err != nil {
		return none, false
	}
	defer folders.Close()
	var run metrics.Run
	read := false
	for _, p := range paths {
		r, err := metrics.Read(ctx, folders, p, "")
		if err != nil {
			continue
		}
		saved := slices.Concat(run.Saved, r.Saved)
		if !read || len(r.Iterations) > len(run.Iterations) {
			run = r
		}
		run.Saved, read = saved, true
	}
	if !read {
		return none, false
	}
	if len(run.Iterations) == 0 { // only a training run must have iterations
		s, ok := c.SpecOfJob(ctx, cl.Name(), j)
		if !ok || !launch.Trains(s.WithDefaults()) {
			return none, false
		}
	}
	return run.Goodput(*j.StartedAt, *j.EndedAt, j.State == slurm.Completed)
}
