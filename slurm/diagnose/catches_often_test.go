package diagnose_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// A program catches the same exception again and again, and ends for another reason; or it gives up after the last one.
func TestAnExceptionThatIsCaughtAgainAndAgain(t *testing.T) {
	bad := diagnosetest.Raised("ValueError: no text in sample {n}")
	often := diagnosetest.Rounds(20, "Processing item {n}\n"+bad)
	const exits = "srun: error: gpu7: task 0: Exited with exit code 1\n"
	for name, c := range map[string]struct{ log, class, line string }{
		"nobody says why it ended":       {often + "Processing item 21\n" + exits, outcome.UnknownExit, "exit code 1"},
		"another exception":              {often + "Processing item 21\n" + diagnosetest.Raised("KeyError: 'a'") + exits, outcome.UserException, "KeyError"},
		"somebody cancels it":            {often + "Processing item 21\nslurmstepd: error: *** JOB 7 ON gpu7 CANCELLED AT 2026-06-01T12:00:00 ***\n", outcome.SlurmCancelled, "CANCELLED"},
		"it completes":                   {often + "Processing item 21\nAll items processed\n", outcome.Success, ""},
		"the last one ends it":           {often + exits, outcome.UserException, "sample 20"},
		"it gives up after the last one": {often + "No more of that; leaving now\n" + exits, outcome.UserException, "sample 20"},
		"it tries the same again": {
			diagnosetest.Rounds(20, diagnosetest.Raised("OSError: [Errno 5] Input/output error: '/data/{n}'")+"attempt {n} failed, next one in 5 s\n") + exits,
			outcome.Filesystem, "Errno 5",
		},
		"a script starts it again":         {diagnosetest.Rounds(20, diagnosetest.Raised("KeyError: 'a'")+"restarting in 5 s\n") + exits, outcome.UserException, "KeyError"},
		"few times":                        {diagnosetest.Rounds(4, "Processing item {n}\n"+bad) + "Processing item 5\n" + exits, outcome.UserException, "sample 4"},
		"many processes, one after other":  {"start\n" + diagnosetest.Rounds(16, bad) + "srun: error: gpu7: tasks 0-15: Exited with exit code 1\n", outcome.UserException, "sample"},
		"many processes with a line of it": {"start\n" + diagnosetest.Rounds(16, bad+"Synced run {n}\n") + "srun: error: gpu7: tasks 0-15: Exited with exit code 1\n", outcome.UserException, "sample"},
	} {
		r := diagnosetest.Old(t, "Reading the settings\n"+c.log)
		require.Equal(t, c.class, r.Class, name)
		require.Contains(t, r.RootLine, c.line, name)
	}
}
