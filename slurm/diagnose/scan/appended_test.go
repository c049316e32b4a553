package scan_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestTheLastRunOfAFileIsJudged has logs to which several runs were appended, and
// what only looks like that.
func TestTheLastRunOfAFileIsJudged(t *testing.T) {
	begin := "Reading the settings of run 7\nThe seed is set to 17\nThe model has 12 layers\nThe data has 900 rows\nThe schedule is linear\n"
	epochs := func(n int) string { return strings.Repeat("an epoch is over and the next one begins\n", n) }
	torchrun := "Traceback (most recent call last):\n  File \"/v/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n" +
		"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
	const failed = "E0610 08:59:06.36 17 api.py:826] failed (exitcode: 1) local_rank: 0 (pid: 9) of binary: /v/python\n"
	one := diagnosetest.Raised("KeyError: 'a'")
	ranks := strings.Repeat("Setting up the process group\n", 8) + strings.Repeat("Reading the data of the run\n", 8)
	const steps = "step 1 of 9: loss 2.5\nstep 2 of 9: loss 2.4\nstep 3 of 9: loss 2.3\n"
	logged := func(last string) string {
		return "Traceback (most recent call last):\n  File \"/w/utils.py\", line 65, in wrap\n    task(cfg)\n" + last + "\n"
	}
	upTo := func(next string) string { first, _, _ := strings.Cut(begin, next); return first }
	for name, c := range map[string]struct {
		log, class, line string
		runs             int
	}{
		"nohup says that it begins": {
			"nohup: ignoring input\nReading the data of run 1\n" + diagnosetest.Raised("ValueError: the first") + "nohup: ignoring input\nReading the data of run 2\nDone with all\n",
			outcome.Success, "", 2,
		},
		"each run ends in its own traceback": {
			diagnosetest.Raised("ModuleNotFoundError: No module named 'numpy'") + diagnosetest.Raised("ModuleNotFoundError: No module named 'src'") + diagnosetest.Raised("KeyError: 'loss'"),
			outcome.UserException, "KeyError", 3,
		},
		"each run is called wrongly in its own way": {
			"usage: tune.py [-h] [--task {a,b}]\ntune.py: error: argument --task: invalid choice: 'c'\n" +
				"usage: tune.py [-h] [--task {a,b}]\ntune.py: error: argument --half: expected one argument\n",
			outcome.BadArgs, "--half", 2,
		},
		"each of many runs ends in the same words": {
			strings.Repeat("nohup: ignoring input\n"+epochs(9)+"Best validation loss 0.44\n", 5), outcome.Success, "", 5,
		},
		"the same traceback twice": {diagnosetest.Raised("KeyError: 'a'") + diagnosetest.Raised("KeyError: 'a'"), outcome.UserException, "KeyError", 0},
		"a run that Hydra started, of which it shows the program's own part": {
			diagnosetest.Raised("ModuleNotFoundError: No module named 'numpy'") +
				"Error executing job with overrides: []\nTraceback (most recent call last):\n  File \"/w/train.py\", line 30, in run\n    step()\nKeyError: 'loss'\n" +
				"\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
			outcome.UserException, "KeyError", 2,
		},
		"somebody stops the program that ran after": {
			"usage: tune.py [-h] [--task {a,b}]\ntune.py: error: argument --task: invalid choice: 'c'\n" + diagnosetest.Raised("KeyboardInterrupt"),
			outcome.SlurmCancelled, "KeyboardInterrupt", 2,
		},
		"the first two lines come again after a logged exception of a short run": {
			upTo("The data") + "[ERROR] - \n" + logged("ValueError: the first") + "Closing the writer\n" + upTo("The model") + "The model has 24 layers\n" + epochs(6) + "Training finished.\n",
			outcome.Success, "", 2,
		},
		"an extension wraps the Ctrl-C": {diagnosetest.Raised("RuntimeError: KeyboardInterrupt: "), outcome.SlurmCancelled, "KeyboardInterrupt", 0},
		"the notes of an exception come twice": {
			"RuntimeError: CUDA error: unspecified launch failure\n" + strings.Repeat("For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\nAn error may be told late.\n", 2),
			outcome.CUDAIllegalAccess, "unspecified", 0,
		},
		"the first line comes again after an end": {
			begin + epochs(6) + diagnosetest.Raised("ValueError: the first") + begin + epochs(6) + "Training finished.\n",
			outcome.Success, "", 2,
		},
		"a run of a module, and another": {
			begin + epochs(6) + "Traceback (most recent call last):\n  File \"<frozen runpy>\", line 198, in _run_module_as_main\n" +
				"  File \"<frozen runpy>\", line 88, in _run_code\n  File \"/w/train.py\", line 9, in <module>\n    main()\nKeyError: 'a'\n" +
				begin + epochs(6) + "Training finished.\n", outcome.Success, "", 2,
		},
		// A script says at its end what it said first.
		"the first line comes again after an end, and nothing of a run": {
			begin + epochs(3) + diagnosetest.Raised("ValueError: the first") + upTo("The seed") + "Finished at the end\n", outcome.UserException, "the first", 0,
		},
		"a launcher told of a failure, and the first lines come again without a run": {
			begin + steps + one + failed + begin + "It took 17 minutes\nFinished at the end\n", outcome.UserException, "KeyError", 0,
		},
		"a launcher told of a failure behind steps, and much is said at the end": {
			begin + steps + one + failed + upTo("The schedule") + strings.Repeat("Copying a file home\n", 9) + "Finished at the end\n", outcome.UserException, "KeyError", 0,
		},
		"three lines from before the steps are said at the end, the first one not": {
			begin + steps + one + failed + "Copying the logs\n" + strings.TrimPrefix(upTo("The schedule"), upTo("The seed")) + "Finished at the end\n",
			outcome.UserException, "KeyError", 0,
		},
		"two lines from before the steps are said at the end": {
			begin + steps + one + failed + "Copying the logs\nThe model has 12 layers\nThe data has 900 rows\n" + epochs(6) + "Finished at the end\n",
			outcome.UserException, "KeyError", 0,
		},
		"the first lines come again, and no end is seen": {begin + epochs(30) + begin + epochs(6), outcome.UnknownExit, "", 2},
		"an end of an earlier run is none of the last": {
			begin + epochs(6) + "Training finished.\n" + begin + epochs(6), outcome.UnknownExit, "", 2,
		},
		"a launcher's run is appended": {
			begin + diagnosetest.Raised("ValueError: the first") + torchrun + begin + diagnosetest.Raised("KeyError: 'loss'") + torchrun, outcome.UserException, "KeyError", 2,
		},
		// Several ranks wrote into one log: each says what all say.
		"ranks begin over after a launcher told of a failure": {
			ranks + steps + one + failed + ranks + steps + "[after training is done] datetime: 2026-06-11 10:00:00 \n", outcome.Success, "", 0,
		},
		"ranks that are slow begin after another failed": {ranks + one + failed + ranks, outcome.UserException, "KeyError", 0},
		"ranks say amid their steps what they said first": {
			ranks + steps + ranks + steps + one + failed + ranks, outcome.UserException, "KeyError", 0,
		},
		"ranks fail with the same words": {
			ranks + steps + strings.Repeat("[rank 1/4] ERROR failed\n"+diagnosetest.Raised("KeyError: 'b'")+"[rank 3/4] ERROR failed\n"+one, 2),
			outcome.UserException, "KeyError: 'b'", 0,
		},
		"a line that opens each run": {"Begins again\n" + one + "Begins again\n" + one, outcome.UserException, "KeyError", 2},
		"a run that Slurm ended": {
			"Begins again\n" + epochs(6) + "slurmstepd: error: *** JOB 88 ON gpu19 CANCELLED AT 2026-06-02T13:28:49 DUE TO TIME LIMIT ***\nBegins again\n" + epochs(6) + "Training finished.\n",
			outcome.Success, "", 2,
		},
		"a step that Slurm ended": {
			"Begins again\n" + epochs(3) + "slurmstepd: error: *** STEP 88.0 ON gpu19 CANCELLED AT 2026-06-02T13:28:49 ***\nBegins again\n" + epochs(3) + "Training finished.\n",
			outcome.SlurmCancelled, "STEP 88.0", 0,
		},
		"a run that was called wrongly": {
			"Begins again\ntune.py: error: argument --half: expected one argument\nBegins again\n" + epochs(6) + "Training finished.\n", outcome.Success, "", 2,
		},
		"a rank that was called wrongly": {
			"Begins again\n3: tune.py: error: argument --half: expected one argument\nBegins again\n" + epochs(3) + "Training finished.\n", outcome.BadArgs, "--half", 0,
		},
		"a word that opens each run": {"Begins anew\n" + one + "Begins anew\n" + one, outcome.UserException, "KeyError", 0},
		"a count in each run":        {"Epoch 1/3 begins\n" + one + "Epoch 1/3 begins\n" + one, outcome.UserException, "KeyError", 0},
		"a date in each run":         {"Mon Nov 23 04:13:52 UTC 2026\n" + one + "Mon Nov 23 05:13:52 UTC 2026\n" + one, outcome.UserException, "KeyError", 0},
		"ranks begin one after the other": {
			begin + begin + diagnosetest.Raised("ValueError: the first") + begin + diagnosetest.Raised("ValueError: the second") +
				failed,
			outcome.UserException, "the first", 0,
		},
		"a rank begins late, and nobody else says why the job died": {
			begin + epochs(30) + diagnosetest.Raised("ValueError: the first") + begin +
				failed,
			outcome.UserException, "the first", 2,
		},
		"a launcher told of a failure, and its processes begin behind the script's first line": {
			begin + epochs(3) + diagnosetest.Raised("ValueError: the first") + failed + strings.TrimPrefix(upTo("The schedule"), upTo("The seed")) +
				epochs(3) + diagnosetest.Raised("KeyError: 'loss'") + failed,
			outcome.UserException, "KeyError", 2,
		},
		"a launcher told of a failure, and others say two lines again": {
			begin + epochs(3) + diagnosetest.Raised("ValueError: the first") + failed + strings.TrimPrefix(upTo("The data"), upTo("The seed")) +
				epochs(3) + diagnosetest.Raised("KeyError: 'loss'") + failed,
			outcome.UserException, "the first", 0,
		},
		"three of the first lines come again, and no end is seen": {begin + epochs(30) + upTo("The data") + epochs(3), outcome.UnknownExit, "", 0},
		"a launcher says that it starts its processes again": {
			begin + diagnosetest.Raised("ValueError: the first") + "[default] Worker group FAILED. 2/3 attempts left; will restart worker group\n" +
				begin + diagnosetest.Raised("KeyError: 'loss'"),
			outcome.UserException, "KeyError", 0,
		},
		"a loop counts and says the same of each round": {
			" INFO - [1/70] begins to train\n" + epochs(20) + " INFO - [2/70] begins to train\n" + epochs(20) + " INFO - [3/70] begins to train\n",
			outcome.UnknownExit, "", 0,
		},
		"a loop has a heading": {strings.Repeat("Reading the settings of run 7\n"+epochs(9), 9), outcome.UnknownExit, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
			require.Equal(t, c.runs, r.Runs)
			if c.runs > 1 {
				require.Contains(t, view.Markdown(r.View(lang.EN)), "of which the last is judged")
				require.Contains(t, view.Markdown(r.View(lang.ZH)), "以最后一次为准")
			}
		})
	}
}

// TestWhichLinesOpenARun has first lines of a program that fails, is started again and
// fails as before: a sentence shows another run, what programs decorate with does not.
func TestWhichLinesOpenARun(t *testing.T) {
	for first, runs := range map[string]int{
		"All settings of it": 2, "zero shards are left": 2, "9 shards are left": 2, "[trainer] begins": 2, "开始读取设置": 2,
		"@ the first node": 0, "{'lr': 0.1, 'seed': 3}": 0, "> reading the data": 0, "usage: a.py [-h]": 0,
	} {
		require.Equal(t, runs, diagnosetest.Old(t, strings.Repeat(first+"\n"+diagnosetest.Raised("KeyError: 'a'"), 2)).Runs, first)
	}
	inFunction := diagnosetest.RaisedIn("write", "KeyError: 'a'")
	for name, c := range map[string]struct {
		between string
		runs    int
	}{
		"the program's exception":            {diagnosetest.Raised("KeyError: 'a'"), 2},
		"a thread's":                         {inFunction, 0},
		"a rank's":                           {"3: " + strings.ReplaceAll(strings.TrimSpace(diagnosetest.Raised("KeyError: 'a'")), "\n", "\n3: ") + "\n", 0},
		"one that the program goes on after": {"WARNING: could not import fast_thing, falling back to torch\n" + diagnosetest.Raised("ModuleNotFoundError: No module named 'fast_thing'"), 0},
		"its line alone":                     {"KeyError: 'a'\n", 0},
		"its header and its line":            {"Traceback (most recent call last):\nKeyError: 'a'\n", 0},
	} {
		again := "Begins again\nReading the data\nThe model has 12 layers\nThe data has 900 rows\nThe schedule is linear\n"
		require.Equal(t, c.runs, diagnosetest.Old(t, "Begins again\n"+c.between+again).Runs, name)
	}
}
