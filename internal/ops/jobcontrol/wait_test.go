package jobcontrol

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A wait whose timeout is over reports the job's current state. If the job has ended or
// started by then, that is no time-out.
func TestAWaitThatGivesUpTellsThePresentState(t *testing.T) {
	past, done := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer done()
	was := slurm.Job{ID: "77", Name: "gpt", User: "alice", State: slurm.Pending, Reason: "Resources"}
	for _, tt := range []struct {
		name     string
		in       WaitIn
		becomes  slurm.Job
		timedOut bool
		title    string
	}{
		{"still pending", WaitIn{}, slurm.Job{State: slurm.Pending, Reason: "Priority"}, true, "still PENDING"},
		{"runs by now", WaitIn{}, slurm.Job{State: slurm.Running, ElapsedS: 7}, true, "still RUNNING"},
		{"runs as it should", WaitIn{Running: true}, slurm.Job{State: slurm.Running}, false, "RUNNING"},
		{"waits to run", WaitIn{Running: true}, slurm.Job{State: slurm.Pending, Reason: "Priority"}, true, "still PENDING"},
		{"ended", WaitIn{}, slurm.Job{State: slurm.Completed}, false, "COMPLETED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := tt.becomes
			now.ID, now.Name, now.User = was.ID, was.Name, was.User
			c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"77": now}})
			cl, err := c.Cluster("")
			require.NoError(t, err)
			tt.in.Job = was.ID
			out, err := timedOut(past, c, cl, tt.in, WaitOut{Job: was})
			require.NoError(t, err)
			require.Equal(t, tt.becomes.State, out.State)
			require.Equal(t, tt.becomes.Reason, out.Reason)
			require.Equal(t, tt.becomes.ElapsedS, out.ElapsedS)
			require.Equal(t, tt.timedOut, out.TimedOut)
			require.Contains(t, out.View(lang.EN).Title, tt.title)
		})
	}
	broken, stop := context.WithCancel(t.Context())
	stop()
	_, err := timedOut(broken, opstest.NewCall(t, &opstest.Site{}), nil, WaitIn{}, WaitOut{Job: was})
	require.ErrorIs(t, err, context.Canceled, "a wait that was broken off is no time-out")
}
