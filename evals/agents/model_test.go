package agents

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
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
