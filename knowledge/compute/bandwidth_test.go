package compute_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

func TestBandwidthOfTheBusAndOfTheAlgorithm(t *testing.T) {
	leads(t, map[string]string{
		"all_reduce_perf on 4 GPUs shows algbw 60 GB/s, what busbw is that": "busbw 90 GB/s",
		"64 卡 allreduce 算法带宽 32 GB/s,总线带宽多少":                                "busbw = 63 GB/s",
		"all-gather over 8 ranks, algbw 240: busbw?":                        "busbw 210 GB/s",
		"reduce-scatter algbw 48 GB/s, n=16, bus bandwidth":                 "busbw 45 GB/s",
		"alltoall 32 个 rank,busbw 31 GB/s,algbw 是多少":                        "algbw = 32 GB/s",
		"busbw 150 GB/s for an all-reduce of 4 ranks: algbw?":               "algbw 100 GB/s",
		"busbw of 90 GB/s algbw, alltoall, 10 ranks?":                       "busbw 81 GB/s",
		"broadcast with algbw 77 on 8 gpus, busbw":                          "busbw 77 GB/s",
		"2 个节点每节点 8 卡 algbw 40GB/s 换成 busbw":                                "busbw = 75 GB/s",
	})
	_, ok := compute.Answer("what is the difference between algbw and busbw", lang.EN)
	require.False(t, ok, "nothing to work out")
}

func TestVocabularyIsPaddedHoweverItIsTold(t *testing.T) {
	leads(t, map[string]string{
		"tokenizer with 64005 tokens and TP 4, padded vocabulary size in megatron": "64512:",
		"padding of the vocab: 32001 entries, TP 2, divisible-by 64":               "32128:",
		"分词器共 99000 个词,TP8,补齐后词表多大":                                                "99328:",
	})
}

func TestMemoryOfAllStates(t *testing.T) {
	leads(t, map[string]string{
		"how many GB are bf16 weights, fp32 gradients and the Adam moments of a 3B model on one GPU, with no distributed optimizer and no parallelism": "About 54 GB",
		"3B 模型不开分布式优化器,DP8,权重、梯度、Adam 状态共多少 GB":                                                                                                        "约 54 GB",
		"GB of weights, gradients and optimizer for 5B parameters, bf16 gradients":                                                                     "About 80 GB",
		"model states of 4B with the distributed optimizer over DP 4, GB per GPU":                                                                      "About 36 GB",
	})
}

func TestStatesSideBySide(t *testing.T) {
	for q, want := range map[string][]string{
		"sinfo prints mix@ on one node and mix^ on another, difference?": {"`@`", "`^`", "pending a reboot", "was issued"},
		"节点状态末尾的 ~ 和 # 有什么不同":                                            {"`~`", "`#`", "已关机", "正在启动"},
		"% vs ! suffix in sinfo":                                         {"`%`", "`!`"},
		"idle* vs down* for a node":                                      {"`*`", "`idle`", "`down`"},
		"sinfo 里 @、^ 差别在哪":                                               {"`@`", "`^`"},
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok, q)
		require.True(t, r.Asked() && r.Wanted, q)
		for _, w := range want {
			require.Contains(t, r.Text, w, q)
		}
	}
	r, ok := compute.Answer("what does idle@ mean in sinfo", lang.EN)
	require.True(t, ok)
	require.NotContains(t, r.Text, "IDLE", "the sign alone was asked about")
}
