package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// FindStep finds a step among the running ones, and then in the accounts where the site
// keeps any.
func TestAStepIsFound(t *testing.T) {
	job := reply{"--array", queued("7", "7", "RUNNING", "gpu[1-2]", ""), "", 0}
	running := reply{"--steps", "7.1|1|gpu1|other\n", "", 0}
	past := reply{"sacct", "7.0@@FAILED@@3:0@@60@@gpu[1-2]@@1G@@1@@train@@srun train\n", "", 0}
	for _, c := range []struct {
		name, step string
		rows       []reply
		id         string
		err        string
	}{
		{"that runs", "other", []reply{job, running}, "7.1", ""},
		{"that has ended", "train", []reply{job, running, past}, "7.0", ""},
		{"none of that name", "third", []reply{job, running, past}, "", ""},
		{"with no accounts", "train", []reply{job, running, {"sacct", "", noneKept, 1}}, "", ""},
		{"none of that job runs", "train", []reply{job, {"--steps", "", noSuchJob, 1}, past}, "7.0", ""},
		{"the controller is away", "train", []reply{{"--steps", "", "Unable to contact slurm controller\n", 1}, past}, "", "controller"},
		{"the accounts are away", "train", []reply{job, running, {"sacct", "", "Problem talking to the database\n", 1}}, "", "database"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cli, _ := clusterWith(c.rows...)
			id, found, err := cli.FindStep(t.Context(), "7", c.step)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.id, string(id))
			require.Equal(t, c.id != "", found)
			if found {
				j, err := cli.Step(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, "alice", j.User)
				require.Equal(t, c.step, j.Name)
			}
		})
	}
	cli, _ := clusterWith(job, running)
	for _, id := range []slurm.JobID{"7", "7.9"} {
		_, err := cli.Step(t.Context(), id)
		require.ErrorIs(t, err, slurm.ErrNotFound)
	}
}

// Launch returns the step once Slurm lists it, or the script's error output where it
// started none.
func TestALaunchInAJob(t *testing.T) {
	started := reply{"setsid", "4711\n", "", 0}
	runs, gone := reply{"kill -0", "", "", 0}, reply{"kill -0", "", "", 1}
	for _, c := range []struct {
		name  string
		rows  []reply
		id    string
		took  time.Duration
		err   string
		asked string
	}{
		{"its step runs", []reply{started, runs, {"--steps", "7.1|1|gpu1|mine\n", "", 0}}, "7.1", 0, "", "sh /w/logs/x a b"},
		{"it is long before its step", []reply{started, runs}, "7", launchWait, "", ""},
		{"it ended without a step", []reply{started, gone, {"tail", "gpu1: no\n", "", 0}}, "", 2500 * time.Millisecond, "no step was started: gpu1: no", "tail -n 5 -- /w/logs/x.err"},
		{"it ended in silence", []reply{started, gone}, "", 2500 * time.Millisecond, "the script ended without any output", ""},
		{"it could not begin", []reply{{"setsid", "", "cannot fork\n", 1}}, "", 0, "cannot fork", ""},
		{"Slurm is away", []reply{started, runs, {"--steps", "", "Unable to contact slurm controller\n", 1}}, "", 0, "controller", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cli, p := clusterWith(c.rows...)
				begin := time.Now()
				id, err := cli.Launch(t.Context(), slurm.Launch{Job: "7", Step: "mine", Dir: "/w", Base: "logs/x", Args: []string{"a", "b"}, Script: "#!/bin/bash\n"})
				if c.err != "" {
					require.ErrorContains(t, err, c.err)
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, c.id, string(id))
				require.InDelta(t, c.took, time.Since(begin), float64(300*time.Millisecond))
				require.Contains(t, strings.Join(p.asked, "\n"), c.asked)
			})
		})
	}
	cli, p := clusterWith()
	_, err := cli.Launch(t.Context(), slurm.Launch{Job: "x"})
	require.ErrorIs(t, err, slurm.ErrNotFound)
	require.Empty(t, p.asked)
	require.Equal(t, []string{"A=b", "SLURM_CONF=/c", "SLURM_CLUSTERS=x"}, launchEnviron([]string{"A=b", "SLURM_JOB_ID=7", "SLURM_CONF=/c", "SLURM_CLUSTERS=x", "SLURM_JWT=z"}))
}
