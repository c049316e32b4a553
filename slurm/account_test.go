package slurm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// aRun is one record of job 7 in the accounts, with times in seconds.
func aRun(user string, s State, submitted, started, ended int64) Job {
	at := func(s int64) *time.Time {
		t := time.Unix(1700000000+s, 0)
		return &t
	}
	return Job{ID: "7", User: user, State: s, SubmittedAt: at(submitted), StartedAt: at(started), EndedAt: at(ended)}
}

// A job may begin and end in the second in which it was submitted. That run is its present
// one, whatever the state was in which the run before ended.
func TestTheRunsBeforeThePresentOne(t *testing.T) {
	all := func(Job) bool { return true }
	instant := aRun("ada", Failed, 0, 0, 0)
	got, _ := WithPast([]Job{instant}, []Job{instant}, all, nil)
	require.Len(t, got, 1)
	require.Empty(t, got[0].Earlier)
	require.Zero(t, got[0].Restarts)

	first, again := aRun("ada", Completed, 0, 10, 60), aRun("ada", Pending, 60, 0, 0)
	again.StartedAt, again.EndedAt = nil, nil
	for name, past := range map[string][]Job{"of the run before": {first}, "of both": FoldRuns([]Job{first, again})} {
		got, _ = WithPast([]Job{again}, past, all, nil)
		require.Len(t, got, 1, name)
		require.Equal(t, []State{Completed}, got[0].Requeues, name)
		require.Equal(t, 1, got[0].Restarts, name)
	}
}

// Slurm may begin to count anew, and the accounts still have the job that had an id before.
func TestAnIDThatIsUsedAgainIsAnotherJob(t *testing.T) {
	old, now := aRun("bob", Completed, 0, 10, 60), aRun("ada", Failed, 900, 910, 950)
	require.Equal(t, []Job{now}, FoldRuns([]Job{old, now}))
	now.RunsBefore(old)
	require.Zero(t, now.Restarts)
	now.User = "bob"
	require.Equal(t, 1, FoldRuns([]Job{old, now})[0].Restarts)
}

// slurmrestd's accounts tell of a run that was put back as sacct does.
func TestSlurmrestdTellsOfRunsThatWerePutBack(t *testing.T) {
	again := aRun("ada", Pending, 60, 0, 0)
	again.RunsBefore(AccountFromJSON(map[string]any{
		"job_id": 7.0, "user": "ada", "state": map[string]any{"current": []any{"REQUEUED"}},
		"time": map[string]any{"submission": 1700000000.0, "start": 1700000010.0, "end": 1700000060.0},
	}))
	require.Equal(t, []State{Requeued}, again.Requeues)
	require.Len(t, again.Earlier, 1)
}
