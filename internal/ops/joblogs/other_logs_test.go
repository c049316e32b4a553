package joblogs_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A log with the job's number whose lines show that it is another job's decides nothing, and is
// named with the reason. What only resembles such lines changes nothing.
func TestALogWhoseLinesAreAnotherJobsIsNamed(t *testing.T) {
	start := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	end := start.Add(time.Hour)
	const quiet = "it begins\n"
	for name, c := range map[string]struct {
		file, text string
		written    time.Duration // since the end
		en, zh     string        // empty: it is the job's
	}{
		"another job's environment":     {"exp-77-of-80.log", "SLURM_JOB_ID=34\n" + outOfMemory, 0, "its lines are those of job 34", "内容属于作业 34"},
		"as a map":                      {"exp-77-of-80.log", "{'SLURM_JOB_ID': '34'}\n" + outOfMemory, 0, "its lines are those of job 34", "内容属于作业 34"},
		"another job was cancelled":     {"exp-77.log", outOfMemory + "slurmstepd: error: *** JOB 34 ON n1 CANCELLED AT 2026-06-11T10:30:00 ***\n", 0, "its lines are those of job 34", "内容属于作业 34"},
		"it was started elsewhere":      {"exp-77.log", "start: attempt=0 node=0 host=n7 ranks=0-7\n" + outOfMemory, 0, "it was started on n7, not on the job's nodes", "在 n7 上启动，不是该作业的节点"},
		"a later job of the number":     {"exp-77.log", "[2027-01-01 10:00:00] begins\n" + outOfMemory, 0, "its lines begin 2027-01-01 10:00 UTC, after the job ended", "内容始于 2027-01-01 10:00 UTC，晚于作业结束"},
		"a later job with its --output": {"gpt-77.out", "SLURM_JOB_ID=34\n" + outOfMemory, time.Hour, "its lines are those of job 34", "内容属于作业 34"},

		"its own environment":            {"exp-77.log", "SLURM_JOB_ID=77\nSLURM_JOB_ID=34\n" + outOfMemory, 0, "", ""},
		"it submits another":             {"exp-77.log", "Submitted batch job 34\n" + outOfMemory, 0, "", ""},
		"its nodes by their whole names": {"exp-77.log", "start: attempt=0 node=1 host=n2.example ranks=8-15\n" + outOfMemory, 0, "", ""},
		"another zone's clock":           {"exp-77.log", "[2026-06-11 23:00:00] begins\n" + outOfMemory, 0, "", ""},
		"Slurm's own file, in time":      {"gpt-77.out", "SLURM_JOB_ID=34\n" + outOfMemory, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"gpt-77.out": quiet}
			files[c.file] = c.text
			call, s, j := failedJob(t, files)
			j.StartedAt, j.EndedAt = &start, &end
			s.Put(j)
			for file := range files {
				at := end
				if file == c.file {
					at = end.Add(c.written)
				}
				require.NoError(t, os.Chtimes(filepath.Join(j.WorkDir, file), at, at))
			}
			out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
			require.NoError(t, err)
			d := out.(joblogs.DiagnoseOut)
			require.Equal(t, c.en == "", d.Class == outcome.CUDAOOM, d.Class)
			if c.en == "" {
				require.Empty(t, d.OtherLogs)
				return
			}
			file := filepath.Join(j.WorkDir, c.file)
			require.Contains(t, opstest.Text(t, out, lang.EN), file+": "+c.en)
			require.Contains(t, opstest.Text(t, out, lang.ZH), file+"："+c.zh)
		})
	}
}
