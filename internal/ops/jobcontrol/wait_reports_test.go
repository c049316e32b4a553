package jobcontrol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// A waiting person reads the job's progress in words; a program gets it as a share of
// the time limit.
func TestWhatAWaitTells(t *testing.T) {
	limit := int64(7200)
	var told []string
	now := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		surface ops.Surface
		job     slurm.Job
		want    string
	}{
		{ops.Shell, slurm.Job{State: slurm.Running, ElapsedS: 3600, TimeLimitS: &limit}, "0/0 RUNNING for 01:00:00 of 02:00:00"},
		{ops.Shell, slurm.Job{State: slurm.Running, ElapsedS: 3600}, "0/0 RUNNING for 01:00:00"},
		{ops.Shell, slurm.Job{State: slurm.Running}, "0/0 RUNNING"},
		{ops.Shell, slurm.Job{State: slurm.Pending, TimeLimitS: &limit}, "0/0 PENDING"},
		{ops.MCP, slurm.Job{State: slurm.Running, ElapsedS: 3600, TimeLimitS: &limit}, "3600/7200 RUNNING"},
		{ops.MCP, slurm.Job{State: slurm.Running, ElapsedS: 3600}, "3600/0 RUNNING"},
	} {
		told = nil
		call := &ops.Call{Service: &ops.Service{}, Lang: lang.EN, Who: ops.Caller{Surface: c.surface}, Progress: func(done, total int, words string) {
			told = append(told, fmt.Sprintf("%d/%d %s", done, total, words))
		}}
		(&waitReporter{}).say(call, c.job, now, string(c.job.State))
		require.Equal(t, []string{c.want}, told)
	}

	// The same line is repeated only after a while, and a new one is reported at once.
	told = nil
	p := waitReporter{alarms: map[string]bool{}}
	for _, at := range []struct {
		after time.Duration
		state slurm.State
	}{{0, slurm.Pending}, {14 * time.Second, slurm.Pending}, {15 * time.Second, slurm.Pending}, {16 * time.Second, slurm.Completing}} {
		call := &ops.Call{Service: &ops.Service{Now: func() time.Time { return now.Add(at.after) }}, Lang: lang.EN, Progress: func(_, _ int, words string) {
			told = append(told, fmt.Sprint(at.after, " ", words))
		}}
		p.look(t.Context(), call, &WaitOut{Job: slurm.Job{State: at.state}})
	}
	require.Equal(t, []string{"0s PENDING", "15s PENDING", "16s COMPLETING"}, told)

	told = nil
	p = waitReporter{line: "第 3/9 次迭代"}
	p.look(t.Context(), &ops.Call{Service: &ops.Service{Now: time.Now}, Lang: lang.ZH, Progress: func(_, _ int, words string) {
		told = append(told, words)
	}}, &WaitOut{Job: slurm.Job{State: slurm.Completing}})
	require.Equal(t, []string{"COMPLETING，第 3/9 次迭代"}, told)
}

// A run's last iteration is described as far as its values are known.
func TestTheNewestNumbersOfARun(t *testing.T) {
	loss, ms := 2.3456, 1500.0
	for want, run := range map[string]metrics.Run{
		"":             {},
		"iteration 20": {Iterations: []metrics.Iteration{{N: 10, Loss: &loss}, {N: 20}}},
		"iteration 20 of 100, loss 2.346, 1.5 s each": {Of: 100, Iterations: []metrics.Iteration{{N: 20, Loss: &loss, ElapsedMS: &ms}}},
		"iteration 20, 1.5 s each":                    {Iterations: []metrics.Iteration{{N: 20, ElapsedMS: &ms}}},
	} {
		require.Equal(t, want, lastIteration(run).EN)
	}
}

// A wait has found something where the job ended badly and nobody cancelled it on
// purpose.
func TestWhenAWaitHasFoundSomething(t *testing.T) {
	for state, found := range map[slurm.State]bool{slurm.Completed: false, slurm.Failed: true, slurm.Running: false, slurm.Cancelled: true} {
		require.Equal(t, found, WaitOut{Job: slurm.Job{State: state}}.Found(), state)
		require.False(t, WaitOut{Job: slurm.Job{State: state}, Cancelled: true}.Found(), "it was cancelled since its result is there")
	}
}
