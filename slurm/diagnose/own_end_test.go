package diagnose_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A log that was written a moment ago, of a job of which nothing else is known: what its last line says outweighs its age.
func TestWhatAFreshLogSaysOfItsEnd(t *testing.T) {
	steps := "Job starts\nLoading the words\n" + diagnosetest.Rounds(6, "epoch 1 step {n} loss 2.{n}\n")
	for last, class := range map[string]string{
		"epoch 1 step 7 loss 2.7":                      outcome.Running,
		"ERROR: could not send the metrics, will wait": outcome.Running,
		"Job finished with status 3":                   outcome.UnknownExit,
		"+ exit 1":                                     outcome.UnknownExit,
		"+ exit 0":                                     outcome.Running,
		"EXIT_CODE=1":                                  outcome.UnknownExit,
		"FATAL: cannot open the config":                outcome.UnknownExit,
		"Aborted!":                                     outcome.UnknownExit,
		"AssertionError":                               outcome.UserException,
		"训练失败":                                         outcome.UnknownExit,
		"Received SIGTERM, cleaning up...":             outcome.SlurmCancelled,
		"Caught signal 15, exiting":                    outcome.SlurmCancelled,
		"ERROR: training failed":                       outcome.UnknownExit,
		"Experiment 3 failed, skipping":                outcome.Running,
		"process 12 failed to respond, retrying":       outcome.Running,
		"evaluation failed for the task mmlu":          outcome.Running,
		"a fatal error was injected into worker 3":     outcome.Running,
		"rc=1\nrc=1\nrc=1":                             outcome.Running,
		"FATAL_loss: 0.23":                             outcome.Success,
		"FATAL loss 0.23":                              outcome.Running,
		"FATAL     0.91      0.89      0.90       231": outcome.Running,
		"CRITICAL: GPU 3 is hot (88 C)":                outcome.Running,
		"训练失败次数: 0":                                    outcome.Success,
		"Trial 12 completed with state FAILED":         outcome.Running,
		"Request 123 finished with status error":       outcome.Running,
		"batch finished with status error":             outcome.Running,
		"benchmark gemm_4096 failed":                   outcome.Running,
		"任务失败：第 3 个样本":                                 outcome.Running,
		"训练失败，退出码 1":                                   outcome.UnknownExit,
		"Pipeline aborted.":                            outcome.UnknownExit,
		"FATAL: cannot read shard 17":                  outcome.UnknownExit,
		"FATAL: no fused kernel, using fallback path":  outcome.Running,
		"Job finished with status 1, copying results":  outcome.UnknownExit,
		"FATAL: cannot read the config, exiting":       outcome.UnknownExit,
		"Evaluation run failed":                        outcome.Running,
		"ERROR: evaluation failed":                     outcome.Running,
		"Benchmark cancelled":                          outcome.Running,
		"Training run failed":                          outcome.UnknownExit,
	} {
		file := filepath.Join(t.TempDir(), "slurm-7.out")
		require.NoError(t, os.WriteFile(file, []byte(steps+last+"\n"), 0o644))
		require.NoError(t, os.Chtimes(file, time.Time{}, time.Now().Add(-3*time.Minute)))
		r, err := diagnose.Path(context.Background(), file, diagnose.Context{})
		require.NoError(t, err)
		require.Equal(t, class, r.Class, "%s: %s", last, r.Why)
	}
}

// The same, hours after its last line: the job does not hang if that line tells of a failure and of nothing that comes next.
func TestASilentJobThatToldOfAFailureHasEnded(t *testing.T) {
	for last, class := range map[string]string{
		"make: *** [train] Error 1":           outcome.UnknownExit,
		"torchrun failed":                     outcome.UnknownExit,
		"script failed with exit code 3":      outcome.UnknownExit,
		"Evaluation run failed":               outcome.UnknownExit,
		"evaluation failed, trying the next":  outcome.Hang,
		"could not read shard 3, skipping it": outcome.Hang,
		"saving the checkpoint":               outcome.Hang,
	} {
		age := int64(3 * 3600)
		r := diagnosetest.With(t, stepsAt(6000, 0, 6, 12, 18)+last+"\n", diagnose.Context{SecondsSinceLastWrite: &age})
		require.Equal(t, class, r.Class, last)
	}
}

// A process was told to end, and says so last. It had not done its work, whatever it saved before.
func TestAProcessThatWasToldToEndHasNotSucceeded(t *testing.T) {
	const told = "Received SIGTERM, cleaning up...\n"
	done := "Loading model\n" + diagnosetest.Rounds(20, "sample {n} is read\n")
	for log, class := range map[string]string{
		"Loading model\nSaved the config\n" + told:                                                            outcome.SlurmCancelled,
		"Loading model\nSaved checkpoint to out/step_100\nCaught signal 15, shutting down\n":                  outcome.SlurmCancelled,
		"Loading model\nTraining completed successfully\n" + told:                                             outcome.Success,
		"Loading model\n[after training is done] datetime: 2026-03-04 10:00:00\n" + told:                      outcome.Success,
		diagnosetest.Raised("KeyError: 'tokens'") + told:                                                      outcome.UserException,
		done + "Results saved to out/results.json\n" + told:                                                   outcome.Success,
		done + "wrote metrics to out/metrics.json\n" + told:                                                   outcome.Success,
		done + "Saved the model to out\nserver received SIGTERM, exiting\n":                                   outcome.Success,
		"Loading model\nserver received SIGTERM, exiting\n":                                                   outcome.SlurmCancelled,
		done + "Saved the model to out\n+ kill 4711\n" + told:                                                 outcome.Success,
		"Loading model\n" + strings.Repeat("the loss is 0.3\nwrote metrics to out/metrics.json\n", 20) + told: outcome.SlurmCancelled,
		done + "+ kill -0 4711\n" + told:                                                                      outcome.SlurmCancelled,
		"Loading model\nCaught SIGTERM, saving partial results\npartial results saved\n":                      outcome.SlurmCancelled,
		"Loading model\npartial results saved\n" + told:                                                       outcome.SlurmCancelled,
		done + "Terminated\n": outcome.SlurmCancelled,
		done + "/var/spool/job7/slurm_script: line 9: 4711 Terminated              python train.py\n": outcome.UnknownExit, // perhaps by the script itself
		"Loading model\nTraining completed successfully\nTerminated\n":                                outcome.Success,
		"Loading model\nReceived 3 signals\nSaved the config\nTraining completed successfully\n":      outcome.Success,
	} {
		r := diagnosetest.With(t, log, diagnose.Context{JobState: "ENDED"})
		require.Equal(t, class, r.Class, log)
	}
	r := diagnosetest.With(t, "Loading model\n"+told, diagnose.Context{JobState: "RUNNING"})
	require.Equal(t, outcome.Running, r.Class, "Slurm knows better")
	for of, class := range map[string]string{
		diagnosetest.Rounds(20, "sample {n} is read\n") + "The scores were written\n": outcome.Success,
		diagnosetest.Rounds(20, "sample {n} is read\n") + "A word of it\n":            outcome.SlurmCancelled,
	} {
		r := ofFolder(t, map[string]string{"server.log": "Loading model\nA word\n" + told, "slurm-7.out": of})
		require.Equal(t, class, r.Class, "a server beside %s", of)
	}
}

// Slurm ends a step because one of its tasks failed: nobody cancelled it.
func TestAStepThatATaskEndedIsNotCancelled(t *testing.T) {
	r := diagnosetest.With(t, "slurmstepd: error: *** STEP 7.0 ON n3 CANCELLED AT 2026-04-29T23:36:37 DUE TO TASK FAILURE ***\n"+
		"srun: error: n3: tasks 0-57,59-63: Terminated\n", diagnose.Context{})
	require.Equal(t, outcome.UnknownExit, r.Class)
}

// A signal ends a launcher, which leaves with 1; no line says who sent it. Where Slurm tells, that counts.
func TestWhoEndedALauncherIsNotInvented(t *testing.T) {
	told := "epoch 1 step 7 loss 2.7\n" + strings.ReplaceAll("W0302 10:12:11.201000 17 torch/distributed/elastic/agent/server/api.py:704] ", "17", "77") +
		"Received Signals.SIGTERM death signal, shutting down workers\n" +
		diagnosetest.Raised("torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 15")
	const left = "srun: error: n1: task 0: Exited with exit code 1\n"
	for log, c := range map[string]struct{ class, says string }{
		told:        {outcome.SlurmCancelled, "no line says who sent it"},
		told + left: {outcome.SlurmCancelled, "no line says who sent it"},
		left + told: {outcome.UnknownExit, ""},
		told + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-02T10:12:11 DUE TO PREEMPTION ***\n" + left: {outcome.SlurmPreempted, "reempted"},
		"slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-02T10:12:11 DUE TO TIME LIMIT ***\n" + told + left: {outcome.SlurmTimeLimit, "ime limit"},
	} {
		r := diagnosetest.Old(t, log)
		require.Equal(t, c.class, r.Class, log)
		require.Contains(t, r.Summary, c.says, log)
	}
}

// Paddle's launcher tells which process was aborted. Behind it stands what that process had written before.
func TestAnAbortedTrainerIsNoSuccess(t *testing.T) {
	const aborted = "ERROR 2026-03-02 10:12:11,804 launch_utils.py:545] ABORT!!! Out of all 4 trainers, the trainer process with rank=[0] was aborted. Please check its log."
	log := "launch train in GPU mode\n" + aborted + "\nINFO 2026-03-02 10:12:14,805 launch_utils.py:307] terminate all the procs\n"
	for _, flushed := range []string{"", "platform: Linux\nload model success\n", "load model success\nLoaded 8498 weights with gamma=1.25\n"} {
		r := diagnosetest.Old(t, log+flushed)
		require.Equal(t, outcome.UnknownExit, r.Class, flushed)
		require.Equal(t, aborted, r.RootLine, flushed)
	}
}

// A program that could not import a module says so and goes on. It is the reason if nothing else is.
func TestAModuleThatAProgramDidWithout(t *testing.T) {
	log := "model_imports.py: Could not import asr.ctc: No module named 'asr'\n" + diagnosetest.Rounds(9, "The layer {n} is built\n")
	for end, class := range map[string]string{
		diagnosetest.Raised("ValueError: no such axis"):      outcome.UserException,
		"srun: error: n1: task 0: Exited with exit code 1\n": outcome.ImportError,
	} {
		require.Equal(t, class, diagnosetest.Old(t, log+end).Class, end)
	}
}

// What a script's trap writes comes at any end of the script.
func TestATrapsWordsAreNoEnd(t *testing.T) {
	steps := "+ trap 'cleanup 7' EXIT\n+ python train.py\n" + diagnosetest.Rounds(8, "epoch 1 step {n} loss 2.{n}\n")
	const trap = "+ cleanup 7\n+ rm -rf /tmp/7\n+ echo 'job done'\njob done\n"
	for log, class := range map[string]string{
		steps + trap:                            outcome.UnknownExit,
		steps + "Terminated\n" + trap:           outcome.SlurmCancelled,
		steps + "Training complete.\n" + trap:   outcome.Success,
		steps + "+ exit 0\n" + trap:             outcome.Success,
		steps + "+ echo 'job done'\njob done\n": outcome.Success,
		strings.Replace(steps, "+ python", "+ cleanup 7\n+ python", 1) + steps[len("+ trap 'cleanup 7' EXIT\n"):] + "Training complete.\n":                   outcome.Success,
		"+ trap 'echo' EXIT\n+ echo starting\nstarting\n" + diagnosetest.Rounds(8, "epoch 1 step {n} loss 2.{n}\n") + "Training complete.\n":                 outcome.Success,
		"++ trap cleanup EXIT\n++ cleanup\n+ DIR=/x\n" + strings.Repeat(diagnosetest.Rounds(8, "epoch 1 step {n} loss 2.{n}\n"), 2) + "Training complete.\n": outcome.Success,
	} {
		require.Equal(t, class, diagnosetest.Old(t, log).Class, log)
	}
}

// The tests that a job ran failed, whatever its script wrote after them.
func TestAJobsTestsThatFailed(t *testing.T) {
	steps := diagnosetest.Rounds(8, "epoch 1 step {n} loss 2.{n}\n")
	for log, class := range map[string]string{
		steps + "==== 2 failed, 14 passed in 3.21s ====\n":           outcome.UserException,
		steps + "2 failed, 14 passed, 1 warning in 3.21s\nDone.\n":   outcome.UserException,
		steps + "==== 2 failed in 62.10s (0:01:02) ====\njob done\n": outcome.UserException,
		steps + "FAILED (failures=2)\nElapsed time: 12 s\n":          outcome.UserException,
		steps + "==== 14 passed in 3.21s ====\n":                     outcome.Success,
		steps + "12 of 500 episodes failed, success rate 97.6%\n":    outcome.Success,
		steps + "3 failed requests in 12.5s\nTraining complete.\n":   outcome.Success,
		steps + "2 failed, 998 ok in 3.1s\nAll done.\n":              outcome.Success,
	} {
		r := diagnosetest.Old(t, log)
		require.Equal(t, class, r.Class, log)
	}
}

// A loop is followed by a line that tells of a failure, which is no result of it.
func TestAFailureBehindALoopIsNoResult(t *testing.T) {
	steps := "Job starts\nLoading the words\n" + diagnosetest.Rounds(8, "epoch 1 step {n} loss 2.{n}\n")
	for last, class := range map[string]string{
		"make: *** [Makefile:12: train] Error 1":                                                                            outcome.UnknownExit,
		"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.":                                          outcome.UnknownExit,
		"slurmstepd: error: *** JOB 7 STEPD TERMINATED ON n1 AT 2026-03-04T10:00:00 DUE TO JOB NOT ENDING WITH SIGNALS ***": outcome.UnknownExit,
		"Job ended at Fri Nov 27 01:08:00 UTC 2026, failed":                                                                 outcome.UnknownExit,
		"END: rc=1 elapsed=3121s":                                                                                           outcome.UnknownExit,
		"Status=FAILED duration=3121s":                                                                                      outcome.UnknownExit,
		"Mar  2 10:19:40 n3 kernel: NVRM: Xid (PCI:0000:3b:00): 43, pid=2222, name=python, Ch 00000008":                     outcome.UnknownExit,
		"[rank: 1] Child process with PID 77 terminated with code 1. Forcefully terminating all other processes":            outcome.UnknownExit,
		"solver status: 2, gap 0.01":                                                                                        outcome.Success,
		"mean absolute error: 0.31":                                                                                         outcome.Success,
		"failed: 0, accuracy: 0.93":                                                                                         outcome.Success,
		"accuracy: 0.93":                                                                                                    outcome.Success,
		"aborted: 3, throughput: 3.1 per s":                                                                                 outcome.Success,
		"12 of 500 episodes failed, success rate 97.6%":                                                                     outcome.Success,
		"orders cancelled: 44, filled: 231":                                                                                 outcome.Success,
		"测试准确率: 0.83, 失败样本: 3":                                                                                              outcome.Success,
		"n1:12:13 [0] NCCL INFO comm 0x1 rank 0 nranks 1 cudaDev 0 busId 7000 - Abort COMPLETE":                             outcome.Success,
	} {
		r := diagnosetest.With(t, steps+last+"\n", diagnose.Context{JobState: "ENDED"})
		require.Equal(t, class, r.Class, last)
	}
}

// A signal ends one launcher, and no srun tells of it, or srun then ends the others by SIGTERM.
func TestASignalEndsOneOfSeveralLaunchers(t *testing.T) {
	told := func(signal string) string {
		return "WARNING:torch.distributed.elastic.agent.server.api:Received " + signal + " death signal, shutting down workers\n"
	}
	lost := diagnosetest.Raised(lostPeer)
	caught := diagnosetest.RaisedIn("misc", "KeyError: 'loss'")
	left := lost + exitedWith("gpu1", 1, 0, 0)
	for name, c := range map[string]struct {
		srun, first, second, later string // later is the first node's too, in the file of the second
		node                       string
	}{
		"the others lose its ranks":             {"", "", told("15"), left, "gpu2"},
		"another rank had caught an exception":  {"", "", of("gpu1: ", caught) + told("15"), left, "gpu2"},
		"two files tell no order":               {"", left, told("15"), "", ""},
		"nor if a terminal closed":              {"", left, told("1"), "", ""},
		"one of them left in silence":           {"", lost + exitedWith("gpu1", 1, 0, 1), told("15"), "", "gpu1"},
		"its ranks complain in another file":    {"", left, lost + told("15"), "", ""},
		"it came after the others":              {"", "", of("gpu1: ", left) + told("15"), "", ""},
		"its ranks lost the others":             {"", "", lost + told("15"), left, ""},
		"both were told":                        {"", lost + told("15"), told("15"), "", ""},
		"srun ends the others":                  {"srun: error: gpu2: task 1: Exited with exit code 1\n", lost + told("15"), told("1"), "", "gpu2"},
		"srun ends it, as another exited first": {"srun: error: gpu1: task 0: Exited with exit code 1\n", lost + told("15"), lost + told("15"), "", ""},
	} {
		second := strings.ReplaceAll(of("gpu2: ", "> setting tensorboard ...\n"+c.second), "gpu2: gpu1: ", "gpu1: ")
		r := ofFolder(t, map[string]string{
			"slurm-7.out": "job 7\n" + c.srun, "a.log": of("gpu1: ", "> setting tensorboard ...\n"+c.first),
			"b.log": second + of("gpu1: ", c.later),
		})
		if c.node == "" {
			require.NotContains(t, r.RootLine, "death signal", name)
			require.Equal(t, outcome.NCCLConnection, r.Class, name)
			continue
		}
		require.Equal(t, outcome.UnknownExit, r.Class, "%s: %s", name, r.RootLine)
		require.Equal(t, c.node, *r.RootNode, name)
		require.Nil(t, r.RootRank, name)
	}
}

// A run whose ranks log or print exceptions of connections that they survive, and that says that it is done.
func TestAConnectionThatWasLostOnTheWayIsNoCause(t *testing.T) {
	lost := diagnosetest.Raised("ConnectionResetError: [Errno 104] Connection reset by peer") + "the metrics server is away\n"
	done := "[default0]:[after training is done] datetime: 2026-03-04 10:00:00 \n"
	iterations := diagnosetest.Rounds(6, "[default1]: iteration {n}/ 6 | lm loss: 2.1\n")
	r := ofFolder(t, map[string]string{
		"7-gpu1.out": of("[default0]:", lost) + of("[default1]:", lost) + done,
		"7-gpu2.out": of("[default0]:", lost) + iterations + of("[default1]:", lost),
	})
	require.Equal(t, outcome.Success, r.Class, r.RootLine)
	r = ofFolder(t, map[string]string{
		"7-gpu1.out": of("[default0]:", lost),
		"7-gpu2.out": iterations + of("[default1]:", lost),
	})
	require.Equal(t, outcome.UserException, r.Class, "nothing says that it is done")
	r = diagnosetest.Text(t, "[after training is done] datetime: 2026-03-04 10:00:00 \n"+diagnosetest.Raised("BrokenPipeError: [Errno 32] Broken pipe"))
	require.Equal(t, outcome.Success, r.Class, "at the end")
}

// An exception without a message, of which the log has the last line only.
func TestAnExceptionsNameAlone(t *testing.T) {
	for last, class := range map[string]string{
		"AssertionError":              outcome.UserException,
		"mypackage.errors.ShardError": outcome.UserException,
		"mypackage.errors.BadShard":   outcome.UnknownExit,
		"ConnectionResetError":        outcome.UnknownExit, // another process is gone
		"Error":                       outcome.UnknownExit,
		"NoErrorsWereFound":           outcome.UnknownExit,
	} {
		r := diagnosetest.Text(t, "Loading the words\nA word\n"+last+"\n")
		require.Equal(t, class, r.Class, last)
		r = diagnosetest.Text(t, "Loading the words\n"+last+"\nA word of two\n")
		require.Equal(t, outcome.UnknownExit, r.Class, "it went on after %s", last)
	}
}
