package compute_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

func TestAnswer(t *testing.T) {
	for q, want := range map[string]string{
		"what is the difference between idle* and down*": "`down` (DOWN, node state): the node is unavailable",
		// layouts
		"what is DP for 256 GPUs with TP=8, PP=4?":                                                      "DP = 8:",
		"32 节点 × 8 卡,TP=8,PP=8,CP=2,DP 等于几":                                                             "DP = 2:",
		"can I run TP 4 x PP 4 on 24 gpus":                                                              "not divisible",
		"minimum number of GPUs for TP 8 PP 8 CP 2":                                                     "At least 128 GPUs",
		"512 张 GPU,每台 8 张,需要多少台":                                                                        "64 个节点",
		"nnodes=6, nproc_per_node=4: WORLD_SIZE?":                                                       "24:",
		"GQA 8 groups tp 3 with 48 heads":                                                               "neither a multiple nor a divisor",
		"64 个注意力头 TP 4 每张卡几个头":                                                                          "16 个头",
		"gbs 512 mbs 2 on 64 gpus tp 4 pp 2 how many microbatches":                                      "32 micro batches",
		"--global-batch-size 100 --micro-batch-size 4 dp 8 ok?":                                         "100 % 32 = 4",
		"32k 序列 CP 4 每个 rank 多少 token":                                                                  "8192 个 token",
		"60 层 PP=8 行吗":                                                                                  "余 4",
		"world_size (8) is not divisible by expert_tensor_model_pipeline_parallel size (32), TP 4 EP 8": "ETP 4 × EP 8 × PP 1 = 32",
		"TP 4 EP 8 on 8 GPUs, ok?":                                                                      "ETP 4 × EP 8 × PP 1 = 32",
		"TP4 PP2 EP4 on 32 gpus legal":                                                                  "DP = 4",
		"num-experts 8 EP 3":                                                                            "not divisible",
		"vocab size 50257 tp 8 padded to":                                                               "51200:",
		"node rank 3 local rank 5, 8 gpus per node, global rank?":                                       "29:",
		"全局 rank 42,每节点 4 卡,在第几个节点":                                                                     "节点 10",
		"H200 CP=4 TP=1 no FSDP, CUDA_DEVICE_MAX_CONNECTIONS":                                           "CUDA_DEVICE_MAX_CONNECTIONS=1:",
		"B200 with torch fsdp2 CUDA_DEVICE_MAX_CONNECTIONS?":                                            "Not 1:",
		"GB300 with tp4: CUDA_DEVICE_MAX_CONNECTIONS?":                                                  "not required on Blackwell",
		"A100 tp1 cp1 CUDA_DEVICE_MAX_CONNECTIONS":                                                      "not required",
		"H100 tp2 overlap_moe_expert_parallel_comm CUDA_DEVICE_MAX_CONNECTIONS":                         "32:",
		"RTX 4090 TP 2: CUDA_DEVICE_MAX_CONNECTIONS?":                                                   "Ada",
		"which is the 3rd node of gpu[01-04]?":                                                          "gpu03: node 3 of the 4",
		"the last node of gpu[01-04]?":                                                                  "gpu04: node 4 of the 4",
		"which release of Megatron-LM do your rules come from?":                                         "From the code of Megatron-LM 0.15.3, 0.16.1,",
		"你的规则来自哪个 Megatron 版本？":                                                                         "来自 Megatron-LM 0.15.3, 0.16.1,",
		"which megatron versions do you support":                                                        "main is commit d98e8a64 of 2026-08-22",
		// counts in words, and other ways to say them
		"two dozen nodes, eight gpus apiece, TP=4 PP=3: data parallel size?": "DP = 16:",
		"96 H100s, tensor 8 × pipeline 2 × context 2, DP?":                   "DP = 3:",
		"32 boxes 8 cards each, TP8 PP4, GBS 1024, MBS 1: microbatches?":     "128 micro batches",
		"I need 200 GPUs and boxes hold 8, node count":                       "25 nodes",
		"十六个节点每节点 8 卡,world size 多少":                                         "128:",
		"28 个 attention head 可以开 TP8 吗":                                      "28 % 8",
		"序列 32768,CP 8,每个 rank 多长":                                           "4096",
		"第 5 个节点(从 0 数)每节点 8 卡,本地第 2 号卡全局 rank":                              "42:",
		"四十八张卡,每机 8 卡,几个节点":                                                  "6 个节点",
		"每步 2048 个样本,微批 2,64 路数据并行,累积几步":                                     "16 个微批次",
		"batch 768, micro 6, 16 data-parallel ranks":                         "8 micro batches",
		"80 layers pipeline 8 with 2 virtual stages per rank":                "5 layers in each",
		"array of thirty tasks four at a time":                               "`--array=1-30%4`",
		"RTX PRO 6000 Blackwell TP2, connection var?":                        "not required",
		"nodes flagged with $ in sinfo":                                      "maintenance",
		"a dozen nodes at 8 gpus: world size?":                               "96:",
		"8 机 64 卡,TP8,PP3 可以吗":                                               "WORLD_SIZE 64",
		"专家 160 EP 32":                                                       "5 个专家",
		"77 开始运行之后再启动我的作业":                                                   "after:77",
		"seven array tasks numbered from 0, 3 at once":                       "`--array=0-6%3`",
		"slurm time string for a day and a half":                             "`--time=1-12:00:00`",
		"node shown as idle~ in sinfo":                                       "powered off",
		"微批 2,micro batch 数 16,DP 8,全局批多少":                                   "256",
		"8 micro batches of 2 with DP 8: global batch size?":                 "Global batch 128",
		"微批大小 2,DP 16,全局批 512,微批次数多少":                                        "16 个微批次",
		"每节点 8 卡,rank 77 在哪个节点":                                              "节点 9",
		// Slurm
		"expand gpu[1-3,7]":                            "gpu1, gpu2, gpu3, gpu7",
		"n[1-64] 有多少个节点":                               "64 个节点",
		"first host of dgx[05-12]":                     "dgx05",
		"how many gpus are in node[01-16] with 8 each": "128 GPUs",
		"--time=90":                                         "minutes, not hours",
		"what does --time=0 mean":                           "no time limit",
		"what does --time=2-06:00 mean in hours":            "54 hours",
		"怎么把 36 小时写成 --time":                                "`--time=1-12:00:00`",
		"--array=1-100:5 how many tasks":                    "20 array tasks",
		"100 个任务的数组,最多并发 10 个":                              "`--array=1-100%10`",
		"--array=1-7:2 会跑哪些编号":                              "1, 3, 5, 7",
		"run job only after 100 and 200 both succeeded":     "afterok:100:200",
		"作业 88 失败后才跑清理脚本":                                   "afternotok:88",
		"2 sockets 32 cores each, cpus-per-task without HT": "--cpus-per-task=64",
		"squeue shows CG":                                   "COMPLETING",
		"节点状态 down* ":                                       "没有响应",
		"exit code 137":                                     "SIGKILL",
		"sacct ExitCode 1:0":                                "code 1",
		"sacct ExitCode 0:125":                              "host memory",
		"sacct ExitCode 0:12":                               "signal 12",
		"--begin=now+60 is what":                            "60 seconds",
		"--signal=B:USR1@300 meaning":                       "only the batch shell",
		"100/20/5/125 in sinfo":                             "idle 20",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok, q)
		require.Contains(t, r.Text, want, q)
		require.NotContains(t, r.Text, "%!", q)
	}
}

// Questions that ask for no computation are left to the cards.
func TestAnswerDeclines(t *testing.T) {
	for _, q := range []string{
		"", "how do I cancel a job", "torchrun command TP=2 on 8 gpus", "8 卡 TP2 PP2 脚本怎么写",
		"when will my pending job start", "srun: job 88 queued and waiting for resources, can I see when it starts",
		"--dependency=77 waits for success, right?", "summary of CUDA_DEVICE_MAX_CONNECTIONS",
		"--time=9223372036854775807:00", "JOB 1022 CANCELLED DUE TO PREEMPTION", "PD (Resources)", "show my running job", "which is the 9th node of gpu[01-04]?",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.False(t, ok, "%q: %s", q, r.Text)
	}
}

// Numbers beyond any cluster must not overflow into nonsense or a panic.
func TestAnswerSurvivesHugeNumbers(t *testing.T) {
	for _, q := range []string{
		"TP=4294967296 PP=4294967296 CP=2 on 64 gpus dp?", "99999999999999999999 nodes 8 gpus per node WORLD_SIZE",
		"--time=99999999999999-00:00:00", "--array=0-99999999999999999999", "rank 99999999999999999999 8 gpus per node which node",
		"gbs 9999999999999 mbs 1048576 dp 1048576 microbatches",
	} {
		r, _ := compute.Answer(q, lang.EN)
		require.NotContains(t, r.Text, "-9", q)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"TP=8 PP=0 on 64 gpus", "--array=5-1", "n[9-1]", "--time=::", "rank 3 8 gpus per node", "gbs 0 mbs 0 dp 0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, ok := compute.Answer(s, lang.Of(s)); ok && r.Text == "" {
			t.Error("an answer without text")
		}
	})
}

func TestNumberWordsAndHalves(t *testing.T) {
	for text, want := range map[string]string{
		"三十二台八卡机器,tp8 pp8,dp 是几":                                              "DP = 4",
		"两天半的 --time 怎么写":                                                     "--time=2-12:00:00",
		"how do I write 3 and a half hours as --time":                         "03:30:00",
		"全局 rank 100,8 卡一机,它在第几台、本地几号卡":                                       "节点 12",
		"8x8 的集群 tp4 pp4 那 dp 几":                                              "DP = 4",
		"we moved from H100 to GB200 with TP 4: CUDA_DEVICE_MAX_CONNECTIONS?": "not required on Blackwell",
	} {
		r, ok := compute.Answer(text, lang.Of(text))
		require.True(t, ok, text)
		require.Contains(t, r.Text, want, text)
	}
}

// A model by name gets a layout that Megatron starts and that fits, by the same search as
// the operation recommend.
func TestLayoutOfAModelByName(t *testing.T) {
	t.Parallel()
	for q, wants := range map[string][]string{
		"TP and PP for llama3 70B on 64 H100?": {
			"llama3-70b on 64 H100: TP 4, PP 4", "of 79 GiB", "`--tensor-model-parallel-size 4 ", "Published for 64: TP4 PP4",
			"`megatron-ops recommend --model llama3-70b --gpu h100 --nodes 8`",
		},
		"how many GPUs do I need to train llama-3.1-405B":         {"By estimate llama3.1-405b fits from 128 H100 on (80 GB; the question names no GPU)", "Published for 1024"},
		"what's a good layout for 8x7B Mixtral on 8 A100 nodes":   {"mixtral-8x7b on 64 A100", "EP 8"},
		"llama3 70b on 4 h100: does it fit?":                      {"llama3-70b on 4 H100: no layout fits. It fits from 32 on."},
		"llama3-8b, 128k context, 32 H100s: which layout":         {"CP 8", "--seq-length 131072"},
		"is 16 A100 40GB enough for llama3 8b":                    {"on 16 A100-40G"},
		"what MFU should I expect from llama3 70b fp8 on 64 h100": {"TFLOP/s a GPU", "--fp8-format", "fp8, 731 TFLOP/s a GPU"},
		"qwen2.5-7b 在 3 台 8 卡机器上怎么切并行":                            {"qwen2.5-7b 用 24 张 H100", "--nodes 3`"},
		"how long to train llama3 8b on 1.5T tokens with 64 H100": {"About 31.1 days (26 to 36.6) for 1500 billion tokens on 64 GPUs"},
		"qwen3-8b 训 2 万亿 token,128 张 H100 要多久":                    {"128 张 GPU 不间断训练 20000 亿 token", "token/s"},
		"how many tokens per second for llama3-8b on 8 h100":      {"9206 tokens/s"},
		"deepseek v3 至少需要多少张 H800":                                {"至少需要 256 张 H800", "已发表的 2048 卡配置"},
		"llama3 8b on 8 RTX 4090: does it fit?":                   {"on 8 RTX4090"},
		"llama3 8b 在 8 张 L40S 上够用吗":                               {"用 8 张 L40S"},
		"which layout for llama3 8b on 16 A100 40 GB":             {"on 16 A100-40G"},
		"which layout for llama3 70b fp8 on 64 A100":              {"(in bf16: it does not compute in fp8)", "--sequence-parallel --micro-batch-size 1`"},
		"how long to train llama3 70b on 15T tokens":              {"About 56", "days (4"},
		"qwen2.5 7b on 4 a800, best tp and pp":                    {"qwen2.5-7b on 4 A800", "--nodes 1 --gpus-per-node 4`"},
		"which tp for llama3 70b on 64 MI300X":                    {"The GPU MI300X is not known", "h200 (140 GiB)", "name the largest of them that has no more, in `megatron-ops recommend --model llama3-70b --gpu NAME --nodes 8`"},
		"can I train qwen2.5 7b on 8 A100 40GB":                   {"qwen2.5-7b on 8 A100-40G: TP 4"},
		"8 张 A100 40G 能训 qwen2.5 7b 吗":                            {"qwen2.5-7b 用 8 张 A100-40G"},
		"which tp for llama3 70b on 64 MI300X 192GB":              {"with 192 GB: `megatron-ops recommend --model llama3-70b --gpu b200 --nodes 8`"},
		"llama3 70b 在 64 张昇腾 910B 上怎么切并行":                         {"该加速器（昇腾）只能运行厂商的移植版本"},
		"what TP and PP for llama 3 8B on 8 TPU v5e":              {"Megatron-LM itself needs CUDA. On TPU a port"},
		"what TP and PP for llama 3 8B on 8 MI300X":               {"The GPU MI300X is not known here"},
		"best TP for llama3 8b on 8 4090":                         {"llama3-8b on 8 RTX4090"},
		"suggest a parallel layout for qwen3-8b with mcore v15":   {"the question names no GPU"},
		"best TP for llama3 8b on 8 RTX 3090":                     {"The GPU RTX 3090 is not known", "rtx4090 (24 GiB)", "Its memory is not said", "--gpu NAME --nodes 1`"},
		"best TP/PP for llama3 8b on 8 L20":                       {"The GPU L20 is not known"},
		"best TP/PP for llama3 8b on 8 L20 48 GB":                 {"with 48 GB: `megatron-ops recommend --model llama3-8b --gpu a40 --nodes 1`"},
		"llama3 8b 在 8 张 RTX 5090 32G 上怎么切并行":                     {"32 GB 的卡:`megatron-ops recommend --model llama3-8b --gpu rtx4090 --nodes 1`"},
		"llama3 8b 8 张 3090 放得下吗":                                 {"不认识 GPU 3090"},
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok && r.Asked(), q)
		for _, want := range wants {
			require.Contains(t, r.Text, want, q)
		}
	}
	for _, q := range []string{
		"how to convert a llama3 70b checkpoint from TP 8 to TP 4", "llama3 70b on 64 H100 runs out of memory, which TP?",
		"Mixtral 8x7B on 16 H100 only 130 TFLOPS, what should I change", "llama3-8B 换了并行策略 loss 对不上,怎么办",
		"how many GPUs for a 70B model", "how long does llama3-8b take until the first step", "llama3 70b learning rate",
		"which layout for llama3 8b on 999999 H100",
		"which layout for llama3 8b and llama3 70b on 64 H100", "is 2 TB RAM enough for llama3 70b", "is 3 days enough for llama3 8b",
		"is a dataset of 100B tokens enough for llama3 8b", "how many GPUs do I have in this llama3 70b job",
		"which tp for deepseek v3 lite on 8 H100",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.False(t, ok && r.Section == "Layout of a model", "%s: %s", q, r.Text)
	}
}
