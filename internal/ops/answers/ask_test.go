package answers

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// An agent keeps the conversation itself, and says what was asked before.
func TestAnAgentSaysWhatWasAskedBefore(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	answerer := knowledge.New(knowledge.Options{})
	c.Answerer = func() *knowledge.Answerer { return answerer }
	op := Ask(func() []ops.Op { return nil })
	in := op.NewIn()
	require.NoError(t, ops.Decode(json.RawMessage(`{"question":"and with TP 4?","before":["what is DP with TP 8 PP 2 on 64 gpus"]}`), in, nil))
	got, err := op.Run(t.Context(), c, in)
	require.NoError(t, err)
	require.Contains(t, got.(AskOut).Answer.Answer, "DP = 8")

	_, err = opstest.Do(t, c, op, " ")
	require.ErrorContains(t, err, "no question")
}
