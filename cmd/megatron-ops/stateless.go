package main

import (
	"context"
	"os"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
)

// withoutState is the embedded back end where there is no folder to keep jobs in. It judges
// a job, and says what to set before it runs one.
type withoutState struct {
	*local.Cluster
	why error
}

// refuseJobs makes the embedded back ends among all refuse jobs.
func refuseJobs(all map[string]ops.Cluster, why error) {
	for name, cl := range all {
		if _, ok := cl.(*local.Cluster); ok {
			all[name] = withoutState{local.New(name, os.DevNull), why} // no folder can ever exist below it
		}
	}
}

// Submit returns why no job can be kept.
func (c withoutState) Submit(context.Context, slurm.Submission) (slurm.JobID, error) {
	return "", c.why
}

// Job returns why no job can be kept.
func (c withoutState) Job(context.Context, slurm.JobID) (slurm.Job, error) {
	return slurm.Job{}, c.why
}

// Jobs returns why no job can be kept.
func (c withoutState) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, c.why }

// Past returns why no job can be kept.
func (c withoutState) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, c.why }

// Find returns why no job can be kept.
func (c withoutState) Find(context.Context, string, time.Time) (slurm.JobID, bool, error) {
	return "", false, c.why
}

// Cancel returns why no job can be kept.
func (c withoutState) Cancel(context.Context, slurm.JobID) error { return c.why }
