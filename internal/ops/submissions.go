package ops

import (
	"context"
	"encoding/json"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// stored returns the newest submission with a job id.
func (c *Call) stored(ctx context.Context, cluster string, id slurm.JobID) (store.Submission, error) {
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

// FindSubmission returns what the store knows about a job that was submitted through
// this program, or store.ErrNotFound. Where another job may have the id by now, it asks
// the cluster: an earlier job that had the id is not taken for the one that has it.
func (c *Call) FindSubmission(ctx context.Context, cluster string, id slurm.JobID) (store.Submission, error) {
	sub, err := c.stored(ctx, cluster, id)
	if err != nil || !sub.MayBeReused(c.Now()) || slurm.IsStepID(string(id)) {
		return sub, err
	}
	cl, err := c.Cluster(cluster)
	if err != nil {
		return sub, nil //nolint:nilerr // what is stored about its job stays true
	}
	if j, err := c.Look(ctx, cl, id); err == nil && !sub.Became(j) {
		return store.Submission{}, store.ErrNotFound
	}
	return sub, nil
}

// Submission is FindSubmission for callers that also work without a submission.
func (c *Call) Submission(ctx context.Context, cluster string, id slurm.JobID) (store.Submission, bool) {
	sub, err := c.FindSubmission(ctx, cluster, id)
	return sub, err == nil
}

// SubmissionOf is Submission for a job as the cluster shows it now. reused is set where
// the store knows only an earlier job that had its id.
func (c *Call) SubmissionOf(ctx context.Context, cluster string, j slurm.Job) (_ store.Submission, ok, reused bool) {
	sub, err := c.stored(ctx, cluster, j.ID)
	if ok = err == nil && sub.Became(j); !ok {
		return store.Submission{}, false, err == nil
	}
	return sub, true, false
}

// SpecOf returns the specification that a job was submitted with.
func (c *Call) SpecOf(ctx context.Context, cluster string, id slurm.JobID) (s job.Spec, ok bool) {
	sub, ok := c.Submission(ctx, cluster, id)
	return s, ok && json.Unmarshal(sub.Spec, &s) == nil
}

// SpecOfJob is SpecOf for a job as the cluster shows it now; see SubmissionOf.
func (c *Call) SpecOfJob(ctx context.Context, cluster string, j slurm.Job) (s job.Spec, ok bool) {
	sub, ok, _ := c.SubmissionOf(ctx, cluster, j)
	return s, ok && json.Unmarshal(sub.Spec, &s) == nil
}
