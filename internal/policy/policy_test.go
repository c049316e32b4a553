package policy_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A queue is a cluster whose jobs have one node, eight GPUs and one hour each.
type queue struct {
	opstest.Bare
	rows    map[slurm.JobID][]string // id and state of each row of a job
	noQueue bool
}

func (queue) Name() string { return "q" }

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

// Every element of an array that a call requeues or changes is counted. What cannot be
// counted exceeds the limits.
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
		use, takes, err := policy.Of(t.Context(), &ops.Call{Service: svc}, in)
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
	// If the queue does not answer, an array is not counted as one job.
	q.noQueue = true
	svc.Clusters["q"] = q
	_, _, err := policy.Of(t.Context(), &ops.Call{Service: svc}, &jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: "12"}})
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
		"x-3":            {1, 1, false},
		"3-x":            {1, 1, false},
		"0-9, 20-29 % 3": {20, 3, true},
	} {
		all, atOnce, known := policy.Tasks(array)
		require.Equal(t, want, struct {
			all, atOnce int
			known       bool
		}{all, atOnce, known}, array)
	}
}

// Each limit applies to what it names, and an unknown value exceeds every limit that it
// affects.
func TestWhatIsOverTheLimits(t *testing.T) {
	gpus := func(n int, hours float64, unknown ...policy.Unknown) policy.Use {
		return policy.Use{GPUs: n, Hours: hours, GPUHours: float64(n) * hours, Unknown: unknown}
	}
	for name, c := range map[string]struct {
		limits policy.Limits
		use    policy.Use
		why    string // all reasons; empty: none
	}{
		"no limit":                           {policy.Limits{}, policy.Use{GPUs: 1e6, Partitions: []string{"prod"}, Unknown: []policy.Unknown{policy.GPUsUnknown}}, ""},
		"partition":                          {policy.Limits{Partitions: []string{"prod"}}, policy.Use{Partitions: []string{"dev", "prod"}}, "partition prod is for approved jobs"},
		"another partition":                  {policy.Limits{Partitions: []string{"prod"}}, policy.Use{Partitions: []string{"dev"}}, ""},
		"partition not known":                {policy.Limits{Partitions: []string{"prod"}}, policy.Use{Unknown: []policy.Unknown{policy.PartitionUnknown}}, "which partition it goes to is not known"},
		"partition not known, no such limit": {policy.Limits{QOS: []string{"high"}}, policy.Use{Unknown: []policy.Unknown{policy.PartitionUnknown}}, ""},
		"QOS":                                {policy.Limits{QOS: []string{"high"}}, policy.Use{QOS: "high"}, "QOS high is for approved jobs"},
		"QOS in capitals":                    {policy.Limits{QOS: []string{"high"}}, policy.Use{QOS: "HIGH"}, "QOS HIGH is for approved jobs"},
		"QOS among several":                  {policy.Limits{QOS: []string{"high"}}, policy.Use{QOS: "low,high"}, "QOS high is for approved jobs"},
		"account of a component":             {policy.Limits{Accounts: []string{"LLM"}}, policy.Use{Account: "cv,llm"}, "account llm is for approved jobs"},
		"no QOS":                             {policy.Limits{QOS: []string{"high"}}, policy.Use{}, ""},
		"a series without end":               {policy.Limits{GPUHours: 8}, policy.Use{GPUs: 1, Hours: 1, GPUHours: math.Inf(1)}, "it starts itself again without end"},
		"another QOS":                        {policy.Limits{QOS: []string{"high"}}, policy.Use{QOS: "low"}, ""},
		"account":                            {policy.Limits{Accounts: []string{"llm"}}, policy.Use{Account: "llm"}, "account llm is for approved jobs"},
		"another account":                    {policy.Limits{Accounts: []string{"llm"}}, policy.Use{Account: "cv"}, ""},
		"GPUs not known":                     {policy.Limits{GPUs: 8}, gpus(0, 1, policy.GPUsUnknown), "how many GPUs it takes is not known"},
		"GPUs not known, hours bound":        {policy.Limits{GPUHours: 8}, gpus(0, 1, policy.GPUsUnknown), "how many GPUs it takes is not known"},
		"GPUs not known, time alone":         {policy.Limits{Hours: 8}, gpus(0, 1, policy.GPUsUnknown), ""},
		"tasks of an array without GPUs":     {policy.Limits{GPUs: 8}, gpus(0, 1, policy.TasksUnknown), ""},
		"tasks of an array, GPUs not known":  {policy.Limits{GPUs: 8}, gpus(0, 1, policy.GPUsUnknown, policy.TasksUnknown), "how many GPUs it takes is not known; how many tasks its array has is not known"},
		"time not known":                     {policy.Limits{Hours: 8}, gpus(0, math.Inf(1), policy.TimeUnknown), "its time limit is not known"},
		"time not known, no GPUs":            {policy.Limits{GPUHours: 8}, policy.Use{Hours: math.Inf(1), Unknown: []policy.Unknown{policy.TimeUnknown}}, ""},
		"time not known, GPUs not known":     {policy.Limits{GPUHours: 8}, gpus(0, 1, policy.TimeUnknown, policy.GPUsUnknown), "how many GPUs it takes is not known; its time limit is not known"},
		"no time limit":                      {policy.Limits{GPUHours: 8}, gpus(1, math.Inf(1)), "it has no time limit"},
		"at the limit":                       {policy.Limits{GPUHours: 8, GPUs: 8, Hours: 1}, gpus(8, 1), ""},
		"longer":                             {policy.Limits{Hours: 1}, gpus(0, 1.5), "it may run for 1.5 hours, more than 1"},
		"more GPU hours":                     {policy.Limits{GPUHours: 10}, gpus(8, 2), "it may use 16 GPU hours, more than 10"},
		"more GPUs":                          {policy.Limits{GPUs: 8}, gpus(9, 1), "it takes 9 GPUs at one time, more than 8"},
	} {
		var why []string
		for _, w := range c.limits.Over(c.use) {
			require.NotEmpty(t, w.ZH)
			why = append(why, w.EN)
		}
		require.Equal(t, c.why, strings.Join(why, "; "), name)
		require.Equal(t, name == "no limit", c.limits.None(), name)
	}
}
