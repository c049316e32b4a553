package jobcontrol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A wait tells at once how the job is, and when its time is up how it is by then:
// a job that has ended or begun since is no time-out.
func TestAWaitTellsThePresentState(t *testing.T) {
	for _, tt := range []struct {
		name     string
		words    []string
		becomes  slurm.Job
		timedOut bool
		title    string
	}{
		{"still pending", nil, slurm.Job{State: slurm.Pending, Reason: "Priority"}, true, "still PENDING"},
		{"runs by now", nil, slurm.Job{State: slurm.Running, ElapsedS: 7}, true, "still RUNNING"},
		{"runs as it should", []string{"--running"}, slurm.Job{State: slurm.Running}, false, "RUNNING"},
		{"ended", nil, slurm.Job{State: slurm.Completed}, false, "COMPLETED"},
		{"ended without its file", []string{"--artifact", "done.json"}, slurm.Job{State: slurm.Failed}, false, "FAILED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was := slurm.Job{ID: "77", Name: "gpt", User: "alice", State: slurm.Pending, Reason: "Resources", WorkDir: t.TempDir()}
			s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"77": was}}
			c := opstest.NewCall(t, s)
			var told []string
			c.Progress = func(_, _ int, what string) {
				told = append(told, what)
				by := tt.becomes
				by.ID, by.Name, by.User, by.WorkDir = was.ID, was.Name, was.User, was.WorkDir
				s.KnownJobs["77"] = by
			}
			out, err := opstest.Do(t, c, Wait(), append([]string{"77", "--timeout", "1"}, tt.words...)...)
			require.NoError(t, err)
			require.Equal(t, "PENDING (Resources)", told[0])
			w := out.(WaitOut)
			require.Equal(t, tt.becomes.State, w.State)
			require.Equal(t, tt.becomes.ElapsedS, w.ElapsedS)
			require.Equal(t, tt.timedOut, w.TimedOut)
			require.Contains(t, w.View(lang.EN).Title, tt.title)
		})
	}
}
