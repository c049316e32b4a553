//go:build model

package agents

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// mostTurns bounds what a model may try for one task.
const mostTurns = 20

// A modelAgent is a model that is given the tools.
type modelAgent struct {
	client *openai.Client
	name   string
}

func newModel(t *testing.T) modelAgent {
	t.Helper()
	config := openai.DefaultConfig(os.Getenv("OPENAI_API_KEY"))
	if url := os.Getenv("OPENAI_BASE_URL"); url != "" {
		config.BaseURL = url
	}
	require.NotEmpty(t, os.Getenv("OPENAI_MODEL"), "OPENAI_MODEL names the model")
	return modelAgent{openai.NewClientWithConfig(config), os.Getenv("OPENAI_MODEL")}
}

// work lets the model call tools until it calls none.
func (m modelAgent) work(b *bench, request string) {
	b.t.Helper()
	var tools []openai.Tool
	for _, t := range b.tools {
		tools = append(tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: t.InputSchema,
		}})
	}
	talk := []openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleSystem, Content: b.instructions},
		{Role: openai.ChatMessageRoleUser, Content: request},
	}
	for range mostTurns {
		res, err := m.client.CreateChatCompletion(b.t.Context(), openai.ChatCompletionRequest{Model: m.name, Messages: talk, Tools: tools})
		require.NoError(b.t, err)
		require.NotEmpty(b.t, res.Choices)
		said := res.Choices[0].Message
		talk = append(talk, said)
		if len(said.ToolCalls) == 0 {
			b.t.Log(said.Content)
			return
		}
		for _, call := range said.ToolCalls {
			answer, err := json.Marshal(b.do(call.Function.Name, json.RawMessage(call.Function.Arguments)))
			require.NoError(b.t, err)
			talk = append(talk, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: call.ID, Content: string(answer)})
		}
	}
}

// TestAModel has a model do the tasks, and tells which it
// did and what that cost.
func TestAModel(t *testing.T) {
	ask := newModel(t)
	cluster := slurmtest.Start(t, slurmtest.Options{})
	done, asked := 0, 0
	for _, k := range tasks {
		t.Run(k.name, func(t *testing.T) {
			asked++
			b, job := prepared(t, cluster, k)
			ask.work(b, strings.NewReplacer("NAME", b.name, "WORK", b.work, "JOB", job).Replace(k.request))
			t.Logf("%d calls, %d tokens as text", b.calls, b.text/bytesPerToken)
			k.after(b, job)
			done++
			b.clear()
		})
	}
	t.Logf("%d of %d tasks done", done, asked)
}
