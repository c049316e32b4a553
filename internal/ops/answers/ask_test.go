package answers

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
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

// Where a model's words could be shown as they come and there are none, the answer
// stands as it is.
func TestAnAnswerWithoutAModelIsShownWhole(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	answerer := knowledge.New(knowledge.Options{})
	c.Answerer = func() *knowledge.Answerer { return answerer }
	c.Stream = func(string) { t.Error("nothing comes in pieces") }
	out, err := opstest.Do(t, c, Ask(func() []ops.Op { return nil }), "what", "is", "DP", "with", "TP", "8", "PP", "2", "on", "64", "GPUs?")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "DP = 4")
}

// An agent that speaks of tools means those of the server that it asks.
func TestAnAgentAsksAboutTheServersTools(t *testing.T) {
	op := Ask(func() []ops.Op { return nil })
	answerer := knowledge.New(knowledge.Options{Own: About(func() []ops.Op { return nil })})
	asks := func(surface ops.Surface, question string) string {
		c := opstest.NewCall(t, &opstest.Site{})
		c.Who.Surface = surface
		c.Answerer = func() *knowledge.Answerer { return answerer }
		out, err := opstest.Do(t, c, op, question)
		require.NoError(t, err)
		return out.(AskOut).Answer.Answer
	}
	for _, question := range []string{"how do I add more tools to this server?", "which toolsets are there?", "怎么让这个服务器提供更多工具？", "有哪些工具集？"} {
		require.Contains(t, asks(ops.MCP, question), "--toolsets", question)
		require.NotContains(t, asks(ops.Shell, question), "--toolsets", "elsewhere it is not what is meant: %s", question)
	}
	require.Equal(t, asks(ops.Shell, "how do I set MASTER_ADDR?"), asks(ops.MCP, "how do I set MASTER_ADDR?"))
}
