package knowledge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// A refusal of Megatron that no card speaks of is answered from its rule.
func TestAMessageOfMegatronIsAnsweredFromItsRule(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	for q, want := range map[string]string{
		"AssertionError: num_moe_experts must be divisible by expert_model_parallel_size, what now":                "--num-experts must be a multiple of EP",
		"ValueError: recompute_method must be uniform or block when recompute_granularity is full":                 "--recompute-method uniform or block must be given",
		"AssertionError: hybrid_context_parallel not supported with pipeline_model_parallel_size > 1 怎么办":          "PP 必须为 1",
		"AssertionError: overlap_param_gather only supported with use_distributed_optimizer. how do I get past it": "--use-distributed-optimizer",
	} {
		ans, err := a.Ask(t.Context(), knowledge.Question{Text: q})
		require.NoError(t, err)
		require.Contains(t, ans.Answer, want, q)
		require.Contains(t, ans.Sources[0].URL, "megatron/", q)
	}
}
