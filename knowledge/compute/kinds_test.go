package compute_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

func TestLengthsOfARun(t *testing.T) {
	leads(t, map[string]string{
		// epochs
		"how many passes over a 120B-token dataset are 600B tokens of training": "5 epochs",
		"语料一共 30B token,训练 90B token 是几轮":                                       "3 个 epoch",
		"20000 iterations of gbs 500 on 4M samples: how many epochs":            "2.5 epochs",
		"500k samples and a global batch of 250: steps per epoch?":              "2000 iterations per epoch",
		"样本 64 万条,gbs 1024,一轮 epoch 几步":                                         "625 步",
		"how many steps are 10 epochs of 256000 samples at gbs 512":             "5000 iterations",
		"--train-samples 2000000 with --global-batch-size 400, iterations?":     "5000 iterations",
		// checkpoints
		"train-iters is 50000 and we save every 2000 steps; number of checkpoints?":     "25 checkpoints",
		"--train-iters 1050 --save-interval 100, how many checkpoints":                  "11 checkpoints",
		"总共 12000 步,每 1000 步保存一次,会有几个检查点":                                               "12 个检查点",
		"iteration takes 5.4 s, save-interval 400: minutes between checkpoints":         "Every 36 minutes",
		"一步 12 秒,save-interval 300,隔多久存一次":                                              "每 60 分钟",
		"a checkpoint every 30 minutes and an iteration takes 6 s, which save-interval": "`--save-interval 300`",
		"想每小时存一次,每步 10 秒,save-interval 设多少":                                             "`--save-interval 360`",
		// jobs in a chain, iterations in a job, time of a run
		"72 hour run under a 10 hour time limit, number of jobs in the chain":                    "8 jobs",
		"总共要跑 10 天,单个作业最长 2 天,要提交几次":                                                             "5 个作业",
		"40000 iterations at 4.5 s per iteration with jobs of 12 hours: how many array elements": "5 jobs",
		"how many steps fit into --time=04:00:00 if a step takes 7.2 s":                          "2000 iterations",
		"作业时限 24 小时,一步 6 秒,最多能跑几步":                                                               "14400 步",
		"wall time for 30k steps, 3 s/step":                                                      "25 hours",
		"10 万步,一步 1.8 秒,总共要几天":                                                                   "50 小时",
		"tokens per second at global batch 2048, seq 4096 and 16 s iteration time":               "524288 tokens/s",
		"gbs 512, seq 4096, 64 GPUs, 8 s per step: tokens per second per GPU":                    "4096 tokens/s per GPU",
		"lr-warmup-fraction 0.002, 500000 train iters: warmup iterations":                        "1000 warm-up iterations",
		"--rampup-batch-size 16 16 992000, gbs 512: number of increments":                        "32000 samples at each batch size, 31 increments",
		"rampup-batch-size 64 64 1920000,global batch 1024,每一档多少样本":                              "每档 128000 个样本,共 15 档",
		"epochs done after 30000 steps at gbs 512 on a 10M sample dataset":                       "1.54 epochs",
		"1-00:00:00 加 12:00:00 一共多少小时":                                                           "36 小时",
		"sum of 06:30:00 + 04:15:00 + 01:15:00 in hours":                                         "12 hours",
		"DerivedExitCode 137:0 which signal":                                                     "Signal 9 (SIGKILL)",
		// told in tokens, seen so far, lost at worst
		"1.5T tokens, batch of 4M tokens: number of steps":                                    "375000 iterations",
		"global batch 4M token,总共 2T token,多少步":                                               "500000 步",
		"how many tokens has the model seen at iteration 12000 with gbs 1024 and seqlen 4096": "50331648000 tokens",
		"跑 2 万步 gbs 1024 总共消耗多少样本":                                                            "20480000 个样本",
		"save-interval 2000, 3.6 s/iter: how much work is lost at worst when it crashes":      "At most 2 hours",
		"每 1000 步存一个 checkpoint,每个 500GB,10 万步一共多少 TB":                                        "50 TB",
		"training needs 17 days with a 3 day limit: how many resubmits":                       "6 jobs",
	})
}

// The default order tp-cp-ep-dp-pp: TP varies fastest, PP slowest.
func TestRanksInTheirGroups(t *testing.T) {
	leads(t, map[string]string{
		"list the ranks in the tensor-parallel group that contains rank 13 (TP=8, 32 GPUs, PP=2)": "Ranks 8, 9, 10, 11, 12, 13, 14, 15:",
		"TP=2 PP=2 8 张 GPU,和 rank 5 同一个 DP 组的有谁":                                                  "rank 5, 7:",
		"32 gpus tp4 pp2: pipeline peers of rank 3?":                                              "Ranks 3, 19:",
		"64 卡 TP8 PP4,rank 0 的 PP 组都有哪些 rank":                                                     "rank 0, 16, 32, 48:",
		"TP 2 CP 4 on 16 gpus, which ranks are in the context parallel group of rank 1":           "Ranks 1, 3, 5, 7:",
		"16 GPUs, EP 4, TP 1, ETP 1, which ranks share the expert parallel group with rank 6":     "Ranks 4, 5, 6, 7:",
		"which pipeline stage does global rank 100 belong to with TP 4, PP 8 on 128 GPUs":         "Pipeline stage (PP rank) 6",
		"128 卡 TP4 PP8,全局 rank 50 在第几个 stage":                                                     "流水线阶段(PP rank)3",
		"how many tensor parallel groups are there with TP 4 on 64 GPUs":                          "16 TP groups",
		"64 卡 TP4 PP2 一共有多少个 DP 组":                                                                "8 个 DP 组",
		"TP=2 CP=1 DP=4 PP=2, what are the tp, dp and pp rank of global rank 11":                  "TP rank 1, DP rank 1, PP rank 1",
	})
}

func TestWhatARequestComesTo(t *testing.T) {
	leads(t, map[string]string{
		"96 cores per node, 4 tasks per node: how many cpus per task":                 "`--cpus-per-task=24`",
		"每节点 64 核,8 个任务,每个任务几个 cpu":                                                   "`--cpus-per-task=8`",
		"how many cpus does -n 16 -c 8 take in total":                                 "128 CPUs",
		"2 个节点,每节点 4 个任务,每个任务 16 个 CPU,一共多少核":                                         "128 个 CPU",
		"SLURM_NTASKS with --nodes=12 --ntasks-per-node=4?":                           "48 tasks",
		"3 个节点 ntasks-per-node=8,总任务数":                                                "24 个任务",
		"mem-per-cpu 2G with 64 CPUs, memory in total":                                "128 GB",
		"--mem-per-gpu=120G, 8 GPUs per node: how much RAM per node":                  "960 GB",
		"每个 CPU 3G 内存,每节点 96 核,内存一共多少":                                                "288 GB",
		"gpu-hours for 128 GPUs over 3 days":                                          "9216 GPU hours",
		"2 nodes of 4 GPUs for 90 minutes, gpu hours":                                 "12 GPU hours",
		"job used 8 nodes × 8 GPUs, Elapsed=05:30:00, how many GPU hours":             "352 GPU hours",
		"50 个数组任务,每个任务 4 卡跑 3 小时,GPU 小时总量":                                            "600 GPU 小时",
		"10 nodes for 24 hours in node hours":                                         "240 node hours",
		"--array=0-100:30, highest index?":                                            "90 is the last index",
		"100 tasks in --array=1-100%20, 30 minutes each: total time until all finish": "2.5 hours",
		"sacct says CPUTimeRAW=86400 for 48 CPUs, how long did it run (elapsed)":      "1800 seconds (30 minutes)",
		"Timeout(ms)=600000: how long in minutes":                                     "10 minutes",
		"5400000 ms 等于多少分钟":                                                           "90 分钟",
		"--distributed-timeout-minutes 30 等于多少毫秒":                                     "1800000 毫秒",
		"job 98765, MASTER_PORT = 20000 + jobid % 10000, which port is that":          "28765:",
		"MASTER_PORT=$((SLURM_JOB_ID % 20000 + 10000)),作业号 55555,端口是几":                "25555:",
		"224 logical cpus and 8 gpus per node, cpus per gpu":                          "`--cpus-per-task=28`",
		"--mem=0 on a 2 TB node with 8 tasks: memory per task":                        "256 GB each",
		"a time-out of 900 s in ms?":                                                  "900000 ms",
		"last node of gpu[017-032]":                                                   "gpu032:",
		"which is the 5th node in node[08-15]":                                        "node12:",
		"n[001-064] 的第 10 个节点叫什么":                                                     "n010:",
	})
}

func TestWhatAModelComesTo(t *testing.T) {
	leads(t, map[string]string{
		"24 layers, hidden size 2048, vocabulary 50304, total parameters of the GPT?": "About 1.31 billion parameters",
		"32 层,hidden 4096,参数量大概多少":                                                    "6.44B 参数",
		"size of a 70B checkpoint with the optimizer":                                 "About 980 GB",
		"30B 的模型 只存权重的检查点有多大":                                                         "约 60 GB",
		"disk needed for 5 checkpoints of a 20B model":                                "1.4 TB: 5 checkpoints",
		"with distributed optimizer and DP=8, bytes per parameter?":                   "7.5 bytes a parameter",
		"total FLOPs for training 13B parameters on 300B tokens":                      "2.34e22 FLOP",
		"how many days for 13B parameters and 300B tokens on 128 GPUs at 350 TFLOPS":  "6.05 days",
		"64 experts, topk 8: fraction of experts active per token":                    "12.5 %",
		"每个 DP rank 每步处理多少样本,gbs 768 dp 48":                                           "16 个样本",
		"total number of model chunks with PP 8 and VPP 3":                            "24 virtual stages",
		"padded vocabulary for 151936 with TP 4 and make-vocab-size-divisible-by 256": "152576:",
		"70B, TP 8, PP 4: parameters per GPU":                                         "About 2.19 billion parameters",
		"tokens per microbatch with mbs 2 seq 4096":                                   "8192 tokens",
		"H100 at 400 TFLOP/s per GPU: MFU":                                            "40.44 % MFU",
		"which layers are on pipeline stage 2 with 32 layers and PP 4":                "Layers 16 to 23",
		"48 层 PP=4 第 0 段有哪些层":                                                         "第 0 到 11 层",
		"interleaved schedule p=8 v=4 m=32 bubble fraction":                           "5.47 %",
		"seq 131072, cp 8: tokens per gpu":                                            "16384 tokens",
		"TP 4 on 8-GPU nodes: how many TP groups per node":                            "2 TP groups",
	})
}

// Numbers that only tell the setting of another question are left alone.
func TestTheSettingOfAnotherQuestionIsNotWorkedOut(t *testing.T) {
	for _, q := range []string{
		"after 20000 iterations at 6 s each the loss is NaN", "job died at iteration 500 with --save-interval 1000, why is there no checkpoint",
		"how do I save a checkpoint every 500 steps", "每 500 步存一次 checkpoint 怎么设", "the 70B checkpoint fails to load, optimizer state missing",
		"--mem-per-cpu=4G is refused on 8 nodes", "rank 13 in the TP group hangs, 32 GPUs, TP 8", "NCCL watchdog: Timeout(ms)=600000 ran for 600012 milliseconds before timing out",
		"Address already in use on port 20000 + SLURM_JOB_ID % 10000", "训练要跑 3 天,时限 24 小时,到点被杀怎么续", "--rampup-batch-size 32 32 65536 with gbs 100 fails at start",
		"we lost 3 hours when the node died, --save-interval 1000, what now", "last node of gpu[01-08] is drained, why",
		"NCCL times out after 600 s at init on 8 nodes", "H100 MFU is only 20 % at 200 TFLOP/s, why so low",
		"64 层的模型 hidden 8192 跑着跑着 OOM 了", "step time went from 8 s to 12 s per iteration after 5000 iterations, why",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.False(t, ok && !r.Told, "%s: %s", q, r.Text)
	}
}
