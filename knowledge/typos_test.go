package knowledge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
)

// A word that no text has is read as the only common word that it is one letter away from, and
// the answer says so.
func TestMisspeltWordsAreRead(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	for q, want := range map[string]string{
		"how to view slurm partitons":           "`partitons`; this is about `partitions`",
		"chekpoint save every 500 steps":        "`chekpoint`; this is about `checkpoint`",
		"tensr parallel size for 8 gpus":        "`tensr`; this is about `tensor`",
		"tensorparallel across nodes?":          "`tensorparallel`; this is about `tensor parallel`",
		"slrum job dependency":                  "`slrum`; this is about `slurm`",
		"slrum 作业依赖怎么写":                         "不知道 `slrum`；以下是 `slurm` 的内容",
		"my job is pending, reason is Prioirty": "`Prioirty`; this is about `priority`",
	} {
		require.Contains(t, ask(t, a, q).Answer, want, q)
	}
	for _, q := range []string{
		"fp8 gives me 35 percent over bf16 on h100, shouldn't it be 2x", // a short form
		"can I train gemma and falcon on slurm",                         // names
		"Unable to locate a modulefile for 'conda' in my job script",    // a word in other cards' words
		"job log in /scratch/slrum/run1",                                // a path
	} {
		require.NotContains(t, ask(t, a, q).Answer, "this is about", q)
	}
	require.NotContains(t, ask(t, a, "how do I paly guitra").Answer, "Did you mean", "no question of ours")

	site := knowledge.New(knowledge.Options{Added: func() []cards.Card {
		return []cards.Card{{ID: "site.slrum", Asks: []string{"what is slrum"}, Title: lang.Same("slrum"), Text: lang.Same("slrum is our gateway")}}
	}})
	require.NotContains(t, ask(t, site, "what is slrum").Answer, "slurm", "a word of an operator's card is no misspelling")
}
