package opstest

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Bare is embedded by a test's cluster. It knows no job, and supports nothing that the
// cluster does not do itself.
type Bare = bare

type bare struct{}

func (bare) Name() string                            { return "bare" }
func (bare) Kind() string                            { return "rest" }
func (bare) Hold(context.Context, slurm.JobID) error { return slurm.ErrUnsupported }

func (bare) Release(context.Context, slurm.JobID) error { return slurm.ErrUnsupported }

func (bare) Requeue(context.Context, slurm.JobID) error { return slurm.ErrUnsupported }

func (bare) Cancel(context.Context, slurm.JobID) error { return slurm.ErrUnsupported }

func (bare) Update(context.Context, slurm.JobID, slurm.Update) error { return slurm.ErrUnsupported }
func (bare) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, nil }
func (bare) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, nil }
func (bare) Nodes(context.Context) ([]slurm.Node, error)             { return nil, slurm.ErrUnsupported }

func (bare) Partitions(context.Context) (all []slurm.Partition, err error) {
	return nil, slurm.ErrUnsupported
}

func (bare) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	return slurm.Job{}, slurm.JobNotFound(id)
}

func (bare) Find(context.Context, string, time.Time) (slurm.JobID, bool, error) {
	return "", false, nil
}

func (bare) Submit(context.Context, slurm.Submission) (slurm.JobID, error) {
	return "", slurm.ErrUnsupported
}

func (bare) Test(context.Context, slurm.Submission) (slurm.Estimate, error) {
	return slurm.Estimate{}, slurm.ErrUnsupported
}

func (bare) Exec(context.Context, slurm.Exec) ([]slurm.NodeOutput, error) {
	return nil, slurm.ErrUnsupported
}
