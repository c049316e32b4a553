package jobcontrol_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A watcher sees the alarms of the jobs above the table, one short line for each alarm.
// In JSON, a loss that is not a number is null.
func TestAWatchedListTellsOfAlarms(t *testing.T) {
	dir := t.TempDir()
	jobs := map[slurm.JobID]slurm.Job{}
	for id, loss := range map[slurm.JobID]string{"7": "2.5E+00", "8": "NAN", "9": "NAN"} {
		var b strings.Builder
		for i := 1; i <= 60; i++ {
			fmt.Fprintf(&b, " [2026-06-11 10:%02d:%02d.000000] iteration %8d/     100 | elapsed time per iteration (ms): 4000.0 | global batch size:   256 | lm loss: %s |\n", i/15, i%15*4, i, loss)
		}
		j := slurm.Job{ID: id, Name: "gpt", User: "alice", State: slurm.Running, Nodes: []string{"n1"}, WorkDir: dir, Stdout: filepath.Join(dir, "gpt-"+string(id)+".out")}
		require.NoError(t, os.WriteFile(j.Stdout, []byte(b.String()), 0o600))
		jobs[id] = j
	}
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: jobs})
	out, err := opstest.Do(t, c, jobcontrol.List(), "--watch", "7", "8", "9")
	require.NoError(t, err)
	require.Regexp(t, `^  - the loss is not a number: [89], [89]\n  job `, strings.TrimLeft(opstest.Text(t, out, lang.EN), "\n"))
	require.Contains(t, opstest.Text(t, out, lang.ZH), "损失不是有限值：")
	raw, err := json.Marshal(out)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"8":{"iteration":60,"train_iters":100,"loss":null,`)
	require.Contains(t, string(raw), `"alarms":["not_finite"]`)

	out, err = opstest.Do(t, c, jobcontrol.List(), "--watch", "7")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(opstest.Text(t, out, lang.EN), "  job "), "no heading where nothing is wrong")
	out, err = opstest.Do(t, c, jobcontrol.List(), "8")
	require.NoError(t, err)
	require.NotContains(t, opstest.Text(t, out, lang.EN), "not a number", "logs are read only for whoever watches")
}

// listingSite is a cluster whose list of jobs lacks the paths of their logs, as squeue's.
type listingSite struct{ *opstest.Site }

func (s listingSite) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	jobs, err := s.Site.Jobs(ctx, f)
	for i := range jobs {
		jobs[i].Stdout = ""
	}
	return jobs, err
}

func (s listingSite) Details(_ context.Context, rows []slurm.Job) (map[slurm.JobID]slurm.Job, error) {
	all := map[slurm.JobID]slurm.Job{}
	for _, j := range rows {
		j.Stdout = s.KnownJobs[j.ID].Stdout
		all[j.ID] = j
	}
	return all, nil
}

// A watched job that was submitted with sbatch shows its progress, too.
func TestAWatchedListFindsTheLogsOfJobsSubmittedElsewhere(t *testing.T) {
	log := filepath.Join(t.TempDir(), "gpt-7.out")
	require.NoError(t, os.WriteFile(log, []byte(" iteration 3/ 100 | elapsed time per iteration (ms): 4000.0 | global batch size: 256 | lm loss: 2.5E+00 |\n"), 0o600))
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": {ID: "7", Name: "gpt", User: "alice", State: slurm.Running, Nodes: []string{"n1"}, Stdout: log}}}
	c := opstest.NewCall(t, s)
	c.Clusters["test"] = listingSite{s}
	out, err := opstest.Do(t, c, jobcontrol.List(), "--watch")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "3/100")
}
