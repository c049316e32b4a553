package card

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// The lowest loss is told where the newest is not it, or there is none.
func TestTheLowestLossIsToldWhereItIsNotTheNewest(t *testing.T) {
	t.Parallel()
	low, high := 2.25, 2.5
	for name, c := range map[string]struct {
		newest *float64
		told   bool
	}{"rose since": {&high, true}, "none in the last iteration": {nil, true}, "is the newest": {&low, false}} {
		shown := string(answer.BlocksJSON(Numbers(News{}, metrics.Summary{Loss: c.newest, BestLoss: &low}, lang.EN)))
		require.Equal(t, c.told, strings.Contains(shown, `*Lowest loss*\n2.25`), name)
	}
}

// A job in a list has two lines: what it is and its state, and then the details.
func TestARowIsTwoLines(t *testing.T) {
	t.Parallel()
	loss := Number(2.3456)
	curve := []metrics.Point{{N: 1, V: 8}, {N: 2, V: 4}, {N: 3, V: 2}, {N: 4, V: 1}}
	for name, c := range map[string]struct {
		n      News
		en, zh string
	}{
		"waits": {
			News{Job: slurm.Job{ID: "1", Name: "gpt", User: "ada", Partition: "gpu", State: slurm.Pending, Reason: "Resources", NumNodes: 2, GPUs: 16, ElapsedS: 9}},
			"🟡 *gpt* · 1 · waiting\n2 × 8 GPUs · gpu · ada · Resources: is first in line and waits until enough nodes are free",
			"🟡 *gpt* · 1 · 排队中\n2 × 8 张 GPU · gpu · ada · Resources：已排在最前，等待足够的空闲节点",
		},
		"trains": {
			News{Job: slurm.Job{ID: "2", Name: "a&b", User: "ada", State: slurm.Running, Nodes: []string{"n1", "n2"}, GPUs: 16, ElapsedS: 3720}, Iteration: 1200, Iterations: 5000, Loss: &loss, ETA: 90 * time.Minute, Curve: curve},
			"🔵 *a&amp;b* · 2 · running\n█▄▂▁ · Iteration 1,200 of 5,000 (24 %) · loss 2.346 · 1 h 30 min left · 2 × 8 GPUs · ada · 1 h 2 min · n[1-2]",
			"🔵 *a&amp;b* · 2 · 运行中\n█▄▂▁ · 迭代 1,200 / 5,000 (24 %) · 损失 2.346 · 剩余 1 小时 30 分钟 · 2 × 8 张 GPU · ada · 1 小时 2 分钟 · n[1-2]",
		},
		"failed": {
			News{Job: slurm.Job{ID: "3", State: slurm.Failed, Nodes: []string{"n1"}}, Why: "GPU out of memory", Iteration: 3, Loss: &loss},
			"❌ *3* · failed: GPU out of memory\n1 node · n1", "❌ *3* · 失败：GPU out of memory\n1 个节点 · n1",
		},
	} {
		require.Equal(t, c.en, Row(c.n, lang.EN), name)
		require.Equal(t, c.zh, Row(c.n, lang.ZH), name)
	}
}

// The bars come first in the second line, where there are enough points.
func TestTheLossIsALineOfBars(t *testing.T) {
	t.Parallel()
	points := func(vs ...float64) (ps []metrics.Point) {
		for i, v := range vs {
			ps = append(ps, metrics.Point{N: i, V: v})
		}
		return ps
	}
	of := func(vs ...float64) string {
		_, second, _ := strings.Cut(Row(News{Job: slurm.Job{ID: "7", State: slurm.Running}, Iteration: 9, Curve: points(vs...)}, lang.EN), "\n")
		return second
	}
	require.Equal(t, "Iteration 9", of(1, 2))
	require.Equal(t, "▁▁▁ · Iteration 9", of(5, 5, 5))
	require.Equal(t, "▁▂▃▄▅▆▇█ · Iteration 9", of(0, 1, 2, 3, 4, 5, 6, 7))
	long := make([]float64, 100)
	long[99] = 1
	require.Equal(t, "▁▁▁▁▁▁▁▁▁▁▁█ · Iteration 9", of(long...), "the newest is among them")
}

func TestNumbersAndTimesAreAsPeopleSayThem(t *testing.T) {
	t.Parallel()
	for n, said := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		require.Equal(t, said, WithCommas(n))
	}
	require.Equal(t, "<!date^0^{time}|1970-01-01 00:00 UTC>", When(time.Unix(0, 0), "{time}"))
}

// A notification shows the state, the name, the id and the most important detail.
func TestAHeadlineSaysWhatOneWouldAskNext(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]News{
		"🟡 gpt (1): waiting, place 3":                {Job: slurm.Job{ID: "1", Name: "gpt", State: slurm.Pending}, Position: 3},
		"🟡 gpt (1): waiting":                         {Job: slurm.Job{ID: "1", Name: "gpt", State: slurm.Pending}, Position: -1},
		"🔵 gpt (1): running on n1, n2":               {Job: slurm.Job{ID: "1", Name: "gpt", State: slurm.Running, Nodes: []string{"n1", "n2"}}},
		"❌ gpt (1): out of memory, rank 11 on gpu4":  {Job: slurm.Job{ID: "1", Name: "gpt", State: slurm.Failed, ElapsedS: 60}, Why: "out of memory, rank 11 on gpu4"},
		"✅ gpt (1): completed after 1 h":             {Job: slurm.Job{ID: "1", Name: "gpt", State: slurm.Completed, ElapsedS: 3600}},
		"❌ job 1: failed":                            {Job: slurm.Job{ID: "1", State: slurm.Failed}},
		"🔵 job 1: running":                           {Job: slurm.Job{ID: "1", Name: " \u200b", State: slurm.Running}},
		"🔵 gpt (1): nodes are made ready":            {Job: slurm.Job{ID: "1", Name: "gpt", State: "CONFIGURING"}},
		"❌ gpt (1): time limit reached after 59 min": {Job: slurm.Job{ID: "1", Name: "gpt", State: slurm.Timeout, ElapsedS: 3599}},
	} {
		require.Equal(t, want, Headline(n, lang.EN))
	}
	loss := Number(2)
	require.Equal(t, "gpt (1) · loss 2 · 1.92 s", CurveTitle(News{Job: slurm.Job{ID: "1", Name: "gpt"}, Loss: &loss, SecondsEach: 1.92}, lang.EN))
}

// A reader of the other language is told the cause in theirs; a card of an earlier version has it
// in one.
func TestACauseIsSaidInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	n := News{Job: slurm.Job{ID: "7", Name: "gpt", State: slurm.Failed}, Why: "GPU out of memory, rank 0 on n1"}
	require.Equal(t, "❌ gpt（7）：GPU out of memory, rank 0 on n1", Headline(n, lang.ZH))
	n.Says = lang.Text{EN: n.Why, ZH: "GPU 显存不足，n1 上的 rank 0"}
	require.Equal(t, "❌ gpt（7）：GPU 显存不足，n1 上的 rank 0", Headline(n, lang.ZH))
	require.Equal(t, "❌ gpt (7): GPU out of memory, rank 0 on n1", Headline(n, lang.EN))
	require.Contains(t, Row(n, lang.ZH), "显存不足")
}

// Every state of Slurm has a symbol, and words in both languages; Slurm's own word stands only for
// a state that this version does not know.
func TestEveryStateHasWords(t *testing.T) {
	for _, m := range append(slices.Clone(slurm.States()), slurm.Ended.Explain()) {
		s := slurm.State(m.Word)
		for _, l := range []lang.Lang{lang.EN, lang.ZH} {
			require.NotEqual(t, m.Word, State(s, l), l)
		}
		require.NotEqual(t, "⚪", Mark(s), m.Word)
		require.NotEqual(t, State(s, lang.EN), State(s, lang.ZH))
	}
	require.Equal(t, "⏹️", Mark(slurm.Ended), "an end that is not known is no failure")
	require.Equal(t, "SOMETHING_NEW", State("SOMETHING_NEW", lang.ZH))
}

// Whoever cancels a job whose kill switch is on has ended it, also if the switch is turned off again.
func TestACancellationIsNotTakenBackWithTheSwitch(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var k Card
	k.Act("U1", at, true)
	k.Act("U2", at.Add(time.Minute), false)
	k.TakeBack()
	require.Equal(t, "U2", k.Acted)
	k.Act("U1", at.Add(2*time.Minute), true)
	require.Equal(t, "U2", k.Acted, "they were faster")
}
