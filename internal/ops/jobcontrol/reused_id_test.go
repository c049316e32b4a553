package jobcontrol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A job that has the id of an earlier one, because the controller counts anew, does not
// get the earlier one's specification. One that was put back into the queue keeps its own.
func TestTheSpecificationOfAReusedJobID(t *testing.T) {
	soon, zone, later := time.Now().Add(time.Second), time.Now().Add(14*time.Hour), time.Now().Add(48*time.Hour)
	for name, c := range map[string]struct {
		j    slurm.Job
		spec bool
	}{
		"the job":                         {slurm.Job{SubmittedAt: &soon}, true},
		"by a clock of another time zone": {slurm.Job{SubmittedAt: &zone}, true},
		"put back into the queue":         {slurm.Job{SubmittedAt: &later, Restarts: 1}, true},
		"put back, by the accounts":       {slurm.Job{SubmittedAt: &later, Requeues: []slurm.State{slurm.Preempted}}, true},
		"its submit time is not known":    {slurm.Job{}, true},
		"another one, of the same user":   {slurm.Job{SubmittedAt: &later}, false},
		"another one, with its own token": {slurm.Job{SubmittedAt: &later, Comment: "mops:other"}, false},
	} {
		site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
		call := opstest.NewCall(t, site)
		out, err := opstest.Do(t, call, launch.Submit(), append([]string{"--yes", "--force"}, opstest.GoodJob...)...)
		require.NoError(t, err)
		c.j.ID, c.j.User, c.j.State = *out.(launch.SubmitOut).JobID, "alice", slurm.Failed
		site.Put(c.j)
		status, err := opstest.Do(t, call, jobcontrol.Status(), string(c.j.ID))
		require.NoError(t, err)
		require.Equal(t, c.spec, status.(jobcontrol.StatusOut).Spec != nil, name)
	}
}
