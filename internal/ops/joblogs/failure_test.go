package joblogs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// downSite is a cluster whose controller does not answer.
type downSite struct{ ops.Cluster }

func (downSite) Job(context.Context, slurm.JobID) (slurm.Job, error) {
	return slurm.Job{}, &slurm.Error{Kind: slurm.Unreachable}
}

// lastSeen is a view of a cluster that does not answer.
type lastSeen struct {
	ops.View
	job slurm.Job
}

func (lastSeen) Job(context.Context, slurm.JobID) (slurm.Job, error) {
	return slurm.Job{}, &slurm.Error{Kind: slurm.Unreachable}
}

func (v lastSeen) Known(slurm.Filter) ([]slurm.Job, time.Time) {
	return []slurm.Job{v.job}, time.Now()
}

// A failure is explained, and so may be retried, while the controller that has just told of it
// does not answer.
func TestAFailureIsDiagnosedWhileTheControllerIsDown(t *testing.T) {
	call, s, j := failedJob(t, map[string]string{"gpt-77.out": outOfMemory})
	call.Clusters["test"] = downSite{s}
	call.Views = map[string]ops.View{"test": lastSeen{job: j}}
	call.Failures = &ops.FailureReports{}
	call.Who = ops.Caller{Surface: ops.Watcher, ID: "follow", ReadOnly: true}
	j.Cluster = "test"
	out, err := joblogs.DiagnoseFailure(t.Context(), call, j)
	require.NoError(t, err)
	require.Equal(t, "cuda_oom", out.Class)
}

// A failure is told with what diagnose says besides the cause, such as what a requeued job waits for,
// by all who share the diagnosis.
func TestAFailureIsToldWhole(t *testing.T) {
	call, s, j := failedJob(t, map[string]string{"gpt-77.out": outOfMemory})
	call.Failures = &ops.FailureReports{}
	ended := j
	ended.Cluster = "test"
	j.State, j.Reason, j.Restarts, j.ExitCode = slurm.Pending, "BeginTime", 1, nil
	s.Put(j)
	for range 2 {
		out, err := joblogs.DiagnoseFailure(t.Context(), call, ended)
		require.NoError(t, err)
		require.Equal(t, "cuda_oom", out.Class)
		require.Equal(t, "BeginTime", out.WaitsFor)
	}
}
