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

// SubmissionOf is Submission for a job as the cluster shows it now: an earlier job that
// had its id is not taken for it.
func (c *Call) SubmissionOf(ctx context.Context, cluster string, j slurm.Job) (store.Submission, bool) {
	sub, ok := c.Submission(ctx, cluster, j.ID)
	return sub, ok && sub.Became(j)
}

// SpecOf returns the specification that a job was submitted with.
func (c *Call) SpecOf(ctx context.Context, cluster string, id slurm.JobID) (job.Spec, bool) {
	return c.SpecOfJob(ctx, cluster, slurm.Job{ID: id})
}

// SpecOfJob is SpecOf for a job as the cluster shows it now; see SubmissionOf.
func (c *Call) SpecOfJob(ctx context.Context, cluster string, j slurm.Job) (s job.Spec, ok bool) {
	sub, ok := c.SubmissionOf(ctx, cluster, j)
	return s, ok && json.Unmarshal(sub.Spec, &s) == nil
}
