package joblogs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// A job of fifteen minutes that trained for its last five: its time is split from all
// of its logs, and only where these tell.
func TestWhatBecameOfAJobsTime(t *testing.T) {
	start := time.Date(2026, 6, 11, 10, 0, 0, 0, time.Local)
	trained := func(to int) string {
		var b strings.Builder
		for i := 1; i <= to; i++ {
			at := start.Add(10*time.Minute + time.Duration(i)*4*time.Second).Format("2006-01-02 15:04:05")
			fmt.Fprintf(&b, " [%s] iteration %8d/    100 | elapsed time per iteration (ms): 4000.0 | lm loss: 2.5E+00 |\n", at, i)
		}
		return b.String()
	}
	const saved, trains = "successfully saved checkpoint from iteration      30 to /ckpt\n", "script: pretrain_gpt.py"
	for name, c := range map[string]struct {
		out, err, spec string
		job            func(*slurm.Job)
		want           *metrics.Goodput
	}{
		"completed":                         {out: trained(60), want: &metrics.Goodput{Startup: 600, Productive: 300}},
		"failed, nothing saved":             {out: trained(60), job: func(j *slurm.Job) { j.State = slurm.Failed }, want: &metrics.Goodput{Startup: 600, Lost: 300}},
		"failed, saved as one log tells":    {out: trained(60) + saved, job: func(j *slurm.Job) { j.State = slurm.Failed }, want: &metrics.Goodput{Startup: 600, Productive: 120, Lost: 180}},
		"failed, saved as the other tells":  {out: trained(60), err: saved, job: func(j *slurm.Job) { j.State = slurm.Failed }, want: &metrics.Goodput{Startup: 600, Productive: 120, Lost: 180}},
		"the log with more iterations says": {out: trained(60), err: trained(10), want: &metrics.Goodput{Startup: 600, Productive: 300}},
		"whichever of them it is":           {out: trained(10), err: trained(60), want: &metrics.Goodput{Startup: 600, Productive: 300}},
		"it was to train and never did":     {out: "loading\n", spec: trains, want: &metrics.Goodput{Startup: 900}},
		"another program's":                 {out: "loading\n", spec: "launcher: custom\nlauncher_argv: [bash]"},
		"nobody's specification":            {out: "loading\n"},
		"it runs still":                     {out: trained(60), job: func(j *slurm.Job) { j.EndedAt = nil }},
		"it never ran":                      {out: "loading\n", spec: trains, job: func(j *slurm.Job) { j.StartedAt = nil }},
		"it held no GPU":                    {out: trained(60), job: func(j *slurm.Job) { j.GPUs = 0 }},
		"it left no log":                    {spec: trains},
	} {
		dir, end := t.TempDir(), start.Add(15*time.Minute)
		j := slurm.Job{
			ID: "79", Cluster: "test", Name: "gpt", User: "alice", State: slurm.Completed, GPUs: 8, StartedAt: &start, EndedAt: &end,
			WorkDir: dir, Stdout: filepath.Join(dir, "gpt-79.out"), Stderr: filepath.Join(dir, "gpt-79.err"),
		}
		for file, text := range map[string]string{j.Stdout: c.out, j.Stderr: c.err} {
			if text != "" {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			}
		}
		if c.job != nil {
			c.job(&j)
		}
		site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"79": j}}
		call := opstest.NewCall(t, site)
		if c.spec != "" {
			remember(t, call, "79", "name: gpt\nnodes: 1\ngpus_per_node: 8\nworktree: /lustre/m\n"+c.spec+"\n")
		}
		got, ok := joblogs.Goodput(t.Context(), call, site, j)
		require.Equal(t, c.want != nil, ok, name)
		if ok {
			require.Equal(t, *c.want, got, name)
		}
	}
}
