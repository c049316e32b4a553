package slurm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestAJobThatHasEndedWaitsForNothing(t *testing.T) {
	for _, c := range []struct {
		state        slurm.State
		reason, want string
	}{
		{slurm.Pending, "Priority", "Priority"},
		{slurm.Pending, "None", ""},
		{slurm.Running, "", ""},
		{slurm.Cancelled, "Priority", ""},
		{slurm.Cancelled, "ReqNodeNotAvail, UnavailableNodes:gpu2", ""},
		{slurm.Cancelled, "QOSMaxGRESPerUser", ""},
		{slurm.Completed, "Dependency", ""},
		{slurm.Completed, "BeginTime", ""},
		{slurm.Cancelled, "by uid 1000", "by uid 1000"},
		{slurm.Cancelled, "DependencyNeverSatisfied", "DependencyNeverSatisfied"},
		{slurm.Failed, "NonZeroExitCode", "NonZeroExitCode"},
		{slurm.Failed, "RaisedSignal:9(Killed)", "RaisedSignal:9(Killed)"},
		{slurm.Timeout, "TimeLimit", "TimeLimit"},
		{slurm.Failed, "a word of a later Slurm", "a word of a later Slurm"},
	} {
		require.Equal(t, c.want, slurm.Job{State: c.state, Reason: c.reason}.Why(), "%s %s", c.state, c.reason)
	}
}
