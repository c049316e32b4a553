package watch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// ledger is a cluster whose queue and accounts are lists.
type ledger struct {
	*fake
	rows, past []slurm.Job
}

func (l *ledger) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]slurm.Job{}, l.rows...), nil
}

func (l *ledger) Past(context.Context, slurm.Filter) ([]slurm.Job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.past, nil
}

// A chapter is what queue and accounts say from now on, and what is told within a time.
type chapter struct {
	rows, past []slurm.Job
	lasts      time.Duration
	told       []string
}

func TestWhatIsToldOfAJob(t *testing.T) {
	at, again := time.Unix(1e9, 0), time.Unix(1e9+60, 0)
	run := func(change func(*slurm.Job)) []slurm.Job {
		j := slurm.Job{ID: "8", State: slurm.Running, Nodes: []string{"n1"}, SubmittedAt: &at}
		change(&j)
		return []slurm.Job{j}
	}
	first := run(func(*slurm.Job) {})
	begun := chapter{first, nil, time.Minute, []string{"changed RUNNING"}}
	gone := chapter{nil, nil, 20 * time.Hour, []string{"changed RUNNING AccountingPending"}}
	lost := chapter{nil, nil, 2 * time.Minute, gone.told}
	running, failed := job("8_1", slurm.Running), ended("8_1", slurm.Failed, "1:0")
	done := ended("8_2", slurm.Completed, "0:0")
	for name, chapters := range map[string][]chapter{
		"other nodes are news":  {begun, {run(func(j *slurm.Job) { j.Nodes = []string{"n2"} }), nil, time.Minute, []string{"changed RUNNING"}}},
		"another run is news":   {begun, {run(func(j *slurm.Job) { j.SubmittedAt = &again }), nil, time.Minute, []string{"changed RUNNING"}}},
		"elapsed time is none":  {begun, {run(func(j *slurm.Job) { j.ElapsedS = 9 }), nil, time.Minute, nil}},
		"a job that comes back": {begun, gone, {first, nil, 2 * time.Minute, []string{"changed RUNNING"}}, lost, {nil, []slurm.Job{ended("8", slurm.Failed, "1:0")}, time.Minute, []string{"ended FAILED"}}},
		"an end that only the queue has shown": {
			{[]slurm.Job{job("8", slurm.Failed)}, nil, time.Second, []string{"changed FAILED AccountingPending"}}, {nil, nil, time.Minute, []string{"ended FAILED"}},
		},
		"an array whose accounts lack an element": {
			{[]slurm.Job{running, job("8_2", slurm.Running)}, nil, time.Minute, []string{"changed RUNNING"}},
			{[]slurm.Job{running}, []slurm.Job{done}, time.Minute, nil},
			{nil, []slurm.Job{done}, time.Minute, []string{"changed COMPLETED AccountingPending"}},
			{nil, []slurm.Job{done, failed}, 2 * time.Minute, []string{"ended FAILED"}},
		},
		"an array that the accounts list as one job": {
			{[]slurm.Job{running, job("8_2", slurm.Running)}, nil, time.Minute, []string{"changed RUNNING"}},
			{nil, []slurm.Job{ended("8", slurm.Completed, "0:0")}, time.Minute, []string{"changed RUNNING AccountingPending"}},
			{nil, []slurm.Job{done, failed}, 2 * time.Minute, []string{"ended FAILED"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &ledger{fake: newFake()}
			story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
				for i, c := range chapters {
					f.set(func() { f.rows, f.past = c.rows, c.past })
					if i == 0 {
						w.Watch(slurm.Job{ID: "8"})
					}
					time.Sleep(c.lasts)
					require.Equal(t, c.told, told(), "chapter %d", i+1)
				}
				if j, ok := w.Job("8"); ok && len(chapters[len(chapters)-1].rows) > 0 {
					require.Equal(t, chapters[len(chapters)-1].rows[0].ElapsedS, j.ElapsedS, "what is no news is known all the same")
				}
			})
		})
	}
}

// Why a job was requeued is told as soon as the accounts know it.
func TestTheReasonOfARequeueIsTold(t *testing.T) {
	at, again := time.Unix(1e9, 0), time.Unix(1e9+60, 0)
	f := &ledger{fake: newFake(), rows: []slurm.Job{{ID: "7", State: slurm.Running, SubmittedAt: &at}}}
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(slurm.Job{ID: "7"})
		time.Sleep(time.Minute)
		f.set(func() { f.rows = []slurm.Job{{ID: "7", State: slurm.Running, SubmittedAt: &again}} })
		time.Sleep(35 * time.Second)
		f.set(func() {
			f.past = []slurm.Job{{ID: "7", State: slurm.Running, SubmittedAt: &again, Restarts: 1, Requeues: []slurm.State{slurm.NodeFail}}}
		})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"changed RUNNING", "changed RUNNING", "changed RUNNING"}, told())
		j, _ := w.Job("7")
		require.Equal(t, []slurm.State{slurm.NodeFail}, j.Requeues)
		require.Equal(t, 1, j.Restarts)
		w.Watch(ended("6", slurm.Failed, "1:0"))
		w.Clear()
		f.set(func() { f.rows = []slurm.Job{job("6", slurm.Running), job("7", slurm.Completing)} })
		time.Sleep(time.Hour)
		require.Empty(t, told(), "nothing is followed any more, and no requeue is waited for")
	})
}

// Slurm keeps a job in the queue for minutes after its end. Only the accounts have its exit code.
func TestAnEndHasTheExitCodeOfTheAccounts(t *testing.T) {
	f := newFake(job("7", slurm.Failed))
	f.past["7"] = ended("7", slurm.Failed, "3:0")
	w := watch.New(f, watch.Options{})
	sub := w.Subscribe()
	w.Watch(slurm.Job{ID: "7"})
	require.NoError(t, w.Refresh(t.Context()))
	e, err := sub.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, watch.Ended, e.Kind)
	require.Equal(t, "3:0", *e.Job.ExitCode)
}

// Each term as leader begins with a look, however soon after the last one.
func TestAClearedWatcherLooksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch.New(newFake(job("7", slurm.Running)), watch.Options{})
		sub := w.Subscribe()
		for range 2 {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			w.Watch(slurm.Job{ID: "7"})
			w.Run(ctx)
			stop()
			_, err := sub.Next(ctx)
			require.NoError(t, err)
			w.Clear()
		}
	})
}
