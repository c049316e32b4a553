package knowledge_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

// ask answers a question that comes after others of the same thread.
func ask(t *testing.T, a *knowledge.Answerer, text string, before ...string) knowledge.Answer {
	t.Helper()
	q := knowledge.Question{Text: text}
	for _, b := range before {
		q.History = append(q.History, knowledge.Turn{Question: b})
	}
	ans, err := a.Ask(context.Background(), q)
	require.NoError(t, err)
	return ans
}

func TestFollowUpsChangeOneNumber(t *testing.T) {
	a := knowledge.New(knowledge.Options{})
	first := "what is DP with TP 8 PP 2 on 64 gpus"
	require.Contains(t, ask(t, a, first).Answer, "DP = 4")
	require.Contains(t, ask(t, a, "and with TP 4?", first).Answer, "DP = 8")
	require.Contains(t, ask(t, a, "what about 128 gpus", first, "and with TP 4?").Answer, "DP = 16")
	require.Contains(t, ask(t, a, "换成 TP 2 呢", "64 卡 TP8 PP2 数据并行度是多少").Answer, "DP = 16")
	require.Contains(t, ask(t, a, "and on B200?", "H100 TP 4: CUDA_DEVICE_MAX_CONNECTIONS?").Answer, "not required on Blackwell")
	// A question that stands alone does not look back.
	require.Contains(t, ask(t, a, "default MASTER_PORT?", first).Answer, "29500")
}
