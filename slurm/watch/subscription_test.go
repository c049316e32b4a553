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
