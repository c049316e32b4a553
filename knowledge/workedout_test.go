package knowledge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// A rate or a time that a question gives makes of a forecast a sum.
func TestWhatTheNumbersGiveIsNoForecast(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	for q, want := range map[string]string{
		"12 nodes with 8 A100 each for 50 hours: GPU hours":                                 "4800 GPU hours",
		"30B on 600B tokens, 128 H100 at 500 TFLOPS each, how many days will training take": "19.53 days",
		"3B 模型训 500B token,64 卡每卡 300 TFLOPS,训练要多久":                                         "5.43 天",
		"7B on 1T tokens with 256 H100 at 40% MFU: how long will it take":                   "4.8 days",
		"global batch 512,序列 4096,单步 2 秒,token 吞吐能到多少":                                      "1048576",
		"how long will training 50000 steps take at 2.5 s per step":                         "34.72 hours",
		"500B tokens at 2M tokens/s, how many days will it take":                            "2.89 days",
		"每卡每秒 2000 token,512 卡,训练 3T token 需要几天":                                            "33.91 天",
		"gbs 1024 seq 4096 每步 8 秒,一天能训多少 token":                                             "45298483200",
		"13B, gbs 256, seq 4096, 6.5 s per step on 32 A100: what MFU is it":                 "TFLOP/s per GPU",
	} {
		ans := ask(t, a, q)
		require.False(t, ans.Refused, "%s: %s", q, ans.Answer)
		require.Contains(t, ans.Answer, want, q)
	}
	for _, q := range []string{
		"how long will it take to train a 13B model on 128 H100s",
		"7B 模型在 256 张 H100 上训 2T token 要多久",
		"what throughput will gbs 512 seq 8192 give on 64 B200",
		"7B on 1T tokens with 256 H100: how many TFLOPS will I get",
		"what will the step time be for 30B on 64 A100",
		"how many GPU hours does a 7B model on 1T tokens need",
		"训一个 30B 模型需要多少卡时",
		"how fast will one iteration be with 7B on 16 A100, gbs 128 seq 4096",
		"will it finish by tomorrow, 20000 steps at 3 s each",
		"how many GPU hours do we have left, we used 16 nodes for 36 hours",
		"我们的卡时还剩多少,已经用了 64 卡 10 天",
		"how many of the 32 nodes with 8 GPUs are free right now",
	} {
		require.True(t, ask(t, a, q).Refused, "%s: %s", q, ask(t, a, q).Answer)
	}
}
