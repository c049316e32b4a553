package answers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A flag may be removed and come back: the gap is shown.
func TestReleasesOfAFlagTellTheGap(t *testing.T) {
	span := func(since, until megatron.Release) megatron.Span { return megatron.Span{Since: since, Until: until} }
	newest := megatron.Release(0).OrNewest()
	for _, c := range []struct {
		spans  []megatron.Span
		en, zh string
	}{
		{[]megatron.Span{span(megatron.V015, newest)}, "all that are known, 0.15.3 to main", "已知的全部版本，0.15.3 至 main"},
		{[]megatron.Span{span(megatron.V015, megatron.V016), span(megatron.V017, newest)}, "all that are known, 0.15.3 to main", "已知的全部版本，0.15.3 至 main"},
		{[]megatron.Span{span(megatron.V017, newest)}, "since 0.17.1", "自 0.17.1 起"},
		{[]megatron.Span{span(megatron.V015, megatron.V016)}, "up to 0.16.1; gone since", "到 0.16.1 为止，之后已移除"},
		{[]megatron.Span{span(megatron.V016, megatron.V017)}, "0.16.1 to 0.17.1; gone since", "0.16.1 至 0.17.1，之后已移除"},
		{[]megatron.Span{span(megatron.V015, megatron.V015), span(megatron.V017, newest)}, "0.15.3, then again since 0.17.1", "0.15.3，之后又有：自 0.17.1 起"},
		{
			[]megatron.Span{span(megatron.V015, megatron.V016), span(megatron.V018, megatron.V018)},
			"0.15.3 to 0.16.1, then again 0.18.2; gone since", "0.15.3 至 0.16.1，之后又有：0.18.2，之后已移除",
		},
	} {
		says := releasesOf(c.spans)
		require.Equal(t, c.en, says.In(lang.EN))
		require.Equal(t, c.zh, says.In(lang.ZH))
	}
}

// A flag with a successor is explained itself as long as a release has it, and each
// rule says its condition and its releases.
func TestAFlagThatHasASuccessorIsStillExplained(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	out, err := opstest.Do(t, c, Explain(), "--rampup-batch-size")
	require.NoError(t, err)
	o := out.(ExplainOut)
	require.Equal(t, "--rampup-batch-size", o.Word)
	require.Contains(t, o.Says, "its successor is --step-batch-size-schedule")
	require.Contains(t, o.Rules, "ramp-up-needs-samples: --rampup-batch-size must not be given (when: --train-iters) [up to 0.17.1]")
	require.Contains(t, o.Rules, "rampup-has-no-effect: --rampup-batch-size has no effect [since 0.18.2]")
	out, err = opstest.Do(t, c, Explain(), "--moe-extended-tp")
	require.NoError(t, err)
	require.Equal(t, "--expert-tensor-parallel-size", out.(ExplainOut).Word, "what is gone leads to what took its place")
	c.Lang = lang.ZH
	out, err = opstest.Do(t, c, Explain(), "ramp-up-needs-samples")
	require.NoError(t, err)
	require.Contains(t, out.(ExplainOut).Facts, view.Fact{Name: "版本", Value: "到 0.17.1 为止"})
}
