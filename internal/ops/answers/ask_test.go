package answers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// An agent keeps the conversation itself, and sends the earlier questions.
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

// Where a model's answer could be streamed but there is no model, the answer comes
// unchanged.
func TestAnAnswerWithoutAModelIsShownWhole(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	answerer := knowledge.New(knowledge.Options{})
	c.Answerer = func() *knowledge.Answerer { return answerer }
	c.Stream = func(string) { t.Error("nothing comes in pieces") }
	out, err := opstest.Do(t, c, Ask(func() []ops.Op { return nil }), "what", "is", "DP", "with", "TP", "8", "PP", "2", "on", "64", "GPUs?")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "DP = 4")
}

// An agent that speaks of tools means the tools of the server that it asks.
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

// A model's answer is wrapped to the terminal's width, and unchanged without one.
func TestAModelsWordsKeepToTheTerminal(t *testing.T) {
	t.Parallel()
	const words = "Set the variable before the job starts, because the launcher hands its environment to each of the ranks [1]. Nobody reads it later [1]."
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for piece := range strings.SplitAfterSeq(words, "e") {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", piece)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(model.Close)
	answerer := knowledge.New(knowledge.Options{Model: &knowledge.Model{BaseURL: model.URL, Key: "k", Name: "m", PerDay: 9}})
	for width, want := range map[int]string{
		0:  words + "\n",
		40: "Set the variable before the job starts,\nbecause the launcher hands its\nenvironment to each of the ranks [1].\nNobody reads it later [1].\n",
	} {
		c := opstest.NewCall(t, &opstest.Site{})
		c.Answerer = func() *knowledge.Answerer { return answerer }
		var shown strings.Builder
		c.Stream, c.Width = func(text string) { shown.WriteString(text) }, func() int { return width }
		_, err := opstest.Do(t, c, Ask(func() []ops.Op { return nil }), "why must CUDA_DEVICE_MAX_CONNECTIONS be set before the job starts")
		require.NoError(t, err)
		require.Equal(t, want, shown.String())
	}
}
