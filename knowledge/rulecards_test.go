package knowledge

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// Each line must name a rule of the table, or nobody would see it.
func TestAskedRulesExist(t *testing.T) {
	lines := 0
	for line := range strings.Lines(rulesAsked) {
		if line[0] == '#' {
			continue
		}
		lines++
		id, _, ok := strings.Cut(line, ": ")
		require.True(t, ok, line)
		_, ok = rules.Explain(strings.TrimSuffix(id, "!"))
		require.True(t, ok, "no rule %s", id)
	}
	require.Greater(t, lines, 200)
}

func TestABrokenRuleIsKnownByWhatMegatronPrints(t *testing.T) {
	for q, want := range map[string]string{
		"AssertionError: max_position_embeddings must be greater than or equal to seq_length": "--max-position-embeddings must be at least --seq-length",
		"DeepEP backend is only supported with flex token dispatcher, what do I change":       "--moe-token-dispatcher-type must be flex",
		"报 recompute_method must be，全量重计算还缺什么":                                                "必须给 --recompute-method",
		"TP=1 加 --sequence-parallel 会直接报错退出对吧":                                                "不是这样。",
	} {
		ans, err := New(Options{}).Ask(context.Background(), Question{Text: q})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(ans.Answer, want), "%s: %s", q, ans.Answer)
	}
}

func TestRuleCardsSpeakBothLanguages(t *testing.T) {
	for _, c := range ruleCards() {
		require.Contains(t, c.Text.EN, "Fix: ", c.ID)
		require.Contains(t, c.Text.ZH, "改法", c.ID)
		require.Equal(t, lang.ZH, lang.Of(c.Text.ZH), c.ID)
	}
}
