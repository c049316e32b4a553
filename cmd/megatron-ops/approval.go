package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// needsApproval says why a submission, or a change that makes a waiting job
// larger, must be approved; empty: it need not.
func needsApproval(svc *ops.Service, a config.Approval, op string, in any) lang.Text {
	switch in := in.(type) {
	case *ops.SubmitIn:
		if op != "submit" || in.DryRun {
			return lang.Text{}
		}
		// What would be submitted decides: the text, the fields beside it and the site's
		// profile together.
		s, err := (&ops.Call{Service: svc}).Resolve(in.SpecIn)
		if err != nil {
			return lang.Text{} // submit itself refuses it
		}
		return overLimits(a, s.Partition, func() (float64, bool) { return gpuHours(s.WithDefaults()) })
	case *ops.UpdateIn:
		if in.Partition == "" && in.Nodes == 0 && in.Time == "" {
			return lang.Text{}
		}
		return overLimits(a, in.Partition, func() (float64, bool) { return hoursAfter(svc, in) })
	}
	return lang.Text{}
}

// overLimits compares one request with the limits.
func overLimits(a config.Approval, partition string, hours func() (float64, bool)) lang.Text {
	for p := range strings.SplitSeq(partition, ",") {
		if slices.Contains(a.Partitions, p) {
			return lang.Text{EN: "partition " + p + " is for approved jobs", ZH: "分区 " + p + " 只接受已审批的作业"}
		}
	}
	if a.GPUHours <= 0 {
		return lang.Text{}
	}
	h, known := hours()
	switch {
	case !known:
		return lang.Text{EN: "its time limit is not known", ZH: "时间上限未知"}
	case h > a.GPUHours:
		return lang.Text{
			EN: fmt.Sprintf("it may use %.0f GPU hours, more than %.0f", h, a.GPUHours),
			ZH: fmt.Sprintf("最多可能使用 %.0f GPU 小时，超过 %.0f", h, a.GPUHours),
		}
	}
	return lang.Text{}
}

// gpuHours is the most that a specification may use: every job of its chain and
// every task of its array up to the time limit.
func gpuHours(s job.Spec) (hours float64, known bool) {
	limit, known := slurm.ParseDuration(s.Time)
	jobs := 1
	if s.Chain != nil {
		jobs = max(*s.Chain, 1)
	}
	return float64(jobs*tasks(s.Array)**s.Nodes**s.GPUsPerNode) * limit.Hours(), known
}

// tasks counts an array's elements: 0-31:4,40%2 has nine.
func tasks(array string) (n int) {
	ranges, _, _ := strings.Cut(array, "%")
	for r := range strings.SplitSeq(ranges, ",") {
		span, by, _ := strings.Cut(r, ":")
		first, last, _ := strings.Cut(span, "-")
		from, err := strconv.Atoi(strings.TrimSpace(first))
		to, err2 := strconv.Atoi(strings.TrimSpace(last))
		step, err3 := strconv.Atoi(by)
		if err3 != nil || step < 1 {
			step = 1
		}
		if err != nil || err2 != nil || to < from {
			n++ // a single element, or what submit refuses
			continue
		}
		n += (to-from)/step + 1
	}
	return n
}

// hoursAfter is the most that a job may use after a change.
func hoursAfter(svc *ops.Service, in *ops.UpdateIn) (hours float64, known bool) {
	name := in.Cluster
	if name == "" {
		name = svc.Default
	}
	cl, ok := svc.Clusters[name]
	if !ok {
		return 0, true // update itself refuses it
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	j, err := cl.Job(ctx, in.Job)
	if err != nil {
		return 0, true
	}
	gpus := float64(j.GPUs)
	if in.Nodes > 0 && j.NumNodes > 0 {
		gpus *= float64(in.Nodes) / float64(j.NumNodes)
	}
	if in.Time != "" {
		limit, ok := slurm.ParseDuration(in.Time)
		return gpus * limit.Hours(), ok
	}
	if j.TimeLimitS == nil {
		return 0, gpus == 0
	}
	return gpus * float64(*j.TimeLimitS) / 3600, true
}
