package knowledge

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/names"
	"github.com/megatron-ops/megatron-ops/skills"
)

// An example question must lead to its own card, and must not be declined.
func TestExampleQuestionsLeadToTheirCards(t *testing.T) {
	lib := makeLibrary(known())
	asked, lost := 0, 0
	for i, c := range lib.cards {
		for _, ask := range c.Asks {
			asked++
			why := outOfScope(ask)
			hits := lib.index.Search(ask, 3)
			found := false
			for _, h := range hits {
				found = found || h.Doc == i
			}
			if why != "" || !found || !lib.fits(ask, hits) {
				lost++
				t.Logf("%s: %q leads elsewhere (%s)", c.ID, ask, why)
			}
		}
	}
	require.Less(t, float64(lost)/float64(asked), 0.01)
}

func TestCardsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cards.All() {
		require.False(t, seen[c.ID], "%s is there twice", c.ID)
		seen[c.ID] = true
		_, ok := skills.Get(c.Skill)
		require.True(t, ok, "%s: no skill %q", c.ID, c.Skill)
		require.LessOrEqual(t, len([]rune(c.Text.EN)), 1800, c.ID)
		if len([]rune(c.Text.ZH)) > 60 && !strings.HasPrefix(c.Text.ZH, "```") {
			require.Equal(t, lang.ZH, lang.Of(c.Text.ZH), "%s is not in Chinese", c.ID)
		}
		require.True(t, c.URL == "" || strings.HasPrefix(c.URL, "https://"), "%s: %s", c.ID, c.URL)
	}
}

func TestNamesThatExistAreKnown(t *testing.T) {
	for _, o := range []string{"--tensor-model-parallel-size", "--gpus-per-node", "--rdzv_backend", "--container-image", "--locked", "--only-group"} {
		require.True(t, names.Option(o), o)
	}
	for _, v := range []string{"NCCL_DEBUG", "SLURM_JOB_ID", "CUDA_DEVICE_MAX_CONNECTIONS", "UV_CACHE_DIR"} {
		require.True(t, names.Variable(v), v)
	}
	require.False(t, names.Option("--turbo-mode"))
	require.False(t, names.Variable("NCCL_MAGIC"))
}

// A no that begins the answer to a false premise is not followed by the yes
// with which the answer begins otherwise.
func TestNoYesFollowsANo(t *testing.T) {
	a := New(Options{})
	for _, q := range []string{
		"a fairshare score that is low stays low for ever, right?", "salloc without running anything is free, correct?",
		"TP 换了检查点一定要先转换才能加载对吧", "num_attention_heads 不用被 TP 整除对吧",
	} {
		ans, err := a.Ask(t.Context(), Question{Text: q})
		require.NoError(t, err)
		require.NotRegexp(t, `^(?:No\. (?:Yes|[a-z])|不是这样。(?:会|能|要|可以|算)[：，])`, ans.Answer, q)
	}
}
