package scan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// What is left to write behind the end of a work is no work, and a count of something else is not its end.
func TestWhatIsLeftBehindTheEnd(t *testing.T) {
	const sent = "a.safetensors: {n}0%|##  | {n}0M/90.0M [00:0{n}<00:03, 98.1MB/s]\n"
	upload := diagnosetest.Rounds(9, sent)
	full := "a.safetensors: 100%|####| 90.0M/90.0M [00:09<00:00, 98.1MB/s]\n"
	summed := "{'loss': 1.1, 'epoch': 1.0}\n{'train_runtime': 312.2, 'train_loss': 1.1, 'epoch': 1.0}\n"
	trained := "INFO End of training\n"
	setUp := "loading\nfetching the weights\n"
	flushed := "NCCL version 2.27.5\n" + strings.Repeat("In load(), the weight info: (Shard(dim=0),) cuda:0\n", 7)
	step := "2026-01-01 10:00:00,100 - root - INFO - step: 1  loss: 8.1\n"
	epochs := diagnosetest.Rounds(3, "epoch {n} loss 0.5\nepoch {n} acc 0.5\n")
	for log, class := range map[string]string{
		summed + upload + full:                   outcome.Success,
		summed + upload:                          outcome.UnknownExit,
		trained + strings.Repeat(upload+full, 3): outcome.Success,
		setUp + upload + full:                    outcome.UnknownExit,
		setUp + upload:                           outcome.UnknownExit,
		summed + upload + diagnosetest.Raised("ConnectionError: 403"):                                                                                   outcome.UserException,
		step + "[titan] 2026-01-01 10:00:09,100 - root - INFO - Process group destroyed\n" + flushed:                                                    outcome.Success,
		step + "2026-01-01 10:00:09,100 - root - INFO - Process group destroyed\n" + diagnosetest.Raised("KeyError: 7"):                                 outcome.UserException,
		epochs + "학습 종료!\n최고 0.97, 0.91\n":                                                                                                              outcome.Success,
		epochs + "실험 완료: mu_0.3 (75.3)\n":                                                                                                               outcome.UnknownExit,
		epochs + "에러로 인해 학습 종료\n":                                                                                                                       outcome.UnknownExit,
		epochs + "학습이 완료되지 않았습니다\n":                                                                                                                     outcome.UnknownExit,
		step + "2026-01-01 10:00:09,100 - root - INFO - Received signal 15, exiting\n2026-01-01 10:00:09,200 - root - INFO - Process group destroyed\n": outcome.SlurmCancelled,
		"loading\nProcess group destroyed\n":                                                                                                            outcome.UnknownExit,
		summed + upload + "HTTP Error 403: Forbidden\n":                                                                                                 outcome.UnknownExit,
		summed + upload + full + strings.Repeat("Next model\nReading it\nShards found\n", 5):                                                            outcome.UnknownExit,
		epochs + "The results are saved\n 5 files changed, 61 insertions(+)\n rewrite a.txt (65%)\n rewrite b.png (87%)\n rewrite c.json (65%)\n mode change 100644 => 100755 run.sh\nPushing to GitHub...\n": outcome.Success,
		epochs + "Pushing the weights to the nodes...\n": outcome.UnknownExit,
		"{'dt': '10:00', 'loss': 0.5, 'step': 10}\nloading\n{'loss': 0.5, 'step': 10, 'valid_loss': 0.7}\n{'dt': '10:09', 'loss': 0.5, 'step': 20}\n": outcome.UnknownExit,
		"loading\n{'acc': 0.5, 'f1': 0.1, 'valid_loss': 0.7}\n":                                                                                                      outcome.Success,
		"queue.pl: Error, unfinished job no longer exists\nPossible reasons: a) Exceeded time limit? b) Shutdown machine?\n":                                         outcome.UnknownExit,
		"loading\nslurmstepd: error: Exceeded time limit\n":                                                                                                          outcome.SlurmTimeLimit,
		epochs + "*** Best metric: 3.1 (epoch 2)\n--result\n[\n    {\n        \"epoch\": 2,\n        \"train\": {\n            \"loss\": 6.7\n        }\n    }\n]\n": outcome.Success,
		epochs + "Config:\n{\n  \"epoch\": 2,\n  \"train\": {\n    \"loss\": 6.7\n  }\n}\n":                                                                          outcome.UnknownExit,
		"Step 1/2 : FROM a\n ---> 0f1e\nStep 2/2 : CMD train\n ---> Running in 6f5e\n":                                                                               outcome.UnknownExit,
		"loading\nWarmup step 4/5\nWarmup step 5/5\nmeasuring\n":                                                                                                     outcome.UnknownExit,
		"loading\nStep 4/5 loss: 0.5\nStep 5/5 loss: 0.4\n":                                                                                                          outcome.Success,
		"Step 1/2: train\nepoch 1 loss 0.3\nStep 2/2: export\nExport finished, saved to a.onnx\n":                                                                    outcome.Success,
	} {
		t.Run("", func(t *testing.T) { require.Equal(t, class, diagnosetest.Old(t, log).Class, log) })
	}
}

// What a shell, its script or Python itself writes behind a program's last words tells nothing of the work.
func TestWhatIsNotTheProgramsBehindItsEnd(t *testing.T) {
	steps := "Reading the words\n" + diagnosetest.Rounds(12, "epoch 1 step {n} loss 2.{n}\n")
	done := steps + "Test accuracy of the best model: 71.5\n"
	cut := steps + "Traceback (most recent call last):\n  File \"/w/a.py\", line 9, in <module>\n    main()\n  File \"/w/a.py\", line 4, in main\n    raise OSError(\n"
	told := steps + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 58 got signal: 15\n"
	const date, over = "Fri Mar  1 10:11:12 UTC 2024\n", "Job ended at Fri Mar  1 10:11:12 UTC 2024\n"
	const warning = "/lib/a.py:24: UserWarning: There is 1 leaked object\n  warnings.warn('There are %d leaked objects'\n"
	for log, class := range map[string]string{
		done + date:                                   outcome.Success,
		done + warning:                                outcome.Success,
		done + "Deactivating the environment\n":       outcome.Success,
		done + "ann@login1:~/fit$ exit\nlogout\n":     outcome.Success,
		done + `PS C:\Users\ann\fit> ` + "\n":         outcome.Success,
		steps + date:                                  outcome.UnknownExit,
		steps + warning:                               outcome.UnknownExit,
		cut + over:                                    outcome.UnknownExit,
		cut + "\nreal\t2m3.4s\nuser\t1m\nsys\t0m1s\n": outcome.UnknownExit,
		told + over:                                   outcome.SlurmCancelled,
		told + "Done.\n":                              outcome.SlurmCancelled,
		steps + "Killed\n" + over:                     outcome.HostOOM,
	} {
		r := diagnosetest.Old(t, log)
		require.Equal(t, class, r.Class, "%s: %s", log, r.Why)
	}
}

// What a program writes behind its Ctrl-C tells whether it was started again.
func TestWhatFollowsACtrlC(t *testing.T) {
	start := "Opening the library of the device\nFound a device with the name A100\nThe plan of the work is made\n"
	rounds := strings.Repeat("Value of the candidate is 69.5\n", 20)
	ended := "Saving the weights\nBest so far\nValidation done\n"
	scores := strings.Repeat("Sample has the score 0.3\n", 80)
	key := diagnosetest.Raised("KeyboardInterrupt")
	frames := strings.Repeat("Frame :  004540\n\n", 80)
	other := "Exception in thread Thread-15:\nTraceback (most recent call last):\n  File \"/usr/lib/python3.7/threading.py\", line 926, in _bootstrap_inner\n" +
		"    self.run()\nException: The backend process has shut down\n"
	for log, want := range map[string][2]string{
		start + rounds + key + start + rounds:                                      {outcome.UnknownExit, "Value"},
		start + rounds + key + start + rounds + "Killed\n":                         {outcome.HostOOM, "Killed"},
		start + rounds + key:                                                       {outcome.SlurmCancelled, "KeyboardInterrupt"},
		start + rounds + key + start + rounds + diagnosetest.Raised("KeyError: 1"): {outcome.UserException, "KeyError: 1"},
		start + frames + key + frames:                                              {outcome.SlurmCancelled, "KeyboardInterrupt"},
		start + frames + key + "Going on\nReading more\nIt was caught\n" + frames:  {outcome.UnknownExit, ""},
		start + rounds + ended + rounds + key + ended:                              {outcome.SlurmCancelled, "KeyboardInterrupt"},
		start + rounds + key + "Start the evaluation\n" + scores:                   {outcome.UnknownExit, "Sample"},
		start + rounds + other + key:                                               {outcome.SlurmCancelled, "KeyboardInterrupt"},
		start + rounds + other + diagnosetest.Raised("ValueError: no batch"):       {outcome.UserException, "Exception: The backend"},
		start + rounds + strings.Replace(other, "Exception: The backend", "OSError: [Errno 28] No space left on device", 1) + key: {outcome.DiskFull, "OSError"},
		start + rounds + other: {outcome.UserException, "Exception: The backend"},
	} {
		t.Run("", func(t *testing.T) {
			r := diagnosetest.Old(t, log)
			require.Equal(t, want[0], r.Class, log)
			require.Contains(t, r.RootLine, want[1], log)
		})
	}
}

// The message of an exception may begin on the line behind its name.
func TestAMessageOnALineOfItsOwn(t *testing.T) {
	r := diagnosetest.Old(t, diagnosetest.Raised("ValueError:")+"All the 5 fits failed.\nIt is very likely that the model is misconfigured.\n")
	require.Contains(t, r.RootLine, "ValueError: All the 5 fits failed.")
	r = diagnosetest.Old(t, diagnosetest.Raised("ValueError: Input 0 of layer pool is incompatible with the layer: expected ndim=4, found ndim=5."))
	require.Equal(t, outcome.ShapeMismatch, r.Class)
	r = diagnosetest.Old(t, diagnosetest.Raised("ValueError: --ndim is incompatible with --shape-of-x"))
	require.Equal(t, outcome.BadArgs, r.Class)
	r = diagnosetest.Old(t, diagnosetest.Raised("ValueError: --shape-of-x is incompatible with --y"))
	require.Equal(t, outcome.BadArgs, r.Class)
}
