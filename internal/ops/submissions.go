package ops

import (
	"context"
	"encoding/json"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Submission is what the store knows of a job, if it was submitted through us.
func (c *Call) Submission(ctx context.Context, cluster string, id slurm.JobID) (store.Submission, bool) {
	if c.Store == nil {
		return store.Submission{}, false
	}
	st, err := c.Store()
	if err != nil {
		return store.Submission{}, false
	}
	if !slurm.IsStepID(string(id)) {
		id = id.Array()
	}
	sub, err := st.ByJob(ctx, cluster, id)
	return sub, err == nil
}

// SpecOf is the specification that a job was submitted with.
func (c *Call) SpecOf(ctx context.Context, cluster string, id slurm.JobID) (job.Spec, bool) {
	sub, ok := c.Submission(ctx, cluster, id)
	if !ok {
		return job.Spec{}, false
	}
	var s job.Spec
	return s, json.Unmarshal(sub.Spec, &s) == nil
}
