package scan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A piece of work that is complete is no end while the work around it is not, or when more of it begins.
func TestTheEndOfAPieceOfWorkIsNotThatOfTheWork(t *testing.T) {
	half := "Epoch 2/2: 100%|####| 62/62 [03:21<00:00, 6.78s/it]\n"
	taken := diagnosetest.Rounds(20, "Iteration {n}00/2000\n Time for 100 steps:52.1\n Total time:{n}2.4\n")
	asked := strings.Repeat("Prompts: 0%|  | 0/1 [00:00<?, ?it/s]\n"+strings.Repeat("Prompts: 100%|##| 1/1 [00:02<00:00, 2.4s/it]\n", 2), 30)
	seeds := diagnosetest.Rounds(8, "Seed {n}\nloss 0.{n}\nacc 0.{n}\nEND\n")
	seven := diagnosetest.Rounds(7, "Epoch {n}/10 - loss: 0.5\n")
	quoted := "last run - [exiting program at iteration 500] datetime: 2026-03-04 10:00:00\n"
	const letters = "abcdefghijklmnopqrstuvwxyz"
	var texts strings.Builder
	for i := range 40 {
		text := letters[i%20:i%20+4] + letters[i/4:i/4+5]
		texts.WriteString("Prompt 1.5 of the step\nA " + text + " in the sea\nNobody " + text + " saw it\nIt " + text + " went\nThere " + text + " it was\n")
	}
	for log, class := range map[string]string{
		"Reading\n" + half: outcome.Success,
		"Reading\n" + strings.Replace(half, "62/62", "31/62", 1):                    outcome.UnknownExit,
		"Reading\nCapturing CUDA graphs: 100%|####| 35/35 [00:05<00:00, 6.5it/s]\n": outcome.UnknownExit,
		"Reading\nTuning: 100%|####| 50/50 [05:00<00:00, 6.0s/it]\n":                outcome.Success,
		asked: outcome.UnknownExit,
		strings.ReplaceAll(seeds, "END", "real 0m3.1s"):                                                           outcome.Success,
		strings.ReplaceAll(seeds, "END", "Job finished at Sat Nov 28 10:00:00 UTC 2026"):                          outcome.Success,
		taken[:len(taken)/2] + " Total time:92.4\n":                                                               outcome.UnknownExit,
		seven + "Early stopping before the end of 10 epochs. Training finished.\n":                                outcome.Success,
		quoted + diagnosetest.Rounds(6, " iteration {n}/ 600 | lm loss: 2.1E+00 |\n"):                             outcome.UnknownExit,
		taken + "Epoch 34 started\n":                                                                              outcome.UnknownExit,
		taken + "Finished in 812 s, the model is saved\n":                                                         outcome.Success,
		diagnosetest.Rounds(4, strings.Repeat("Reading\nFitting\nScoring\n", 5)+"({n} of 4) Finished in 81 s\n"):  outcome.Success,
		"INFO: Starting training from iteration 0\nhooks INFO: Total training time: 0:00:17 (0:00:00 on hooks)\n": outcome.UnknownExit,
		diagnosetest.Rounds(20, "step {n} loss 2.{n}\n") + "Early exit before max steps reached\n":                outcome.UnknownExit,
		texts.String(): outcome.UnknownExit,
	} {
		t.Run("", func(t *testing.T) { require.Equal(t, class, diagnosetest.Old(t, log).Class, log) })
	}
}

// A last line behind all epochs takes the end back if it says that something went wrong, in whatever words.
func TestALastLineBehindAllEpochs(t *testing.T) {
	epochs := diagnosetest.Rounds(10, "Epoch {n}/10 - loss: 0.5 - acc: 0.3\n")
	for line, class := range map[string]string{
		"Closing on error":                                outcome.UnknownExit,
		"Terminating because a worker died":               outcome.UnknownExit,
		"Disconnecting from the master: heartbeat lost":   outcome.UnknownExit,
		"Failed to reach max steps":                       outcome.UnknownExit,
		"Reached max retries":                             outcome.UnknownExit,
		"max memory reached":                              outcome.UnknownExit,
		"训练没有保存模型":                                        outcome.UnknownExit,
		"max_steps reached":                               outcome.Success,
		"Disconnecting":                                   outcome.Success,
		"Training completed, nothing left unfinished":     outcome.Success,
		"No worker died":                                  outcome.Success,
		"Max accuracy reached at epoch 7":                 outcome.Success,
		"Reached max_tokens":                              outcome.Success,
		"Evaluated on the error set":                      outcome.Success,
		"Restored SIGTERM handler":                        outcome.Success,
		"WARNING: lost connection to tensorboard":         outcome.Success,
		"Loss did not improve, checkpoint not saved":      outcome.Success,
		"训练完成，模型未超时":                                      outcome.Success,
		"训练已终止":                                           outcome.UnknownExit,
		"Mean error on the signal: 0.03":                  outcome.Success,
		"Training complete\nreturn code: 2\nDone.":        outcome.UnknownExit,
		"训练完成\n程序已终止":                                     outcome.Success,
		"Training complete\nFinished: FAILURE":            outcome.UnknownExit,
		"`Trainer.fit` stopped: `max_epochs=10` reached.": outcome.Success,
	} {
		t.Run("", func(t *testing.T) { require.Equal(t, class, diagnosetest.Old(t, epochs+line+"\n").Class, line) })
	}
}
