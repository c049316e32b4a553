package jobcontrol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A job that was preempted and waits again was not submitted a second time.
func TestARequeueIsAnEvent(t *testing.T) {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	at := func(after time.Duration) *time.Time { when := start.Add(after); return &when }
	again := slurm.Job{ID: "7", Name: "a", User: "alice", State: slurm.Pending, Reason: "BeginTime", SubmittedAt: at(40 * time.Second)}
	again.RunsBefore(slurm.Job{ID: "7", State: slurm.Preempted, SubmittedAt: at(0), StartedAt: at(10 * time.Second), EndedAt: at(40 * time.Second)})
	require.Equal(t, []slurm.State{slurm.Preempted}, again.Requeues)
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": again}})
	c.Now = func() time.Time { return start.Add(time.Minute) }
	out, err := opstest.Do(t, c, Events(), "--since", "1h")
	require.NoError(t, err)
	var told []string
	for _, e := range out.(EventsOut).Events {
		told = append(told, e.What+" "+string(e.State))
	}
	require.Equal(t, []string{"submitted ", "started ", "requeued PREEMPTED"}, told)
	require.Contains(t, opstest.Text(t, out, lang.EN), "put back into the queue after PREEMPTED")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "已放回队列，上一次运行为 PREEMPTED")

	again.State, again.SubmittedAt = slurm.Running, at(0)
	again.Earlier, again.Requeues = nil, nil
	again.RunsBefore(slurm.Job{ID: "7", State: slurm.Running, SubmittedAt: at(0), StartedAt: at(10 * time.Second)})
	require.Empty(t, again.Requeues, "the accounts have only the present run")
}

// A caller who comes back with next_since gets each event exactly once, including
// events that the accounting reported late.
func TestEventsGoOnWhereTheyWere(t *testing.T) {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	now := start
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	c := opstest.NewCall(t, s)
	c.Now = func() time.Time { return now }
	at := func(after time.Duration) *time.Time { when := start.Add(after); return &when }
	ask := func(since string) (told []string, next string) {
		t.Helper()
		out, err := opstest.Do(t, c, Events(), "--since", since)
		require.NoError(t, err)
		for _, e := range out.(EventsOut).Events {
			told = append(told, string(e.Job)+" "+e.What+" "+string(e.State))
		}
		return told, out.(EventsOut).NextSince
	}
	told, next := ask("1h")
	require.Empty(t, told)

	s.KnownJobs["1"] = slurm.Job{ID: "1", Name: "a", User: "alice", State: slurm.Running, SubmittedAt: at(10 * time.Second), StartedAt: at(20 * time.Second)}
	s.KnownJobs["2"] = slurm.Job{ID: "2", Name: "b", User: "bob", State: slurm.Running, SubmittedAt: at(10 * time.Second)}
	now = start.Add(30 * time.Second)
	told, next = ask(next)
	require.Equal(t, []string{"1 submitted ", "1 started "}, told, "mine alone")
	told, next = ask(next)
	require.Empty(t, told, "nothing twice")

	exit := "1:0"
	s.KnownJobs["1"] = slurm.Job{
		ID: "1", Name: "a", User: "alice", State: slurm.Failed, ExitCode: &exit,
		SubmittedAt: at(10 * time.Second), StartedAt: at(20 * time.Second), EndedAt: at(25 * time.Second),
	}
	now = start.Add(100 * time.Second)
	told, next = ask(next)
	require.Equal(t, []string{"1 ended FAILED"}, told, "it ended before the last question and was told of late")
	now = start.Add(time.Hour)
	told, later := ask(next)
	require.Empty(t, told)
	require.Equal(t, "2026-11-21T08:58:00Z", later, "a cursor stays short")
	told, _ = ask("2h")
	require.Len(t, told, 3, "whoever asks anew hears all")

	for i := range 100 {
		id := slurm.JobID("9" + string(rune('0'+i/10)) + string(rune('0'+i%10)))
		s.KnownJobs[id] = slurm.Job{ID: id, User: "alice", State: slurm.Pending, SubmittedAt: at(time.Hour)}
	}
	told, next = ask(later)
	require.Len(t, told, 100)
	require.Less(t, len(next), 40, "an array does not make it long")
	told, _ = ask(next)
	require.Empty(t, told)

	_, err := opstest.Do(t, c, Events(), "--since", "yesterday")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
}
