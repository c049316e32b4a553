package ops

import (
	"context"
	"encoding/json"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// FindSubmission returns what the store knows about a job that was submitted through
// this program, or store.ErrNotFound.
func (c *Call) FindSubmission(ctx context.Context, cluster string, id slurm.JobID) (store.Submission, error) {
	if c.Store == nil {
		return store.Submission{}, store.ErrNotFound
	}
	st, err := c.Store()
	if err != nil {
		return store.Submission{}, err
	}
	if !slurm.IsStepID(string(id)) {
		id = id.Array()
	}
	return st.ByJob(ctx, cluster, id)
}

// Submission is FindSubmission for callers that also work without a submission.
func (c *Call) Submission(ctx context.Context, cluster string, id slurm.JobID) (store.Submission, bool) {
	sub, err := c.FindSubmission(ctx, cluster, id)
	return sub, err == nil
}

// SpecOf returns the specification that a job was submitted with.
func (c *Call) SpecOf(ctx context.Context, cluster string, id slurm.JobID) (job.Spec, bool) {
	sub, ok := c.Submission(ctx, cluster, id)
	if !ok {
		return job.Spec{}, false
	}
	var s job.Spec
	return s, json.Unmarshal(sub.Spec, &s) == nil
}
