package scan_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestWhatALogEndsWith has last lines of runs of which nothing else is known.
func TestWhatALogEndsWith(t *testing.T) {
	const full = "Test: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n"
	destroyed := "[rank2]:[W313 16:03:12.168769919 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct it\n"
	for last, class := range map[string]string{
		"Training took 03:45:05.22\n":                                               outcome.Success,
		"Training done in 844.4 seconds.\nPeak memory: 12 GB\n":                     outcome.Success,
		"Total script time in hours, minutes, seconds:  06:29:26\n":                 outcome.Success,
		"------ Calculation Completed -----\n":                                      outcome.Success,
		"########\n# End of output for job 88104.server\n########\n":                outcome.Success,
		"State: COMPLETED (exit code 0)\n" + diagnosetest.Rounds(8, "Row {n}: 1\n"): outcome.Success,
		"State: FAILED (exit code 1)\n" + diagnosetest.Rounds(8, "Row {n}: 1\n"):    outcome.UnknownExit,
		"0: " + destroyed: outcome.Success,
		"n4:73912:104568 [0] NCCL INFO comm 0x15f39cd0 rank 0 nranks 4 cudaDev 0 busId 3b000 - Abort COMPLETE\n":   outcome.UnknownExit,
		"n4:73912:104568 [0] NCCL INFO comm 0x15f39cd0 rank 0 nranks 4 cudaDev 0 busId 3b000 - Destroy COMPLETE\n": outcome.Success,
		"n4:73912:104568 [0] NCCL INFO comm 0x15f39cd0 rank 0 nranks 4 cudaDev 0 busId 3b000 - Init COMPLETE\n":    outcome.UnknownExit,
		"INFO:     Application startup complete.\n":                                                                outcome.UnknownExit,
		"[TRAIN step=1] The optimizer step done\n":                                                                 outcome.UnknownExit,
		"Successfully built two-wheels\nFailed to build a-third\n":                                                 outcome.UnknownExit,
		"Total time taken 0:01:15.4\nDone\nworking on the next file ...\n":                                         outcome.UnknownExit,
		"Loading took 12 s\n":  outcome.UnknownExit,
		"Generated answers:\n": outcome.UnknownExit,
		"The results have been saved to:\n  /w/out.fa  - sequences\nThe file is formatted\n": outcome.Success,
		"Successfully pushed the package\nThe display is missing\n":                          outcome.UnknownExit,
		"Step budget of 1000 ps reached. Exiting simulation.\n":                              outcome.Success,
		"Resultados guardados en out/split_5.csv\n":                                          outcome.Success,
		"Epoch 1/3\n" + diagnosetest.Rounds(9, "dice {n}: 0.7\n") + "Epoch 2/3\n" + diagnosetest.Rounds(9, "dice {n}: 0.8\n") + "Epoch 3/3\n" + diagnosetest.Rounds(9, "dice {n}: 0.8\n"): outcome.Success,
		"Epoch 1/3\n" + diagnosetest.Rounds(9, "dice {n}: 0.7\n") + "Epoch 2/3\n" + diagnosetest.Rounds(9, "dice {n}: 0.8\n") + "Epoch 3/3\n" + diagnosetest.Rounds(7, "dice {n}: 0.8\n"): outcome.UnknownExit,
		"Epoch 1/4\n" + diagnosetest.Rounds(9, "dice {n}: 0.7\n") + "Epoch 2/4\n" + diagnosetest.Rounds(9, "dice {n}: 0.8\n") + "Epoch 3/4\n" + diagnosetest.Rounds(9, "dice {n}: 0.8\n"): outcome.UnknownExit,
		"`Trainer.fit` stopped: `max_epochs=5` reached.\nEpoch 4: 100%|###| 8/8 [00:02<00:00, 3.6it/s, v_num=0]\nMean of P: 1.1\n":                                                        outcome.Success,
		"`Trainer.fit` stopped: `max_steps=500` reached.\nEpoch 4:  50%|#  | 4/8 [00:02<00:02, 3.6it/s, v_num=0]\n":                                                                       outcome.Success,
		"`Trainer.fit` stopped: `max_epochs=5` reached.\n" + diagnosetest.Rounds(60, "Epoch 0: {n}%|#| 1/8 [00:02<00:09, 3.6it/s, v_num=1]\n"):                                            outcome.UnknownExit,
		"2026-01-08 16:30:31,730 - INFO - Treinamento concluído com sucesso\n":                                                                                                            outcome.Success,
		"2026-01-08 16:30:31,730 - INFO - Iniciando treinamento\n":                                                                                                                        outcome.UnknownExit,
		"INFO :      Run finished 9 round(s) in 33.12s\n" + diagnosetest.Rounds(8, "INFO :   (1, 0.{n})\n"):                                                                               outcome.Success,
		"2026-08-01 10:00:01,5 - INFO - Training finished.\n" + diagnosetest.Rounds(8, "A note on layer {n}\n"):                                                                           outcome.Success,
		"Epoch 5/20\n100%|####| 31/31 [00:07<00:00, 3.9it/s]\n":                                                                                                                           outcome.UnknownExit,
		"Epoch 20/20\n100%|####| 31/31 [00:07<00:00, 3.9it/s]\n":                                                                                                                          outcome.Success,
		"Epoch 5: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n":                                                                                                                              outcome.UnknownExit,
		"epoch: 100%|####| 20/20 [00:07<00:00, 3.9it/s]\n":                                                                                                                                outcome.Success,
		"Epoch 1/3\nalive\nloss=0.7\nEpoch 2/3\nalive\nloss=0.6\nEpoch 3/3\nalive\n":                                                                                                      outcome.UnknownExit,
		"Epoch 1/3\nalive\nloss=0.7\nEpoch 2/3\nalive\nloss=0.6\nEpoch 3/3\nalive\nloss=0.5\n":                                                                                            outcome.Success,
		"Epoch 1/3\nalive\nloss=0.7\nEpoch 2/3\nalive\nloss=0.6\nEpoch 3/3\n":                                                                                                             outcome.UnknownExit,
		"Epoch 20/20\nevaluating the next checkpoint ...\n":                                                                                                                               outcome.UnknownExit,
		"Epoch 20/20\nSaving the confusion matrix ...\n":                                                                                                                                  outcome.Success,
		"2026-08-01 16:24:20 INFO: Final model saved\n":                                                                                                                                   outcome.Success,
		"2026-08-01 16:24:20 INFO: Final model saved\n2026-08-02 12:45:00 INFO: Loaded the encoder\n":                                                                                     outcome.UnknownExit,
		full + "Traceback (most recent call last):\n  File \"/w/a.py\", line 9, in f\n    go()\n":                                                                                         outcome.UnknownExit,
		"----------------------\n":                          outcome.UnknownExit,
		"Finishing the loop Wed 29 Aug 02:02:40 UTC 2018\n": outcome.Success,
		"Starting the loop Wed Aug 29 02:02:40 UTC 2018\n":  outcome.UnknownExit,
		"TIME: 0.0:0.0:39.32\n":                             outcome.Success,
		"20 iterations per epoch. 400 max iterations \niteration 380, epoch 18 : loss : 1.2\niteration 400, epoch 19 : loss : 1.1\nkeeping it in /out/a.pth\n": outcome.Success,
		"20 iterations per epoch. 400 max iterations \niteration 360, epoch 17 : loss : 1.2\niteration 380, epoch 18 : loss : 1.1\nkeeping it in /out/a.pth\n": outcome.UnknownExit,
		"iteration 380, epoch 18 : loss : 1.2\niteration 400, epoch 19 : loss : 1.1\nkeeping it in /out/a.pth\n":                                               outcome.UnknownExit,
		"Saved the strokes: out.csv\n        Hold      Flight  ...\n" + diagnosetest.Rounds(7, "{n}  72.07  1080.8  ...\n") + "\n[7 rows x 12 columns]\n":      outcome.Success,
		"Read the strokes: in.csv\n        Hold      Flight  ...\n" + diagnosetest.Rounds(7, "{n}  72.07  1080.8  ...\n") + "\n[7 rows x 12 columns]\n":        outcome.UnknownExit,
		"[2026-03-04 10:00:01,5][__main__][INFO] - Testing done, metrics saved in:\nout/normal.yaml\n":                                                         outcome.Success,
		"2026-03-04 10:00:01,5 - trainer.loop - INFO - Training finished\n" + diagnosetest.Rounds(8, "A note on layer {n}\n"):                                  outcome.Success,
		"INFO:root:Training is not finished\n":                                         outcome.UnknownExit,
		"Execution time: 239.32 seconds\n":                                             outcome.Success,
		"run.sh: line 6: 1200 Aborted                 (core dumped) ./render --fast\n": outcome.Segfault,
		"run.sh: line 6: 1200 Trace/breakpoint trap   (core dumped) ./render --fast\n": outcome.Segfault,
	} {
		r := diagnosetest.Old(t, "Reading a shard\nThe learning rate is 0.01\n"+last)
		require.Equal(t, class, r.Class, "%s%s: %s", last, r.Why, r.RootLine)
	}
}

// TestAProgramThatLeftItsLoop has what stands behind the lines of a loop: what is told
// once, with its numbers, is told by a program that left it by itself.
func TestAProgramThatLeftItsLoop(t *testing.T) {
	loop := diagnosetest.Rounds(9, "Epoch {n}: loss 2.{n}\nmean reciprocal rank is 0.{n}\n")
	for behind, class := range map[string]string{
		"Average time of a batch is 0.77\n":                               outcome.Success,
		"Average time of a batch is 0.77\nmrr@10 0.36 0.41\nKeeping it\n": outcome.UnknownExit, // it was about to do something
		"Average time of a batch is 0.77\nSaving the table\n":             outcome.Success,     // its last act
		"":                                     outcome.UnknownExit,
		"mean reciprocal rank is 0.44\n":       outcome.UnknownExit, // as after every epoch
		"Testing the model for 52.5 minutes\n": outcome.UnknownExit,
		"The table is there\n":                 outcome.UnknownExit, // no number
		"fit: 1%|  | 1/150 [00:49<2:01:44, 49.03s/it, loss=0.69]\n": outcome.UnknownExit,
		"[[11  2]\n [ 3  9]]\n": outcome.Success, // a confusion matrix
		"Width of layer a: 3\n" + diagnosetest.Rounds(30, "Layer {n} is there\n"): outcome.UnknownExit, // another program
	} {
		r := diagnosetest.Old(t, "Reading a shard\n"+loop+behind)
		require.Equal(t, class, r.Class, "%s%s: %s", behind, r.Why, r.RootLine)
	}
	r := diagnosetest.Old(t, diagnosetest.Rounds(120, "image {n} has psnr: 24.{n}\n")+"Overall psnr: 22.5\n")
	require.Equal(t, outcome.Success, r.Class, "as many as no list has")
	for name, start := range map[string]string{
		"no work is told":  diagnosetest.Rounds(9, "shard {n} has 0.{n} GB\n"),
		"no loop is there": "Epoch 1: loss 2.1\nEpoch 2: loss 2.0\n",
	} {
		r := diagnosetest.Old(t, start+"Flops of a GPU: 41.2\n")
		require.Equal(t, outcome.UnknownExit, r.Class, name)
	}
}

// TestWordsOfAnEnd has last lines of programs that came to their end, a reason
// for each word that the diagnosis knows.
func TestWordsOfAnEnd(t *testing.T) {
	for _, last := range []string{
		"Modelo salvo com sucesso",                   // and some of its users another language
		"The conversion is complete", "real\t3m0.1s", // a word of every program, and what time(1) says
		"Final loss: 0.12", "Best value: 3.1", "Test metrics: 0.3 0.4", "val acc: 0.9", "Evaluation score: 0.5", // what it came to
		"Best validation accuracy 0.91",
		"perplexity: 9.1", "ppl = 9.1", "loss: 2.1, accuracy: 0.91",
		"Early stopping", "Early stopping triggered", "Early stopping at round 7", "Training stopped: no gain",
		"tune.py exits successfully.", "Exit code: 0", "Epilog of job 7", "Done.\nPipeline: 0 failed", "Experiment End: 2024-01-10 16:28:33.041656",
		"weighted avg      0.341     0.505     0.393      1213",
		"All samples finished", "Tests completed", "Training completed successfully!",
		"{'train_runtime': 12.4, 'epoch': 3.0}",
		"step 3/3", "3/3 |####| 0:00:01",
		"End of the simulation!", "end of do-file", // of FARGO3D and of Stata
	} {
		r := diagnosetest.Old(t, "Reading a shard\nThe learning rate is 0.01\n"+last+"\n")
		require.Equal(t, outcome.Success, r.Class, last)
	}
}

// TestWordsThatTakeAnEndBack has last lines with words of an end, or a full bar,
// that tell of something else.
func TestWordsThatTakeAnEndBack(t *testing.T) {
	for _, last := range []string{
		"训练未完成", "2 个文件已保存, 1 个失败", // not done; one failed
		"The model will be saved to /out", "Checkpoints are to be written to /out", // what is meant to come
		"Model loaded successfully", "Login successful.", "Successfully opened dynamic library libcudart.so.10.0", // before the work
		"finished initializing model - num_params = 291", "wandb: Adding directory to artifact (/w/030000)... Done. 40.7s",
		"Done loading", "Done (t=0.05s)",
		"Done\nCreating the index", "Done\nLoading the next model", "Done\nGenerating text",
	} {
		r := diagnosetest.Old(t, "Reading a shard\nThe learning rate is 0.01\n"+last+"\n")
		require.Equal(t, outcome.UnknownExit, r.Class, last)
	}
	for _, name := range []string{
		"Downloading shards", "Map (num_proc=4)", "Filter", "Tokenizing train", "Resolving data files", "Casting the dataset",
		"Extracting data files", "Generating train split", "Sanity Checking DataLoader 0", "initialize env - reading items", "Setting up workers", "Loading checkpoint shards", "Fetching 4 files", "Preloading",
	} {
		r := diagnosetest.Old(t, "The learning rate is 0.01\n"+name+": 100%|####| 4/4 [00:01<00:00, 3.9it/s]\n")
		require.Equal(t, outcome.UnknownExit, r.Class, name)
	}
}

// TestWhatIsSaidAgainIsNoEnd has what a program says in every round: the round
// after it shows that neither the words of an end nor those of an error are the
// job's end. What is said once, at the end, is.
func TestWhatIsSaidAgainIsNoEnd(t *testing.T) {
	const (
		work      = "Reading a shard\nThe learning rate is 0.01\nShuffled the samples\n"
		iteration = " iteration {n}/ 900 | elapsed time per iteration (ms): 900.1 | lm loss: 2.1 |\n"
		bar       = "Loading checkpoint shards: 100%|####| 2/2 [00:04<00:00, 2.17s/it]\n"
		full      = "Transcribing: 100%|####| 2/2 [00:04<00:00, 2.17s/it]\n"
	)
	for name, c := range map[string]struct{ log, class string }{
		"a model is saved in every round": {diagnosetest.Rounds(9, work+"Saved the best model of round {n}\n"), outcome.UnknownExit},
		"the model is saved at the end":   {diagnosetest.Rounds(9, work) + "Saved the best model\n", outcome.Success},
		"each rank says it once":          {diagnosetest.Rounds(9, work) + diagnosetest.Rounds(8, "{n}: done\n"), outcome.Success},
		"a list ends the log":             {diagnosetest.Rounds(9, work) + diagnosetest.Rounds(9, "wrote part {n}\n"), outcome.Success},
		"every run says that all is done": {diagnosetest.Rounds(9, work+"Training finished\n"), outcome.Success},
		"only the model was loaded":       {"Model loaded successfully\n" + work, outcome.UnknownExit},
		"a bar was full long ago":         {bar + diagnosetest.Rounds(40, work), outcome.UnknownExit},
		"a bar is full at the end":        {diagnosetest.Rounds(40, work) + full, outcome.Success},
		"a bar is full in every round":    {diagnosetest.Rounds(9, work+"Validating:   0%|    | 0/2 [00:00<?, ?it/s]\nValidating: 100%|####| 2/2 [00:04<00:00, 2.17s/it]\n"), outcome.UnknownExit},
		"and then all is said":            {diagnosetest.Rounds(9, work+"Validating: 100%|####| 2/2 [00:04<00:00, 2.17s/it]\n") + "Results are saved\n", outcome.Success},
		"the best of a round of many":     {"Epoch [3/10], Loss: 1.9\nNew best one with accuracy: 89.25%\n", outcome.UnknownExit},
		"a bar of the set-up is full":     {diagnosetest.Rounds(40, work) + bar, outcome.UnknownExit},
		"measures of rounds in a row":     {work + diagnosetest.Rounds(6, "The validation loss fell, best score: 0.{n}\n"), outcome.UnknownExit},
		"a measure of each round":         {diagnosetest.Rounds(3, work+"Average validation loss: 0.{n}\n"), outcome.UnknownExit},
		"a measure of the test":           {diagnosetest.Rounds(3, work) + "The network's accuracy on all test images: 97.1%\n", outcome.Success},
		"each round tells its time":       {diagnosetest.Rounds(9, work+"Execution time: {n}.5 seconds\n"), outcome.UnknownExit},
		"a round of several":              {diagnosetest.Rounds(2, work+"Epoch {n} finished\n"), outcome.UnknownExit},
		"a process of several":            {diagnosetest.Rounds(2, work) + "Process 104{n} has finished\nProcess 21044 has finished\n", outcome.Success},
		"a count from nought to the last": {diagnosetest.Rounds(2, work) + "Epoch: 0/20 loss 3\nEpoch: 19/20 loss 1\nThat was it\n", outcome.Success},
		"a count from nought goes on":     {diagnosetest.Rounds(2, work) + "Epoch: 0/20 loss 3\nEpoch: 18/20 loss 1\nThat was it\n", outcome.UnknownExit},
		"a count from one lacks its last": {diagnosetest.Rounds(2, work) + "Epoch: 1/20 loss 3\nEpoch: 19/20 loss 1\nThat was it\n", outcome.UnknownExit},
		"an error of every round":         {diagnosetest.Rounds(9, diagnosetest.Rounds(4, iteration)+"ValueError: sample {n} is empty\n") + diagnosetest.Rounds(2, iteration), outcome.UnknownExit},
		"an error at the end":             {diagnosetest.Rounds(9, diagnosetest.Rounds(4, iteration)) + "ValueError: sample 9 is empty\n", outcome.UserException},
		"a traceback at the end": {
			diagnosetest.Rounds(9, diagnosetest.Rounds(4, iteration)+"ValueError: sample {n} is empty\n") + diagnosetest.Raised("ValueError: sample 10 is empty"), outcome.UserException,
		},
		"an error of every round, and a process died": {
			diagnosetest.Rounds(9, diagnosetest.Rounds(4, iteration)+"ValueError: sample {n} is empty\n") + "srun: error: gpu7: task 3: Exited with exit code 1\n", outcome.UserException,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}
