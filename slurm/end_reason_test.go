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

// An exit code above 128 stands for a signal, up to the largest signal number.
func TestAnExitCodeTellsItsSignal(t *testing.T) {
	for code, want := range map[int]int{0: 0, 3: 0, 128: 0, 137: 9, 140: 12, 192: 64, 193: 0, 255: 0} {
		_, signal := slurm.ExplainExitCode(code)
		require.Equal(t, want, signal, code)
	}
}
