package compute_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

// Numbers are worked out first only where the question wants their result.
func TestAnswerSaysWhetherItsValueWasAsked(t *testing.T) {
	for q, want := range map[string]struct{ told, asked bool }{
		// nothing but the value
		"96 gpus tp 4 pp 4 dp":                   {false, true},
		"how do I write 30 hours as --time":      {false, true},
		"24 小时的 --time 怎么写":                      {false, true},
		"--time=3-06 in hours":                   {false, true},
		"gbs 512 mbs 2 dp 16 accumulation steps": {false, true},
		// a value, and a failure or a way beside it
		"4 nodes of 8 died with TP 8 PP 3, how many GPUs per replica would do, 32 or 48? is DP whole": {true, true},
		"我的作业失败了,64 卡 TP8 PP4,DP 应该是多少":                                                               {true, true},
		// the numbers are the setting
		"16 gpus, tp 8 pp 3, stops at start with an assertion":       {true, false},
		"--array=1-20%1 needs to be frozen for a day":                {true, false},
		"--signal=TERM@120 is set but my training never catches it":  {true, false},
		"24 heads and TP 16: ValueError, which argument do I change": {true, false},
		"在 FSDP 下启动就断言,脚本里 export CUDA_DEVICE_MAX_CONNECTIONS=1,怎么改": {true, false},
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok, q)
		require.Equal(t, want.told, r.Told, q)
		require.Equal(t, want.asked, r.Asked(), q)
	}
}

// Words and numbers that stand in another sense are none of a kind that is
// worked out.
func TestAnswerTakesNoNumberOutOfItsSense(t *testing.T) {
	for _, q := range []string{
		"before sending a PR, what do I run", "提 PR 之前要跑哪些检查", // a pull request, no job state
		"my third run on cards 2-5 of that machine dies at once",                            // a range, no time
		"Duplicate GPU detected : rank 12 and rank 4 both on CUDA device 3b000, 8 per node", // a pasted rank
		"作业 8123 第 0 个 step 不响应,只停它",                                                        // a step, no array element
		"see whether job 912 runs and what it returned once it ended", "so afterany:44 waits for success, yes?",
		"wanted 3 days, the partition gives 1, it never starts after that", // counts, no job ids
		"free shows 2T but the job is killed for memory", "tokenising a 2T corpus runs out of memory",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.False(t, ok, "%s: %s", q, r.Text)
	}
}

// A question that names several cases gets the value for each of them.
func TestConnectionsForSeveralCases(t *testing.T) {
	for q, want := range map[string][]string{
		"CUDA_DEVICE_MAX_CONNECTIONS for A100, GB300 and FSDP respectively": {"Hopper, Ampere", "Blackwell", "FSDP"},
		"H200 和 B300 上 CUDA_DEVICE_MAX_CONNECTIONS 分别设几":                    {"Hopper", "Blackwell"},
		"max connections: fsdp / moe overlap / tp":                          {"not 1", "`32`", "`1`"},
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok, q)
		for _, w := range append(want, "sbatch") {
			require.Contains(t, r.Text, w, q)
		}
	}
	r, ok := compute.Answer("we move from H100 to B200 with TP 2, CUDA_DEVICE_MAX_CONNECTIONS?", lang.EN)
	require.True(t, ok)
	require.NotContains(t, r.Text, "asserts on it at start", "one case was asked for, the one after the move")
}

func TestSizesToldTogetherAreRead(t *testing.T) {
	for text, want := range map[string][2]int{
		"TP and PP both 4": {4, 4}, "tp=pp=2 on 8 gpus": {2, 2}, "TP 和 PP 都设成 8": {8, 8}, "TP、PP 各 4": {4, 4}, "TP 8 and PP 2": {8, 2},
	} {
		c := compute.Read(text)
		require.Equal(t, want, [2]int{c.TP, c.PP}, text)
	}
}

func TestAWrongConclusionIsDenied(t *testing.T) {
	for q, want := range map[string]string{
		"4 query groups, so TP 8 can't be used, right?":     "No, it works. Valid",
		"96 卡 TP8 PP4 不能跑吧":                                 "不是这样,可以。DP = 3",
		"96 gpus with tp 8 pp 4: is it possible?":           "DP = 3",
		"30 heads with TP 8, therefore it is not possible?": "Not valid",
		"64 gpus tp 8 pp 4, is DP 2 right?":                 "DP = 2",
		"28 个头 TP 8 不行吧":                                    "不行",
		"can 64 gpus run tp 8 pp 4, or is that not allowed": "DP = 2",
	} {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok, q)
		require.Truef(t, strings.HasPrefix(r.Text, want), "%s: %s", q, r.Text)
	}
}
