//go:build clients

package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A turn decides what the model does next, given the tools' answers so far: it calls a
// tool, or says its last words.
type turn func(answers []string) (tool string, args any, last string)

// modelServer acts as a model over real HTTP, behind the three APIs that agents use:
// Anthropic's Messages, OpenAI's Responses, Gemini's generateContent.
func modelServer(t *testing.T, next turn) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"input_tokens":1}`)
	})
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Stream bool `json:"stream"`
			Tools  []struct {
				Name string `json:"name"`
			} `json:"tools"`
			Messages []struct {
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var answers []string
		for _, m := range req.Messages {
			var parts []struct {
				Type    string          `json:"type"`
				Content json.RawMessage `json:"content"`
			}
			if json.Unmarshal(m.Content, &parts) == nil {
				for _, p := range parts {
					if p.Type == "tool_result" {
						answers = append(answers, string(p.Content))
					}
				}
			}
		}
		block := map[string]any{"type": "text", "text": "nothing to do"}
		if len(req.Tools) > 0 {
			tool, args, last := next(answers)
			block = map[string]any{"type": "text", "text": last}
			for _, offered := range req.Tools {
				if tool != "" && strings.HasSuffix(offered.Name, "__"+tool) {
					block = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(answers)), "name": offered.Name, "input": args}
				}
			}
		}
		writeMessage(w, req.Stream, block)
	})
	mux.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, r *http.Request) { answerResponses(w, r, next) })
	mux.HandleFunc("POST /v1beta/models/", func(w http.ResponseWriter, r *http.Request) { answerGemini(w, r, next) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[]}`) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func writeMessage(w http.ResponseWriter, stream bool, block map[string]any) {
	stop := "end_turn"
	if block["type"] == "tool_use" {
		stop = "tool_use"
	}
	message := map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": []any{block},
		"stop_reason": stop, "usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name string, more map[string]any) {
		more["type"] = name
		raw, _ := json.Marshal(more)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, raw)
	}
	start := map[string]any{}
	for k, v := range message {
		start[k] = v
	}
	start["content"], start["stop_reason"] = []any{}, nil
	event("message_start", map[string]any{"message": start})
	open, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": block["text"]}
	if stop == "tool_use" {
		raw, _ := json.Marshal(block["input"])
		open = map[string]any{"type": "tool_use", "id": block["id"], "name": block["name"], "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(raw)}
	}
	event("content_block_start", map[string]any{"index": 0, "content_block": open})
	event("content_block_delta", map[string]any{"index": 0, "delta": delta})
	event("content_block_stop", map[string]any{"index": 0})
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop}, "usage": map[string]int{"output_tokens": 1}})
	event("message_stop", map[string]any{})
}

// answerResponses answers one round of OpenAI's Responses, streamed, as Codex requests
// it: tools of MCP servers are grouped in namespaces.
func answerResponses(w http.ResponseWriter, r *http.Request, next turn) {
	type tool struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		Tools []tool `json:"tools"`
	}
	var req struct {
		Tools []tool `json:"tools"`
		Input []struct {
			Type   string          `json:"type"`
			Output json.RawMessage `json:"output"`
		} `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var answers []string
	for _, in := range req.Input {
		if strings.HasSuffix(in.Type, "_call_output") {
			answers = append(answers, string(in.Output))
		}
	}
	wanted, args, last := next(answers)
	item := map[string]any{
		"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": last, "annotations": []any{}}},
	}
	raw, _ := json.Marshal(args)
	for _, group := range req.Tools {
		for _, offered := range append(group.Tools, group) {
			if wanted == "" || offered.Name != wanted && !strings.HasSuffix(offered.Name, "__"+wanted) {
				continue
			}
			item = map[string]any{
				"type": "function_call", "id": "fc_1", "call_id": fmt.Sprintf("call_%d", len(answers)), "name": offered.Name,
				"arguments": string(raw), "status": "completed",
			}
			if group.Type == "namespace" {
				item["namespace"] = group.Name
			}
		}
	}
	response := map[string]any{
		"id": "resp_1", "object": "response", "status": "completed", "model": "fake", "output": []any{item},
		"usage": map[string]any{
			"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
			"input_tokens_details": map[string]int{"cached_tokens": 0}, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
		},
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name string, more map[string]any) {
		more["type"] = name
		raw, _ := json.Marshal(more)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, raw)
	}
	event("response.created", map[string]any{"response": map[string]any{"id": "resp_1", "object": "response", "status": "in_progress", "output": []any{}}})
	event("response.output_item.added", map[string]any{"output_index": 0, "item": item})
	event("response.output_item.done", map[string]any{"output_index": 0, "item": item})
	event("response.completed", map[string]any{"response": response})
}

// answerGemini answers one round of Gemini's generateContent.
func answerGemini(w http.ResponseWriter, r *http.Request, next turn) {
	var req struct {
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Contents []struct {
			Parts []struct {
				Response *struct {
					Response json.RawMessage `json:"response"`
				} `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var answers []string
	for _, c := range req.Contents {
		for _, p := range c.Parts {
			if p.Response != nil {
				answers = append(answers, string(p.Response.Response))
			}
		}
	}
	wanted, args, last := next(answers)
	part := map[string]any{"text": last}
	for _, group := range req.Tools {
		for _, f := range group.Functions {
			if wanted != "" && strings.HasPrefix(f.Name, "mcp_") && strings.HasSuffix(f.Name, "_"+wanted) {
				part = map[string]any{"functionCall": map[string]any{"name": f.Name, "args": args}}
			}
		}
	}
	doc, _ := json.Marshal(map[string]any{
		"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": map[string]int{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	})
	if strings.Contains(r.URL.Path, "stream") {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", doc)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(doc)
}
