package joblogs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// The diagnosis of a job whose reservation ended says so before it advises more time.
func TestATimeoutBeforeTheTimeLimit(t *testing.T) {
	log := filepath.Join(t.TempDir(), "gpt-7.out")
	require.NoError(t, os.WriteFile(log, []byte("slurmstepd-gpu4: error: *** JOB 7 ON gpu4 CANCELLED AT 2026-06-11T11:16:59 DUE TO TIME LIMIT ***\n"), 0o600))
	limit := int64(1800)
	for elapsed, early := range map[int64]bool{82: true, 1801: false} {
		j := slurm.Job{ID: "7", User: "alice", State: slurm.Timeout, Reason: "TimeLimit", ElapsedS: elapsed, TimeLimitS: &limit, Stdout: log, Nodes: []string{"gpu4"}}
		out, err := opstest.Do(t, opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": j}}), joblogs.Diagnose(), "7")
		require.NoError(t, err)
		text := opstest.Text(t, out, lang.EN)
		if early {
			require.Contains(t, text, "its reservation ended")
			require.Contains(t, text, "01:22 of 30:00")
		} else {
			require.NotContains(t, text, "reservation")
		}
	}
}

// An accountsSite is a cluster whose accounts hold the tasks of an array.
type accountsSite struct {
	*opstest.Site
	past []slurm.Job
}

func (s accountsSite) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return s.past, nil }

// The diagnosis of an array of which several tasks failed names them, because it tells the
// cause of one.
func TestAnArrayOfWhichSeveralTasksFailed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm-7_2.out"), []byte("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: bad lr\n"), 0o600))
	early, late := time.Unix(1700000000, 0), time.Unix(1700000100, 0)
	task := func(id slurm.JobID, state slurm.State, end *time.Time) slurm.Job {
		return slurm.Job{ID: id, User: "alice", State: state, EndedAt: end, Stdout: filepath.Join(dir, "slurm-"+string(id)+".out"), WorkDir: dir}
	}
	two, three := task("7_2", slurm.Failed, &late), task("7_3", slurm.Failed, &early)
	for _, c := range []struct {
		past []slurm.Job
		says string
	}{
		{[]slurm.Job{task("7_1", slurm.Completed, &early), two, three, task("7_4", slurm.Cancelled, &early), task("70_1", slurm.Failed, &early)}, "one of them: 7_3, 7_2."},
		{[]slurm.Job{task("7_1", slurm.Completed, &early), two}, ""},
	} {
		whole, _ := slurm.Fold("7", c.past)
		site := accountsSite{&opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": whole}}, c.past}
		call := opstest.NewCall(t, site.Site)
		call.Service.Clusters["test"] = site
		out, err := opstest.Do(t, call, joblogs.Diagnose(), "7")
		require.NoError(t, err)
		text := opstest.Text(t, out, lang.EN)
		require.Contains(t, text, "ValueError: bad lr")
		if c.says == "" {
			require.NotContains(t, text, "tasks of the array failed")
			continue
		}
		require.Contains(t, text, "2 tasks of the array failed")
		require.Contains(t, text, c.says)
		require.Contains(t, text, "diagnose 7_3")
	}
}

// Of an array of which hundreds of tasks failed, the answer names some and counts all.
func TestAnArrayOfWhichHundredsOfTasksFailed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm-7_0.out"), []byte("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: bad lr\n"), 0o600))
	var past []slurm.Job
	for i := range 900 {
		id, end := slurm.JobID(fmt.Sprintf("7_%d", i)), time.Unix(1700000000+int64(i), 0)
		past = append(past, slurm.Job{ID: id, User: "alice", State: slurm.Failed, EndedAt: &end, Stdout: filepath.Join(dir, "slurm-"+string(id)+".out"), WorkDir: dir})
	}
	whole, _ := slurm.Fold("7", past)
	site := accountsSite{&opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": whole}}, past}
	call := opstest.NewCall(t, site.Site)
	call.Service.Clusters["test"] = site
	out, err := opstest.Do(t, call, joblogs.Diagnose(), "7")
	require.NoError(t, err)
	answer := out.(joblogs.DiagnoseOut)
	require.Equal(t, 900, len(answer.FailedTasks)+answer.MoreFailed)
	require.Less(t, len(answer.FailedTasks), 100)
	require.Contains(t, opstest.Text(t, out, lang.EN), "900 tasks of the array failed, each a run of its own; this is about one of them: 7_0, 7_1, 7_2, 7_3, 7_4, 7_5, 7_6, 7_7, and 892 more.")
}
