package watch_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// Events of one job stay in order however long they take, and delay no other job's.
func TestNewsOfDifferentJobsGoSideBySide(t *testing.T) {
	f := newFake()
	for i := range 40 {
		id := slurm.JobID(fmt.Sprint(i))
		f.queue[id] = job(id, slurm.Pending)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := watch.New(f, watch.Options{})
		sub := w.Subscribe()
		var mu sync.Mutex
		told := map[slurm.JobID][]slurm.State{}
		release := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() { w.Run(ctx) })
		all.Go(func() {
			sub.Each(ctx, func(e watch.Event) {
				if e.Job.ID == "7" {
					<-release
				}
				mu.Lock()
				defer mu.Unlock()
				told[e.Job.ID] = append(told[e.Job.ID], e.Job.State)
			})
		})
		for i := range 40 {
			w.Watch(slurm.Job{ID: slurm.JobID(fmt.Sprint(i))})
		}
		states := []slurm.State{slurm.Pending, slurm.Running, slurm.Completed}
		for _, s := range states {
			f.set(func() {
				for id := range f.queue {
					f.queue[id] = job(id, s)
					if s.Ended() {
						f.past[id] = ended(id, s, "0:0")
					}
				}
			})
			time.Sleep(2 * time.Minute)
		}
		synctest.Wait()
		mu.Lock()
		require.Len(t, told, 39, "all but the one whose news takes long")
		require.Equal(t, states, told["8"])
		mu.Unlock()
		close(release)
		synctest.Wait()
		mu.Lock()
		require.Equal(t, states, told["7"])
		mu.Unlock()
		stop()
		all.Wait()
	})
}

// Whoever ends Each knows once it returns that no call is under way, and that none follows.
func TestEachReturnsAfterItsLastCall(t *testing.T) {
	f := newFake()
	for i := range 3 {
		id := slurm.JobID(fmt.Sprint(i))
		f.queue[id] = job(id, slurm.Pending)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		w := watch.New(f, watch.Options{})
		sub, other := w.Subscribe(), w.Subscribe()
		other.Close()
		for id := range f.queue {
			w.Watch(slurm.Job{ID: id})
		}
		var calls atomic.Int32
		var returned atomic.Bool
		release := make(chan struct{})
		go func() {
			sub.Each(ctx, func(watch.Event) { calls.Add(1); <-release })
			returned.Store(true)
		}()
		require.NoError(t, w.Refresh(ctx))
		for id := range f.queue { // a second event waits behind the first
			f.queue[id] = job(id, slurm.Running)
		}
		time.Sleep(time.Minute)
		require.NoError(t, w.Refresh(ctx))
		synctest.Wait()
		begun := calls.Load()
		require.Positive(t, begun)
		stop()
		synctest.Wait()
		require.False(t, returned.Load(), "calls are under way")
		close(release)
		synctest.Wait()
		require.True(t, returned.Load())
		require.Equal(t, begun, calls.Load())
		_, err := other.Next(ctx)
		require.ErrorIs(t, err, context.Canceled, "what is closed hears nothing")
	})
}
