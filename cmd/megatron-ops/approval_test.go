package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A yard has one waiting job of two nodes and an hour.
type yard struct{ ops.Cluster }

func (yard) Name() string { return "yard" }

func (yard) Job(context.Context, slurm.JobID) (slurm.Job, error) {
	hour := int64(3600)
	return slurm.Job{ID: "4711", NumNodes: 2, GPUs: 16, TimeLimitS: &hour, State: slurm.Pending}, nil
}

func TestLargeSubmissionsAndChangesNeedApproval(t *testing.T) {
	svc := &ops.Service{
		Clusters: map[string]ops.Cluster{"yard": yard{}}, Default: "yard",
		Sites: func(string) job.Site { return job.Site{Partition: "prod"} },
	}
	policy := config.Approval{GPUHours: 100, Partitions: []string{"urgent"}}
	for yaml, why := range map[string]string{
		"{nodes: 2, gpus_per_node: 8, time: '6:00:00'}":                           "",
		"{nodes: 2, gpus_per_node: 8, time: '7:00:00'}":                           "112 GPU hours",
		"{nodes: 2, gpus_per_node: 8, time: '2:00:00', chain: 5}":                 "160 GPU hours",
		"{nodes: 1, gpus_per_node: 8, time: '1:00:00', array: '0-31:4,40-49%2'}":  "144 GPU hours",
		"{nodes: 2, gpus_per_node: 8}":                                            "time limit is not known",
		"{nodes: 1, gpus_per_node: 0, time: '1-00:00:00'}":                        "",
		"{nodes: 1, gpus_per_node: 1, time: '1:00:00', partition: 'prod,urgent'}": "partition urgent",
	} {
		in := &ops.SubmitIn{SpecIn: ops.SpecIn{YAML: strings.Replace(yaml, "{", "{name: x, worktree: /w, ", 1)}}
		got := needsApproval(svc, policy, "submit", in)
		if why == "" {
			require.Empty(t, got.EN, yaml)
			continue
		}
		require.Contains(t, got.EN, why, yaml)
		require.NotEmpty(t, got.ZH, yaml)
		in.DryRun = true
		require.Empty(t, needsApproval(svc, policy, "submit", in).EN, "looking costs nothing")
	}
	for _, c := range []struct {
		in  ops.UpdateIn
		why string
	}{
		{ops.UpdateIn{Time: "6:00:00"}, ""},
		{ops.UpdateIn{Time: "7:00:00"}, "112 GPU hours"},
		{ops.UpdateIn{Nodes: 16}, "128 GPU hours"},
		{ops.UpdateIn{Partition: "urgent"}, "partition urgent"},
		{ops.UpdateIn{QOS: "high"}, ""},
	} {
		got := needsApproval(svc, policy, "update", &c.in)
		if c.why == "" {
			require.Empty(t, got.EN, "%+v", c.in)
			continue
		}
		require.Contains(t, got.EN, c.why, "%+v", c.in)
	}
}
