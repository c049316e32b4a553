package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/ops/smoke"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A fakeCluster has jobs with two nodes and a limit of an hour: 4711 is pending, 4712 is
// an array of eight, of which one has ended, 4713 is pending in urgent without a limit.
type fakeCluster struct {
	opstest.Bare
	unreachable bool
}

func (fakeCluster) Name() string { return "yard" }

func (y fakeCluster) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	hour := int64(3600)
	j := slurm.Job{ID: id, NumNodes: 2, GPUs: 16, TimeLimitS: &hour, State: slurm.Pending, Partition: "prod", QOS: "normal"}
	switch {
	case y.unreachable:
		return j, slurm.ErrUnreachable
	case id == "4713":
		j.TimeLimitS, j.Partition = nil, "urgent"
	case id == "99":
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	return j, nil
}

func (y fakeCluster) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	if f.IDs[0] != "4712" {
		j, err := y.Job(ctx, f.IDs[0])
		return []slurm.Job{j}, err
	}
	var rows []slurm.Job
	for id, state := range map[slurm.JobID]slurm.State{"4712_0": slurm.Completed, "4712_1": slurm.Running, "4712_[2-7%2]": slurm.Pending} {
		row, err := y.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		row.State = state
		rows = append(rows, row)
	}
	return rows, nil
}

func (fakeCluster) Partitions(context.Context) ([]slurm.Partition, error) {
	day := int64(86400)
	return []slurm.Partition{
		{Name: "prod", Default: true, TimeLimitS: &day, GPUs: 8},
		{Name: "urgent", GPUs: 8},
	}, nil
}

func requireApproval(t *testing.T, svc *ops.Service, op string, in any, why string) {
	t.Helper()
	a := config.Approval{Limits: policy.Limits{
		GPUHours: 100, GPUs: 64, Hours: 24, Partitions: []string{"urgent"}, QOS: []string{"high"}, Accounts: []string{"reserve"},
	}}
	got := needsApproval(&ops.Call{Service: svc}, a, in)
	if why == "" {
		require.Emptyf(t, got.EN, "%s %+v", op, in)
		return
	}
	require.Containsf(t, got.EN, why, "%s %+v", op, in)
	require.NotEmpty(t, got.ZH)
	require.Empty(t, needsApproval(&ops.Call{Service: svc}, config.Approval{}, in).EN, "without limits nothing is held")
}

func TestWhateverStartsOrEnlargesIsHeldToTheLimits(t *testing.T) {
	svc := &ops.Service{
		Clusters: map[string]ops.Cluster{"yard": fakeCluster{}}, Default: "yard",
		Sites: func(string) job.Site { return job.Site{} },
	}
	for yaml, why := range map[string]string{
		"{nodes: 2, gpus_per_node: 8, time: '6:00:00'}":                           "",
		"{nodes: 2, gpus_per_node: 8, time: '7:00:00'}":                           "112 GPU hours",
		"{nodes: 2, gpus_per_node: 8, time: '2:00:00', chain: 5}":                 "160 GPU hours",
		"{nodes: 1, gpus_per_node: 8, time: '1:00:00', array: '0-31:4,40-49%2'}":  "144 GPU hours",
		"{nodes: 1, gpus_per_node: 8, time: '0:10:00', array: '0-9'}":             "80 GPUs at one time",
		"{nodes: 1, gpus_per_node: 8, time: '0:10:00', array: '0-9%4'}":           "",
		"{nodes: 1, gpus_per_node: 8, time: '4:00:00', retry: {max: 4}}":          "160 GPU hours",
		"{nodes: 1, gpus_per_node: 0, time: '1-00:00:00'}":                        "",
		"{nodes: 1, gpus_per_node: 0, time: '2-00:00:00'}":                        "48 hours",
		"{nodes: 1, gpus_per_node: 1, time: '1:00:00', partition: 'prod,urgent'}": "partition urgent",
		"{nodes: 1, gpus_per_node: 1, time: '1:00:00', qos: high}":                "QOS high",
		"{nodes: 1, gpus_per_node: 1, time: '1:00:00', account: reserve}":         "account reserve",
		// sbatch takes 0 for no limit at all.
		"{nodes: 1, gpus_per_node: 1, time: '0'}":         "no time limit",
		"{nodes: 1, gpus_per_node: 1, time: '00:00:00'}":  "no time limit",
		"{nodes: 1, gpus_per_node: 1, time: 'UNLIMITED'}": "no time limit",
		// Without a time limit the partition's limit counts.
		"{nodes: 2, gpus_per_node: 8}":                       "384 GPU hours",
		"{nodes: 1, gpus_per_node: 1, partition: urgent}":    "no time limit",
		"{nodes: 1, gpus_per_node: 1, partition: elsewhere}": "time limit is not known",
		// A whole node counts with its GPUs, requested or not.
		"{nodes: 2, gpus_per_node: 0, exclusive: true, time: '7:00:00'}":        "112 GPU hours",
		"{nodes: 1, gpus_per_node: 1, time: '1:00:00', sbatch: ['--gpus=999']}": "how many GPUs",
	} {
		in := &launch.SubmitIn{SpecIn: launch.SpecIn{YAML: strings.Replace(yaml, "{", "{name: x, worktree: /w, ", 1)}}
		if strings.Contains(yaml, "sbatch") {
			if _, err := launch.Resolve((&ops.Call{Service: svc}), in.SpecIn); err != nil {
				continue // such an option is refused outright, which is as good
			}
		}
		requireApproval(t, svc, "submit", in, why)
		in.DryRun = true
		requireApproval(t, svc, "submit", in, "")
	}
	four, none := 4, 0
	for _, c := range []struct {
		op  string
		in  any
		why string
	}{
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4711"}, Time: "6:00:00"}, ""},
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4711"}, Time: "7:00:00"}, "112 GPU hours"},
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4711"}, Time: "0"}, "no time limit"},
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4711"}, Nodes: 16}, "128 GPUs at one time"},
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4711"}, Partition: "urgent"}, "partition urgent"},
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4711"}, QOS: "high"}, "QOS high"},
		// An array is changed as a whole: here seven elements that have not ended.
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4712"}, Time: "0:50:00"}, ""},
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4712"}, Time: "2:00:00"}, "224 GPU hours"},
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4712_3"}, Time: "2:00:00"}, ""},
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4713"}, Time: "1:00:00"}, "partition urgent"},
		{"update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "99"}, Time: "7:00:00"}, ""}, // update itself refuses it
		{"requeue", &jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: "4711"}}, ""},
		{"requeue", &jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: "4713"}}, "no time limit"},
		{"requeue", &jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: "4712"}}, "128 GPU hours"}, // all eight elements
		{"requeue", &jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: "4712_3"}}, ""},
		{"hold", &jobcontrol.JobIn{Job: "4713"}, ""},
		{"run", &fleet.RunIn{Job: "4711", Argv: []string{"true"}}, ""},
		{"run", &fleet.RunIn{Job: "4713", Argv: []string{"true"}}, "partition urgent"},
		{"nodecheck", &fleet.NodeCheckIn{Nodes: "gpu[1-4]", Partition: "prod", GPUs: &four}, ""},
		{"nodecheck", &fleet.NodeCheckIn{Nodes: "gpu[1-32]", Partition: "prod"}, "256 GPUs at one time"},
		{"nodecheck", &fleet.NodeCheckIn{Nodes: "gpu1", GPUs: &none}, "partition urgent"}, // through any that has the node
		{"smoke", &smoke.In{SpecIn: launch.SpecIn{YAML: "{name: x, worktree: /w, nodes: 2, gpus_per_node: 8, time: '4:00:00'}"}}, ""},
		{"smoke", &smoke.In{SpecIn: launch.SpecIn{YAML: "{name: x, worktree: /w, nodes: 2, gpus_per_node: 8, partition: urgent}"}}, "partition urgent"},
		{"smoke", &smoke.In{SpecIn: launch.SpecIn{YAML: "{name: x, worktree: /w, nodes: 9, gpus_per_node: 8, time: '1:00:00'}"}}, "72 GPUs at one time"},
		{"status", &jobcontrol.CancelIn{}, ""},
	} {
		requireApproval(t, svc, c.op, c.in, c.why)
	}
}

// A cluster that does not answer does not bypass the limits.
func TestWhatCannotBeJudgedNeedsApproval(t *testing.T) {
	svc := &ops.Service{Clusters: map[string]ops.Cluster{"yard": fakeCluster{unreachable: true}}, Default: "yard"}
	requireApproval(t, svc, "update", &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "4711"}, Time: "1:00"}, "cannot be determined")
}
