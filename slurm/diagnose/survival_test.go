package diagnose_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// A job has two logs of unknown nodes. Errors of environment modules in one explain nothing once the
// other shows that the program ran.
func TestTheOtherFileShowsThatAProgramRan(t *testing.T) {
	const modules = "Lmod has detected the following error: The following module(s) are unknown:\n\"cuda/13.9\"\n"
	const absent = "python: can't open file '/w/test.py': [Errno 2] No such file or directory\n"
	const settings = "/home/a/.bashrc: line 12: /opt/tools/setup: No such file or directory\n"
	const function = "environment: line 5: __conda_exe: command not found\n"
	const folder = "/var/spool/slurm_script: line 19: cd: runs: No such file or directory\n"
	const blank = "/var/spool/slurm_script: line 9: \u00a0: command not found\n"
	trained := diagnosetest.Rounds(30, "Epoch {n}: Train Loss 0.1\n")
	for name, c := range map[string]struct{ err, out, class string }{
		"it came to its end": {modules, trained + "GPU Epilog Script\n", outcome.Success},
		"it stopped":         {modules, trained, outcome.UnknownExit},
		"nothing ran":        {modules, "This is a GPU node.\n", outcome.EnvLaunch},
		"its script ends":    {modules, "Starting on gpu1\nJob finished at Sun Nov 22 16:07:34 UTC 2026\n", outcome.EnvLaunch},

		"another program is not there":         {"fetching the set: 100%\n" + absent, trained + "GPU Epilog Script\n", outcome.EnvLaunch},
		"one was not there, and others ran on": {absent + "fetching the set: 100%\n", trained + "GPU Epilog Script\n", outcome.Success},
		"a shell's settings, and nothing else": {settings, "", outcome.EnvLaunch},
		"a shell's settings, and blank lines":  {settings, "\n \n", outcome.EnvLaunch},
		"a shell's settings, a program after":  {settings + "loading the set\n", "", outcome.UnknownExit},
		"a shell's settings, a program beside": {settings, "loading the set\n", outcome.UnknownExit},
		"a function of the environment":        {function, "loading the set\n", outcome.UnknownExit},
		"a folder is not there, and a program": {folder + "device: cuda\nloading the set\nmeasuring it\nCalibration done.\n", "", outcome.Success},
		"a folder is not there, and no more":   {folder + "device: cuda\nJob finished.\n", "", outcome.EnvLaunch},
		"a line of a script holds one blank":   {blank, "Starting on gpu1\nJob finished at Sun Nov 22 16:07:34 UTC 2026\n", outcome.Success},
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

// Labelled ranks, one of which reported an exception: what shows whether it died of that.
func TestARankDiesOnce(t *testing.T) {
	ofRank := func(rank, text string) string {
		return rank + ": " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+rank+": ") + "\n"
	}
	const lost = "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711"
	const left = "srun: error: gpu8: task 3: Exited with exit code 1\n"
	step := ofRank("1", " [2026-06-11 10:00:00.5] iteration 4/ 20 | elapsed time per iteration (ms): 120.1 | lm loss: 6.2E+00 |")
	raised := ofRank("3", diagnosetest.Raised("KeyError: 'tokens'"))
	caught := ofRank("3", diagnosetest.RaisedIn("train_step", "KeyError: 'tokens'"))
	begun := strings.Repeat(step, 2) + ofRank("0", "loaded") + ofRank("2", "loaded")
	for name, c := range map[string]struct{ log, class string }{
		"it lost a killed one later":               {begun + raised + step + ofRank("3", diagnosetest.Raised(lost)) + "srun: error: gpu7: task 0: Killed\n" + left, outcome.HostOOM},
		"it lost one that ended itself":            {begun + raised + ofRank("3", diagnosetest.Raised(lost)) + "srun: error: gpu7: task 0: Aborted\n" + left, outcome.UserException},
		"it wrote no more, and others ran on":      {begun + raised + strings.Repeat(step, 6) + left + "srun: error: gpu7: tasks 0-2: Terminated\n", outcome.UserException},
		"what it wrote before came late":           {begun + raised + strings.Repeat(step, 6) + ofRank("3", "skipped") + left, outcome.UserException},
		"it was caught, and wrote on":              {begun + caught + strings.Repeat(step, 6) + ofRank("3", "skipped") + left, outcome.UnknownExit},
		"the script's srun was killed after it":    {begun + "ERROR:trainer:an error was caught in step 4\n" + diagnosetest.Raised("KeyError: 'tokens'") + "run.sh: line 9:  4711 Killed                  srun python train.py\n", outcome.UserException},
		"it wrote no more, and another one failed": {begun + raised + strings.Repeat(step, 6) + "srun: error: gpu7: task 0: Killed\n", outcome.HostOOM},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}

// Tasks each start a training of their own on one node: the dead ones' failure is the cause although
// another one trains on.
func TestTheOtherTasksGoOn(t *testing.T) {
	const died = "srun: error: gpu7: tasks 0-2: Exited with exit code 1\n"
	busy := diagnosetest.Raised("RuntimeError: The server socket has failed to listen on any local network address. port: 29500, code: -98, name: EADDRINUSE")
	steps := diagnosetest.Rounds(9, "{'loss': 2.0{n}, 'learning_rate': 1e-5, 'epoch': 0.{n}}\n")
	for name, c := range map[string]struct{ log, class string }{
		"srun told of the dead first":                       {busy + died + steps, outcome.PortInUse},
		"they died after the training":                      {steps + busy + died, outcome.PortInUse},
		"the training went on, and something else ended it": {busy + steps + died, outcome.UnknownExit},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}

// A library did not find something: what its program did afterwards shows whether it needed that.
func TestAProgramMayDoWithout(t *testing.T) {
	const nvml = "Failed to initialize NVML: N/A\n"
	work := strings.Repeat("Predicting a window\nAppending the results\n", 15)
	for name, c := range map[string]struct{ log, class string }{
		"it came to its end":                        {nvml + work + "Done\n", outcome.Success},
		"it did just enough":                        {nvml + strings.Repeat("Predicting a window\n", 23) + "Done\n", outcome.Success},
		"it did a little less":                      {nvml + strings.Repeat("Predicting a window\n", 22) + "Done\n", outcome.CUDADriver},
		"it stopped at once":                        {nvml + "Predicting a window\n", outcome.CUDADriver},
		"it went on, and nothing says how it ended": {nvml + work, outcome.CUDADriver},
		"its script says that it is done":           {nvml + "Done\n", outcome.CUDADriver},
		"it says that it failed":                    {nvml + work + "Done, the last step failed\n", outcome.CUDADriver},
		"another process died":                      {nvml + work + "srun: error: gpu7: task 3: Exited with exit code 1\nDone\n", outcome.CUDADriver},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}

// What fails behind the end of the work is of another part of the job, and is the cause: its words need no exception.
func TestAPartThatFailsBehindAGoodEnd(t *testing.T) {
	const done = "Reading a shard\nTraining finished.\n"
	for line, class := range map[string]string{
		"CUDA out of memory. Tried to allocate 2.00 GiB\n":                                                    outcome.CUDAOOM,
		"CUDA error at eval.cu:88 code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&p, n)\"\n":                  outcome.CUDAOOM,
		"CUDA failure eval.cu:88: 'no CUDA-capable device is detected'\n":                                     outcome.CUDADriver,
		"Cuda failure eval.cu:88 'an illegal memory access was encountered'\nJob ended at 10:11:12\n":         outcome.CUDAIllegalAccess,
		"Dataset not found at /data/test, aborting\n":                                                         outcome.DatasetMissing,
		"10:11:12 CRITICAL train: Failed to save the model: [Errno 28] No space left on device: '/w/a.bin'\n": outcome.DiskFull,
		"terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: out of memory\n": outcome.CUDAOOM,
	} {
		require.Equal(t, class, diagnosetest.Old(t, done+line).Class, "%s", line)
		require.Equal(t, class, diagnosetest.Old(t, "Reading a shard\n训练完成\n"+line).Class, "%s", line)
	}
}

// Words of an end may be about one round of a loop or about the whole run.
func TestTheEndOfARoundIsNoEnd(t *testing.T) {
	for line, class := range map[string]string{
		"End of training epoch 5":                            outcome.UnknownExit,
		"End of the training data reached, reading it again": outcome.UnknownExit,
		"End of simulation step 4":                           outcome.UnknownExit,
		"Testing done for epoch 3":                           outcome.UnknownExit,
		"Testing finished: epoch 3":                          outcome.UnknownExit,
		"End of training":                                    outcome.Success,
		"End of the simulation!":                             outcome.Success,
		"Training finished at step 1000":                     outcome.Success,
		"Testing done":                                       outcome.Success,
	} {
		r := diagnosetest.Old(t, "step 1 loss 2.5\n"+line+"\n")
		require.Equal(t, class, r.Class, line)
	}
}

// A script that prints the date first and last has one run, and its failure counts.
func TestADateIsNoOpening(t *testing.T) {
	work := "R0: setting up\n" + diagnosetest.Raised("KeyError: 'labels'") + "srun: error: gpu1: task 0: Exited with exit code 1\n"
	for _, date := range []string{"Sun Nov 22 16:07:34 UTC 2026\n", "Sun 22 Nov 2026 04:07:34 PM UTC\n", "2026-11-22 16:07:34\n", "2026年 11月 22日 星期日 16:07:34 CST\n"} {
		r := diagnosetest.Old(t, date+"Running on gpu1\n"+work+date)
		require.Equal(t, outcome.UserException, r.Class, "%s: %s", date, r.RootLine)
	}
}

// A sentence with the words of one of Megatron's errors is not that error.
func TestASentenceIsNoException(t *testing.T) {
	const prose = "Each child gets 14 and the remainder is 2, as 44 is not a multiple of 3.\n"
	require.Equal(t, outcome.Success, diagnosetest.Old(t, diagnosetest.Rounds(5, "step {n} loss 2.{n}\n")+prose+"Final eval_acc: 0.56\n").Class)
	require.Equal(t, outcome.ParallelConfig, diagnosetest.Old(t, diagnosetest.Raised("AssertionError: 44 is not a multiple of 3")).Class)
}

// A program may report errors of its own through argparse.
func TestArgparsesComplaintIsOneOfTheCall(t *testing.T) {
	r := diagnosetest.Old(t, "usage: train.py [-h] [--config C]\ntrain.py: error: /w/config.json: unknown key 'warmup'\nsrun: error: gpu2: task 1: Exited with exit code 2\n")
	require.Equal(t, outcome.BadArgs, r.Class)
	require.Contains(t, r.RootLine, "unknown key")
}

// srun reports a signal of one task before anything ended the step: somebody outside ended that task,
// and the others lost it.
func TestATaskThatWasToldToEnd(t *testing.T) {
	lost := diagnosetest.Raised("RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.1.1.1]:4567")
	r := diagnosetest.Old(t, lost+lost+"srun: error: gpu2: task 2: Terminated\nsrun: error: gpu1: tasks 0-1: Exited with exit code 1\n")
	require.Equal(t, outcome.UnknownExit, r.Class)
	require.NotNil(t, r.RootRank)
	require.Equal(t, 2, *r.RootRank)
}

// Typer writes into a panel what is wrong with a command line, where Click writes one line.
func TestAPanelSaysWhatIsWrongWithTheCall(t *testing.T) {
	const usage = "Usage: train run [OPTIONS] MODEL\nTry 'train run --help' for help.\n"
	const exit = "srun: error: gpu1: task 0: Exited with exit code 2\n"
	panel := func(said string) string {
		return "╭─ Error ──────╮\n│ " + said + " │\n╰──────────────╯\n"
	}
	for said, class := range map[string]string{
		"Got unexpected extra argument (7B)": outcome.BadArgs, "Invalid value for '--lr': '1e' is not a valid float.": outcome.BadArgs,
		"No such option: --stepz": outcome.BadArgs, "the weather is bad": outcome.UnknownExit,
	} {
		r := diagnosetest.Old(t, usage+panel(said)+exit)
		require.Equal(t, class, r.Class, said)
		if class == outcome.BadArgs {
			require.Contains(t, r.RootLine, said)
		}
	}
}

// A usage text among the last lines explains only the exit code 2, with which argparse exits.
func TestAUsageTextExplainsNoOtherExit(t *testing.T) {
	const usage = "usage: train.py [-h] [--lr LR]\n                [--steps STEPS]\n                [--data DATA]\n"
	for code, class := range map[string]string{"2": outcome.BadArgs, "17": outcome.UnknownExit} {
		r := diagnosetest.Old(t, "srun: error: gpu1: task 0: Exited with exit code "+code+"\n"+usage)
		require.Equal(t, class, r.Class, "%s: %s: %s", code, r.Why, r.RootLine)
	}
}

// Python's resource tracker is a process of its own that cleans up; nothing ends by its exceptions.
func TestTheResourceTrackersExceptionIsNoCause(t *testing.T) {
	steps := diagnosetest.Rounds(30, "Epoch {n}: Train Loss 0.1\n")
	raised := "Traceback (most recent call last):\n  File \"/usr/lib/python3.11/%s\", line 239, in main\n    cache[rtype].remove(name)\nKeyError: '/mp-1'\n"
	for file, class := range map[string]string{
		"multiprocessing/resource_tracker.py": outcome.UnknownExit, "multiprocessing/reducer.py": outcome.UserException,
	} {
		require.Equal(t, class, diagnosetest.Text(t, steps+fmt.Sprintf(raised, file)).Class, file)
	}
}

// torch's launcher reports every exit with another code than 0, in the log that its processes share without files of their own.
func TestWorkAfterTheTraining(t *testing.T) {
	const (
		world  = "using world size: 4, data-parallel size: 4, tensor-model-parallel size: 1\n"
		done   = "[after training is done] datetime: 2026-06-11 10:00:00\n"
		failed = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 700) of binary: /usr/bin/python3\n"
	)
	raised := diagnosetest.Raised("ZeroDivisionError: float division by zero")
	caught := "evaluation failed, training results are kept\n" + strings.Replace(raised, "<module>", "pretrain", 1)
	for name, c := range map[string]struct{ log, class string }{
		"its exception was caught":         {world + done + caught + caught, outcome.Success},
		"it was not":                       {world + done + raised, outcome.UserException},
		"a launcher reports an exit":       {world + done + caught + failed, outcome.UserException},
		"the training was not done":        {world + caught, outcome.UserException},
		"nobody would report on one alone": {done + caught, outcome.UserException},
	} {
		r := diagnosetest.Text(t, c.log)
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.Why)
	}
	const exited = "srun: error: gpu1: task 1: Exited with exit code 1\n"
	for name, c := range map[string]struct {
		job, jobsText, raised, class string
	}{
		"ranks' files, and the job's":        {"slurm-7.out", "job 7 on gpu1\n", caught, outcome.Success},
		"ranks' files, and srun tells":       {"slurm-7.out", exited, caught, outcome.UserException},
		"ranks' files, and it left a rank's": {"slurm-7.out", "job 7 on gpu1\n", raised, outcome.UserException},
		"ranks' files alone":                 {"notes.log", "job 7 on gpu1\n", caught, outcome.UserException},
	} {
		r := ofFolder(t, map[string]string{"logs/rank_0.log": world + done + c.raised, "logs/rank_1.log": c.raised, c.job: c.jobsText})
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.Why)
	}
	r := diagnosetest.With(t, world+done+caught, diagnose.Context{JobState: "FAILED"})
	require.Equal(t, outcome.UserException, r.Class, "Slurm says that it failed")
}
