package compute_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

// People leave out what goes without saying, glue sizes together and write
// numbers in words.
func TestAnswerReadsTheWaysPeopleWrite(t *testing.T) {
	for q, want := range map[string]string{
		// names cut short, sizes glued together or behind the number
		"world=768 tp=4 pp=4 cp=2 -> dp":                              "DP = 24:",
		"a dozen DGX boxes, tp8pp2, my dp?":                           "DP = 6:",
		"TP2xPP6 on 96 cards, dp":                                     "DP = 8:",
		"20 nodes, tp 8 pp 4, what is dp":                             "DP = 5:",
		"960 batch on 60 dp with microbatch four":                     "4 micro batches",
		"gbs when mbs 4, dp 8, 4 steps":                               "Global batch 128:",
		"half of 64 GPUs at tp 4 pp 2: dp":                            "DP = 4:",
		"we lose 3 of 11 nodes (8 GPUs each), tp 8 pp 2: dp":          "DP = 4:",
		"2 路张量 4 路流水,64 卡,几路数据并行":                                     "DP = 8:",
		"张量开到 4、流水线开到 4,128 卡的 DP":                                    "DP = 8:",
		"一百九十二张卡 TP 八 PP 三 DP 多少":                                     "DP = 8:",
		"全局 batch 960,微 batch 2,tp 2 pp 2,64 卡,累积几步":                  "30 个微批次",
		"64 heads: possible values of TP":                             "1, 2, 4, 8, 16, 32, 64",
		"expert data parallel of 128 gpus, ep 8, etp 1, pp 2":         "size 8:",
		"the job sees only 2 of the 8 GPUs per node: nproc-per-node?": "--nproc-per-node=2",
		"bubble for pp=4, m=12":                                       "25 %",
		"ranks hosted by node 2 with 8 gpus each":                     "16 to 23",
		// numbers in words, a single machine, the sizes of a node told behind it
		"seven 8-gpu boxes at tp 7: dp":                                "DP = 8:",
		"two hundred and forty gpus, tensor five, pipeline six, dp":    "DP = 8:",
		"one single DGX with TP 2, number of replicas":                 "DP = 4:",
		"单机 8 卡 TP2 副本有几份":                                             "DP = 4:",
		"tp 8 pp 3 dp 5 on hosts (8 gpus), how many hosts":             "15 nodes",
		"is TP 8 PP 3 fine on ten hosts with six cards each":           "not divisible",
		"30 workers at five per machine, number of machines":           "6 nodes",
		"--nnodes for 72 ranks on 8-gpu machines":                      "--nnodes=9",
		"一共 48 个进程,每台 6 卡,nnodes 填几":                                   "--nnodes=8",
		"5 hosts and six procs each, WORLD_SIZE":                       "30:",
		"micro batch is one, DP 12, global batch 600: accumulation":    "50 micro batches",
		"每步 900 条,每卡一次 3 条,dp 30,累积几次":                                 "10 个微批次",
		"八十层切成五段流水线,一段几层":                                              "16 层",
		"80 层 PP 4,每个虚拟段 5 层,vpp 是几":                                   "VPP = 4",
		"2 路 CPU 每路 24 核 每核 2 线程,用超线程时 cpus-per-task":                  "--cpus-per-task=96",
		"两颗 36 核 CPU 不用超线程,cpus-per-task":                              "--cpus-per-task=72",
		"A/I/O/T 6/9/1/16, four gpus on each node, how many gpus free": "36 GPUs",
		"2 more nodes on top of 10, 8 cards each, TP 8 PP 4: dp":       "DP = 3:",
		"原来 12 台坏了 2 台,每台 8 卡,TP8 PP5,DP 几":                            "DP = 2:",
		"nodes for 72 ranks at 8 a node":                               "9 nodes",
		"1,200 global, 3 micro, 40 replicas: accumulation steps":       "10 micro batches",
		"is 700 a legal global batch for DP 16 with micro 4":           "700 % 64",
		"512 的全局批,32 个 DP,微批 2,累积步数":                                   "8 个微批次",
		"global rank of gpu 1 on node 5 with 4 per node":               "21:",
		"3000 steps of gbs 256 at 4096, how many tokens":               "3145728000 tokens",
		"number of replicas on a single 8-GPU box with TP 4":           "DP = 2:",
		"12 machines, each has 8 H200; tensor 8 and pipeline 4, dp":    "DP = 3:",
		"tp 2 pp 3 on 9 nodes of 4, dp":                                "DP = 6:",
		"boxes needed if each has 6 GPUs and there are 54 ranks":       "9 nodes",
		"9 machines and 72 cards in total, cards per machine":          "8 GPUs per node",
		"7 DGX, world size":                                    "56:",
		"can gbs be 300 if mbs 8 dp 10?":                       "300 % 80",
		"RANK of local 2 at node 5, 8 per node":                "42:",
		"rank 77 in an 8-gpu-per-node job sits on":             "node 9",
		"48 ranks 8 per node, ranks of the last node":          "40 to 47",
		"第三台机器上的全局 rank 范围,每台 4 卡":                             "8 到 11",
		"40 cores per socket x2, HT on, cpus-per-task":         "--cpus-per-task=160",
		"padded vocab for 32003 tp 4":                          "32256:",
		"how wide is data parallelism at 96 cards, tp 4, pp 3": "DP = 8:",
		"12 servers w/ 8 gpus, total processes":                "96:",
		"GBS 若为 576,MBS 1,DP 48,几步":                            "12 个微批次",
		"gqa groups 4 and TP 8 allowed":                        "Valid",
		// lengths, tokens, parameters
		"hidden 6144 and 48 heads, width of a head":                         "128 per head",
		"隐藏维度 5000,头数 48,行不行":                                               "余 8",
		"256k context with CP=8, fine?":                                     "32768 tokens",
		"tokens per step at gbs 512 and seq 8192":                           "4194304 tokens",
		"2T tokens, gbs 1024, seq 4096: iterations":                         "476838 iterations",
		"seq 4096,想要 4M token 的 batch,gbs 取多少":                              "global batch 1024",
		"how many steps are 5M samples at gbs 1000":                         "5000 iterations",
		"memory of 13B parameters with Adam in bf16?":                       "234 GB",
		"30B 参数 bf16 光权重占多少显存":                                              "60 GB",
		"8B model, distributed optimizer, dp 24, memory":                    "6.5 bytes",
		"each rank holds 4096 tokens with CP 8, what is the whole sequence": "32768 tokens",
		// Slurm
		"three days and a half in --time": "--time=3-12:00:00",
		"--time 要 2 天 3 小时,写法":            "--time=2-03:00:00",
		"step-5 array from 0 to 20":       "--array=0-20:5",
		"只要 612 结束,无论成败,提交下一个":            "afterany:612",
		"drng?":                                                     "still runs",
		"时限 3 天半,--time 的值":                                         "--time=3-12:00:00",
		"go on only if 9011 finished fine":                          "afterok:9011",
		"9011 跑崩了就跑清理脚本":                                            "afternotok:9011",
		"what's the # after mix":                                    "powered up",
		"elements of --array=4-16:6":                                "4, 10, 16",
		"数组 90 个,一次跑 9 个":                                           "1-90%9",
		"start once job 77 is running":                              "after:77",
		"exit 134 meaning":                                          "SIGABRT",
		"start it once 712 has exit code 0":                         "afterok:712",
		"run the report when 660 is over, no matter if it crashed":  "afterany:660",
		"begin the follow-up five minutes after job 90 has started": "after:90+5",
		"run cleanup if 8123 crashes":                               "afternotok:8123",
		"make 1202 wait for 1200 and 1201 to succeed":               "scontrol update jobid=1202 dependency=afterok:1200:1201",
		"ids of --array=3-15:4":                                     "3, 7, 11, 15",
		"six and a half hours as a slurm time":                      "06:30:00",
		"四十个子任务,同时只准 8 个跑,数组写法":                                     "1-40%8",
		"3 racks with 4 boxes of 8 GPUs, tp 8 pp 4: dp":             "DP = 3:",
		"算一下 DP:512 卡,TP8,PP4":                                      "DP = 16:",
		"two weeks as --time":                                       "14-00:00:00",
		"elements 4, 8, 12, ... 40 of an array":                     "--array=4-40:4",
		"array from 0 to 299, at most 30 at once":                   "0-299%30",
		"cancel element 9 of array 77120":                           "scancel 77120_9",
		"数组 66001 的第 4 个停掉":                                         "scancel 66001_4",
		"139 exit status":                                           "SIGSEGV",
		"九十个任务每次跑六个":                                                "1-90%6",
		"t4p2 on 4 boxes of 8":                                      "DP = 4:",
		"now+3 就是三小时后对吧 --begin=now+3":                              "不是,是 3 秒",
		"-t 45 means what":                                          "45 minutes",
		"set a limit of 3 days and 4 hours":                         "3-04:00:00",
		"8 小时 15 分写成时限":                                             "08:15:00",
		"array 0-90 in steps of 10: how many":                       "10 array tasks",
		"三百个任务,每次只放十五个,数组怎么写":                                       "1-300%15",
		"a batch size of 1,024 with mbs 2, dp 64":                   "8 micro batches",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok, q)
		require.Contains(t, r.Text, want, q)
	}
}

// A number in passing asks for no computation.
func TestAnswerLeavesOtherNumbersAlone(t *testing.T) {
	for _, q := range []string{
		"my 13B run shows a loss of 2.7 after 4000 steps", "a 70B checkpoint will not load", "OOM with a 7B model, why",
		"the 24 hour limit killed my job, what now", "is 29500 the default port", "walltime 只有 4 小时,训练要跑几天,怎么自动续",
		"how long did job 4411 run, it is finished", "afterok 的作业失败了,后面的一直 PD 怎么清",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.False(t, ok, "%s: %s", q, r.Text)
	}
}
