package jobcontrol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// The status of an ended job suggests no waiting, and a job that never ran suggests no
// diagnosis.
func TestStatusOfAJobThatNeverRan(t *testing.T) {
	end := time.Now() // Slurm also reports this as its start
	for name, c := range map[string]struct {
		j           slurm.Job
		says, never []string
	}{
		"cancelled as it waited": {
			slurm.Job{State: slurm.Cancelled, Reason: "Priority", StartedAt: &end, EndedAt: &end}, []string{"was cancelled by its owner", "ended  "}, []string{"Priority", "diagnose", "started"},
		},
		"cancelled as it ran": {
			slurm.Job{State: slurm.Cancelled, Reason: "None", ElapsedS: 9}, []string{"diagnose 12_3"}, nil,
		},
		"not launched": {
			slurm.Job{State: slurm.Failed, Reason: "JobLaunchFailure", ElapsedS: 1}, []string{"could not be launched", "make the directory"}, []string{"another exit code"},
		},
		"not launched, as the accounts tell it": {
			slurm.Job{State: slurm.Failed, ExitCode: new("0:53"), ElapsedS: 1}, []string{"could not be launched", "make the directory"}, []string{"another exit code"},
		},
		"a failure of the program": {
			slurm.Job{State: slurm.Failed, Reason: "NonZeroExitCode", ElapsedS: 1}, []string{"another exit code than 0", "diagnose 12_3"}, nil,
		},
		"a task without a record": {
			slurm.Job{State: slurm.Cancelled, Reason: slurm.ReasonVanished}, []string{"or the array has no such task"}, []string{"by its owner", "diagnose"},
		},
	} {
		c.j.ID, c.j.Name, c.j.User = "12_3", "arr", "alice"
		call := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"12_3": c.j}})
		out, err := opstest.Do(t, call, jobcontrol.Status(), "12_3")
		require.NoError(t, err)
		text := opstest.Text(t, out, lang.EN)
		for _, w := range c.says {
			require.Contains(t, text, w, name)
		}
		for _, w := range c.never {
			require.NotContains(t, text, w, name)
		}
	}
}
