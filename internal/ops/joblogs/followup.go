package joblogs

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// diagnoseAndAnswer runs a diagnosis and, where the call has a question, answers it
// from the evidence. A question that the evidence cannot answer gets the whole
// diagnosis.
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
	if lang.Of(in.Question) == lang.ZH { // who asks in Chinese reads Chinese
		spoken = lang.ZH
	}
	out.Answer, _ = out.FollowUp(in.Question, earlier, spoken)
	return out, nil
}

// earlierDiagnosis diagnoses the newest run of the same name before a job. It returns
// nil where no such run is known or its logs are gone.
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
		return nil, nil // not submitted here, so earlier runs are unknown
	}
	earlier, err := earlierRuns(ctx, c, sub)
	if err != nil {
		return nil, err
	}
	for _, id := range earlier {
		in.Target, in.Question = string(id), ""
		if out, err := diagnoseOp(ctx, c, in); err == nil {
			return &out.Report, nil
		}
	}
	return nil, nil
}
