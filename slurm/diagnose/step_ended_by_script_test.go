package diagnose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// A script may end a step of its own, such as a monitor, when the training is done. A failure beside that, or a job that is
// cancelled, remains one.
func TestAStepThatTheScriptEndsAfterTheTraining(t *testing.T) {
	const (
		steps  = " [2026-06-11 10:00:00] iteration 8/ 8 | elapsed time per iteration (ms): 120.1 | lm loss: 6.2E+00 |\n"
		done   = "[after training is done] datetime: 2026-06-11 10:00:01 \n"
		forced = "srun: forcing job termination\nsrun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
		step   = "slurmstepd-gpu1: error: *** STEP 19.0 ON gpu1 CANCELLED AT 2026-06-11T10:00:04 ***\n"
		late   = "slurmstepd-gpu1: error: *** STEP 19.0 ON gpu1 CANCELLED AT 2026-06-11T10:20:04 ***\n"
		killed = "srun: error: gpu1: task 0: Killed\n"
		whole  = "slurmstepd-gpu1: error: *** JOB 19 ON gpu1 CANCELLED AT 2026-06-11T10:00:04 ***\n"
		limit  = "slurmstepd-gpu1: error: *** STEP 19.0 ON gpu1 CANCELLED AT 2026-06-11T10:00:04 DUE TO TIME LIMIT ***\n"
	)
	for name, c := range map[string]struct{ log, class string }{
		"the step":                 {steps + done + forced + step + killed, outcome.Success},
		"the step, before the end": {steps + forced + step + killed, outcome.SlurmCancelled},
		"the step, long after":     {steps + done + forced + late + killed, outcome.SlurmCancelled},
		"the job":                  {steps + done + forced + whole + killed, outcome.SlurmCancelled},
		"Slurm's limit":            {steps + done + forced + limit + killed, outcome.SlurmTimeLimit},
		"a task that failed":       {steps + done + "srun: error: gpu1: task 3: Exited with exit code 3\n" + step + killed, outcome.UnknownExit},
	} {
		r := diagnosetest.Old(t, c.log)
		require.Equal(t, c.class, r.Class, "%s: %s: %s", name, r.Why, r.RootLine)
	}

	// Slurm writes into the file of the script, and the run into one of its own: dates tell which came first.
	for name, c := range map[string]struct{ run, second, script, class string }{
		"the step":             {steps + done, "serving\n", forced + step + killed, outcome.Success},
		"a second run":         {steps + done, strings.Replace(steps, "8/ 8", "3/ 8", 1), forced + step + killed, outcome.SlurmCancelled},
		"the step, long after": {steps + done, "", forced + late + killed, outcome.SlurmCancelled},
		"the step, before":     {steps + strings.Replace(done, "10:00:01", "10:00:09", 1), "", forced + step + killed, outcome.SlurmCancelled},
		"a task that failed":   {steps + done, "", "srun: error: gpu1: task 3: Exited with exit code 3\n" + step + killed, outcome.UnknownExit},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm-19.out"), []byte(c.script), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "train-19-0.err"), []byte(c.run), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "train-19-1.err"), []byte(c.second), 0o644))
		r, err := diagnose.Path(t.Context(), dir, diagnose.Context{})
		require.NoError(t, err)
		require.Equal(t, c.class, r.Class, "%s: %s: %s", name, r.Why, r.RootLine)
	}

	// Slurm says that the script went through, however late the step ended.
	completed := diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"}
	require.Equal(t, outcome.Success, diagnosetest.With(t, steps+done+forced+late+killed, completed).Class)
	require.Equal(t, outcome.SlurmCancelled, diagnosetest.With(t, steps+forced+step+killed, completed).Class)
}
