package scan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// TestWhatTheLastLinesTell has the last lines of one log, and what they tell of the end by themselves.
func TestWhatTheLastLinesTell(t *testing.T) {
	const (
		note      = "A note on it\n"
		saved     = "Everything is saved\n"
		done      = "Training finished.\n"
		full      = "Test: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n"
		part      = "Test:  50%|##  | 15/31 [00:07<00:07, 3.9it/s]\n"
		iteration = " iteration {n}/ 200 | elapsed time per iteration (ms): 900.1 | lm loss: 2.1 |\n"
		raised    = "Traceback (most recent call last):\n  File \"/w/a.py\", line 3, in f\nKeyError: 'a'\n"
		lost      = "77|TIMEOUT|0:0\n"
		trained   = "{'train_runtime': 12.4, 'epoch': 3.0}\n"
		day       = "2026-01-08 "
		shut      = "INFO:     Shutting down\nINFO:     Application shutdown complete.\nINFO:     Finished server process [52]\n"
	)
	at := func(n string) string { return strings.ReplaceAll(iteration, "{n}", n) }
	notes := func(n int) string { return strings.Repeat(note, n) }
	rounds := func(round string, n int) string { return strings.Repeat(round+notes(2), n) }
	var (
		nothing = scan.Ending{}
		said    = scan.Ending{Said: true}
		sure    = scan.Ending{Said: true, Sure: true}
		none    = scan.Ending{Sure: true}
	)
	for log, want := range map[string]scan.Ending{
		note: nothing, saved: said, done: sure,
		// What is said of a round, of one of several parts, or by a trainer amid its training is no end of all.
		"Epoch 2: train loss 2.1, val loss 2.0\n":                                                               nothing,
		strings.Replace(part, "Test", "Epoch 1", 1) + "Metric improved. New best score: 0.3\n":                  nothing,
		"{'loss': 1.9, 'epoch': 0.1}\n{'eval_loss': 1.6, 'eval_time': 12.1, 'eval_speed': 8.2, 'epoch': 0.2}\n": nothing,
		"Experiment 1 done\nRunning experiment 2 of 5\nTest accuracy: 0.9\nExperiment 2 done\n":                 {Said: true, Counted: true, Short: true},
		// A last line that tells of a failure, and a script's last words behind one.
		full + "2 failed, 14 passed\n":                                            {Counted: true},
		full + "[08/02/2021-15:12:06] &&&& FAILED a.b # ./a\n":                    {Counted: true},
		"FATAL: config is bad - training stopped\n":                               nothing,
		"Error: cannot find the data\nJob finished at Tue Mar  5 10:00:00 2024\n": none,
		"The evaluation run failed for sample 3, skipped\n" + saved + note:        said,
		"12 passed, 0 failed\n":                                                   said,
		"&&&& PASSED a.b # ./a\n":                                                 said,
		"Non-fatal errors: 0. All is written\n":                                   said,
		"load model success\n":                                                    nothing,
		"/v/a.py:7: UserWarning: it was passed an array of 3\n":                   nothing,
		// A sentence that a program generated, and a failure behind which it measured.
		full + "Failed attempts taught her that patience wins\n":                          {Counted: true, Full: true},
		saved + "Error handling is important\nJob finished at Tue Mar  5 10:00:00 2024\n": sure,
		"Error: no display for the plot\nAccuracy: 93.1%\n":                               sure,
		// A server that shuts down behind an exception, and one that was asked to.
		raised + shut: none, raised + "Somebody wants me to end\n" + shut: said,
		// Something new begins after a long time, although lines without a time are between.
		day + "10:00:00 step 9/9 loss: 2\n" + note + day + "12:00:00 a note\n": {Counted: true},
		// The word that all is done, and what takes it back.
		done + "The evaluation failed\n":                                              none,
		"The evaluation failed\n" + done:                                              sure,
		done + "0 of 9 jobs failed\n":                                                 sure,
		done + "The evaluation failed\n" + notes(5):                                   none,
		done + "The evaluation failed\n" + notes(6):                                   sure,
		done + day + "10:00:00 a note\n":                                              sure,
		done + notes(12):                                                              nothing,
		day + "10:00:00 " + done + day + "11:00:00 a":                                 sure,
		"[Thu Jan  8 10:00:00] " + note + done + "[Thu Jan  8 12:00:00] " + note:      sure,
		"State: COMPLETED (exit code 0)\n" + diagnosetest.Rounds(99, "A note {n}\n"):  sure,
		"State: COMPLETED (exit code 0)\n" + diagnosetest.Rounds(100, "A note {n}\n"): nothing,
		// An account of another state, and a traceback that goes on.
		// A heading has words of an end, and what it heads is missing.
		rounds("loss 0.5\n", 9) + "Generated answers:\n": nothing, rounds("loss 0.5\n", 9) + "Generated answers\n": sure,
		lost: none, lost + notes(5): none, lost + notes(6): nothing,
		saved + "Traceback (most recent call last):\n  File \"/w/a.py\", line 3, in f\n": none,
		saved + "Traceback (most recent call last):\n":                                   none,
		saved + "Traceback (most recent call last):\n" + note:                            said,
		// A bar that is drawn once more when its loop is left.
		part + done + part:                                   sure,
		part + done + part + part:                            {Said: true, Counted: true},
		part + done + note + part:                            {Said: true, Counted: true},
		part + done + strings.Replace(part, "31", "32", 1):   {Said: true, Counted: true},
		part + done + strings.Replace(part, "Test", "Ev", 1): {Said: true, Counted: true},
		part + done + "step 15/31 loss: 2\n":                 {Said: true, Counted: true},
		"step 15/31 loss: 2\n" + done + part:                 {Said: true, Counted: true},
		done + part:                                          {Said: true, Counted: true},
		part + "A word\n" + part:                             {Counted: true},
		// Bars behind an exception.
		saved + raised + part:            none,
		saved + raised + part + part:     none,
		saved + raised + full:            {Said: true, Counted: true, Full: true},
		saved + "KeyError: 'a'\n" + part: {Said: true, Counted: true},
		raised + note + part:             {Counted: true},
		// A trainer's summary.
		trained + notes(6): said, trained + notes(7): nothing,
		trained + notes(3) + strings.Repeat(part, 9) + notes(3): {Said: true, Counted: true},
		part + trained: said, part + saved: sure,
		strings.Repeat(full+"a\nb\nc\n", 6):                                    nothing,
		strings.Repeat(full+"a\nb\nc\n", 6) + trained + full:                   {Said: true, Counted: true, Full: true},
		"A word: \n" + trained + strings.Repeat("1  2.0  3.0\n", 9) + notes(1): said,
		// A message of a fit that reached its last epoch.
		part + "`Trainer.fit` stopped: `max_epochs=5` reached.\n": said,
		// Counts, and what stands behind them.
		full: {Counted: true, Full: true}, part: {Counted: true},
		full + note:               {Counted: true, Full: true},
		"Epoch 3/3\n":             {Counted: true, Full: true},
		"Epoch 2/3\n":             {Counted: true, Short: true},
		"Epoch 2/3\n" + full:      {Counted: true, Full: true, Short: true},
		"Epoch 3/3: first half\n": {Counted: true, Short: true}, // it begins
		"2026-03-30 15:09:55 | Epoch 3/3: first half\n":              {Counted: true, Short: true},
		"Epoch 3/3: loss 0.25\n":                                     {Counted: true, Full: true},
		"Epoch 3/3\n" + at("150"):                                    {Counted: true},
		"Epoch 3/3\n" + at("200"):                                    {Counted: true, Full: true},
		at("200") + "Epoch 2/3\n":                                    {Counted: true, Short: true},
		at("150") + "Epoch 3/3\n":                                    {Counted: true, Full: true},
		"Loading weights: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n": nothing,
		"Epoch 3: 100%|####| 31/31 [00:07<00:00, 3.9it/s]\n":         nothing,
		full + "Loading the next one\n":                              {Counted: true, Full: true},
		full + "evaluating the next one ...\n":                       {Counted: true},
		full + "Results:\n":                                          {Counted: true},
		full + "Results:\n" + note:                                   {Counted: true, Full: true},
		saved + "Results:\n":                                         nothing,
		// Words that another hour, or what is announced, takes back.
		day + "10:00:00 Everything is saved\n" + day + "11:00:00 a note\n": said,
		day + "10:00:00 Everything is saved\n" + day + "11:00:01 a note\n": nothing,
		saved + day + "10:00:00 a note\n":                                  said,
		saved + "Loading the next one\n":                                   nothing,
		saved + "Loading is done\n":                                        said,
		saved + "Error: no such thing\n":                                   nothing,
		saved + "error: 0 of 9\n":                                          said,
		saved + "srun: error: gpu1: task 0: Killed\n":                      said,
		saved + "evaluating the next one ...\n":                            nothing,
		saved + "saving the plots ...\n":                                   said,
		"[INFO] " + saved + "[INFO] evaluating 79 x 79 blocks...\n":        nothing,
		saved + "INFO:root:M step...\n" + note:                             nothing, saved + "Saving the plots...\n" + note: said, done + "M step...\n" + note: sure,
		saved + "INFO:root:Computing 9 blocks\n": nothing,
		// What handles results is no further part of the work.
		saved + "Plotting the losses...\n" + note:                              said,
		saved + "2026-03-04 10:00:00 - INFO - Uploading the plots...\n" + note: said,
		saved + "Cleaning the texts...\n":                                      nothing,
		saved + "Training the second one...\n" + note:                          nothing,
		// What was read in is where the work begins.
		"INFO:root:loaded the encoder of epoch 66: <All keys matched successfully>\n" + note:    nothing,
		"Restored 12 tables, all were checked successfully\n" + note:                            nothing,
		"Stored 12 tables, all were checked successfully\n" + note:                              said,
		"The encoder was successfully restored from encoder.nemo\n" + note:                      nothing,
		"Training finished; the weights initialized at random were saved successfully\n" + note: said,
		"Best model loaded, training completed successfully\n" + note:                           said,
		saved + "evaluating, finished 9/9 ...\n":                                                said,
		// The bar of the loop around loops that have bars of the same name.
		rounds("100%|####| 58/58 [03:01<00:00, 3.1s/it]\nA note on it\n", 6) + "100%|####| 34/34 [1:46:10<00:00, 610.9s/it]\n":                {Counted: true, Full: true},
		rounds("100%|####| 58/58 [03:01<00:00, 3.1s/it]\nA note on it\n", 6) + "100%|####| 34/34 [12:00<00:00, 21.2s/it]\n":                   nothing,
		strings.Repeat(rounds("100%|####| 58/58 [03:01<00:00, 3.1s/it]\nA note on it\n", 6)+"100%|####| 34/34 [1:46:10<00:00, 611s/it]\n", 2): nothing,
		// The time that remains to something that has begun.
		saved + "Test [ 20/251]  eta: 0:13:49  time: 3.3\n":        nothing,
		saved + "Test [ 20/251]  eta: 1:00:00  time: 3.3\n":        nothing,
		saved + "Test [ 20/251]  eta: 1 day, 3:00:00  time: 3.3\n": nothing,
		saved + "it 20, time remaining: 10:00\n":                   nothing,
		saved + "Test [250/251]  eta: 0:00:03  time: 3.3\n":        said,
		saved + "Test [ 20/251]  eta: 0:13:49\n" + note:            said,
		// Lines of no program between the words and the end.
		saved + strings.Repeat("ana@gpu1:~/train$ \n", 9):                                 said,
		saved + strings.Repeat("1  72.07  1080.8  ...\n", 9):                              said,
		saved + strings.Repeat("[W1123 10:01:02.11 a.cpp:7] [c10d] a peer is gone\n", 9):  said,
		saved + strings.Repeat("[W1123 10:01:02.11 a.cpp:7] [other] a peer is gone\n", 9): nothing,
		saved + strings.Repeat("WARNING: slow\n", 9):                                      nothing,
		saved + strings.Repeat("+-----+\n| GPU |\n+-----+\n", 9):                          said,
		saved + strings.Repeat("[[11  2]\n [ 3  9]]\n", 9):                                said,
		// Failures among the last lines.
		saved + "The evaluation failed\n": none, saved + "The evaluation failed\n" + notes(5): none,
		saved + "The evaluation failed\n" + notes(6): nothing,
		saved + "0 of 9 jobs failed\n":               said,
		saved + "KeyError: 'a'\n":                    none,
		saved + "Killed\n":                           none,
		// Words of warnings, tables and headings.
		"WARNING: all is saved\n":                           nothing,
		"n1:1:2 [0] NCCL INFO comm setup is done\n":         nothing,
		"| everything is saved |\n":                         nothing,
		"=== everything is saved ===\n":                     said,
		"--- everything is saved ---\n":                     said,
		"**** everything is saved ****\n":                   said,
		"# everything is saved #\n":                         said,
		"│ everything is saved │\n":                         said,
		"│ everything │ is saved │\n":                       nothing,
		"usage: all is done\n":                              nothing,
		"Saved models:\n":                                   nothing,
		"Saved models:\n" + note:                            said,
		"echo end time: 7\n":                                nothing,
		"printf end time: 7\n":                              nothing,
		"end time: 7\n":                                     sure,
		"not finished, end time: 7\n":                       nothing,
		"Epoch 3 ended, end time: 7\n":                      nothing,
		"Part 3 of 9 is done\n":                             nothing,
		"Inference done 8/9, all is kept\n":                 nothing,
		"{'loss': 0.1, 'grad_norm': 0.2, 'epoch': 1.0}\n":   nothing,
		"{'eval_loss': 0.1, 'eval_f': 0.2, 'epoch': 1.0}\n": said,
		"{'2': 2292, '3': 2293, '4': 2294, '5': 2295}\n":    nothing,
	} {
		assert.Equal(t, want, factsOf(t, "Reading a shard\nThe learning rate is 0.01\n"+log).Ending(), log)
	}
	require.Equal(t, scan.Ending{Counted: true, Full: true}, factsOf(t, full).Ending(), "a bar that is all of the log")
	require.Equal(t, nothing, factsOf(t, "").Ending())
}

// TestWhatASeriesOfLinesTells has lines that come again, with so many others between them.
func TestWhatASeriesOfLinesTells(t *testing.T) {
	const saved = "Saved the best model\n"
	every := func(times, others int) string {
		return saved + strings.Repeat(strings.Repeat("a word\n", others)+saved, times-1)
	}
	for name, c := range map[string]struct {
		log string
		end scan.Ending
	}{
		"four times, eleven lines between":      {every(3, 4) + "a\nb\nc\n" + saved, scan.Ending{Said: true}},
		"four times, twelve lines between":      {every(4, 4), scan.Ending{}},
		"three times":                           {every(3, 9), scan.Ending{Said: true}},
		"13 times, a line between each two":     {every(13, 1), scan.Ending{}},
		"13 times, as many lines":               {every(12, 1) + "a\nb\n" + saved, scan.Ending{}},
		"several ranks":                         {diagnosetest.Rounds(9, "{n}: a word\n{n}: another\n{n}: Saved the best model\n"), scan.Ending{Said: true}},
		"a measure twice, eleven lines between": {"accuracy: 0.8\n" + strings.Repeat("a word\n", 11) + "accuracy: 0.9\n", scan.Ending{}},
		"a measure twice, twelve lines between": {"accuracy: 0.8\n" + strings.Repeat("a word\n", 12) + "accuracy: 0.9\n", scan.Ending{Said: true, Sure: true}},
		"once, behind a loop":                   {diagnosetest.Rounds(9, "Step {n}0 has loss 0.5\n") + saved, scan.Ending{Said: true, Sure: true}},
		"twice, behind a loop":                  {diagnosetest.Rounds(9, "Step {n}0 has loss 0.5\n") + saved + saved, scan.Ending{Said: true}},
		"once, behind a loop without work":      {diagnosetest.Rounds(9, "Shard {n}0 has 0.5 GB\n") + saved, scan.Ending{Said: true}},
		"once, in front of a loop":              {saved + diagnosetest.Rounds(9, "Step {n}0 has loss 0.5\n"), scan.Ending{}},
		"once, in front of a loop's last line":  {diagnosetest.Rounds(9, "Step {n}0 has loss 0.5\n") + saved + "Step 100 has loss 0.5\n", scan.Ending{Said: true}},
		"a line of a list of 99":                {strings.Repeat("Image 3 has psnr: 24.1\n", 99) + saved, scan.Ending{Said: true}},
		"a line of a list of 100":               {strings.Repeat("Image 3 has psnr: 24.1\n", 100) + saved, scan.Ending{Said: true, Sure: true}},
		"what it came to, twice":                {strings.Repeat("a word\nFinal loss: 0.12\n", 2), scan.Ending{Said: true}},
		"what it came to, three times":          {strings.Repeat("a word\nFinal loss: 0.12\n", 3), scan.Ending{}},
		"a date three times": {
			"Thu Jan  8 10:00:00 UTC 2026\na\nb\nThu Jan  8 10:01:00 UTC 2026\n" + strings.Repeat("a note\n", 9) + "Thu Jan  8 10:20:00 UTC 2026\n",
			scan.Ending{Said: true, Sure: true},
		},
	} {
		require.Equal(t, c.end, factsOf(t, c.log).Ending(), name)
	}
}

// TestWhatStandsBehindALoop has lines behind the last line of a loop, which a program says when it has left it.
func TestWhatStandsBehindALoop(t *testing.T) {
	loop := diagnosetest.Rounds(9, "Step {n}0 has loss 0.5\n")
	const flops = "Flops of a GPU: 41.2\n"
	others := func(n int) (lines string) {
		for i := range n {
			lines += "word " + strings.Repeat("x", i+1) + "\n"
		}
		return lines
	}
	for name, c := range map[string]struct {
		log  string
		left bool
	}{
		"a number":                              {loop + flops, true},
		"a number after four rounds":            {diagnosetest.Rounds(4, "Step {n}0 has loss 0.5\n") + flops, false},
		"a number after five rounds":            {diagnosetest.Rounds(5, "Step {n}0 has loss 0.5\n") + flops, true},
		"three lines without numbers":           {loop + others(3), false},
		"four lines without numbers":            {loop + others(4), true},
		"four, and a line of the loop's rounds": {"mean of it\n" + loop + others(4) + "mean of it\n", false},
		"a number, 23 lines after the loop":     {loop + strings.Repeat("word x\n", 23) + flops, true},
		"a number, 24 lines after the loop":     {loop + strings.Repeat("word x\n", 24) + flops, false},
		"a number, and an announcement":         {loop + flops + "INFO loading more\n", false},
		"a number, and a last act":              {loop + flops + "INFO saving more\n", true},
		"a number, and a heading":               {loop + flops + "Results:\n", false},
		"a number, and a warning":               {loop + flops + "WARNING: slow\n", false},
		"a number, and a warning of Python's": {
			loop + flops + "/v/lib/a.py:7: UserWarning: old\n  warnings.warn(\n", true,
		},
		"a warning of Python's with a number": {loop + "/v/lib/a.py:7: UserWarning: old: 7\n  warnings.warn(x=7)\n", false},
		"an indented number":                  {loop + "  Flops of a GPU: 41.2\n", true},
		"a row of an array":                   {loop + "[[11  2]\n [ 3  9]]\n", true},
	} {
		require.Equal(t, c.left, factsOf(t, c.log).Ending().Said, name)
	}
	kinds := func(n int) (lines string) {
		for i := range n {
			lines += "word " + string([]byte{'a' + byte(i/256), 'a' + byte(i/16%16), 'a' + byte(i%16)}) + "\n"
		}
		return lines
	}
	require.True(t, factsOf(t, kinds(4094)+loop+flops).Ending().Said)
	require.False(t, factsOf(t, kinds(4095)+loop+flops).Ending().Said, "more kinds of lines are not counted")
}

// TestWhereAShellWaits has last lines that are a shell's prompt, or none.
func TestWhereAShellWaits(t *testing.T) {
	for log, prompt := range map[string]bool{
		"a word\n(base) ana@gpu1:~/train$ \n": true, "a word\n[ana@gpu1 train]$ \n": true, "root@gpu1:/w#\n": true,
		"(base) ana@gpu1:~/train$ \na word\n": false, "ana@gpu1:~/train$ python a.py\n": false, "a word\n": false, "": false, "3: ana@gpu1:~/train$ \n": true,
	} {
		require.Equal(t, prompt, factsOf(t, log).AtPrompt(), log)
	}
}

// TestWhatWasDoneBeforeAnEvent has an exception before and behind the word that all is done.
func TestWhatWasDoneBeforeAnEvent(t *testing.T) {
	for log, done := range map[string]bool{
		"Training finished.\nKeyError: 'a'\n":               true,
		"Training finished.\na word\nKeyError: 'a'\n":       true,
		"KeyError: 'a'\nA word of it\nTraining finished.\n": false,
		"A word of it\nKeyError: 'a'\n":                     false,
		"Training done for epoch 3\nKeyError: 'a'\n":        false,
	} {
		f := factsOf(t, log)
		require.Len(t, f.Events, 1, log)
		require.Equal(t, done, f.DoneBefore(f.Events[0]), log)
	}
}
