package compute_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

// A question that changes the run it tells is answered for the run after it.
func TestAnswerFollowsTheChange(t *testing.T) {
	for q, want := range map[string]string{
		"10 nodes of 8 GPUs, TP 4 PP 2: DP after I double the nodes?":         "DP = 20:",
		"TP 8 PP 4 on 512 GPUs, what if PP 2?":                                "DP = 32:",
		"PP 从 2 改成 4,TP 2,128 卡,DP 是几":                                        "DP = 16:",
		"the CP size goes from 1 to 2 on 64 GPUs with TP 4 PP 2, dp?":         "DP = 4:",
		"we grow from 4 to 6 nodes of 8 GPUs at TP 8 PP 2, dp":                "DP = 3:",
		"three of our sixteen nodes died, 8 GPUs each, TP=4 PP=2: DP?":        "DP = 13:",
		"12 台 8 卡机挂了 1 台,TP4 PP2,DP 多少":                                       "DP = 11:",
		"halve the global batch 1024, mbs 2, DP 32: how many micro batches":   "8 micro batches",
		"gbs 512 dp 16, micro batch goes from 4 to 2, how many accumulations": "16 micro batches",
		"节点翻倍,原来 8 个节点每节点 8 卡,TP8 PP2,DP 多少":                                  "DP = 8:",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok, q)
		require.Contains(t, r.Text, want, q)
	}
}

func TestAnswerWorksBackFromTheBatchAndTheStage(t *testing.T) {
	for q, want := range map[string]string{
		"DP 12, mbs 4, 8 accumulation steps: global batch size?":           "Global batch 384:",
		"不做梯度累积,mbs 2,DP 16,全局 batch 填多少":                                  "32:",
		"which micro batch size gives 4 accumulation steps, GBS 512 DP 32": "Micro batch 4:",
		"48 layers PP 4, num-layers-per-virtual-pipeline-stage 3: VPP?":    "VPP = 4:",
		"48 层,PP 4,虚拟流水线 3,每块几层":                                           "每个 4 层",
		"pipeline bubble with PP 4 and 24 micro batches":                   "12.5 %",
		"PP=2 VPP=2, 8 microbatches, bubble?":                              "6.25 %",
		"expert data parallel size on 64 GPUs, PP 2, EP 8, ETP 1":          "Expert data parallel size 4:",
		"4 个 KV 头 TP 8 可以吗":                                                "合法",
		"2 个 query group,TP 4":                                             "合法",
		"which DP gives 16 accumulation steps with GBS 1024 and MBS 2":     "DP = 32:",
		"模型 48 头,TP 想开 32":                                                 "不行",
		"node 3, local rank 2, 8 GPUs: global rank?":                       "26:",
		"num_query_groups=6 TP=4 ok?":                                      "neither a multiple",
		"which global ranks are on node 2 with 4 GPUs per node":            "Global ranks 8 to 11:",
		"the 2nd node runs which ranks, 8 gpus per node":                   "Global ranks 8 to 15:",
		"一台 8 张卡,120 张要几台":                                                 "15 个节点",
		"what is 2-00:00:00 in minutes":                                    "2880 minutes",
		"how do I write an array of 2,5,8,…,20":                            "`--array=2-20:3`",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok, q)
		require.Contains(t, r.Text, want, q)
		require.NotContains(t, r.Text, "%!", q)
	}
}
