package joblogs_test

import (
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

// The run's address is found at either end of a log of any length, also after the job
// has ended; a job without a tracker has none.
func TestStatusTellsWhereARunIsTracked(t *testing.T) {
	const line = "7: wandb: 🚀 View run at https://wandb.ai/lab/gpt/runs/gpt-80\n"
	long := strings.Repeat("a line of the training\n", 6<<20/23)
	for name, c := range map[string]struct {
		state    slurm.State
		log      string
		has, err bool
	}{
		"while it runs":     {slurm.Running, "loading\n" + line + "loaded\n", true, false},
		"after its end":     {slurm.Failed, line + long, true, false},
		"by its last words": {slurm.Completed, long + line, true, false},
		"in the other file": {slurm.Completed, line, true, true},
		"not tracked":       {slurm.Completed, long, false, false},
	} {
		dir := t.TempDir()
		j := slurm.Job{ID: "80", Cluster: "test", Name: "gpt", User: "alice", State: c.state, WorkDir: dir, Stdout: filepath.Join(dir, "gpt-80.out"), Stderr: filepath.Join(dir, "gpt-80.err")}
		out, errLog := c.log, ""
		if c.err {
			out, errLog = errLog, out
		}
		require.NoError(t, os.WriteFile(j.Stdout, []byte(out), 0o600))
		require.NoError(t, os.WriteFile(j.Stderr, []byte(errLog), 0o600))
		call := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"80": j}})
		got, err := opstest.Do(t, call, jobcontrol.Status(), "80")
		require.NoError(t, err)
		for l, says := range map[lang.Lang]string{lang.EN: "tracked at", lang.ZH: "实验记录"} {
			text := opstest.Text(t, got, l)
			require.Equal(t, c.has, strings.Contains(text, says) && strings.Contains(text, "https://wandb.ai/lab/gpt/runs/gpt-80"), "%s: %s", name, text)
		}
	}
}
