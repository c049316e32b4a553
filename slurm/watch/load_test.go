package watch_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// resident returns this process's resident memory in MiB.
func resident(t testing.TB) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// used returns the processor time of this process without its children.
func used(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestTenThousandJobsOnSlurm watches the elements of ten arrays of 1,000 held elements
// each, at the usual interval of 30 s: it may take 150 MiB and 5 % of one core.
func TestTenThousandJobsOnSlurm(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{MinJobAge: 2})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	w := watch.New(c, watch.Options{Floor: time.Nanosecond, Window: time.Nanosecond})
	for range 10 {
		id, err := c.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\ntrue\n", Dir: real.Work, Args: []string{"--hold", "--array=1-1000", "--output=/dev/null"}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Cancel(context.Background(), id) })
		for n := range 1000 {
			w.Watch(slurm.Job{ID: slurm.JobID(fmt.Sprintf("%s_%d", id, n+1))})
		}
	}
	sub := w.Subscribe()
	defer sub.Close()
	require.NoError(t, w.Refresh(t.Context()))
	for range 10000 {
		e, err := sub.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, slurm.Pending, e.Job.State)
	}
	before, asked0 := used(t), asked(t, real)
	const looks = 10
	var slowest time.Duration
	for range looks {
		begin := time.Now()
		require.NoError(t, w.Refresh(t.Context()))
		slowest = max(slowest, time.Since(begin))
	}
	each := (used(t) - before) / looks
	require.Equal(t, looks, asked(t, real)-asked0, "one question a look")
	runtime.GC()
	t.Logf("a look at 10,000 jobs: %s of processor time, slowest %s; resident %.0f MiB", each, slowest, resident(t))
	require.Less(t, each, 1500*time.Millisecond, "5 % of the 30 s between two looks")
	require.Less(t, resident(t), 150.0)
}

// TestTwoQuestionsAMinuteOnSlurm runs a watcher at the usual interval and two hundred
// readers, each once a second, over the jobs of the test above: while nothing changes,
// the controller counts two queries in a minute.
func TestTwoQuestionsAMinuteOnSlurm(t *testing.T) {
	t.Parallel()
	real := slurmtest.Start(t, slurmtest.Options{MinJobAge: 2})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	id, err := c.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\ntrue\n", Dir: real.Work, Args: []string{"--hold", "--array=1-1000", "--output=/dev/null"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Cancel(context.Background(), id) })
	shared := watch.NewShared(c, watch.Options{})
	w := watch.New(shared, watch.Options{})
	for n := range 1000 {
		w.Watch(slurm.Job{ID: slurm.JobID(fmt.Sprintf("%s_%d", id, n+1))})
	}
	for range 100 {
		sub := w.Subscribe()
		defer sub.Close()
	}
	read := func(ctx context.Context) {
		j, err := shared.Job(ctx, id+"_1")
		if err == nil {
			require.Equal(t, slurm.Pending, j.State)
		}
		rows, err := shared.Jobs(ctx, slurm.Filter{States: []slurm.State{slurm.Pending}})
		if err == nil {
			require.GreaterOrEqual(t, len(rows), 1000)
		}
	}
	time.Sleep(3 * time.Second) // let what other tests cancelled leave the queue
	read(t.Context())
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	before, begin := asked(t, real)+askedOfOne(t, real), used(t)
	go w.Run(ctx)
	for range 200 {
		go func() {
			for ctx.Err() == nil {
				read(ctx)
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		}()
	}
	<-ctx.Done()
	n := asked(t, real) + askedOfOne(t, real) - before
	t.Logf("%d questions in a minute by sdiag; %s of processor time for 24,000 readings", n, used(t)-begin)
	require.LessOrEqual(t, n, 2)
	require.Positive(t, n)
}
