package knowledge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFollowUpIsJoinedWithTheEarlierQuestion(t *testing.T) {
	t.Parallel()
	before := []Turn{{Question: "world size 64, TP 8 PP 2, what is DP?"}}
	for _, q := range []string{
		"and with TP 4?", "what about H100?", "why?", "Why is that?", "why not 8?", "why does it say so", "why so", "with FSDP?", "on B200?", "if TP is 4?",
		"for 128 GPUs", "does it need NCCL?", "is that faster", "这样会变慢吗", "那 TP 4 呢？", "为什么", "为什么不是 8？", "换成 128 卡", "如果 TP 是 4", "H100 呢", "用 FSDP",
	} {
		require.Equal(t, q+" ; "+before[0].Question, inContext(q, before), q)
	}
	for _, q := range []string{
		"why is my job pending (Priority)", "why does the loss become NaN", "with TP 4 and 64 GPUs, what is the data parallel size?",
		"if I use 4 nodes of 8, what is the world size", "how do I cancel a job", "为什么我的作业一直在排队", "用 uv 怎么启动两台机器", "多机训练怎么启动呢？",
		"and if a question goes on and on for longer than any that somebody types after another?",
	} {
		require.Empty(t, inContext(q, before), q)
	}
	require.Empty(t, inContext("and with TP 4?", nil), "there is nothing to go on from")
}

func TestChainOfFollowUpsReachesItsBeginning(t *testing.T) {
	t.Parallel()
	said := func(list ...string) (turns []Turn) {
		for _, q := range list {
			turns = append(turns, Turn{Question: q})
		}
		return turns
	}
	require.Equal(t, "why? ; and PP 4? ; what is DP with 64 GPUs", inContext("why?", said("old", "what is DP with 64 GPUs", "and PP 4?")))
	require.Equal(t, "why? ; and 5? ; and 4? ; and 3? ; and 2?", inContext("why?", said("begin", "and 1?", "and 2?", "and 3?", "and 4?", "and 5?")),
		"not farther back than four")
}
