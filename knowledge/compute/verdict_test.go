package compute_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

// What a rule of `plan` refuses is not called valid because another rule holds; the answer has
// the rule's words.
func TestWhatARuleRefusesIsNotCalledValid(t *testing.T) {
	for q, want := range map[string]string{
		"is TP 8 PP 4 EP 16 on 64 GPUs valid with 60 layers?":                                                                         "multiple of ETP × EP × PP",
		"is TP 8 PP 4 on 64 GPUs valid with 62 layers, 64 heads, 8 query groups?":                                                     "must be a multiple of PP (now --pipeline-model-parallel-size 4, --num-layers 62)",
		"global batch 100, micro batch 3, TP 2 PP 2, 32 GPUs, 32 heads, valid?":                                                       "100 % 24 = 4",
		"hidden size 5000 with 32 heads TP 8, is it valid?":                                                                           "--hidden-size must be a multiple of --num-attention-heads",
		"can I use TP 8 with 64 heads and sequence length 8190 and CP 4?":                                                             "multiple of 2 × CP",
		"--tensor-model-parallel-size 4 --pipeline-model-parallel-size 3 --num-layers 32 --num-attention-heads 32 on 24 GPUs, valid?": "must be a multiple of PP",
		"TP 4 PP 2 VPP 3 with 32 layers and 32 heads on 16 gpus, does it work?":                                                       "the layers of a rank must be a multiple of V",
		"TP 2 EP 8 with 64 experts on 16 gpus without sequence parallel valid?":                                                       "Not valid, Megatron-LM refuses this: --sequence-parallel must be given",
		"TP 2 EP 8 with 64 experts on 16 gpus valid?":                                                                                 "refuses it without more flags",
		"8 GPUs TP 2 PP 2 CP 4, 32 heads, ok?":                                                                                        "WORLD_SIZE must be a multiple of TP × PP × CP",
		"can TP 4 with 8 query groups use 36 heads on 8 GPUs?":                                                                        "--num-attention-heads must be a multiple of --num-query-groups",
		"seq length 4097 TP 2 with sequence parallel, 32 heads, 32 layers PP 2, 8 GPUs valid?":                                        "--seq-length must be a multiple of TP × CP (now --seq-length 4097",
		"ffn size 11009, hidden 4096, 32 heads, TP 8: valid?":                                                                         "--ffn-hidden-size must be a multiple of TP (now --ffn-hidden-size 11009, --tensor-model-parallel-size 8)",
		"FFN 11009 TP 8 32 个头可以吗":                                                                                                     "--ffn-hidden-size 必须是 TP 的整数倍",
		"60 层 TP 8 PP 8,64 个头,64 卡,合法吗":                                                                                               "必须是 PP 的整数倍",
		"专家 64 EP 8 TP 4 不开序列并行,32 卡,行吗":                                                                                              "必须加 --sequence-parallel",
		"TP=4 PP=4,80 层,64 头,全局 batch 100,micro batch 3,64 卡,合法吗":                                                                     "100 % 12 = 4",
		"序列 8190 CP 4 TP 2 32 个头 8 卡能跑吗":                                                                                              "必须是 2 × CP 的整数倍",
		"PP 4 with 61 layers --decoder-first-pipeline-num-layers 15 --decoder-last-pipeline-num-layers 15 valid?":                     "Not valid, Megatron-LM refuses this",
		"TP 2 PP 2 VPP 2, 8 layers, global batch 12, micro batch 1 on 16 GPUs: valid?":                                                "microbatches",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok && r.Asked(), q)
		require.Contains(t, r.Text, want, q)
		require.NotRegexp(t, `^(?:Valid|合法)`, r.Text, q)
	}
}

// What the question does not give breaks no rule.
func TestWhatIsNotGivenIsNotRefused(t *testing.T) {
	for q, want := range map[string]string{
		"is TP 8 PP 4 on 64 GPUs valid with 64 layers, 64 heads and 8 query groups?":                              "Valid: 64 % 8",
		"hidden size 4096 TP 8, is it valid?":                                                                     "No rule refuses these values (--tensor-model-parallel-size 8 --hidden-size 4096)",
		"TP 2 EP 8 ETP 1 with 64 experts on 16 gpus with sequence parallel valid?":                                "so valid",
		"TP 4 PP 2 VPP 4 with 32 layers and 32 heads on 16 gpus, does it work?":                                   "Valid: 32 % 4",
		"PP 4 with 61 layers --decoder-first-pipeline-num-layers 15 --decoder-last-pipeline-num-layers 14 valid?": "No rule refuses",
		"--num-layers 62 --recompute-num-layers 1 PP 2 valid?":                                                    "31 layers per pipeline stage",
		"2m context with CP 64 TP 8 on 512 GPUs valid?":                                                           "seq-length 2097152",
		"TP 8 PP 2,48 个头,8 个 KV 组,32 卡可以吗":                                                                        "合法",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok && r.Asked(), q)
		require.Contains(t, r.Text, want, q)
		require.NotContains(t, r.Text, "refuses it", q)
	}
}

// The least number of GPUs is one that the experts' sizes divide too.
func TestLeastGPUsOfALayout(t *testing.T) {
	for q, want := range map[string]string{
		"least number of GPUs for TP 4 PP 2 EP 8":                          "At least 64 GPUs",
		"minimum GPUs for TP 2 CP 3 EP 8 ETP 1":                            "At least 24 GPUs",
		"least number of GPUs for EP 8 ETP 1":                              "At least 8 GPUs",
		"fewest GPUs for TP 1 PP 3 CP 2 EP 8":                              "At least 24 GPUs",
		"TP 4 PP 2 EP 8 最少多少张卡":                                            "至少 64 张",
		"TP 4 PP 2 EP 8 on 96 GPUs ok?":                                    "Use 64, 128 GPUs",
		"minimum GPUs for TP 8 PP 2":                                       "At least 16 GPUs",
		"least number of GPUs for TP 1048573 PP 1048571 CP 511 EP 1048559": "beyond any cluster",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok && r.Asked(), q)
		require.Contains(t, r.Text, want, q)
	}
}

// Numbers that are no sizes are answered at once, and never with a verdict on the others.
func TestHugeSizesAreNotJudged(t *testing.T) {
	start := time.Now()
	for _, q := range []string{
		"is TP 999999937 valid with 32 heads", "is TP 999999937 PP 4 on 64 GPUs valid", "TP 8 PP 4 on 99999999999 GPUs valid?",
		"global batch 999999937 micro batch 7 dp 13 valid with TP 2 and 32 heads?", "TP 1048573 PP 1048571 CP 511 DP 1048559 how many GPUs",
		"TP 8 PP 4 VPP 1048576 layers 1048576 experts 1048576 EP 1048576 valid?", "1048573 heads TP 1048571 layers 1048559 PP 1048549 valid?",
	} {
		r, ok := compute.Answer(q, lang.EN)
		require.True(t, ok, q)
		require.Regexp(t, `^(?:Not |At least)`, r.Text, q)
	}
	require.Less(t, time.Since(start), 5*time.Second)
}
