package joblogs

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// A FileStatus is what a job's own files tell about it. Each part is empty where the
// files do not tell, or cannot be read from here.
type FileStatus struct {
	Pulse   *report.Pulse // whether a running job still writes output
	GPUUse  *GPUWatch     // how busy a running job's GPUs are, where the job samples them itself
	Tracked string        // the run's address at its experiment tracker
}

// LookAtFiles reads a job's FileStatus. It lists the files only once, because telling
// them from the logs of other jobs may need questions to Slurm.
func LookAtFiles(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job) (s FileStatus) {
	if j.State == slurm.Pending {
		return s
	}
	paths := logFiles(ctx, c, cl.Name(), j)
	if len(paths) == 0 {
		return s
	}
	if folders, err := openFolders(c, j, paths); err == nil {
		defer folders.Close()
		s.Tracked, s.GPUUse = trackedBy(folders, paths, j), gpuWatch(folders, paths, j, c.Now())
	}
	if j.State != slurm.Running {
		return s
	}
	if src, done, err := openLogs(c, j, paths); err == nil {
		defer done()
		s.Pulse = readState(ctx, src, j).pulse
	}
	return s
}
