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

func TestAnOutageIsToldOnceAndCaughtUpWith(t *testing.T) {
	f := newFake(job("7", slurm.Running))
	story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
		w.Watch(slurm.Job{ID: "7"})
		time.Sleep(time.Second)
		told()
		f.set(func() { f.err = slurm.ErrUnreachable; f.asked = nil })
		time.Sleep(time.Hour)
		require.Equal(t, []string{"unreachable "}, told())
		require.LessOrEqual(t, len(f.asked), 20, "backs off to five minutes")
		j, ok := w.Job("7")
		require.True(t, ok)
		require.Equal(t, slurm.Running, j.State)
		require.False(t, w.Down().IsZero())
		f.set(func() { f.err = nil; f.queue["7"] = job("7", slurm.Completing) })
		time.Sleep(7 * time.Minute)
		require.Equal(t, []string{"reachable ", "changed COMPLETING"}, told())
	})
}

// A watcher that has backed off to five minutes resumes when another reader of its
// view gets an answer.
func TestAnotherReadersAnswerEndsAnOutage(t *testing.T) {
	f := &whole{fake: newFake(job("7", slurm.Running))}
	f.err = slurm.ErrUnreachable
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		view := watch.NewShared(f, watch.Options{})
		w := watch.New(view, watch.Options{})
		w.Watch(slurm.Job{ID: "7"})
		go w.Run(ctx)
		time.Sleep(time.Hour)
		for asked := f.questions(); f.questions() == asked; {
			time.Sleep(time.Second) // until it has just looked
		}
		f.set(func() { f.err = nil })
		time.Sleep(time.Minute)
		_, err := view.Jobs(ctx, slurm.Filter{})
		require.NoError(t, err)
		before := f.questions()
		time.Sleep(31 * time.Second)
		j, _ := w.Job("7")
		require.Equal(t, slurm.Running, j.State)
		require.LessOrEqual(t, f.questions(), before+1)
	})
}

// A look is followed by a pause of twenty times its length, so that news of a cluster
// that takes some seconds comes after a minute or two and not after five, and of one
// that answers quickly again at the usual interval.
func TestASlowClusterIsAskedLessOften(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		looks int // in an hour
	}{{time.Second, 68}, {3 * time.Second, 55}, {10 * time.Second, 17}, {time.Minute, 10}} {
		f := newFake(job("7", slurm.Running))
		f.slow = c.takes
		story(t, f, watch.Options{}, func(w *watch.Watcher, told func() []string) {
			w.Watch(slurm.Job{ID: "7"})
			time.Sleep(time.Hour)
			require.InDelta(t, c.looks, f.questions(), float64(c.looks)/6, c.takes)
			f.set(func() { f.slow = 0 })
			time.Sleep(7 * time.Minute)
			told()
			f.set(func() { f.queue["7"], f.past["7"] = ended("7", slurm.Failed, "1:0"), ended("7", slurm.Failed, "1:0") })
			time.Sleep(70 * time.Second)
			require.Equal(t, []string{"ended FAILED"}, told(), c.takes)
		})
	}
}
