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
	} {
		file := filepath.Join(t.TempDir(), "slurm-7.out")
		require.NoError(t, os.WriteFile(file, []byte(steps+last+"\n"), 0o644))
		require.NoError(t, os.Chtimes(file, time.Time{}, time.Now().Add(-3*time.Minute)))
		r, err := diagnose.Path(context.Background(), file, diagnose.Context{})
		require.NoError(t, err)
		require.Equal(t, class, r.Class, "%s: %s", last, r.Why)
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
		"Loading model\nReceived 3 signals\nSaved the config\nTraining completed successfully\n":              outcome.Success,
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
