package watch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// Each run has news of its own, by its number. Where the accounts keep nothing, or only the
// newest run, the end of a second run has the second run's number too.
func TestTheNumberOfARunDoesNotFall(t *testing.T) {
	f := newFake(job("7", slurm.Running))
	story(t, f, watch.Options{}, func(w *watch.Watcher, _ func() []string) {
		w.Watch(slurm.Job{ID: "7"})
		runs := w.Subscribe()
		defer runs.Close()
		var ends []int
		for range 3 {
			f.set(func() { f.queue["7"] = job("7", slurm.Running) })
			time.Sleep(2 * time.Minute)
			f.set(func() { f.queue["7"] = job("7", slurm.Failed) })
			time.Sleep(5 * time.Minute)
			for {
				e, err := runs.Next(t.Context())
				require.NoError(t, err)
				if e.Kind == watch.Ended {
					ends = append(ends, e.Job.Restarts)
					break
				}
			}
		}
		require.Equal(t, []int{0, 1, 2}, ends)
	})
}

// So it is if somebody asks for the job before the watcher has seen that it runs again; and
// who asks for a job that only has ended is told its end.
func TestWhoAsksForARequeuedJobGetsItsNumber(t *testing.T) {
	f := newFake(job("7", slurm.Running))
	f.past["8"] = ended("8", slurm.Failed, "3:0")
	f.queue["9"] = slurm.Job{ID: "9", State: slurm.Running, Restarts: 5} // a queue that counts
	late := ended("7", slurm.Failed, "3:0")
	late.Restarts = 2
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(late) // and then by somebody who knows only an earlier run
		for _, id := range []slurm.JobID{"7", "8", "9"} {
			w.Watch(ended(id, slurm.Failed, "3:0"))
			w.Watch(slurm.Job{ID: id})
		}
		time.Sleep(time.Minute)
		require.ElementsMatch(t, []string{"changed RUNNING", "changed RUNNING", "ended FAILED"}, told())
		for id, number := range map[slurm.JobID]int{"7": 3, "9": 5} {
			j, ok := w.Job(id)
			require.True(t, ok)
			require.Equal(t, number, j.Restarts, id)
		}
	})
}

// A site may begin to count its jobs anew.
func TestAnotherUsersJobIsNoRequeue(t *testing.T) {
	old := ended("7", slurm.Failed, "3:0")
	old.User = "ada"
	f := newFake()
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(old)
		other := job("7", slurm.Running)
		other.User = "bob"
		f.set(func() { f.queue["7"] = other })
		time.Sleep(2 * time.Minute)
		require.Empty(t, told())
		asked := f.questions()
		time.Sleep(time.Hour)
		require.Equal(t, asked, f.questions(), "and nothing is left to ask for")
	})
}

// A job that has ended is asked for until a day after its end. The cluster's clock may be ahead,
// by years too.
func TestAnEndIsAskedForOneDay(t *testing.T) {
	for name, c := range map[string]struct{ ended, asked time.Duration }{
		"in ten years": {10 * 365 * 24 * time.Hour, 24 * time.Hour},
		"yesterday":    {-22 * time.Hour, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			story(t, f, watch.Options{}, func(w *watch.Watcher, _ func() []string) {
				j, end := ended("7", slurm.Failed, "3:0"), time.Now().Add(c.ended)
				j.EndedAt = &end
				w.Watch(j)
				time.Sleep(c.asked - 10*time.Minute)
				asked := f.questions()
				require.Positive(t, asked)
				time.Sleep(20 * time.Minute)
				require.Greater(t, f.questions(), asked)
				asked = f.questions()
				time.Sleep(time.Hour)
				require.Equal(t, asked, f.questions())
			})
		})
	}
}

// After a requeue the accounts may still have the run before only. If the queue says nothing
// of the job for a moment, that is not its end.
func TestTheRunBeforeIsNotTheEnd(t *testing.T) {
	first := time.Unix(1e9, 0)
	second := first.Add(time.Hour)
	now := slurm.Job{ID: "7", State: slurm.Running, SubmittedAt: &second}
	f := newFake(now)
	before := ended("7", slurm.NodeFail, "0:0")
	before.SubmittedAt = &first
	f.past["7"] = before
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(slurm.Job{ID: "7"})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"changed RUNNING"}, told())
		f.set(func() { delete(f.queue, "7") })
		time.Sleep(time.Minute)
		require.Equal(t, []string{"changed RUNNING AccountingPending"}, told())
		f.set(func() { f.queue["7"] = now })
		time.Sleep(time.Minute)
		require.Equal(t, []string{"changed RUNNING"}, told())
		f.set(func() {
			delete(f.queue, "7")
			done := ended("7", slurm.Completed, "0:0")
			done.SubmittedAt = &second
			f.past["7"] = done
		})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"ended COMPLETED"}, told())
	})
}
