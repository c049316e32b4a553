package diagnose_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A service that logs an exception for each bad request goes on.
func TestAServiceLivesOnAfterItsExceptions(t *testing.T) {
	work := strings.Repeat("Serving a request of somebody\n", 40)
	within := "Traceback (most recent call last):\n  File \"/w/serve.py\", line 9, in answer\n    reply()\nKeyError: 'prompt'\n"
	top := diagnosetest.Raised("KeyError: 'prompt'")
	for name, c := range map[string]struct{ log, class string }{
		"within a function":          {strings.Repeat(work+within, 5) + "Serving on\n", outcome.UnknownExit},
		"and the last ended its log": {strings.Repeat(work+within, 5), outcome.UserException},
		"at the top of the program":  {strings.Repeat(work+top, 5) + "The job has used so much\n", outcome.UserException},
		"twice":                      {strings.Repeat(work+within, 2) + "Serving on\n", outcome.UserException},
		"one after the other":        {work + strings.Repeat(within, 5) + "Serving on\n", outcome.UserException},
		"and the job failed":         {strings.Repeat(work+within, 5) + "Serving on\nsrun: error: gpu1: task 0: Exited with exit code 1\n", outcome.UserException},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}

// An exception in standard error did not end the job if standard output shows work after it until the
// time limit.
func TestAnotherProcessOfTheScriptReachedTheTimeLimit(t *testing.T) {
	const limit = "slurmstepd: error: *** JOB 7 ON gpu1 CANCELLED AT 2026-03-01T10:41:00 DUE TO TIME LIMIT ***\n"
	raised := diagnosetest.Raised("KeyError: 'prompt'")
	steps := diagnosetest.Rounds(9, "{'loss': 2.0{n}, 'learning_rate': 1e-5, 'epoch': 0.{n}}\n")
	for name, c := range map[string]struct{ err, out, class string }{
		"it worked on":                {raised + limit, steps, outcome.SlurmTimeLimit},
		"nothing else worked":         {raised + limit, "starting\n", outcome.UserException},
		"it worked on, no time limit": {raised, steps, outcome.UserException},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "train.err"), []byte(c.err), 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "train.out"), []byte(c.out), 0o644))
			r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "ENDED"})
			require.NoError(t, err)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}

// A command's error with a rank's prefix, of any rank, is not the script's.
func TestARanksLineIsNotTheScripts(t *testing.T) {
	work := strings.Repeat("Loading a part of the data\n", 40)
	for who, class := range map[string]string{
		"": outcome.UnknownExit, "0: ": outcome.UnknownExit, "[rank0]: ": outcome.DatasetMissing, "[rank1]: ": outcome.DatasetMissing,
		"[default0]:": outcome.DatasetMissing, "[default1]:": outcome.DatasetMissing,
	} {
		r := diagnosetest.Old(t, who+"cp: cannot stat '/d/train.bin': No such file or directory\n"+work)
		assert.Equal(t, class, r.Class, "%q: %s: %s", who, r.Why, r.RootLine)
	}
}
