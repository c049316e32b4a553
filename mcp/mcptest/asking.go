package mcptest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
)

// form returns a question whose schema has the given properties.
func form(message string, required []string, properties map[string]any) sdk.ElicitationParams {
	schema := map[string]any{"type": "object", "properties": properties}
	if required != nil {
		schema["required"] = required
	}
	return sdk.ElicitationParams{Mode: sdk.ElicitationModeForm, Message: message, RequestedSchema: schema}
}

// ask returns a question for one value.
func ask(message, field, typ string) sdk.ElicitationParams {
	return form(message, []string{field}, map[string]any{field: map[string]any{"type": typ}})
}

func sample(prompt string) sdk.CreateMessageParams {
	return sdk.CreateMessageParams{
		Messages:  []sdk.SamplingMessage{{Role: sdk.RoleUser, Content: sdk.NewTextContent(prompt)}},
		MaxTokens: 100,
	}
}

// said returns the answer to a question for one value.
func said(r sdk.InputResponses, id, field string) (string, bool) {
	answer := sdkserver.ElicitationResponse(r, id)
	if answer == nil {
		return "", false
	}
	fields, _ := answer.Content.(map[string]any)
	v, ok := fields[field]
	return fmt.Sprint(v), ok
}

// addAsking adds the tools that ask their client for something in the way of protocol
// versions up to 2025-11-25.
func (t Toolset) addAsking() {
	t.tool("test_sampling", "asks the client's model", func(_ context.Context, req sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r := sdkserver.SamplingResponse(req.Params.InputResponses, "model"); r != nil {
			words := "no text"
			if c, ok := sdk.AsTextContent(r.Content); ok {
				words = c.Text
			}
			return sdk.NewToolResultText("LLM response: " + words), nil
		}
		return sdkserver.NewInputRequestBuilder("").Sample("model", sample(req.GetString("prompt", ""))).ToolResult(), nil
	}, sdk.WithString("prompt", sdk.Required(), sdk.Description("what to ask")))

	t.elicit("test_elicitation", func(req sdk.CallToolRequest) sdk.ElicitationParams {
		return form(req.GetString("message", ""), []string{"username", "email"}, map[string]any{
			"username": map[string]any{"type": "string", "description": "the user's name"},
			"email":    map[string]any{"type": "string", "description": "the user's address"},
		})
	}, sdk.WithString("message", sdk.Required(), sdk.Description("what to ask")))

	t.elicit("test_elicitation_sep1034_defaults", func(sdk.CallToolRequest) sdk.ElicitationParams {
		return form("Defaults of every kind", nil, map[string]any{
			"name":     map[string]any{"type": "string", "default": "John Doe"},
			"age":      map[string]any{"type": "integer", "default": 30},
			"score":    map[string]any{"type": "number", "default": 95.5},
			"status":   map[string]any{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
			"verified": map[string]any{"type": "boolean", "default": true},
		})
	})

	t.elicit("test_elicitation_sep1330_enums", func(sdk.CallToolRequest) sdk.ElicitationParams {
		words := []string{"option1", "option2", "option3"}
		titled := []any{
			map[string]any{"const": "value1", "title": "First Option"},
			map[string]any{"const": "value2", "title": "Second Option"},
			map[string]any{"const": "value3", "title": "Third Option"},
		}
		return form("Choices of every kind", nil, map[string]any{
			"untitledSingle": map[string]any{"type": "string", "enum": words},
			"titledSingle":   map[string]any{"type": "string", "oneOf": titled},
			"legacyEnum":     map[string]any{"type": "string", "enum": []string{"opt1", "opt2"}, "enumNames": []string{"Option One", "Option Two"}},
			"untitledMulti":  map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": words}},
			"titledMulti":    map[string]any{"type": "array", "items": map[string]any{"anyOf": titled}},
		})
	})
}

func (t Toolset) elicit(name string, question func(sdk.CallToolRequest) sdk.ElicitationParams, opts ...sdk.ToolOption) {
	t.tool(name, "asks the client's user", func(_ context.Context, req sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r := sdkserver.ElicitationResponse(req.Params.InputResponses, "user"); r != nil {
			return sdk.NewToolResultText(fmt.Sprintf("Elicitation completed: action=%s, content=%v", r.Action, r.Content)), nil
		}
		return sdkserver.NewInputRequestBuilder("").Elicit("user", question(req)).ToolResult(), nil
	}, opts...)
}

// addInputRequired adds the tools and the prompt that answer with a request for input,
// as protocol version 2026-07-28 does.
func (t Toolset) addInputRequired() {
	const prefix = "test_input_required_result_"
	const capital = "What is the capital of France?"
	key := []byte(rand.Text())
	build := sdkserver.NewInputRequestBuilder
	add := func(name string, h func(context.Context, sdk.CallToolParams) (*sdk.CallToolResult, error)) {
		t.tool(prefix+name, "asks for input in its result", func(ctx context.Context, req sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return h(ctx, req.Params)
		})
	}
	add("elicitation", func(_ context.Context, p sdk.CallToolParams) (*sdk.CallToolResult, error) {
		if name, ok := said(p.InputResponses, "user_name", "name"); ok {
			return sdk.NewToolResultText("Hello, " + name + "!"), nil
		}
		return build("").Elicit("user_name", ask("What is your name?", "name", "string")).ToolResult(), nil
	})
	add("sampling", func(_ context.Context, p sdk.CallToolParams) (*sdk.CallToolResult, error) {
		if r := sdkserver.SamplingResponse(p.InputResponses, "sample_request"); r != nil {
			return sdk.NewToolResultText(fmt.Sprintf("Sampling result: %v", r.Content)), nil
		}
		return build("").Sample("sample_request", sample(capital)).ToolResult(), nil
	})
	add("list_roots", func(_ context.Context, p sdk.CallToolParams) (*sdk.CallToolResult, error) {
		if r := sdkserver.RootsResponse(p.InputResponses, "roots_request"); r != nil {
			return sdk.NewToolResultText(fmt.Sprintf("Found %d root(s)", len(r.Roots))), nil
		}
		return build("").Roots("roots_request").ToolResult(), nil
	})
	add("request_state", func(_ context.Context, p sdk.CallToolParams) (*sdk.CallToolResult, error) {
		if _, ok := said(p.InputResponses, "confirm", "ok"); ok && p.RequestState != "" {
			return sdk.NewToolResultText("state-ok"), nil
		}
		return build(`{"kind":"request-state"}`).Elicit("confirm", ask("Please confirm", "ok", "boolean")).ToolResult(), nil
	})
	add("multiple_inputs", func(_ context.Context, p sdk.CallToolParams) (*sdk.CallToolResult, error) {
		if len(p.InputResponses) >= 3 {
			return sdk.NewToolResultText("all received"), nil
		}
		return build("multi").Elicit("user_name", ask("What is your name?", "name", "string")).
			Sample("greeting", sample(capital)).Roots("client_roots").ToolResult(), nil
	})
	add("multi_round", func(_ context.Context, p sdk.CallToolParams) (*sdk.CallToolResult, error) {
		name, second := strings.CutPrefix(p.RequestState, "2:")
		if color, ok := said(p.InputResponses, "step2", "color"); ok && second {
			return sdk.NewToolResultText("done " + name + " " + color), nil
		}
		if name, ok := said(p.InputResponses, "step1", "name"); ok && p.RequestState == "1" {
			return build("2:"+name).Elicit("step2", ask("Step 2: what is your favorite color?", "color", "string")).ToolResult(), nil
		}
		return build("1").Elicit("step1", ask("Step 1: what is your name?", "name", "string")).ToolResult(), nil
	})
	add("tampered_state", func(_ context.Context, p sdk.CallToolParams) (*sdk.CallToolResult, error) {
		if p.RequestState == "" {
			return build(sign(key, "t")).Elicit("confirm", ask("Please confirm", "ok", "boolean")).ToolResult(), nil
		}
		if !hmac.Equal([]byte(p.RequestState), []byte(sign(key, "t"))) {
			return nil, fmt.Errorf("requestState was changed: %w", sdk.ErrInvalidParams)
		}
		return sdk.NewToolResultText("integrity-ok: state verified"), nil
	})
	add("capabilities", func(ctx context.Context, p sdk.CallToolParams) (*sdk.CallToolResult, error) {
		info := sdkserver.RequestProtocolInfoFromContext(ctx)
		switch {
		case len(p.InputResponses) > 0:
			return sdk.NewToolResultText("capabilities-ok"), nil
		case info == nil || info.ClientCapabilities == nil || info.ClientCapabilities.Elicitation == nil && info.ClientCapabilities.Sampling == nil:
			return sdk.NewToolResultText("No supported capabilities declared"), nil
		}
		b := build(sign(key, "c"))
		if info.ClientCapabilities.Elicitation != nil {
			b.Elicit("elicit_input", ask("A value?", "value", "string"))
		}
		if info.ClientCapabilities.Sampling != nil {
			b.Sample("sample_input", sample(capital))
		}
		return b.ToolResult(), nil
	})
	t.Server.AddPrompt(sdk.NewPrompt(prefix+"prompt", sdk.WithPromptDescription("asks for input in its result")),
		func(_ context.Context, req sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			if words, ok := said(req.Params.InputResponses, "user_context", "context"); ok {
				return &sdk.GetPromptResult{Messages: []sdk.PromptMessage{sdk.NewPromptMessage(sdk.RoleUser, sdk.NewTextContent(words))}}, nil
			}
			return build("").Elicit("user_context", ask("In what context?", "context", "string")).PromptResult(), nil
		})
}

func sign(key []byte, state string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(state))
	return state + "." + hex.EncodeToString(m.Sum(nil))
}

// addStateless adds the tools with which the suite tests the rules of protocol version
// 2026-07-28 for servers without sessions.
func (t Toolset) addStateless() {
	t.tool("test_missing_capability", "needs the client's model", func(ctx context.Context, req sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if sdkserver.SamplingResponse(req.Params.InputResponses, "s") != nil {
			return sdk.NewToolResultText("ok"), nil
		}
		if i := sdkserver.RequestProtocolInfoFromContext(ctx); i != nil && i.Modern && (i.ClientCapabilities == nil || i.ClientCapabilities.Sampling == nil) {
			return nil, sdk.MissingRequiredClientCapabilityError{Capability: "sampling"}
		}
		return sdkserver.NewInputRequestBuilder("").Sample("s", sample("Hello")).ToolResult(), nil
	})
	t.tool("test_streaming_elicitation", "reports progress", func(ctx context.Context, _ sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if err := t.send(ctx, "notifications/progress", map[string]any{"progressToken": "t", "progress": 50, "total": 100}); err != nil {
			return nil, err
		}
		return sdk.NewToolResultText("ok"), nil
	})
	t.tool("test_logging_tool", "logs where the request asks for it", func(ctx context.Context, _ sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		err := t.Server.SendLogMessageToClient(ctx, sdk.NewLoggingMessageNotification(sdk.LoggingLevelInfo, "conformance", "trace"))
		if err != nil {
			return nil, err
		}
		if i := sdkserver.RequestProtocolInfoFromContext(ctx); i == nil || !i.Modern || i.LogLevel != "" {
			t.Notified(ctx) // otherwise the library has sent nothing
		}
		return sdk.NewToolResultText("ok"), nil
	})
	t.tool("test_trigger_tool_change", "adds a tool", func(context.Context, sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		t.tool("test_added_tool", "was added", text("added"))
		return sdk.NewToolResultText("ok"), nil
	})
	t.tool("test_trigger_prompt_change", "adds a prompt", func(context.Context, sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		t.Server.AddPrompt(sdk.NewPrompt("test_added_prompt", sdk.WithPromptDescription("was added")),
			func(context.Context, sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
				return &sdk.GetPromptResult{}, nil
			})
		return sdk.NewToolResultText("ok"), nil
	})
}
