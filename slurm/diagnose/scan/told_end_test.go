package scan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestEndsToldInOtherWords has, in words of our own, how a service or a batch system
// tells what came of a job, how a training says that it stops, counts in words, times in other
// languages, and what takes an end back.
func TestEndsToldInOtherWords(t *testing.T) {
	steps := "Step 10 loss 0.5\nStep 20 loss 0.4\nStep 30 loss 0.3\n"
	table := "\nJob ID:          8123.head\nUsername:        ana\nGroup:           users\nQueue Used:      gpu\nAccount:         a12\nNode:            n07\n-----\n"
	const answered = "127.0.0.1 - - [24/Feb/2026 10:00:00] \"GET /done HTTP/1.1\" 200 -\n"
	const lost = "[rank3]:[E814 01:57:12.984417033 ProcessGroupNCCL.cpp:542] [Rank 3] Collective WorkNCCL(SeqNum=19, OpType=ALLREDUCE, Timeout(ms)=600000) raised " +
		"the following async exception: NCCL error: unhandled system error, NCCL version 2.21.5\n"
	mlperf := func(key, status string) string {
		return ":::MLLOG {\"time_ms\": 171, \"event_type\": \"INTERVAL_END\", \"key\": \"" + key + "\", \"value\": 2.9, \"metadata\": {\"status\": \"" + status + "\"}}\n"
	}
	for name, c := range map[string]struct{ log, class, line string }{
		"a service of what it ran": {
			steps + "Training:  99%|#########9| 199/200 [01:00<00:01,  3.3it/s]\n--------\nJob 'raysubmit_Ab12Cd34Ef56' succeeded\n--------\n", outcome.Success, "",
		},
		"the same of one that failed after its last words": {
			steps + "Training done.\nwandb: Synced 2 W&B file(s)\n--------\nJob 'raysubmit_Ab12Cd34Ef56' failed\n--------\n", outcome.UnknownExit, "",
		},
		"Slurm's record in columns, behind a time without a year": {
			"[Mon Jul  8 12:48:38]\n" + steps + "State               : COMPLETED\nExitCode            : 0:0\nEnd                 : 2026-07-08T12:49:00\n",
			outcome.Success, "",
		},
		"a script's part, behind a count that is not full": {
			diagnosetest.Rounds(9, "Ep {n}/90 | loss 0.5\n") + "Nothing better for 3 of them (patience)\n[10:00:01] small_model: done\n", outcome.Success, "",
		},
		"each of many parts, behind such counts": {
			diagnosetest.Rounds(5, "Ep 1/90 | loss 0.5\nEp 2/90 | loss 0.5\nReading the next one\nPart {n}: done\n"), outcome.UnknownExit, "",
		},
		"a farewell":             {steps + "Goodbye! (7.97 sec)\n", outcome.Success, ""},
		"a batch system's table": {steps + "Exit Status:     0" + table, outcome.Success, ""},
		"its table, indented":    {steps + "\tExit Status: 0\n" + strings.ReplaceAll(table, "\n", "\n\t"), outcome.Success, ""},
		"a long account of a job": {
			steps + "State: COMPLETED (exit code 0)\n" + diagnosetest.Rounds(40, "project {n}  /projects  999  51,200\n"), outcome.Success, "",
		},
		"an account, and another run behind it": {
			steps + "State: COMPLETED (exit code 0)\n" + diagnosetest.Rounds(120, "Step {n} loss 0.5\n"), outcome.UnknownExit, "",
		},
		"a display that is gone": {
			diagnosetest.Rounds(9, "Epoch {n}\tReward [-449.2]\tTime 22.1s\nSteps: 100.00\n") +
				"Epoch 10\tReward [-431.9]\tTime 21.1sXIO:  fatal IO error 11 (Success) on X server \":7\"\n\n      after 51 requests with 3 events remaining.\n",
			outcome.UnknownExit, "",
		},
		"a training that names its best and stops":    {diagnosetest.Rounds(12, "Epoch {n} | loss: 0.5 | 2.6s\n") + "Stopping. Best val: 0.4 at epoch 8\n", outcome.Success, ""},
		"its table, of a program that had said done":  {steps + "Training done.\nExit Status:     3" + table, outcome.UnknownExit, "Exit Status"},
		"an exit status that is followed by others":   {steps + "Exit status: 0\n" + strings.Repeat("Step 40 loss 0.2\nreading the next part\n", 9), outcome.UnknownExit, ""},
		"a training that stops by itself":             {"12:00:01 98 0.51 0.62\n12:00:03 99 0.51 0.62\nStop training.\nReading the weights.\nWriting: net.keras\n", outcome.Success, ""},
		"a training that stops for bad numbers":       {steps + "Loss is nan, stopping training\n", outcome.NaNLoss, "Loss is nan"},
		"a workflow's command that would say so":      {steps + "rule polish:\n    polish --out b.gz a.gz\n\n    echo \"Polishing completed\"\n", outcome.UnknownExit, ""},
		"a script's trace, and what it said":          {steps + "+ echo Training finished\nTraining finished\n", outcome.Success, ""},
		"Portuguese":                                  {steps + "Tempo de execução: 41.7 s\n", outcome.Success, ""},
		"Spanish":                                     {steps + "Tiempo total: 41,7 segundos\n", outcome.Success, ""},
		"German":                                      {steps + "Laufzeit: 41.7 s\n", outcome.Success, ""},
		"Chinese":                                     {steps + "总耗时：41.7秒\n", outcome.Success, ""},
		"a clock's time in Chinese":                   {steps + "时间: 12:30:45\n", outcome.UnknownExit, ""},
		"a shell's prompt behind a program that left": {steps + "no usable shards below /data, leaving\n(base) ana@gpu1:~/train$ \n", outcome.UnknownExit, ""},
		"where a program that begins will write": {
			"[2026-03-04 06:03:23][main][INFO] - 17 parameters\n[2026-03-04 06:03:24][main][INFO] - Evaluation saved to: ./runs/a\n", outcome.UnknownExit, "Evaluation",
		},
		"where a program that worked wrote": {
			"[2026-03-04 06:03:23][main][INFO] - 17 items\n[2026-03-04 06:07:24][main][INFO] - Evaluation saved to: ./runs/a\n", outcome.Success, "",
		},
		"what a program just wrote": {"prepare --root /d\nWritten to ./pairs/\n", outcome.Success, ""},
		"an evaluation of a benchmark that has begun": {
			strings.Repeat(mlperf("loss", "")+mlperf("block_stop", ""), 9) + mlperf("eval_start", "") + mlperf("eval_accuracy", "") + mlperf("eval_stop", ""),
			outcome.UnknownExit, "eval_stop",
		},
		"the end of a benchmark's run":       {steps + mlperf("run_stop", "success"), outcome.Success, ""},
		"a benchmark's run that was aborted": {steps + mlperf("run_stop", "aborted") + "RESULT,GPT,,3573,ana,2026-03-04 06:03:23 AM\n", outcome.UnknownExit, ""},
		"a server that has started": {
			"Reading: 100%|██████████| 4/4 [00:05<00:00,  1.30s/it]\nAll 4 models loaded, 3 workers done.\nServer running on http://0.0.0.0:8000 (Ctrl-C to quit)\n",
			outcome.UnknownExit, "Server running",
		},
		"a server that has answered":                                     {"All four read. Done.\nListening\n" + answered, outcome.UnknownExit, "GET /done"},
		"a server that has shut down":                                    {"All four read.\n" + answered + "INFO:     Finished server process [12]\n", outcome.Success, ""},
		"a client of that server":                                        {answered + steps + answered + "Evaluation complete.\n", outcome.Success, ""},
		"an end that was told, and a rank that the others miss after it": {steps + "训练结束 | 30 步\n" + lost, outcome.Success, ""},
		"the same in English":                                            {steps + "Training finished | 30 steps\n" + lost, outcome.Success, ""},
		"the same before the end":                                        {steps + lost + "训练完成！\n", outcome.Success, ""},
		"an end that was not told":                                       {steps + lost, outcome.NCCLConnection, "Rank 3"},
		"the end of one training, and another":                           {steps + "训练完成。\n" + strings.Repeat(steps, 9) + lost, outcome.NCCLConnection, "Rank 3"},
		"the end of a round in Chinese":                                  {steps + "第 3 轮训练完成\n" + steps, outcome.UnknownExit, ""},
		"what follows an end in Chinese":                                 {steps + "训练完成后保存模型\n" + steps, outcome.UnknownExit, ""},
		"such an end that srun calls a failure":                          {steps + "训练完成。\n" + lost + "srun: error: n1: task 3: Aborted\n", outcome.NCCLConnection, "Rank 3"},
		"a library's own record in C++": {
			"I1123 20:55:31.537145 43821 comm_id.cc:190] Exchange of the ids successful.\nW1123 20:55:33.1 43821 device.cc:4] device: 3\n", outcome.UnknownExit, "device: 3",
		},
		"a training in C++":  {"I0602 19:17:40.4 1854 solver.cpp:316] Optimization Done.\nI0602 19:17:40.5 1854 main.cpp:259] Optimization Done.\n", outcome.Success, ""},
		"a server's start":   {"Listening on 127.0.0.1:8000 successfully\n", outcome.UnknownExit, "Listening"},
		"what a seed was":    {"Full config saved to ./out/config.yaml\nUsing a generated random seed 15800989\n", outcome.UnknownExit, "seed"},
		"what was generated": {"Generated 12 random seeds\n", outcome.Success, ""},
		"a row of a table about the environment, and nothing else": {
			"-----------  ------\nPython       3.8.13\nfast._C      not built correctly: /v/fast/_C.so: undefined symbol: _ZN3c10\n-----------  ------\nTraining with seed 7\n",
			outcome.UnknownExit, "seed 7",
		},
		"how many samples there are":                           {"Running 200 samples from 200 configured (dataset size: 500)\n", outcome.UnknownExit, "200"},
		"the time of each round":                               {strings.Repeat("Runde loss 0.5\nLaufzeit: 41.7 s\n", 9), outcome.UnknownExit, ""},
		"all is done, and the next work begins":                {"loss 0.3\n[INFO] 全部任务完成\n[INFO] 开始跑 Qwen2.5 on chart\n", outcome.UnknownExit, ""},
		"the training is done, and its start is told":          {"loss 0.3\n训练完成\n开始时间: 10:00:01\n", outcome.Success, ""},
		"a script's exit status":                               {"{\n\"top3_hit\": true\n}\nEXIT_STATUS:0\n", outcome.Success, ""},
		"samples that are ready":                               {"loss 0.3\nYour samples are ready and waiting for you here: \n./out\n\nEnjoy.\n", outcome.Success, ""},
		"a text that a model wrote":                            {"[8/90] generated:\nCook it.\nEnjoy!\n", outcome.UnknownExit, ""},
		"the status of one of several tasks":                   {"case 8 of 90\ntask 8 exit_code=0\n", outcome.UnknownExit, ""},
		"a script's variable":                                  {"loss 0.3\n+ EXIT_CODE=0\n", outcome.UnknownExit, ""},
		"all is done, and a test passed":                       {"loss 0.3\n[INFO] 全部任务完成\n开始测试通过\n", outcome.Success, ""},
		"another exit status":                                  {"loss 0.3\nEXIT_STATUS:1\n", outcome.UnknownExit, ""},
		"the last batch of the last epoch, in words":           {batches(600), outcome.Success, ""},
		"the last batch of another epoch":                      {batches(599), outcome.UnknownExit, ""},
		"nanoGPT's last iteration, behind its last evaluation": {nano(3000), outcome.Success, ""},
		"an iteration before it":                               {nano(2990), outcome.UnknownExit, ""},
		"more iterations than the setting says":                {nano(3000) + "iter 3010: loss 0.02, time 4.5ms\n", outcome.UnknownExit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, d.Class)
			require.Contains(t, d.RootLine, c.line)
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
