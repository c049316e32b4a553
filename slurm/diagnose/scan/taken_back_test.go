package scan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// TestWhatTakesAnEndBack has words of an end and what takes them back or not, and lines that only accompany a work.
func TestWhatTakesAnEndBack(t *testing.T) {
	plugIn := "Error while loading conda entry point: conda-libmamba-solver (libarchive.so.20: cannot open shared object file: No such file or directory)\n"
	for name, c := range map[string]struct{ log, class string }{
		"conda did without a plug-in, and a rule was a command": {plugIn + "run.sh: line 10: ==========: command not found\n" + plugIn + "step 3, loss 0.2\n", outcome.UnknownExit},
		"a hidden state of another size":                        {diagnosetest.Raised("RuntimeError: Expected hidden[0] size (2, 56, 128), got (2, 64, 128)"), outcome.ShapeMismatch},
		"an input of another size":                              {diagnosetest.Raised("RuntimeError: input.size(-1) must be equal to input_size. Expected 64, got 32"), outcome.ShapeMismatch},
		"all is done, and the next work begins":                 {"loss 0.3\n[INFO] 全部任务完成\n[INFO] 开始跑 Qwen2.5 on chart\n", outcome.UnknownExit},
		"the training is done, and its start is told":           {"loss 0.3\n训练完成\n开始时间: 10:00:01\n", outcome.Success},
		"a script's exit status":                                {"{\n\"top3_hit\": true\n}\nEXIT_STATUS:0\n", outcome.Success},
		"samples that are ready":                                {"loss 0.3\nYour samples are ready and waiting for you here: \n./out\n\nEnjoy.\n", outcome.Success},
		"a text that a model wrote":                             {"[8/90] generated:\nCook it.\nEnjoy!\n", outcome.UnknownExit},
		"the status of one of several tasks":                    {"case 8 of 90\ntask 8 exit_code=0\n", outcome.UnknownExit},
		"a script's variable":                                   {"loss 0.3\n+ EXIT_CODE=0\n", outcome.UnknownExit},
		"all is done, and a test passed":                        {"loss 0.3\n[INFO] 全部任务完成\n开始测试通过\n", outcome.Success},
		"another exit status":                                   {"loss 0.3\nEXIT_STATUS:1\n", outcome.UnknownExit},
		"the last batch of the last epoch, in words":            {batches(600), outcome.Success},
		"the last batch of another epoch":                       {batches(599), outcome.UnknownExit},
		"nanoGPT's last iteration, behind its last evaluation":  {nano(3000), outcome.Success},
		"an iteration before it":                                {nano(2990), outcome.UnknownExit},
		"more iterations than the setting says":                 {nano(3000) + "iter 3010: loss 0.02, time 4.5ms\n", outcome.UnknownExit},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}

// batches is the log of a trainer that writes its counts in words, up to the end of an epoch.
func batches(epoch int) (log string) {
	for n := range 28 {
		log += fmt.Sprintf("Epoch is [%d/600], mini-batch is [%d/27], batch_loss is 0.19971590\nclassify loss is 0.06769162\n", epoch, n)
	}
	return log + "epoch_loss is 0.22183135\nMon May 23 19:39:13 2022\n=====================\n"
}

// nano is the log of nanoGPT up to an iteration at which it evaluates.
func nano(last int) string {
	log := "Overriding config with config/a.py:\nmax_iters = 3000\nlr_decay_iters = 3000\n"
	for n := 0; n < last; n += 500 {
		log += fmt.Sprintf("step %d: train loss 1.2, val loss 1.5\nsaving checkpoint to out\niter %d: loss 1.2, time 4.5ms\niter %d: loss 1.2, time 4.5ms\n", n, n, n+10)
	}
	return log + fmt.Sprintf("step %d: train loss 0.1, val loss 0.8\nsaving checkpoint to out\niter %d: loss 0.02, time 4.5ms\n", last, last)
}
