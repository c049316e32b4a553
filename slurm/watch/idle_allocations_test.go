package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// idling is a fake that also answers queries for steps.
type idling struct {
	*fake
	steps   []slurm.Step
	stepped []time.Time
}

func (f *idling) RunningSteps(context.Context) ([]slurm.Step, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stepped = append(f.stepped, time.Now())
	return f.steps, nil
}

// Steps are queried only where idle allocations are wanted, for jobs that have run long
// enough, and while the cluster answers.
func TestStepsAreAskedForOnlyWhereAJobCouldBeIdle(t *testing.T) {
	for _, c := range []struct {
		name   string
		idle   time.Duration
		job    slurm.Job
		err    error
		within time.Duration
		asked  bool
	}{
		{"running", 0, slurm.Job{State: slurm.Running}, nil, 35 * time.Minute, true},
		{"running, for too short", 0, slurm.Job{State: slurm.Running}, nil, 29 * time.Minute, false},
		{"ending", 0, slurm.Job{State: slurm.Completing}, nil, 35 * time.Minute, false},
		{"nobody wants to hear", -1, slurm.Job{State: slurm.Running}, nil, 35 * time.Minute, false},
		{"away", 0, slurm.Job{State: slurm.Running}, slurm.ErrUnreachable, 35 * time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				c.job.ID, c.job.StartedAt = "7", &begin
				f := &idling{fake: newFake(c.job)}
				ctx, stop := context.WithCancel(t.Context())
				w := watch.New(f, watch.Options{Idle: c.idle})
				w.Watch(slurm.Job{ID: "7"})
				var all sync.WaitGroup
				all.Go(func() { w.Run(ctx) })
				time.Sleep(5 * time.Minute)
				f.set(func() { f.err = c.err })
				time.Sleep(c.within - 5*time.Minute)
				stop()
				all.Wait()
				require.Equal(t, c.asked, len(f.stepped) > 0)
			})
		})
	}
}

// A job's end is not missed where steps are queried more often than the queue.
func TestStepsAreNeverAskedForTwiceWithoutALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		f := &idling{fake: newFake(slurm.Job{ID: "7", State: slurm.Running, StartedAt: &at, GPUs: 16, NumNodes: 2})}
		ctx, stop := context.WithCancel(t.Context())
		w := watch.New(f, watch.Options{Interval: 30 * time.Second, Idle: 30 * time.Second})
		sub := w.Subscribe()
		w.Watch(slurm.Job{ID: "7"})
		var all sync.WaitGroup
		all.Go(func() { w.Run(ctx) })
		time.Sleep(time.Hour)
		f.set(func() { f.queue, f.past = nil, map[slurm.JobID]slurm.Job{"7": ended("7", slurm.Timeout, "0:1")} })
		time.Sleep(5 * time.Minute)
		stop()
		all.Wait()
		var last watch.Event
		for {
			e, err := sub.Next(t.Context())
			require.NoError(t, err)
			if last = e; e.Kind == watch.Ended {
				break
			}
		}
		require.Equal(t, slurm.Timeout, last.Job.State)
	})
}

func TestAnAllocationWithoutAStepIsToldOfWithItsGPUHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		f := &idling{fake: newFake(slurm.Job{ID: "7", State: slurm.Running, StartedAt: &begin, GPUs: 16, NumNodes: 2}), steps: []slurm.Step{{ID: "7.0"}}}
		f.queue["8"] = job("8", slurm.Pending)
		ctx, stop := context.WithCancel(t.Context())
		w := watch.New(f, watch.Options{})
		sub := w.Subscribe()
		w.Watch(slurm.Job{ID: "7"})
		w.Watch(slurm.Job{ID: "8"})
		var all sync.WaitGroup
		all.Go(func() { w.Run(ctx) })
		all.Go(func() { // so that every look brings news, and none is put off
			for n := 0; ctx.Err() == nil; n++ {
				f.set(func() { f.queue["8"] = slurm.Job{ID: "8", State: slurm.Pending, Reason: fmt.Sprint(n)} })
				time.Sleep(10 * time.Second)
			}
		})
		next := func() watch.Event {
			for {
				e, err := sub.Next(ctx)
				require.NoError(t, err)
				if e.Job.ID == "7" {
					return e
				}
			}
		}
		require.Equal(t, watch.Changed, next().Kind)
		time.Sleep(2 * time.Hour)
		f.set(func() { f.steps = nil })
		e := next()
		require.Equal(t, watch.Idle, e.Kind)
		require.InDelta(t, 0.5, e.Idle.For.Hours(), 0.25, "since a step was last seen, not since the start")
		require.InDelta(t, e.Idle.For.Hours()*16, e.Idle.GPUHours, 0.01)
		first := time.Now()
		require.Equal(t, watch.Idle, next().Kind)
		require.GreaterOrEqual(t, time.Since(first), 25*time.Minute, "again when it has doubled")
		f.set(func() { f.steps = []slurm.Step{{ID: "7.1"}} })
		time.Sleep(time.Hour)
		f.set(func() { f.steps = nil })
		require.Less(t, next().Idle.For, time.Hour, "after another step it counts anew")
		stop()
		all.Wait()
		both := append(append([]time.Time{}, f.asked...), f.stepped...)
		for i := range both {
			n := 0
			for _, at := range both {
				if at.Sub(both[i]) >= 0 && at.Sub(both[i]) < time.Minute {
					n++
				}
			}
			require.LessOrEqual(t, n, 2, "the question for steps takes a look's place")
		}
	})
}
