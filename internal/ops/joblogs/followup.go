package joblogs

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// diagnoseAndAnswer is a diagnosis and, where a question is asked of it, the
// answer that its evidence gives. A question of another kind gets the whole.
func diagnoseAndAnswer(ctx context.Context, c *ops.Call, in DiagnoseIn) (DiagnoseOut, error) {
	out, err := diagnoseOp(ctx, c, in)
	if err != nil || in.Question == "" {
		return out, err
	}
	var earlier *report.Report
	if report.AsksForEarlier(in.Question) {
		if earlier, err = earlierDiagnosis(ctx, c, in); err != nil {
			return out, err
		}
	}
	spoken := c.Lang
	if lang.Of(in.Question) == lang.ZH { // whoever asks in Chinese reads it
		spoken = lang.ZH
	}
	out.Answer, _ = out.FollowUp(in.Question, earlier, spoken)
	return out, nil
}

// earlierDiagnosis is that of the newest run of the same name before a job, or
// nil where none is known or its logs are gone.
func earlierDiagnosis(ctx context.Context, c *ops.Call, in DiagnoseIn) (*report.Report, error) {
	if !slurm.IsJobID(in.Target) {
		return nil, nil
	}
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return nil, err
	}
	sub, err := launch.OwnSubmission(ctx, c, cl, slurm.JobID(in.Target))
	if err != nil {
		return nil, nil // it was not submitted here: nothing is known of runs before it
	}
	st, err := c.Store()
	if err != nil {
		return nil, err
	}
	all, err := st.Submissions(ctx, sub.Owner, sub.Name, 50)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Cluster != cl.Name() || s.JobID == "" || !s.CreatedAt.Before(sub.CreatedAt) {
			continue
		}
		in.Target, in.Question = string(s.JobID), ""
		if out, err := diagnoseOp(ctx, c, in); err == nil {
			return &out.Report, nil
		}
	}
	return nil, nil
}
