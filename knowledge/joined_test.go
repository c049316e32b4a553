package knowledge_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// What a question tells with numbers must not hide the answer to what it asks.
func TestNumbersThatOnlyTellTheSettingDoNotHideTheCard(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	for q, want := range map[string]string{
		"#SBATCH --signal=USR2@240 but my torchrun workers never get it, how do I save before the end":        "B:",
		"srun and torchrun both start 4 per node: Duplicate GPU detected : rank 6 and rank 2 both on CUDA 4e": "one task per node",
		"--time 写了 10 天,squeue 里一直是 (PartitionTimeLimit)":                                                     "分区",
		"8 GPUs, TP=4, full command line please":                                                              "torchrun",
	} {
		ans, err := a.Ask(t.Context(), knowledge.Question{Text: q})
		require.NoError(t, err)
		require.Contains(t, ans.Answer, want, q)
	}
}

// Where a value is asked for beside a failure, it leads and the card follows.
func TestAValueThatIsAskedForLeads(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	ans, err := a.Ask(t.Context(), knowledge.Question{Text: "28 attention heads with TP 8 fail at start, is it valid at all?"})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(ans.Answer, "Not valid: 28 attention heads"), ans.Answer)
	require.LessOrEqual(t, len([]rune(ans.Answer)), 800)

	ans, err = a.Ask(t.Context(), knowledge.Question{Text: "128 gpus tp 8 pp 4, what is dp"})
	require.NoError(t, err)
	require.Len(t, ans.Sources, 1, "nothing else was asked for")
}
