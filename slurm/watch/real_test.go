package watch_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// asked returns how often the controller was queried for jobs, by its own count.
func asked(t *testing.T, real *slurmtest.Cluster) int { return counted(t, real, "REQUEST_JOB_INFO") }

// askedOfOne returns how often it was queried for a single job.
func askedOfOne(t *testing.T, real *slurmtest.Cluster) int {
	return counted(t, real, "REQUEST_JOB_INFO_SINGLE")
}

func counted(t *testing.T, real *slurmtest.Cluster, rpc string) int {
	t.Helper()
	out, err := real.Run(t.Context(), "sdiag")
	require.NoError(t, err)
	m := regexp.MustCompile(rpc + ` +\( *[0-9]+\) count:([0-9]+)`).FindStringSubmatch(out)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

// TestOnSlurm watches 500 held elements of an array and three jobs with different ends.
// The controller forgets an ended job after two seconds and is stopped for a while.
func TestOnSlurm(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{MinJobAge: 2})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	submit := func(body string, args ...string) slurm.JobID {
		t.Helper()
		id, err := c.Submit(ctx, slurm.Submission{Script: "#!/bin/bash\n" + body + "\n", Dir: real.Work, Args: append(args, "--output=/dev/null")})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Cancel(context.Background(), id) })
		return id
	}
	many := submit("true", "--hold", "--array=1-500")
	good, bad, gone := submit("sleep 8"), submit("sleep 8; exit 7"), submit("sleep 100")

	const interval = 1500 * time.Millisecond
	w := watch.New(c, watch.Options{Interval: interval, Longest: 3 * time.Second})
	sub := w.Subscribe()
	defer sub.Close()
	for _, id := range []slurm.JobID{many, good, bad, gone} {
		w.Watch(slurm.Job{ID: id})
	}
	before, begin := asked(t, real), time.Now()
	go w.Run(ctx)

	ends := map[slurm.JobID]slurm.Job{}
	states := map[slurm.JobID][]slurm.State{}
	stopped, back := false, false
	deadline, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for len(ends) < 3 || !back {
		e, err := sub.Next(deadline)
		require.NoError(t, err, "ends so far: %v; controller stopped %v, back %v", ends, stopped, back)
		switch e.Kind {
		case watch.Reachable:
			back = true
			require.NoError(t, c.Cancel(ctx, gone))
			continue
		case watch.Unreachable:
			require.ErrorIs(t, e.Err, slurm.ErrUnreachable)
			require.NoError(t, real.StartController(ctx))
			continue
		case watch.Ended:
			require.NotContains(t, ends, e.Job.ID, "each end is told once")
			ends[e.Job.ID] = e.Job
		}
		states[e.Job.ID] = append(states[e.Job.ID], e.Job.State)
		if !stopped && len(ends) == 2 {
			stopped = true
			looks := int(time.Since(begin)/(interval*8/10)) + 1
			require.LessOrEqual(t, asked(t, real)-before, looks, "one question an interval, whatever the number of jobs")
			require.NoError(t, real.StopController())
		}
	}
	require.Equal(t, slurm.Completed, ends[good].State)
	require.Equal(t, slurm.Failed, ends[bad].State)
	require.Equal(t, "7:0", *ends[bad].ExitCode)
	require.Equal(t, slurm.Cancelled, ends[gone].State)
	require.Contains(t, states[good], slurm.Running)
	require.Equal(t, []slurm.State{slurm.Pending}, states[many], "500 held elements are told of once")
}
