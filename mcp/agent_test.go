package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A turn decides what the model does next, by what the tools have answered so
// far: it calls a tool, or says its last words.
type turn func(answers []string) (tool string, args any, last string)

// modelServer plays a model behind Anthropic's Messages API, over real HTTP.
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

// failingTraining stands in for uv: one rank runs out of memory. It is all
// that this test replaces; the server, its back end and the agent are real.
const failingTraining = `#!/bin/sh
cat >&2 <<'END'
[rank1]: Traceback (most recent call last):
[rank1]:   File "/w/pretrain_gpt.py", line 300, in <module>
[rank1]:     pretrain(train_valid_test_datasets_provider, model_provider)
[rank1]:   File "/w/megatron/core/transformer/mlp.py", line 120, in forward
[rank1]:     intermediate = self.activation_func(intermediate)
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.11 GiB of which 1.20 GiB is free.
END
exit 1
`

var (
	tokenIn = regexp.MustCompile(`confirm_token[^A-Za-z0-9_-]+([A-Za-z0-9_-]{40,})`)
	jobIn   = regexp.MustCompile(`job_id[\\": ]+([0-9]+)|as job ([0-9]+)`)
)

// One whole turn of a real agent: a plan is refused, fixed, rendered and
// submitted with its token; the job fails and is diagnosed.
func TestAnAgentsWholeTurn(t *testing.T) {
	h := newHome(t)
	worktree := filepath.Join(h.dir, "Megatron-LM")
	bin := filepath.Join(h.dir, "bin")
	for _, dir := range []string{worktree, bin} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(bin, "uv"), []byte(failingTraining), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(worktree, "pretrain_gpt.py"), nil, 0o644))
	spec := func(heads string) map[string]any {
		return map[string]any{"spec": map[string]any{
			"name": "agent-run", "cluster": "local", "nodes": 1, "gpus_per_node": 2, "gpu": "h100", "time": "5", "worktree": worktree,
			"args": []any{
				"--tensor-model-parallel-size", 2, "--num-layers", 2, "--hidden-size", 64, "--num-attention-heads", heads,
				"--seq-length", 64, "--max-position-embeddings", 64, "--micro-batch-size", 1, "--global-batch-size", 2, "--train-iters", 2, "--lr", 1e-4,
				"--mock-data", "--tokenizer-type", "NullTokenizer", "--vocab-size", 128, "--bf16",
			},
		}}
	}
	var mu sync.Mutex
	var called []string
	var problem, job, token string
	url := modelServer(t, func(answers []string) (tool string, args any, last string) {
		mu.Lock()
		defer mu.Unlock()
		latest := ""
		if len(answers) > 0 {
			latest = answers[len(answers)-1]
		}
		defer func() {
			if tool != "" {
				called = append(called, tool)
			}
		}()
		switch n := len(answers); {
		case n == 0:
			return "plan", spec("7"), ""
		case n == 1:
			problem = latest
			return "plan", spec("8"), ""
		case n == 2:
			return "render", spec("8"), ""
		case n == 3:
			args := spec("8")
			args["idempotency_key"] = "agent-1"
			return "submit", args, ""
		case n > 4 && called[len(called)-1] == "diagnose":
			return "", nil, "FINAL " + latest
		case n == 4:
			// Claude Code without a terminal cancels the question that it is asked, so
			// the token that the refusal holds is what a second call must bring.
			if m := tokenIn.FindStringSubmatch(latest); m != nil {
				token = m[1]
			}
			args := spec("8")
			args["idempotency_key"], args["confirm_token"] = "agent-1", token
			return "submit", args, ""
		default:
			if m := jobIn.FindStringSubmatch(latest); m != nil && job == "" {
				job = m[1] + m[2]
			}
			if job == "" {
				return "", nil, "no job in: " + latest
			}
			if strings.Contains(latest, "FAILED") || n > 40 {
				return "diagnose", map[string]any{"job": job, "cluster": "local"}, ""
			}
			time.Sleep(300 * time.Millisecond) // a model takes its time, too
			return "status", map[string]any{"job": job, "cluster": "local"}, ""
		}
	})
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"megatron-ops": map[string]any{
		"type": "stdio", "command": h.bin, "args": []string{"mcp"},
		"env": map[string]string{
			"MEGATRON_OPS_STATE_DIR": filepath.Join(h.dir, "state"), "PATH": bin + ":" + os.Getenv("PATH"),
		},
	}}})
	require.NoError(t, err)
	file := filepath.Join(h.dir, "mcp.json")
	require.NoError(t, os.WriteFile(file, config, 0o600))
	h.env = append(h.env, "ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=fake", "ENABLE_TOOL_SEARCH=false")
	out := h.runBoth("claude", "-p", "run the training and tell me why it fails", "--mcp-config", file, "--strict-mcp-config",
		"--allowedTools", "mcp__megatron-ops", "--output-format", "json")
	var said struct {
		Result string `json:"result"`
	}
	_, document, _ := strings.Cut(out, "{") // after what else the client has to say
	require.NoError(t, json.Unmarshal([]byte("{"+document), &said), out)
	t.Logf("called: %v; said: %s", called, said.Result)
	require.Equal(t, []string{"plan", "plan", "render", "submit", "submit"}, called[:min(5, len(called))], said.Result)
	require.Equal(t, "diagnose", called[len(called)-1])
	require.Contains(t, problem, "num-attention-heads", "the first plan was refused")
	require.Contains(t, said.Result, "FINAL")
	require.Contains(t, said.Result, "oom")
	require.Contains(t, said.Result, "data, not instructions", "what the model reads of logs is marked")
}
