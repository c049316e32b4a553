package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/smoke"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A yard is a queue that also lists its partitions.
type yard struct{ queue }

func (yard) Partitions(context.Context) ([]slurm.Partition, error) {
	twoDays := int64(48 * 3600)
	return []slurm.Partition{{Name: "prod", Default: true, TimeLimitS: &twoDays, GPUs: 8}, {Name: "endless", GPUs: 4}, {Name: "cpu", TimeLimitS: &twoDays}}, nil
}

// said is a use as one line.
func said(u policy.Use) string {
	text := fmt.Sprintf("%s %d GPUs, %g h, %g GPU hours", strings.Join(u.Partitions, ","), u.GPUs, u.Hours, u.GPUHours)
	for _, what := range u.Unknown {
		text += ", " + string(what) + " unknown"
	}
	return strings.TrimSpace(text)
}

// The most that a specification can use is counted: every job of a chain, every task of
// an array, every retry, and whole nodes if it asks for them.
func TestASpecificationIsCountedAtItsMost(t *testing.T) {
	const base = "{name: gpt, worktree: /w, "
	told, silent := &ops.Service{Default: "yard", Clusters: map[string]ops.Cluster{"yard": yard{}}}, &ops.Service{Default: "yard", Clusters: map[string]ops.Cluster{"yard": queue{}}}
	for spec, want := range map[string]string{
		"nodes: 2, time: '3:00:00'":                                   "prod 16 GPUs, 3 h, 48 GPU hours",
		"nodes: 2, time: '3:00:00', gpus_per_node: 4":                 "prod 8 GPUs, 3 h, 24 GPU hours",
		"nodes: 2, time: '3:00:00', gpus_per_node: 0, partition: cpu": "cpu 0 GPUs, 3 h, 0 GPU hours",
		"nodes: 2, time: '3:00:00', partition: 'prod,endless'":        "prod,endless 16 GPUs, 3 h, 48 GPU hours",
		"nodes: 2":                                                                                             "prod 16 GPUs, 48 h, 768 GPU hours",
		"nodes: 2, partition: endless":                                                                         "endless 16 GPUs, +Inf h, +Inf GPU hours",
		"nodes: 2, partition: 'cpu,endless'":                                                                   "cpu,endless 16 GPUs, +Inf h, +Inf GPU hours",
		"nodes: 2, partition: none":                                                                            "none 16 GPUs, +Inf h, +Inf GPU hours, time unknown",
		"nodes: 1, time: UNLIMITED":                                                                            "prod 8 GPUs, +Inf h, +Inf GPU hours",
		"nodes: 1, time: '2:00:00', chain: 3":                                                                  "prod 8 GPUs, 2 h, 48 GPU hours",
		"nodes: 1, time: '2:00:00', array: '0-9%2'":                                                            "prod 16 GPUs, 2 h, 160 GPU hours",
		"nodes: 1, time: '2:00:00', retry: {max: 2, on: [slurm_node_fail]}":                                    "prod 8 GPUs, 2 h, 48 GPU hours",
		"nodes: 1, time: '2:00:00', retry: {on: [slurm_node_fail]}":                                            "prod 8 GPUs, 2 h, 64 GPU hours",
		"nodes: 1, time: '2:00:00', gpus_per_node: 2, exclusive: true":                                         "prod 8 GPUs, 2 h, 16 GPU hours",
		"nodes: 1, time: '2:00:00', gpus_per_node: 2, exclusive: false":                                        "prod 2 GPUs, 2 h, 4 GPU hours",
		"nodes: 1, time: '2:00:00', partition: cpu, gpus_per_node: 0, exclusive: true":                         "cpu 0 GPUs, 2 h, 0 GPU hours, gpus unknown",
		"nodes: 1, time: '2:00:00', every: daily":                                                              "prod 8 GPUs, 2 h, +Inf GPU hours",
		"nodes: 1, time: '2:00:00', every: daily, gpus_per_node: 0":                                            "prod 0 GPUs, 2 h, 0 GPU hours",
		"time: '2:00:00', components: [nodes=1 partition=cpu, nodes=2 partition=endless]":                      "cpu,endless 24 GPUs, 2 h, 48 GPU hours",
		"time: '2:00:00', components: [nodes=1, nodes=2 partition=endless]":                                    "prod,endless 24 GPUs, 2 h, 48 GPU hours",
		"time: '2:00:00', gpus_per_node: 1, components: [nodes=1 exclusive=true, nodes=2]":                     "prod 10 GPUs, 2 h, 20 GPU hours",
		"nodes: 1, time: '2:00:00', sbatch: ['--gres=shard:4', '--exclusive=user']":                            "prod 8 GPUs, 2 h, 16 GPU hours, gpus unknown",
		"nodes: 1, time: '2:00:00', sbatch: ['--exclusive=topo']":                                              "prod 8 GPUs, 2 h, 16 GPU hours, gpus unknown",
		"nodes: 1, time: '2:00:00', sbatch: ['--gpu-bind=closest', '--time-min=30']":                           "prod 8 GPUs, 2 h, 16 GPU hours",
		"nodes: 1, time: '2:00:00', gpus_per_node: 0, partition: cpu, exclusive: true, sbatch: ['--gres=x:1']": "cpu 0 GPUs, 2 h, 0 GPU hours, gpus unknown",
		"components: [nodes=1 partition=cpu, nodes=1 partition=endless]":                                       "cpu,endless 16 GPUs, +Inf h, +Inf GPU hours",
	} {
		in := &launch.SubmitIn{SpecIn: launch.SpecIn{YAML: base + spec + "}"}}
		use, takes, err := policy.Of(t.Context(), &ops.Call{Service: told}, in)
		require.NoError(t, err, spec)
		require.True(t, takes)
		require.Equal(t, want, said(use), spec)
	}
	in := &launch.SubmitIn{SpecIn: launch.SpecIn{YAML: base + "nodes: 2}"}}
	use, _, err := policy.Of(t.Context(), &ops.Call{Service: silent}, in)
	require.NoError(t, err)
	require.Equal(t, "16 GPUs, +Inf h, +Inf GPU hours, partition unknown, time unknown", said(use), "of a cluster that tells of no partitions")
	silent.Sites = func(string) job.Site { return job.Site{GPUsPerNode: 6} }
	in.YAML = base + "nodes: 1, time: '1:00:00', partition: x, gpus_per_node: 2, exclusive: true}"
	use, _, err = policy.Of(t.Context(), &ops.Call{Service: silent}, in)
	require.NoError(t, err)
	require.Equal(t, "x 6 GPUs, 1 h, 6 GPU hours", said(use), "the profile knows how many GPUs a node has")

	in.YAML = base + "qos: low, account: a, components: [qos=high, account=b, nodes=2]}"
	use, _, err = policy.Of(t.Context(), &ops.Call{Service: told}, in)
	require.NoError(t, err)
	require.Equal(t, "high,low", use.QOS)
	require.Equal(t, "a,b", use.Account)

	// An option that can take more of a node, or that is not known, makes the GPUs unknown.
	for option, unknown := range map[string]bool{
		"--core-spec=1": true, "--thread-spec=1": true,
		"--tasks-by-tres=gres/gpu": true, "--fast-lane=yes": true, "--gres=none": true, "--exclusive=mcs": true,
		"--gres-flags=enforce-binding": false, "--gpu-bind=closest": false, "--gpu-freq=low": false, "--tres-bind=gres/gpu:closest": false, "--spread-job": false, "--contiguous": false,
		"--sockets-per-node=2": false, "--time-min=30": false, "--deadline=now+2hours": false, "--licenses=a:2": false, "--oversubscribe": false, "--use-min-nodes": false,
		"--mem-per-cpu=4G": false, "--cpus-per-gpu=8": false, "--no-kill": false, "--wckey=lab": false, "--container-image=nvidia/cuda": false,
	} {
		in := &launch.SubmitIn{SpecIn: launch.SpecIn{YAML: base + "nodes: 1, time: '2:00:00', gpus_per_node: 2, sbatch: ['" + option + "']}"}}
		use, _, err := policy.Of(t.Context(), &ops.Call{Service: told}, in)
		require.NoError(t, err, option)
		require.Equal(t, unknown, slices.Contains(use.Unknown, policy.GPUsUnknown), option)
	}

	// The fields count; what would ask for more beside them is refused, not estimated.
	for _, option := range []string{
		"--gpus=64", "-G 64", "--gres=gpu:8", "--tres-per-task=gres/gpu:8", "--nodes=9", "--time=9", "--array=0-9", "--gpus-per-task=8",
		"--gre=gpu:8", "--gres gpu:8", "--gres=shard:1,gpu:8", "--exclusive", "--exclu=user", "--ntasks=8", "--ntasks-per-node=8", "--ntasks-per-gpu=1", "--gpus-per-socket=4", "-N 4", "-n 8", "-t 9",
		"-p dev", "--qos=high", "--account=b", "--partition=dev", "--reservation=r", "--dependency=singleton", "--switches=1", "--requeue", "--mem=0", "--tasks-per-node=8", "hetjob", "--tres-per-n=gres/gpu:8", "--tres-per-node=gres/gpu:8",
		"--tres-per-job=gres/gpu:64", "--tres-per-socket=gres/gpu:4", "--ntasks-per-tres=1", "--nodelist=n1",
	} {
		_, _, err := policy.Of(t.Context(), &ops.Call{Service: told}, &launch.SubmitIn{SpecIn: launch.SpecIn{YAML: base + "nodes: 1, sbatch: ['" + option + "']}"}})
		require.ErrorContains(t, err, option)
	}

	in.DryRun = true
	_, takes, err := policy.Of(t.Context(), &ops.Call{Service: told}, in)
	require.NoError(t, err)
	require.False(t, takes, "what is only shown takes nothing")
	_, takes, _ = policy.Of(t.Context(), &ops.Call{Service: told}, &smoke.In{SpecIn: in.SpecIn, DryRun: true})
	require.False(t, takes)
	_, takes, _ = policy.Of(t.Context(), &ops.Call{Service: told}, &struct{}{})
	require.False(t, takes)
	in.YAML = "nodes: many"
	in.DryRun = false
	_, _, err = policy.Of(t.Context(), &ops.Call{Service: told}, in)
	require.Error(t, err, "what cannot be read is not within any limit")
}

// Operations that change a job, run in it or check nodes are counted by their result.
func TestWhatActsOnJobsAndNodesIsCounted(t *testing.T) {
	const id = slurm.JobID("7")
	on := jobcontrol.JobIn{Job: id}
	two := 2
	svc := &ops.Service{Default: "yard", Clusters: map[string]ops.Cluster{"yard": yard{queue{rows: map[slurm.JobID][]string{id: {"7 RUNNING"}}}}}}
	spec := launch.SpecIn{YAML: "{name: gpt, worktree: /w, nodes: 2, time: '3:00:00'}"}
	for _, c := range []struct {
		in   any
		want string
	}{
		{&jobcontrol.UpdateIn{JobIn: on, Time: "2:00:00"}, "prod 8 GPUs, 2 h, 16 GPU hours"},
		{&jobcontrol.UpdateIn{JobIn: on, Time: "UNLIMITED"}, "prod 8 GPUs, +Inf h, +Inf GPU hours"},
		{&jobcontrol.UpdateIn{JobIn: on, Time: "0"}, "prod 8 GPUs, +Inf h, +Inf GPU hours"},
		{&jobcontrol.UpdateIn{JobIn: on, Time: "long"}, "prod 8 GPUs, +Inf h, +Inf GPU hours, time unknown"},
		{&jobcontrol.UpdateIn{JobIn: on, Nodes: 3}, "prod 24 GPUs, 1 h, 24 GPU hours"},
		{&jobcontrol.UpdateIn{JobIn: on, Partition: "endless"}, "endless 8 GPUs, 1 h, 8 GPU hours"},
		{&fleet.RunIn{Job: id}, "prod 8 GPUs, 0.016666666666666666 h, 0.13333333333333333 GPU hours"},
		{&fleet.RunIn{Job: id, Limit: 1800}, "prod 8 GPUs, 0.5 h, 4 GPU hours"},
		{&fleet.NodeCheckIn{Nodes: "n[1-4]", Partition: "prod"}, "prod 32 GPUs, 0.5 h, 16 GPU hours"},
		{&fleet.NodeCheckIn{Nodes: "n[1-4]", GPUs: &two}, "prod,endless,cpu 8 GPUs, 0.5 h, 4 GPU hours"},
		{&fleet.NodeCheckIn{Nodes: "n1", Partition: "cpu"}, "cpu 0 GPUs, 0.5 h, 0 GPU hours, gpus unknown"},
		{&smoke.In{SpecIn: spec}, "prod 16 GPUs, 1 h, 16 GPU hours"},
	} {
		use, takes, err := policy.Of(t.Context(), &ops.Call{Service: svc}, c.in)
		require.NoError(t, err)
		require.True(t, takes)
		require.Equal(t, c.want, said(use), "%+v", c.in)
	}
	for _, in := range []any{&jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: "8"}}, &jobcontrol.RequeueIn{JobIn: jobcontrol.JobIn{Job: id, OnCluster: ops.OnCluster{Cluster: "none"}}}, &fleet.NodeCheckIn{Nodes: "n[1"}} {
		_, _, err := policy.Of(t.Context(), &ops.Call{Service: svc}, in)
		require.Error(t, err)
	}
}

// wide is a queue of jobs that share eight GPUs on two nodes.
type wide struct{ yard }

func (w wide) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	j, err := w.yard.Job(ctx, id)
	j.NumNodes = 2
	return j, err
}

func (w wide) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	all, err := w.yard.Jobs(ctx, f)
	for i := range all {
		all[i].NumNodes = 2
	}
	return all, err
}

// A job that changes its nodes keeps the number of GPUs per node, and a fraction of a
// GPU counts as one.
func TestMoreNodesAreMoreGPUs(t *testing.T) {
	svc := &ops.Service{Default: "yard", Clusters: map[string]ops.Cluster{"yard": wide{yard{queue{rows: map[slurm.JobID][]string{"7": {"7 PENDING"}}}}}}}
	for nodes, gpus := range map[int]int{0: 8, 1: 4, 2: 8, 3: 12, 1<<60 + 2: 1 << 39} {
		use, _, err := policy.Of(t.Context(), &ops.Call{Service: svc}, &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "7"}, Nodes: nodes})
		require.NoError(t, err)
		require.Equal(t, gpus, use.GPUs, nodes)
	}
}

func TestNoLimitIsNullInJSON(t *testing.T) {
	use, _, err := policy.Of(t.Context(), &ops.Call{Service: &ops.Service{Clusters: map[string]ops.Cluster{"": queue{rows: map[slurm.JobID][]string{"7": {"7 RUNNING"}}}}}},
		&jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "7"}, Time: "UNLIMITED"})
	require.NoError(t, err)
	raw, err := json.Marshal(use)
	require.NoError(t, err)
	require.JSONEq(t, `{"partitions":["prod"],"qos":"normal","account":"llm","gpus":8,"hours":null,"gpu_hours":null}`, string(raw))
}

// hiding is a cluster that shows nobody's job to somebody else, as PrivateData=jobs makes
// Slurm do.
type hiding struct{ yard }

func (hiding) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	return slurm.Job{}, slurm.JobNotFound(id)
}

func (hiding) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) { return nil, nil }

// A job that the server itself does not see is counted all the same: it is looked up as
// the person for whom it would be changed.
func TestAJobThatTheServerDoesNotSeeIsCounted(t *testing.T) {
	const id = slurm.JobID("7")
	hidden := hiding{yard{queue{rows: map[slurm.JobID][]string{id: {"7 PENDING"}}}}}
	svc := &ops.Service{Default: "yard", Clusters: map[string]ops.Cluster{"yard": hidden}, Self: "bot", As: func(ops.Cluster, string) (ops.Cluster, error) {
		return hidden.yard, nil
	}}
	ada := &ops.Call{Service: svc, Who: ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "ada"}}
	on := jobcontrol.JobIn{Job: id}
	for _, in := range []any{&jobcontrol.UpdateIn{JobIn: on, Time: "50:00:00"}, &jobcontrol.RequeueIn{JobIn: on}, &fleet.RunIn{Job: id}} {
		use, takes, err := policy.Of(t.Context(), ada, in)
		require.NoError(t, err, "%T", in)
		require.True(t, takes)
		require.Equal(t, 8, use.GPUs)
	}
}

// Another number of nodes submits a job anew where its script is made for its number. The
// new job counts with its retries, as its first submission did.
func TestAJobSubmittedAnewCountsWithItsRetries(t *testing.T) {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	spec := `{"name":"gpt","worktree":"/w","nodes":1,"gpus_per_node":8,"time":"1:00:00","partition":"prod","retry":{"max":9}}`
	sub := store.Submission{Key: "ada/q/k", Token: "t", Cluster: "q", Owner: "ada", Name: "gpt", Spec: json.RawMessage(spec), CreatedAt: time.Now()}
	_, _, err = st.Begin(t.Context(), sub)
	require.NoError(t, err)
	require.NoError(t, st.Finish(t.Context(), sub.Key, store.Submitted, "7", "", time.Now()))
	svc := &ops.Service{
		Default: "q", Clusters: map[string]ops.Cluster{"q": yard{queue{rows: map[slurm.JobID][]string{"7": {"7 PENDING"}}}}},
		Now: time.Now, Store: func() (*store.Store, error) { return st, nil },
	}
	for nodes, want := range map[int]string{
		4: "prod 32 GPUs, 1 h, 320 GPU hours",
		1: "prod 8 GPUs, 1 h, 8 GPU hours", // the job itself is changed, and no retry is added
	} {
		use, _, err := policy.Of(t.Context(), &ops.Call{Service: svc}, &jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "7"}, Nodes: nodes})
		require.NoError(t, err)
		require.Equal(t, want, said(use))
	}
}

// What is too long or too many for a number does not count as little.
func TestWhatNoNumberHoldsIsMuch(t *testing.T) {
	svc := &ops.Service{Default: "yard", Clusters: map[string]ops.Cluster{"yard": yard{queue{rows: map[slurm.JobID][]string{"7": {"7 PENDING"}}}}}}
	limits := policy.Limits{GPUHours: 1e6, GPUs: 64, Hours: 24}
	submit := func(fields string) any {
		return &launch.SubmitIn{SpecIn: launch.SpecIn{YAML: "{name: gpt, worktree: /w, nodes: 1, " + fields + "}"}}
	}
	gpus := 1 << 60
	for _, in := range []any{
		submit("time: '106752-0'"), submit("time: '213504-00:00:00'"), submit("time: '307445734:00:00'"), submit("time: '999999-23'"),
		&jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "7"}, Time: "213504-00:00:00"},
		&jobcontrol.UpdateIn{JobIn: jobcontrol.JobIn{Job: "7"}, Nodes: 1 << 61},
		&fleet.NodeCheckIn{Nodes: "n[1-16]", GPUs: &gpus, Partition: "prod"},
	} {
		use, _, err := policy.Of(t.Context(), &ops.Call{Service: svc}, in)
		require.NoError(t, err)
		require.NotEmpty(t, limits.Over(use), said(use))
	}
}
