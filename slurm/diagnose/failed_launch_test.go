package diagnose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// Slurm's message about the end of a job names the node on which its batch script ran.
func TestNoNodeIsAtFaultWhereSlurmEndsAJob(t *testing.T) {
	for end, class := range map[string]string{
		"CANCELLED AT 2026-03-04T10:00:00":                     outcome.SlurmCancelled,
		"CANCELLED AT 2026-03-04T10:00:00 DUE TO TIME LIMIT":   outcome.SlurmTimeLimit,
		"CANCELLED AT 2026-03-04T10:00:00 DUE TO PREEMPTION":   outcome.SlurmPreempted,
		"CANCELLED AT 2026-03-04T10:00:00 DUE TO NODE FAILURE": outcome.SlurmNodeFail,
	} {
		r := diagnosetest.Text(t, "Loading the words\nslurmstepd: error: *** JOB 7 ON gpu3 "+end+" ***\n")
		require.Equal(t, class, r.Class)
		require.Equal(t, class == outcome.SlurmNodeFail, r.RootNode != nil, class)
	}
}

// srun has three forms for a launch that failed, and the reason decides. A revoked credential follows the end of the job.
func TestTheReasonOfAFailedLaunchDecides(t *testing.T) {
	for reason, class := range map[string]string{
		"Communication connection failure":              outcome.SlurmNodeFail,
		"Job credential expired":                        outcome.SlurmNodeFail,
		"Invalid job credential":                        outcome.SlurmNodeFail,
		"User not found on host":                        outcome.SlurmNodeFail,
		"Job prolog failed":                             outcome.SlurmNodeFail,
		"Error configuring interconnect":                outcome.SlurmNodeFail,
		"Slurmd could not execve job":                   outcome.EnvLaunch,
		"Plugin initialization failed":                  outcome.EnvLaunch,
		"Unable to satisfy cpu bind request":            outcome.SlurmSubmitRejected,
		"Unable to layout tasks on given cpus":          outcome.SlurmSubmitRejected,
		"Requested node configuration is not available": outcome.SlurmSubmitRejected,
	} {
		for _, form := range []string{"Application launch failed: ", "task 0 launch failed: ", "tasks 0-3 launch failed: "} {
			r := diagnosetest.Text(t, "srun: error: "+form+reason+"\n")
			require.Equal(t, class, r.Class, form+reason)
		}
	}
	const revoked = "srun: error: Task launch for StepId=7.1 failed on node gpu3: Job credential revoked\nsrun: error: Application launch failed: Job credential revoked\n"
	for end, class := range map[string]string{"***": outcome.SlurmCancelled, "DUE TO TIME LIMIT ***": outcome.SlurmTimeLimit} {
		cancelled := "slurmstepd: error: *** JOB 7 ON gpu3 CANCELLED AT 2026-03-04T10:00:00 " + end + "\n"
		for _, log := range []string{revoked + cancelled, cancelled + revoked} {
			r := diagnosetest.Text(t, "Loading the words\n"+log)
			require.Equal(t, class, r.Class, log)
			require.Empty(t, r.ExcludeNodes)
		}
	}
}

// A node whose prolog fails cannot run the job. A prolog that says something, or that a job ran, is no failure.
func TestAFailedPrologIsItsNodes(t *testing.T) {
	for _, line := range []string{
		"slurmstepd: error: Prolog failure on node gpu7", "slurmstepd-gpu3: error: Prolog failure on node gpu7", "srun: Prolog failure on node gpu7",
		"srun: error: Task launch for StepId=7.0 failed on node gpu7: Job prolog failed",
	} {
		r := diagnosetest.Old(t, line+"\n")
		require.Equal(t, outcome.SlurmNodeFail, r.Class, line)
		require.Equal(t, []string{"gpu7"}, r.ExcludeNodes, line)
		require.True(t, r.Retry, line)
	}
	for _, line := range []string{"prolog: no failure on node gpu7", "=== Slurm prolog: job 7 on gpu7 ===", "print('Prolog failure on node gpu7')"} {
		require.NotEqual(t, outcome.SlurmNodeFail, diagnosetest.Old(t, line+"\nKeyError: 'a'\n").Class, line)
	}
}
