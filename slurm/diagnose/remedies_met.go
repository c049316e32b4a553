package diagnose

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// alreadyHas lists the conditions of a class's remedies (report.AsksFor) that the job meets already or
// cannot meet. It takes them from the job's launch if that is known, from the arguments that the run
// printed, and from its logs.
func (j *job) alreadyHas(r report.Report) (has []string) {
	has = append(has, j.given.Already...)
	add := func(what string, so bool) {
		if so {
			has = append(has, what)
		}
	}
	if run, _, ok := j.launch(); ok {
		args, _ := megatron.Parse(run)
		c := args.Effective()
		add(report.SmallerBatch, c.MicroBatchSize.V == 1)
		add(report.RecomputeAll, c.Recompute == "full")
		add(report.MoreParallel, run.WorldSize > 0 && c.TP*c.PP*c.CP >= run.WorldSize)
		add(report.ShardOptimizer, c.UseDistributedOptimizer || c.DP == 1) // one data-parallel rank has nothing to shard
	} else {
		add(report.SmallerBatch, j.argument("micro_batch_size") == 1)
		add(report.RecomputeAll, j.args["recompute_granularity"] == "full")
		add(report.ShardOptimizer, j.args["use_distributed_optimizer"] == "True")
	}
	env := map[string]string{}
	if j.given.Launch != nil {
		env = j.given.Launch.Env
	}
	little := r.Memory != nil && r.Memory.TriedGiB > 0 && r.Memory.ReservedGiB < r.Memory.TriedGiB/2
	add(report.ExpandableSegments, little || strings.Contains(env["PYTORCH_CUDA_ALLOC_CONF"], "expandable_segments:True"))
	add(report.FlightRecorder, j.missed != nil || env["TORCH_NCCL_TRACE_BUFFER_SIZE"] != "" || env["TORCH_FR_BUFFER_SIZE"] != "")
	spoke := env["NCCL_DEBUG"] == "INFO" || env["NCCL_DEBUG"] == "TRACE"
	for _, f := range j.files {
		spoke = spoke || len(f.Addresses) > 0
	}
	add(report.DebugNCCL, spoke)
	return has
}
