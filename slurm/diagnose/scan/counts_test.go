package scan_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// TestHowFarCountsCame has counts of epochs, steps and iterations among the last lines,
// and whether they came to their end.
func TestHowFarCountsCame(t *testing.T) {
	const row = "dice {n}: 0.7\n"
	const kept = "keeping it in /out/a.pth\n"
	left := diagnosetest.Rounds(9, "iter: {n}00, lr: 0.1, eta: 0:0{n}:10\n")
	epoch := func(n, of, lines int) string {
		return fmt.Sprintf("Epoch %d/%d\n", n, of) + diagnosetest.Rounds(lines, row)
	}
	epoched := func(n int, etas ...string) (log string) {
		for i, eta := range etas {
			log += fmt.Sprintf("Epoch: [%d] [%d00/250] lr: 0.1 eta: %s\n", n, i+1, eta)
		}
		return log
	}
	epochs := func(n int, etas ...string) string {
		return epoched(n, etas...) + diagnosetest.Rounds(4, "Testing on {n} shards\n") + kept
	}
	const sample = "The sun was up\nand nobody knew\nwhere the road went\nor who had come\n"
	const workflow = "workflow: [('train', 1)], max: 12 epochs\n"
	mmEpoch := func(n int) string {
		return fmt.Sprintf("Epoch [%d][50/500] loss: 0.31\nEpoch(val) [%d][500] mIoU: 0.4\nkeeping it in /out\n", n, n)
	}
	alone := func(from, to int, line string) (log string) {
		for n := from; n <= to; n++ {
			log += strings.ReplaceAll(line, "{n}", strconv.Itoa(n)) + "\n"
		}
		return log
	}
	for name, c := range map[string]struct {
		log  string
		ends bool
	}{
		"the last epoch is as long as the one before":     {epoch(1, 2, 9) + epoch(2, 2, 9), true},
		"the last epoch is shorter":                       {epoch(1, 2, 9) + epoch(2, 2, 8), false},
		"the last epoch and a tail":                       {epoch(1, 2, 9) + epoch(2, 2, 9) + diagnosetest.Rounds(50, "A note on layer {n}\n"), true},
		"the last epoch and much else":                    {epoch(1, 2, 9) + epoch(2, 2, 9) + diagnosetest.Rounds(51, "A note on layer {n}\n"), false},
		"the last but one epoch":                          {epoch(1, 3, 9) + epoch(2, 3, 9), false},
		"the last epoch where they are counted from 0":    {epoch(0, 3, 9) + epoch(1, 3, 9) + epoch(2, 3, 9), true},
		"one epoch has none before it to compare with":    {epoch(1, 1, 9), false},
		"an epoch that is named again is the same":        {epoch(1, 2, 9) + epoch(2, 2, 4) + "Epoch 2/2\n" + diagnosetest.Rounds(4, row), true},
		"the last epoch is as long, and something begins": {epoch(1, 2, 9) + epoch(2, 2, 9) + "Loading the next one\n", false},
		"a step that is the last":                         {"step 2/3\nstep 3/3\n", true},
		"a step that is not":                              {"step 1/3\nstep 2/3\n", false},
		"a step beyond the last":                          {"step 3/3\nstep 4/3\n", true},
		"steps that do not end where they should":         {"step 3/3\nstep 4/3\nstep 5/3\n", false},
		"epochs that go on beyond the last":               {epoch(1, 2, 9) + epoch(2, 2, 9) + epoch(3, 2, 9) + epoch(4, 2, 9), false},
		"steps of none":                                   {"step 0/0\n", false},
		"steps from 0, and a line behind the last one":    {"step 0/3\nstep 1/3\nstep 2/3\nThe loss is small\n", true},
		"steps from 0, and nothing behind the last one":   {"step 0/3\nstep 1/3\nstep 2/3\n", false},
		"steps from 1 that miss one":                      {"step 1/3\nstep 2/3\nThe loss is small\n", false},
		"epochs are not full, the bar in them is":         {"Epoch 1/3\n100%|####| 31/31 [00:07<00:00, 3.9it/s]\n", false},
		"a bar that is full":                              {"100%|####| 31/31 [00:07<00:00, 3.9it/s]\n", true},
		"a bar that is not":                               {" 97%|### | 30/31 [00:07<00:00, 3.9it/s]\n", false},
		"a bar of the set-up":                             {"Loading weights: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n", false},
		"a bar of one epoch":                              {"Epoch 3: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n", false},
		"figures that come with every round":              {diagnosetest.Rounds(9, "'loss' is {n}\nThe rate is {n}\nThe norm is {n}\n{'eval_loss': 0.{n}, 'eval_f1': 0.5, 'epoch': {n}.0}\n"), false},
		"figures at the end":                              {diagnosetest.Rounds(9, "The loss is {n}\nThe rate is {n}\n") + "{'eval_loss': 0.25, 'eval_f1': 0.5, 'epoch': 9.0}\n", true},
		"a bar that comes to its end again and again":     {diagnosetest.Rounds(9, "Test: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\nThe loss is {n}\nThe rate is {n}\nThe norm is {n}\n"), false},
		"a bar that was long on its way": {
			diagnosetest.Rounds(9, "Test: 10%|#  | 3/31 [00:07<00:09, 3.9it/s]\nThe loss is {n}\nThe rate is {n}\nThe norm is {n}\n") +
				"Test: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n", true,
		},
		"one bar around others that were drawn at once": {
			"100%|####| 70/70 [00:00<00:00, 3.9it/s]\n100%|####| 90/90 [00:00<00:00, 3.9it/s]\n" +
				diagnosetest.Rounds(30, " {n}%|#  | {n}/50 [00:07<00:09, 3.9it/s]\n") + strings.Repeat("100%|####| 50/50 [00:07<00:00, 3.9it/s]\n", 2), true,
		},
		"one bar that was not much longer than others": {
			"100%|####| 70/70 [00:00<00:00, 3.9it/s]\n100%|####| 90/90 [00:00<00:00, 3.9it/s]\n" +
				diagnosetest.Rounds(30, " {n}%|#  | {n}/50 [00:02<00:09, 3.9it/s]\n") + strings.Repeat("100%|####| 50/50 [00:04<00:00, 3.9it/s]\n", 2), false,
		},
		"the time left comes to nothing":                   {left + "iter: 1000, lr: 0.1, eta: 0:00:00\n" + kept, true},
		"the word that so many steps are done":             {"Step 795/800 Loss: 0.9\nINFO - loop.py - 2023-07-15 13:49:17,758 - Finished after 800 steps.\nSaving the last one.\n", true},
		"Lightning's word behind a bar that is not full":   {"Validation: 64%|###| 27/43 [00:02<00:01, 9.9it/s]\n`Trainer.fit` stopped: `max_epochs=4` reached.\n", true},
		"a bar that is not full behind Lightning's word":   {"`Trainer.fit` stopped: `max_epochs=4` reached.\nTesting: 64%|###| 27/43 [00:02<00:01, 9.9it/s]\n", false},
		"some time is left":                                {left + kept, false},
		"no time is left, and after more of it none again": {strings.Repeat(left+"iter: 1000, lr: 0.1, eta: 0:00:00\n", 2) + kept, false},
		"no time is left of one epoch":                     {"Epoch [3] iter: 1000, lr: 0.1, eta: 0:00:00\n" + kept, false},
		"no time is left of any of three epochs":           {diagnosetest.Rounds(3, "Epoch [{n}] iter: 900, eta: 0:10:00\nEpoch [{n}] iter: 1000, eta: 0:00:00\n") + kept, false},
		"no time is left after three epochs":               {diagnosetest.Rounds(2, "Epoch [{n}] iter: 1000, eta: 0:10:00\n") + "Epoch [3] iter: 1000, eta: 0:00:00\n" + kept, true},
		"less time is left than between reports": {
			epochs(1, "0:09:00", "0:07:10") + epochs(2, "0:06:00", "0:04:10") + epochs(3, "0:03:00", "0:01:10"), true,
		},
		"such a report, and not all that follows an epoch": {
			epochs(1, "0:09:00", "0:07:10") + epochs(2, "0:06:00", "0:04:10") + epoched(3, "0:03:00", "0:01:10") + "Testing on 1 shard\n", false,
		},
		"such a report, and much else": {
			epochs(1, "0:09:00", "0:07:10") + epochs(2, "0:06:00", "0:04:10") + epochs(3, "0:03:00", "0:01:10") + diagnosetest.Rounds(60, "A note on layer {n}\n"), false,
		},
		"such a report of an estimate of each epoch": {
			epochs(1, "0:03:00", "0:01:10") + epochs(2, "0:03:00", "0:01:10") + epochs(3, "0:03:00", "0:01:10"), false,
		},
		"such a report in the second epoch":                    {epochs(1, "0:06:00", "0:04:10") + epochs(2, "0:03:00", "0:01:10"), false},
		"as much time is left as between two reports":          {epochs(1, "0:09:00", "0:07:30") + epochs(2, "0:06:00", "0:04:30") + epochs(3, "0:03:00", "0:01:30"), false},
		"no time is left, and bars are drawn over and over":    {left + "Iter: 1000; ETA: 0:00:00; LR: 0.1\n" + diagnosetest.Rounds(30, "Test: 10%|#  | 3/31 [00:07<00:09, 3.9it/s]\nTest: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n") + kept, true},
		"no time is left, and much else is said":               {left + "Iter: 1000; ETA: 0:00:00; LR: 0.1\n" + diagnosetest.Rounds(60, "A note on layer {n}\n") + kept, false},
		"a step that is not the last, where it stops by plan":  {"step:13/20 loss:2.1\nstopping_early: wallclock_cap step:13/20\nCode size: 47 bytes\n", true},
		"a bar that is full, and the next one begins":          {"100%|####| 31/31 [00:07<00:00, 3.9it/s]\n  0%|    | 0/31 [00:00<?, ?it/s]\n", false},
		"a full bar, and an hour later something begins":       {"2026-01-08 10:00:00 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n2026-01-08 11:00:01 Loaded the encoder\n", false},
		"a full bar, and within the hour a word":               {"2026-01-08 10:00:00 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n2026-01-08 11:00:00 Loaded the encoder\n", true},
		"a full bar, and what is announced then":               {"100%|####| 31/31 [00:07<00:00, 3.9it/s]\nevaluating the next one ...\n", false},
		"a full bar that much followed":                        {"100%|####| 31/31 [00:07<00:00, 3.9it/s]\n" + strings.Repeat("1  2.0  3.0\n", 51), false},
		"a full bar that fewer followed":                       {"100%|####| 31/31 [00:07<00:00, 3.9it/s]\n" + strings.Repeat("1  2.0  3.0\n", 50), true},
		"a full bar that some followed":                        {"100%|####| 31/31 [00:07<00:00, 3.9it/s]\n" + strings.Repeat("a note\n", 4), true},
		"the last of the announced iterations":                 {"total iterations: 40\niteration 39 : loss 1.2\niteration 40 : loss 1.1\nkeeping it in /out\n", true},
		"the last one, and a tail":                             {"total steps: 40\nstep 40 : loss 1.1\n" + strings.Repeat("keeping it\n", 50), true},
		"the last one, and much else":                          {"total steps: 40\nstep 40 : loss 1.1\n" + strings.Repeat("keeping it\n", 51), false},
		"one before the last":                                  {"total iterations: 40\niteration 39 : loss 1.2\nkeeping it in /out\n", false},
		"the last epoch, and the midst of it by its own line":  {"Epoch: 0/1, Batch: 31/56, Loss: 2.3\nEpoch: 0/1, Batch: 33/56, Loss: 2.2\nThe memory is 3\n", false},
		"the last epoch, and the last batches of it":           {"Epoch: 1/1, Batch: 54/56, Loss: 2.3\nEpoch: 1/1, Batch: 55/56, Loss: 2.2\nThe memory is 3\n", true},
		"the last epoch, and nine of ten batches of it":        {"Epoch: 1/1, Batch: 8/10, Loss: 2.3\nEpoch: 1/1, Batch: 9/10, Loss: 2.2\nThe memory is 3\n", true},
		"the last epoch, and eight of ten":                     {"Epoch: 1/1, Batch: 7/10, Loss: 2.3\nEpoch: 1/1, Batch: 8/10, Loss: 2.2\nThe memory is 3\n", false},
		"a bar with points in its numbers":                     {" 100% ━━━━━━━━ 200,000/200,000  [ 0:08:18 < 0:00:00 , 407 it/s ]\n", true},
		"such a bar that is not full":                          {"  99% ━━━━━━━━ 199,000/200,000  [ 0:08:18 < 0:00:03 , 407 it/s ]\n", false},
		"OpenMMLab's last epoch":                               {workflow + mmEpoch(11) + mmEpoch(12), true},
		"OpenMMLab amid its last":                              {workflow + mmEpoch(11) + mmEpoch(12)[:30] + "\n", false},
		"epochs that the settings number from 0":               {"{'lr': 0.1, 'num_epochs': 30}\n" + alone(0, 29, "Epoch {n}: loss 0.5\nThe rate is 0.1"), true},
		"one fewer":                                            {"{'lr': 0.1, 'num_epochs': 30}\n" + alone(0, 28, "Epoch {n}: loss 0.5\nThe rate is 0.1"), false},
		"epochs that a sentence numbers from 1":                {"Fitting for 30 epochs\n" + alone(1, 30, "epoch {n} val_acc=0.5"), true},
		"the last but one of these":                            {"Fitting for 30 epochs\n" + alone(1, 29, "epoch {n} val_acc=0.5"), false},
		"a sample behind the loop":                             {diagnosetest.Rounds(9, "step {n}0: loss 0.5\n") + sample, true},
		"one that is no more than a line":                      {diagnosetest.Rounds(9, "step {n}0: loss 0.5\n") + "The sun was up\n", false},
		"a sample, and what comes next is named":               {diagnosetest.Rounds(9, "step {n}0: loss 0.5\n") + sample + "Sampling once more\n", false},
		"rounds of a federation":                               {"clients: 4\nnum_rounds: 9\n" + alone(1, 9, "Round {n} on 4 clients\nits accuracy is 0.5"), true},
		"the last round has begun":                             {"clients: 4\nnum_rounds: 9\n" + alone(1, 9, "Round {n} on 4 clients\nits accuracy is 0.5")[:260] + "\n", false},
		"a setting in a list":                                  {"num_epochs:            4\n" + alone(1, 4, "Start epoch {n}:\nloss: 0.1\nacc: 0.7"), true},
		"a count that is an item's, and the first of its form": {alone(0, 30, "0/599 -> a{n}.mat --> 0.00 sec") + ">> 1/599 -> b.mat --> 30.59 sec\n", false},
		"an aligned setting of other epochs":                   {"num_epochs:            9\nWarmup epochs:            4\n" + alone(1, 4, "Start epoch {n}:\nloss: 0.1\nacc: 0.7"), false},
		"a setting in a list, and not the last":                {"num_epochs:            5\n" + alone(1, 4, "Start epoch {n}:\nloss: 0.1\nacc: 0.7"), false},
		"heads of epochs alone":                                {"max_epochs=30\n" + alone(0, 29, "Epoch {n}"), false},
		"such heads, and what is done behind the last":         {"max_epochs=30\n" + alone(0, 29, "Epoch {n}") + "Keeping the weights\n", true},
		"a number of epochs between two savings":               {"save_every_n_epochs=30\n" + alone(0, 29, "Epoch {n}: loss 0.5\nThe rate is 0.1"), false},
		"what came of an epoch behind its bar": {
			"rows: 900, epoch: 3\n" + diagnosetest.Rounds(3, "\r 50%|#####     | 1/2 [00:26<00:26, 26.06s/it]\r100%|##########| 2/2 [00:52<00:00, 26.06s/it]\nEpoch {n}: loss 0.5\n"), true,
		},
		"OpenMMLab's test":            {"Epoch(test) [ 50/170]    eta: 0:00:12  time: 0.1\nEpoch(test) [100/170]    eta: 0:00:07  time: 0.1\nEpoch(test) [170/170]    accuracy/top1: 94.5  time: 0.1\n", true},
		"OpenMMLab's test on its way": {"Epoch(test) [ 50/170]    eta: 0:00:12  time: 0.1\nEpoch(test) [100/170]    eta: 0:00:07  time: 0.1\n", false},
		"OpenMMLab's last but one":    {"workflow: [('train', 1)], max: 12 epochs\nEpoch(val) [11][500] mIoU: 0.4\nkeeping it in /out\n", false},
		"none was announced":          {"iteration 40 : loss 1.1\nkeeping it in /out\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, "Reading a shard\nThe learning rate is 0.01\n"+c.log)
			require.Equal(t, map[bool]string{true: outcome.Success, false: outcome.UnknownExit}[c.ends], r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}

// TestLastWordsOfRuns has what programs say last, and what takes it back.
func TestLastWordsOfRuns(t *testing.T) {
	const date = "Thu Jan  8 10:20:00 UTC 2026\n"
	for log, ends := range map[string]bool{
		"Inference done 9/9\n":                                                 true,
		"Inference done 8/9\n":                                                 false,
		"Part 3 is done\n":                                                     false,
		"polish terminated on 28.02.2022 at 13:48:32\n":                        true,
		"All files processed.\n":                                               true,
		"Epoch 00028: early stopping THR.\nvalid_data: 0.5 0.4\n":              true,
		"polish terminated by a signal\n":                                      false,
		"Process 40211 finished\n":                                             true,
		"accuracy: 0.9\n":                                                      true,
		"accuracy: 0.8\naccuracy: 0.9\n":                                       false,
		"Epoch 1/3\nBest accuracy: 0.9\n":                                      false,
		"Epoch 3/3\nBest accuracy: 0.9\n":                                      true,
		"Final loss: 0.12\nThe plots are drawn\n":                              true,
		"The evaluation failed\nEverything is saved\n":                         false,
		"0 of 9 jobs failed\nAll is done\n":                                    true,
		"Everything is saved\nerror: no such thing\n":                          false,
		"Everything is saved\nerror: 0 of 9\n":                                 true,
		"Everything is saved\nLoading the next one\n":                          false,
		"Everything is saved\nloading the next one ...\n":                      false,
		"Everything is saved\nEvaluating the parts, finished 3/9\n":            false,
		"Everything is saved\nEvaluating the parts, finished 9/9\n":            true,
		"Everything is saved\n2026-01-08 10:00:00 A note on it\n":              true,
		"wandb: Synced 5 W&B file(s)\n" + strings.Repeat("A note on it\n", 12): true,
		"wandb: Synced 5 W&B file(s)\n" + strings.Repeat("A note on it\n", 13): false,
		strings.Repeat("A word first\n", 7) + "Thu Jan  8 10:00:00 UTC 2026\n" + strings.Repeat("A note on it\n", 12) + date: true,
		strings.Repeat("A word first\n", 8) + "Thu Jan  8 10:00:00 UTC 2026\n" + strings.Repeat("A note on it\n", 12) + date: false,
		"Everything is saved\n+-----+\n" + strings.Repeat("| GPU |\n", 9) + "+-----+\n":                                      true,
		"Everything is saved\n" + strings.Repeat("  [0., 0., 0.],\n  ...,\n", 9):                                             true, // rows of one array
		"Everything is saved\n" + strings.Repeat("- GPU -\n", 9):                                                             false,
		"Thu Jan  8 10:00:00 UTC 2026\n" + strings.Repeat("A note on it\n", 12) + date:                                       true,
		"Thu Jan  8 10:00:00 UTC 2026\n" + strings.Repeat("A note on it\n", 12) + "2026-01-08 10:20:00.147832: \n":           false, // the rest is cut off
		"Thu Jan  8 10:00:00 UTC 2026\n" + strings.Repeat("A note on it\n", 11) + date:                                       false,
		"Everything is saved\nsaving the plots ...\n":                                                                        true,
		"Everything is saved\nKilled\n":                                                                                             false,
		"Everything is saved\n  File \"/w/a.py\", line 3, in f\n":                                                                   false,
		"Training finished.\n" + strings.Repeat("A note on it\n", 11):                                                               true,
		"Training finished.\n" + strings.Repeat("A note on it\n", 12):                                                               false,
		"Training finished.\n> building the next data\n" + strings.Repeat("A note on it\n", 9):                                      false,
		"2026-01-08 10:00:00 Training finished.\n2026-01-08 11:00:00 A note\n":                                                      true,
		"2026-01-08 10:00:00 Training finished.\n2026-01-08 11:00:01 A note on it\n":                                                false,
		"Iter 3/9 loss: 2\nwandb: Synced 5 W&B file(s)\n":                                                                           false,
		"Everything is saved\nwandb: Synced 5 W&B file(s)\n":                                                                        true,
		"`Trainer.fit` stopped: `max_epochs=5` reached.\n" + strings.Repeat("a note\n", 50):                                         true,
		"`Trainer.fit` stopped: `max_epochs=5` reached.\n" + strings.Repeat("a note\n", 51):                                         false,
		"[2026-01-01 02:51:05,985][lightning.pytorch.utilities.rank_zero][INFO] - `Trainer.fit` stopped: `max_epochs=5` reached.\n": true,
		"{'loss': 0.1, 'grad_norm': 0.2, 'epoch': 1.0}\n":                                                                           false,
		"{'eval_loss': 0.1, 'eval_acc': 0.2, 'epoch': 1.0}\n":                                                                       true,
		"WARNING: all is saved\n":                                                                                                   false,
		"usage: all is done\n":                                                                                                      false,
	} {
		r := diagnosetest.Old(t, "Reading a shard\nThe learning rate is 0.01\n"+log)
		assert.Equal(t, ends, r.Class == outcome.Success, "%s%s: %s: %s", log, r.Class, r.Why, r.RootLine)
	}
}

// TestBarsThatOverwriteThemselves has bars on one line, before which a launcher wrote the
// rank, behind which something else stands, and one that is longer than a line that is read.
func TestBarsThatOverwriteThemselves(t *testing.T) {
	const bar = "Training: {n}%|#| {n}/99 [00:07<00:09, 3.9it/s]"
	f := factsOf(t, "2: "+strings.ReplaceAll(diagnosetest.Rounds(3, bar+"\n"), "\n", "\r")+"KeyError: 'a'\r3: KeyError: 'b'\n")
	require.Len(t, f.Progress, 3)
	for _, m := range f.Progress {
		require.Equal(t, 2, m.Tag.Label, m.Text)
	}
	require.Len(t, f.Events, 2)
	require.Equal(t, "KeyError: 'a'", f.Events[0].Text)
	require.Equal(t, 2, f.Events[0].Tag.Label)
	require.Equal(t, 3, f.Events[1].Tag.Label)
	copied := factsOf(t, "2: "+strings.ReplaceAll(diagnosetest.Rounds(3, bar+"\n"), "\n", "")+"KeyError: 'a'\n")
	require.Len(t, copied.Progress, 3, "a copy without carriage returns")
	require.Equal(t, 2, copied.Progress[2].Tag.Label)
	require.Len(t, copied.Events, 1)
	require.Equal(t, "KeyError: 'a'", copied.Events[0].Text)
	long := strings.ReplaceAll(diagnosetest.Rounds(200, bar+"\n"), "\n", "\r")
	require.Len(t, factsOf(t, long+"KeyError: 'a'\n").Events, 1, "the end of a long line with a bar is read")
	require.Len(t, factsOf(t, strings.ReplaceAll(long, "\r", "")+"KeyError: 'a'\n").Events, 1, "and of its copy")
	require.Empty(t, factsOf(t, strings.Repeat("a word ", 900)+"KeyError: 'a'\n").Events, "and the head of another")
	require.Len(t, factsOf(t, "CUDA out of memory. Tried to allocate 2 GiB"+strings.Repeat(" a word", 900)+"\n").Events, 1)
}

// TestProcessesThatBeginAgain has launchers that say nothing of their next attempt: what the
// processes say first comes again.
func TestProcessesThatBeginAgain(t *testing.T) {
	const begin, work, failed = "2: The seed is set to 17\n2: The model has 12 layers\n", "2: a loss of 0.1\n2: a loss of 0.2\n",
		"E0610 08:59:06.36 17 api.py:826] failed (exitcode: 1) local_rank: 0 (pid: 9) of binary: /v/python\n"
	for name, c := range map[string]struct {
		log    string
		starts int
	}{
		"another attempt":               {begin + work + failed + begin + work, 1},
		"with other numbers":            {begin + work + failed + strings.Replace(begin, "12", "24", 1), 1},
		"two of them":                   {begin + work + failed + begin + work + failed + begin, 2},
		"nothing failed":                {begin + work + begin + work, 0},
		"only the first line":           {begin + work + failed + "2: The seed is set to 17\n" + work, 0},
		"only the second":               {begin + work + failed + "2: The model has 12 layers\n" + work, 0},
		"a line between them":           {begin + work + failed + "2: The seed is set to 17\n2: a loss of 3\n2: The model has 12 layers\n", 0},
		"the first with another number": {begin + work + failed + strings.Replace(begin, "17", "18", 1), 0},
		"another rank":                  {begin + work + failed + strings.ReplaceAll(begin, "2:", "3:"), 0},
		"no launcher's rank":            {strings.ReplaceAll(begin+work+failed+begin, "2: ", ""), 0},
		"said over and over":            {begin + begin + work + failed + begin, 0},
		"the second twice, then":        {begin + work + failed + begin + "2: The model has 12 layers\n" + work, 1},
		"said twice at first":           {"2: The seed is set to 17\n" + begin + work + failed + begin, 1},
	} {
		t.Run(name, func(t *testing.T) { require.Len(t, factsOf(t, c.log).Starts[scan.Restarted], c.starts) })
	}
}

// TestWhichExceptionOfAChainCounts has exceptions that others followed from.
func TestWhichExceptionOfAChainCounts(t *testing.T) {
	const handling, from = "\nDuring handling of the above exception, another exception occurred:\n\n",
		"\nThe above exception was the direct cause of the following exception:\n\n"
	oom, key, other := diagnosetest.Raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"), diagnosetest.Raised("KeyError: 'a'"), diagnosetest.Raised("ValueError: b")
	for log, line := range map[string]string{
		key + from + other:     "KeyError",
		key + handling + other: "ValueError",
		oom + handling + other: "OutOfMemoryError",
		oom + from + other:     "OutOfMemoryError",
		key + from + oom:       "OutOfMemoryError",
		key + handling + oom:   "OutOfMemoryError",
		diagnosetest.Raised("KeyboardInterrupt") + handling + other: "KeyboardInterrupt",
	} {
		var counted []string
		for _, e := range factsOf(t, log).Events {
			if e.Counts() {
				counted = append(counted, e.Text)
			}
		}
		require.Len(t, counted, 1, log)
		require.Contains(t, counted[0], line, log)
	}
	for log, class := range map[string]string{
		"0: Traceback (most recent call last):\n0:   File \"/w/a.py\", line 3, in f\n0: KeyError\n0: : \n0: 'a'\n":                 "KeyError: 'a'",
		"0: Traceback (most recent call last):\n0:   File \"/w/a.py\", line 3, in f\n0: ValueError\n0: : no such mode\n":           "ValueError: no such mode",
		"0: Traceback (most recent call last):\n0:   File \"/w/a.py\", line 3, in f\n0: ValueError:\n0: no such mode\n":            "ValueError: no such mode",
		"0: Traceback (most recent call last):\n0:   File \"/w/a.py\", line 3, in f\n0: ValueError\n0: The next step\n":            "ValueError",
		"0: Traceback (most recent call last):\n0:   File \"/w/a.py\", line 3, in f\n0: ValueError\n":                              "ValueError",
		"0: Traceback (most recent call last):\n0:   File \"/w/a.py\", line 3, in f\n0:     go()\n0:       ^^\n0: KeyError: 'b'\n": "KeyError: 'b'",
		"  File \"/w/a.py\", line 3, in f\n    go()\nbase.models.Trouble: no\n":                                                    "base.models.Trouble: no",
		"Traceback (most recent call last):\n  File \"/w/a.py\", line 3, in f\nThis was it: no\nKeyError: 'c'\n":                   "KeyError: 'c'",
		"  | Traceback (most recent call last):\n  |   File \"/w/a.py\", line 3, in f\n  | KeyError: 'd'\n":                        "KeyError: 'd'",
		"12:01 E Traceback (most recent call last):\n12:02 E   File \"/w/a.py\", line 3, in f\n12:03 E KeyError: 'e'\n":            "KeyError: 'e'",
	} {
		events := factsOf(t, log).Events
		require.Len(t, events, 1, log)
		require.Equal(t, class, strings.Join(strings.Fields(events[0].Text), " "), log)
	}
}

// TestClassesOfExceptions has exceptions whose class hangs on their words, and on whether
// a traceback leads to them.
func TestClassesOfExceptions(t *testing.T) {
	weight := func(log, class string) int {
		events := factsOf(t, log).Events
		require.Len(t, events, 1, log)
		require.Equal(t, class, events[0].Class, log)
		return events[0].Weight
	}
	require.Equal(t, weight(diagnosetest.Raised("KeyError: 'a'"), outcome.UserException)-1, weight("KeyError: 'a'\n", outcome.UserException))
	require.Equal(t, weight(diagnosetest.Raised("OSError: [Errno 28] No space left on device: '/a'"), outcome.DiskFull),
		weight("OSError: [Errno 28] No space left on device: '/a'\n", outcome.DiskFull))
	require.Equal(t, scan.Enough, 3)
}

// TestLastWordsInOneFileAreForAll has the last lines of a job's error log, beside an output
// that says that everything is saved or done, or is amid its steps.
func TestLastWordsInOneFileAreForAll(t *testing.T) {
	const saved, amid = "Everything is saved\n", "step 1/3\n"
	for last, c := range map[string]struct {
		out  string
		ends bool
	}{
		"A note on it":                       {saved, true},
		"step 2/3":                           {saved, false},
		"The evaluation failed":              {saved, false},
		"Traceback (most recent call last):": {saved, false},
		"  File \"/w/a.py\", line 3, in f":   {saved, false},
		"Finished the first part":            {amid, false},
		"real\t3m0.1s":                       {amid, true},
		"accuracy: 0.9":                      {amid, true},
		"Training finished.":                 {amid, true},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "job.err"), []byte("The learning rate is 0.01\n"+last+"\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "job.out"), []byte("Reading a shard\n"+c.out), 0o600))
		r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "ENDED"})
		require.NoError(t, err)
		require.Equal(t, c.ends, r.Class == outcome.Success, "%s: %s %s: %s", last, r.Class, r.Why, r.RootLine)
	}
}
