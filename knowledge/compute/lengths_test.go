package compute_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

// leads asserts that each answer begins with its value and wants no other.
func leads(t *testing.T, questions map[string]string) {
	t.Helper()
	for q, want := range questions {
		r, ok := compute.Answer(q, lang.Of(q))
		require.True(t, ok, q)
		head := []rune(r.Text)
		require.Contains(t, string(head[:min(len(head), 60)]), want, "%s: %s", q, r.Text)
		require.True(t, r.Asked(), q)
		require.False(t, strings.Contains(r.Text, "%!"), r.Text)
	}
}

func TestWhenASignalComesIsCountedFromTheStart(t *testing.T) {
	leads(t, map[string]string{
		"--time=6:00:00 --signal=B:USR1@1200: when after the start does it arrive":    "05:40:00 after the start (5 hours 40 minutes)",
		"#SBATCH --time=2-00:00:00 and --signal=TERM@3600, how far into the job":      "1-23:00:00",
		"with a 10 hour limit and --signal=USR2@300, at what elapsed time is it sent": "09:55:00",
		"--time=90 --signal=TERM@600 作业开始后多久收到信号":                                     "01:20:00",
		"时限 12 小时,--signal=B:TERM@900 什么时候发":                                          "11:45:00",
	})
	r, ok := compute.Answer("what does --signal=B:USR1@300 mean", lang.EN)
	require.True(t, ok)
	require.Contains(t, r.Text, "300 seconds (5 minutes) before the time limit")
}

func TestTheBubbleIsAShareOfWhatIsAsked(t *testing.T) {
	leads(t, map[string]string{
		"bubble relative to ideal compute, PP 16, 128 microbatches, 4 model chunks":      "2.93 %",
		"PP=4,每步 24 个 microbatch,交错 2 块,气泡占理想计算时间多少":                                     "6.25 %",
		"what part of the whole step time is pipeline bubble with PP 4, 30 microbatches": "9.09 % of the whole step",
		"8 个流水线 stage,21 个微批,气泡占总时间的比例":                                                  "25 %",
	})
}
