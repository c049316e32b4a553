package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// batching is a fake that returns the details of many jobs within a second, except of
// those that have left the queue meanwhile.
type batching struct {
	*slow
	batches [][]slurm.JobID
	left    map[slurm.JobID]bool
}

func (f *batching) Details(ctx context.Context, rows []slurm.Job) (map[slurm.JobID]slurm.Job, error) {
	time.Sleep(time.Second)
	told := map[slurm.JobID]slurm.Job{}
	var ids []slurm.JobID
	for _, j := range rows {
		ids = append(ids, j.ID)
		if !f.left[j.ID] {
			j.Stdout = "/logs/" + string(j.ID)
			told[j.ID] = j
		}
	}
	f.set(func() { f.batches = append(f.batches, ids) })
	return told, ctx.Err()
}

// Details of many jobs at once take two queries: the one that runs, and one for all the
// others.
func TestManyJobsAreAskedForTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jobs []slurm.Job
		for n := range 50 {
			jobs = append(jobs, job(slurm.JobID(fmt.Sprint(n+1)), slurm.Failed))
		}
		jobs = append(jobs, job("60_1", slurm.Running), job("60_2", slurm.Running))
		f := &batching{slow: &slow{whole: &whole{fake: newFake(jobs...)}}, left: map[slurm.JobID]bool{"9": true}}
		s := watch.NewShared(f, watch.Options{})
		_, err := s.Jobs(t.Context(), slurm.Filter{})
		require.NoError(t, err)
		began := time.Now()
		var all sync.WaitGroup
		for _, j := range jobs[:50] {
			all.Go(func() {
				ctx := t.Context()
				if j.ID == "1" { // whoever asked first goes away
					short, stop := context.WithTimeout(ctx, time.Millisecond)
					defer stop()
					_, err := s.Job(short, j.ID)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				got, err := s.Job(ctx, j.ID)
				assert.NoError(t, err)
				assert.Equal(t, "/logs/"+string(j.ID), got.Stdout)
			})
		}
		all.Wait()
		require.LessOrEqual(t, len(f.batches), 2)
		require.Equal(t, 1, f.ones, "the one that had left is asked for by itself")
		require.LessOrEqual(t, time.Since(began), 4*time.Second)
		_, err = s.Job(t.Context(), "7")
		require.NoError(t, err)
		require.LessOrEqual(t, len(f.batches), 2, "an ended job is not asked for again")
		before := len(f.batches)
		_, _ = s.Job(t.Context(), "60")
		require.Len(t, f.batches, before, "the listing has no row for a whole array")
	})
}
