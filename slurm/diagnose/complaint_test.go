package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestAProgramLoggedWhyItLeaves has programs that log an error and leave with a code of
// their own: that line is the evidence, and not the launcher's.
func TestAProgramLoggedWhyItLeaves(t *testing.T) {
	const complaint = "2026-06-01 10:00:01,200 - trainer - ERROR - the tokenizer has 4 special tokens, the model expects 6\n"
	const left = "srun: error: gpu7: task 0: Exited with exit code 1\n"
	for name, c := range map[string]struct{ log, line string }{
		"it says nothing more":           {complaint + left, "the tokenizer has 4"},
		"another process was the cause":  {strings.ReplaceAll(complaint, "the model expects 6", "and rank 3 is unavailable") + left, "the tokenizer has 4"},
		"it says how it could be mended": {complaint + "    give --special-tokens 6\n" + left, "the tokenizer has 4"},
		"a profiler started it":          {complaint + "    in the trainer\n\nThe program exited with code 1\nSaving the report\n", "the tokenizer has 4"},
		"it goes on":                     {complaint + "2026-06-01 10:00:02,300 - trainer - INFO - reading on\n" + left, "exit code 1"},
		"a signal ended it":              {complaint + "srun: error: gpu7: task 0: Terminated\n", "Terminated"},
		"it comes after":                 {left + complaint, "exit code 1"},
		"another level":                  {"2026-06-01 10:00:01,200 - trainer - WARNING - the ERROR rate is high\n" + left, "exit code 1"},
		"torchrun started it": {
			complaint + "E0610 08:59:06.36 17 api.py:826] failed (exitcode: 1) local_rank: 0 (pid: 9) of binary: /v/python\n" +
				"Traceback (most recent call last):\n  File \"/v/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n" +
				"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
			"the tokenizer has 4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, "[INFO] reading the settings of the run\n"+c.log)
			class := outcome.UnknownExit
			if strings.Contains(c.line, "tokenizer") && !strings.Contains(c.log, "unavailable") {
				class = outcome.UserException
			}
			require.Equal(t, class, r.Class)
			require.Contains(t, r.RootLine, c.line)
		})
	}
}

// An error that a program logged as its last statement, in Python's own words, is an exception that it caught.
func TestAnExceptionThatOnlyItsWordsTell(t *testing.T) {
	const level = "2026-06-01 10:00:01,200 - trainer - ERROR - cannot run the designer: "
	for words, class := range map[string]string{
		"name 'nseqs' is not defined":                                              outcome.UserException,
		"'NoneType' object has no attribute 'shape'":                               outcome.UserException,
		"'Config' object is not subscriptable":                                     outcome.UserException,
		"cannot access local variable 'x' where it is not associated with a value": outcome.UserException,
		"list index out of range":                                                  outcome.UserException,
		"f() missing 1 required positional argument: 'y'":                          outcome.UserException,
		"f() takes 1 positional argument but 2 were given":                         outcome.UserException,
		"unsupported operand type(s) for +: 'int' and 'str'":                       outcome.UserException,
		"could not convert string to float: 'a'":                                   outcome.UserException,
		"too many values to unpack (expected 2)":                                   outcome.UserException,
		"the designer is not defined":                                              outcome.UnknownExit,
	} {
		r := diagnosetest.Old(t, "[INFO] reading the settings\n"+level+words+"\n")
		require.Equal(t, class, r.Class, words)
		require.Contains(t, r.RootLine, words)
		r = diagnosetest.Old(t, "[INFO] reading the settings\n"+level+words+"\nsrun: error: gpu7: task 0: Exited with exit code 1\n")
		require.Equal(t, outcome.UserException, r.Class, words)
		require.Contains(t, r.RootLine, words)
	}
	r := diagnosetest.Old(t, "[INFO] reading the settings\n[INFO] plotting without it: name 'nseqs' is not defined\n")
	require.Equal(t, outcome.UnknownExit, r.Class, "a line that is no error")
	const skipped = "ERROR: skipped shard %d: list index out of range\n"
	r = diagnosetest.Old(t, fmt.Sprintf(skipped, 1)+"[INFO] shard 2 is read\n"+fmt.Sprintf(skipped, 3))
	require.Equal(t, outcome.UnknownExit, r.Class, "the program went on after the first such error")
}

// A site's watcher says that the job exceeded its memory; a site's rule says what would happen if it did.
func TestASitesWatcherOfMemory(t *testing.T) {
	for line, class := range map[string]string{
		"ERROR:watcher:This job has exceeded its memory quota and will be terminated": outcome.HostOOM,
		"If a task exceeds its memory limit it is killed.":                            outcome.UserException,
	} {
		require.Equal(t, class, diagnosetest.Old(t, "Loading\n"+line+"\nEpoch 1\n"+diagnosetest.Raised("KeyError: 'a'")).Class, line)
	}
}
