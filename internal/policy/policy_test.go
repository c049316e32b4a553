package policy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A queue is a cluster of jobs of one node, eight GPUs and an hour each.
type queue struct {
	ops.Cluster
	rows    map[slurm.JobID][]string // id and state of each row of a job
	noQueue bool
}

func (q queue) all(id slurm.JobID) (rows []slurm.Job) {
	hour := int64(3600)
	for _, row := range q.rows[id.Array()] {
		name, state, _ := strings.Cut(row, " ")
		rows = append(rows, slurm.Job{
			ID: slurm.JobID(name), State: slurm.State(state), NumNodes: 1, GPUs: 8, TimeLimitS: &hour, Partition: "prod", QOS: "normal", Account: "llm",
		})
	}
	return rows
}

func (q queue) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	if j, ok := slurm.Fold(id, q.all(id)); ok {
		return j, nil
	}
	return slurm.Job{}, slurm.JobNotFound(id)
}

func (q queue) Jobs(_ context.Context, f slurm.Filter) ([]slurm.Job, error) {
	if q.noQueue {
		return nil, slurm.ErrUnreachable
	}
	return q.all(f.IDs[0]), nil
}

// Every element of an array that a call starts over or changes is counted, and what
// cannot be counted is over the limits.
func TestAnArrayIsCountedWhole(t *testing.T) {
	q := queue{rows: map[slurm.JobID][]string{
		"7":  {"7 RUNNING"},
		"12": {"12_0 COMPLETED", "12_1 RUNNING", "12_2 RUNNING", "12_[3-9%2] PENDING"},
		"13": {"13_[1,3,5,7,...] PENDING"},
		"14": {"14_[0-8:4] PENDING"},
		"15": {"15+0 RUNNING", "15+1 RUNNING"},
	}}
	svc := &ops.Service{Clusters: map[string]ops.Cluster{"q": q}, Default: "q"}
	for _, tt := range []struct {
		call   string
		gpus   int
		hours  float64
		unsure bool
	}{
		{"requeue 7", 8, 8, false},
		{"requeue 12", 40, 80, false}, // ten elements: one ended, two run, and two of seven at a time
		{"requeue 12_1", 8, 8, false},
		{"requeue 12_4", 8, 8, false},
		{"requeue 13", 32, 40, true},
		{"requeue 14", 24, 24, false},
		{"requeue 15", 16, 16, false},
		{"update 12", 32, 72, false}, // an ended element stays as it is
		{"update 12_4", 8, 8, false},
		{"update 13", 32, 40, true},
		{"update 15", 16, 16, false},
	} {
		op, id, _ := strings.Cut(tt.call, " ")
		on := jobcontrol.JobIn{Job: slurm.JobID(id)}
		var in any = &jobcontrol.RequeueIn{JobIn: on}
		if op == "update" {
			in = &jobcontrol.UpdateIn{JobIn: on, QOS: "normal"}
		}
		use, takes, err := policy.Of(t.Context(), svc, in)
		require.NoError(t, err, tt.call)
		require.True(t, takes)
		require.Equal(t, []string{"prod"}, use.Partitions, tt.call)
		require.InDelta(t, 1, use.Hours, 0, tt.call)
		if tt.unsure {
			require.Equal(t, []policy.Unknown{policy.TasksUnknown}, use.Unknown, tt.call)
			why := policy.Limits{GPUHours: 1e6}.Over(use)
			require.Len(t, why, 1)
			require.Equal(t, "how many tasks its array has is not known", why[0].EN)
			require.NotEmpty(t, why[0].ZH)
			require.Empty(t, policy.Limits{Hours: 24}.Over(use), "a limit of time alone does not count tasks")
			continue
		}
		require.Empty(t, use.Unknown, tt.call)
		require.Equal(t, tt.gpus, use.GPUs, tt.call)
		require.InDelta(t, tt.hours, use.GPUHours, 0, tt.call)
		require.Empty(t, policy.Limits{GPUs: tt.gpus, GPUHours: tt.hours, Hours: 1}.Over(use), "at its limits")
		require.Len(t, policy.Limits{GPUs: tt.gpus - 1, GPUHours: tt.hours - 0.5, Hours: 0.5}.Over(use), 3, "beyond each")
	}
	// A queue that does not answer is no way to count an array as one.
	q.noQueue = true
	svc.Clusters["q"] = q
	_, _, err := policy.Of(t.Context(), svc, &jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: "12"}})
	require.ErrorIs(t, err, slurm.ErrUnreachable)
}

func TestTasksOfAnArray(t *testing.T) {
	for array, want := range map[string]struct {
		all, atOnce int
		known       bool
	}{
		"":               {1, 1, true},
		"7":              {1, 1, true},
		"0-9":            {10, 10, true},
		"0-9%4":          {10, 4, true},
		"0-31:4,40%2":    {9, 2, true},
		"1,3,5-7":        {5, 5, true},
		"0-9%0":          {10, 10, true}, // Slurm's word for no limit
		"0-3%99":         {4, 4, true},
		"0-999999":       {1000000, 1000000, true},
		"1,3,5,...":      {4, 4, false},
		"...":            {1, 1, false},
		"9-0":            {1, 1, false},
		"0-9:0":          {1, 1, false},
		"0-9:x":          {1, 1, false},
		"-4":             {1, 1, false},
		"0-9, 20-29 % 3": {20, 3, true},
	} {
		all, atOnce, known := policy.Tasks(array)
		require.Equal(t, want, struct {
			all, atOnce int
			known       bool
		}{all, atOnce, known}, array)
	}
}
