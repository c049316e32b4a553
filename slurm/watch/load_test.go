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

// resident is how much memory this process holds, in MiB.
func resident(t testing.TB) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// used is the processor time of this process without its children.
func used(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestTenThousandJobsOnSlurm watches ten arrays of 1,000 held elements, each
// element by itself, at the usual pace of 30 s a look: under 150 MiB and under
// 5 % of one core.
func TestTenThousandJobsOnSlurm(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{MinJobAge: 2})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	w := watch.New(c, watch.Options{Floor: time.Nanosecond})
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
