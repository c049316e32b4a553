// Package mcptest holds the tools, resources and prompts that the official conformance
// suite expects of a server, under the suite's names. They run on the wiring of the
// real server, in tests only.
package mcptest

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
)

type handler = sdkserver.ToolHandlerFunc

// A Toolset adds the suite's tools, resources and prompts to Server.
type Toolset struct {
	Server *sdkserver.MCPServer
	// Notified is called after each notification, as the real server's handlers call
	// mcp.Notified.
	Notified func(context.Context)
}

// Completer answers the only completion that the suite asks for.
type Completer struct {
	sdkserver.DefaultPromptCompletionProvider
}

// CompletePromptArgument completes arg1 of test_prompt_with_arguments.
func (Completer) CompletePromptArgument(_ context.Context, prompt string, arg sdk.CompleteArgument, _ sdk.CompleteContext) (*sdk.Completion, error) {
	if prompt == "test_prompt_with_arguments" && arg.Name == "arg1" {
		return &sdk.Completion{Values: []string{arg.Value + "1", arg.Value + "2"}, Total: 2}, nil
	}
	return &sdk.Completion{Values: []string{}}, nil
}

// Add adds everything that the suite asks for by name.
func (t Toolset) Add() {
	t.addContent()
	t.addNotifying()
	t.addAsking()
	t.addInputRequired()
	t.addStateless()
	t.addResources()
	t.addPrompts()
}

func (t Toolset) tool(name, description string, h handler, opts ...sdk.ToolOption) {
	t.Server.AddTool(sdk.NewTool(name, append([]sdk.ToolOption{sdk.WithDescription(description)}, opts...)...), h)
}

func text(words string) handler { return content(sdk.NewTextContent(words)) }

func content(c ...sdk.Content) handler {
	return func(context.Context, sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: c}, nil
	}
}

// A red pixel, and a WAV file without samples.
const (
	pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	wave  = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
)

func (t Toolset) addContent() {
	note := sdk.NewEmbeddedResource(sdk.TextResourceContents{
		URI:      "test://embedded-resource",
		MIMEType: "text/plain",
		Text:     "This is an embedded resource content.",
	})
	mixed := sdk.NewEmbeddedResource(sdk.TextResourceContents{
		URI:      "test://mixed-content-resource",
		MIMEType: "application/json",
		Text:     `{"test":"data","value":123}`,
	})
	t.tool("test_simple_text", "answers with text", text("This is a simple text response for testing."))
	t.tool("test_image_content", "answers with an image", content(sdk.NewImageContent(pixel, "image/png")))
	t.tool("test_audio_content", "answers with audio", content(sdk.NewAudioContent(wave, "audio/wav")))
	t.tool("test_embedded_resource", "answers with a resource", content(note))
	t.tool("test_multiple_content_types", "answers with text, an image and a resource",
		content(sdk.NewTextContent("Multiple content types test:"), sdk.NewImageContent(pixel, "image/png"), mixed))
	t.tool("test_error_handling", "answers with an error", func(context.Context, sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return sdk.NewToolResultError("This tool intentionally returns an error for testing"), nil
	})
	t.tool("test_panic", "panics", func(context.Context, sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		panic("a secret that no client may read")
	})
	t.tool("test_reconnection", "answers after its stream was interrupted", text("Reconnection test completed."))
	t.Server.AddTool(sdk.NewToolWithRawSchema("json_schema_2020_12_tool", "keeps every keyword of JSON Schema 2020-12", []byte(`{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {
			"name": {"type": "string"},
			"address": {"$ref": "#/$defs/address"},
			"contactMethod": {"type": "string", "enum": ["phone", "email"]},
			"phone": {"type": "string"}, "email": {"type": "string"}
		},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]},
		"else": {"required": ["email"]},
		"additionalProperties": false}`)), text("valid"))
	t.Server.AddTool(sdk.NewToolWithRawSchema("test_x_mcp_header", "takes an argument from a header",
		[]byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`)), text("ok"))
}

func (t Toolset) addNotifying() {
	t.tool("test_tool_with_logging", "logs three times", func(ctx context.Context, _ sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i, m := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			pause(ctx, i)
			if err := t.send(ctx, "notifications/message", map[string]any{"level": "info", "logger": "conformance", "data": m}); err != nil {
				return nil, err
			}
		}
		return sdk.NewToolResultText("Tool with logging executed successfully"), nil
	})
	t.tool("test_tool_with_progress", "reports its progress three times", func(ctx context.Context, req sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var token sdk.ProgressToken = "none"
		if req.Params.Meta != nil && req.Params.Meta.ProgressToken != nil {
			token = req.Params.Meta.ProgressToken
		}
		for i, done := range []int{0, 50, 100} {
			pause(ctx, i)
			if err := t.send(ctx, "notifications/progress", map[string]any{"progressToken": token, "progress": done, "total": 100}); err != nil {
				return nil, err
			}
		}
		return sdk.NewToolResultText(fmt.Sprint(token)), nil
	})
}

// pause waits 50 ms before all but the first step, as a tool that does work would.
func pause(ctx context.Context, step int) {
	if step == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

func (t Toolset) send(ctx context.Context, method string, params map[string]any) error {
	err := t.Server.SendNotificationToClient(ctx, method, params)
	t.Notified(ctx)
	return err
}

func (t Toolset) addResources() {
	read := func(c sdk.ResourceContents) sdkserver.ResourceHandlerFunc {
		return func(context.Context, sdk.ReadResourceRequest) ([]sdk.ResourceContents, error) {
			return []sdk.ResourceContents{c}, nil
		}
	}
	t.Server.AddResource(sdk.NewResource("test://static-text", "static-text", sdk.WithResourceDescription("a text"), sdk.WithMIMEType("text/plain")),
		read(sdk.TextResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."}))
	t.Server.AddResource(sdk.NewResource("test://static-binary", "static-binary", sdk.WithResourceDescription("an image"), sdk.WithMIMEType("image/png")),
		read(sdk.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: pixel}))
	about := sdk.WithResourceDescription("a text to subscribe to")
	t.Server.AddResource(sdk.NewResource("test://watched-resource", "watched", about, sdk.WithMIMEType("text/plain")),
		read(sdk.TextResourceContents{URI: "test://watched-resource", MIMEType: "text/plain", Text: "Watched."}))
	t.Server.AddResourceTemplate(sdk.NewResourceTemplate("test://template/{id}/data", "template",
		sdk.WithTemplateDescription("data of an id"), sdk.WithTemplateMIMEType("application/json")),
		func(_ context.Context, req sdk.ReadResourceRequest) ([]sdk.ResourceContents, error) {
			id := ""
			if ids, ok := req.Params.Arguments["id"].([]string); ok && len(ids) == 1 {
				id = ids[0]
			}
			return []sdk.ResourceContents{sdk.TextResourceContents{
				URI: req.Params.URI, MIMEType: "application/json",
				Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id),
			}}, nil
		})
}

func (t Toolset) addPrompts() {
	user := func(c sdk.Content) sdk.PromptMessage { return sdk.NewPromptMessage(sdk.RoleUser, c) }
	add := func(name string, say func(args map[string]string) []sdk.PromptMessage, opts ...sdk.PromptOption) {
		t.Server.AddPrompt(sdk.NewPrompt(name, append([]sdk.PromptOption{sdk.WithPromptDescription("a prompt of the suite's")}, opts...)...),
			func(_ context.Context, req sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
				return &sdk.GetPromptResult{Messages: say(req.Params.Arguments)}, nil
			})
	}
	arg := func(name string) sdk.PromptOption {
		return sdk.WithArgument(name, sdk.ArgumentDescription("an argument"), sdk.RequiredArgument())
	}
	add("test_simple_prompt", func(map[string]string) []sdk.PromptMessage {
		return []sdk.PromptMessage{user(sdk.NewTextContent("This is a simple prompt for testing."))}
	})
	add("test_prompt_with_arguments", func(a map[string]string) []sdk.PromptMessage {
		return []sdk.PromptMessage{user(sdk.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])))}
	}, arg("arg1"), arg("arg2"))
	add("test_prompt_with_embedded_resource", func(a map[string]string) []sdk.PromptMessage {
		return []sdk.PromptMessage{
			user(sdk.NewEmbeddedResource(sdk.TextResourceContents{URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."})),
			user(sdk.NewTextContent("Please process the embedded resource above.")),
		}
	}, arg("resourceUri"))
	add("test_prompt_with_image", func(map[string]string) []sdk.PromptMessage {
		return []sdk.PromptMessage{user(sdk.NewImageContent(pixel, "image/png")), user(sdk.NewTextContent("Please analyze the image above."))}
	})
}
