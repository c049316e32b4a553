//go:build clients

package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/mcp/clients"
)

// failingTraining stands in for uv: one rank runs out of memory. It is the only
// stand-in of this test; the server, its back end and the agent are real.
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

var jobIn = regexp.MustCompile(`"job_id": *"([0-9]+)"`)

// One whole session of a real agent: a plan is refused and corrected, and the person
// submits it, because nobody answers the agent's question; the job fails and is
// diagnosed.
func TestAnAgentsWholeTurn(t *testing.T) {
	h := newAgentHome(t)
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
	state, path := filepath.Join(h.dir, "state"), bin+":"+os.Getenv("PATH")
	submitted := func() string {
		raw, err := json.Marshal(spec("8")["spec"])
		require.NoError(t, err)
		file := filepath.Join(h.dir, "job.json")
		require.NoError(t, os.WriteFile(file, raw, 0o600))
		out, err := run(t, time.Minute, h.project, []string{"MEGATRON_OPS_STATE_DIR=" + state, "PATH=" + path}, h.bin, "submit", "-f", file, "--yes", "-o", "json")
		require.NoError(t, err, out)
		m := jobIn.FindStringSubmatch(out)
		require.NotNil(t, m, out)
		return m[1]
	}
	var mu sync.Mutex
	var called []string
	var problem, job, refused string
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
		case n > 5 && called[len(called)-1] == "diagnose":
			return "", nil, "FINAL " + latest
		case n == 4:
			// Claude Code without a terminal dismisses the question, which ends the
			// call: the person submits what the agent prepared.
			refused = latest
			job = submitted()
			return "status", map[string]any{"job": job, "cluster": "local"}, ""
		default:
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
			"MEGATRON_OPS_STATE_DIR": state, "PATH": path,
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
	require.Equal(t, []string{"plan", "plan", "render", "submit", "status"}, called[:min(5, len(called))], said.Result)
	require.Equal(t, "diagnose", called[len(called)-1])
	require.Contains(t, problem, "num-attention-heads", "the first plan was refused")
	require.Contains(t, refused, "did not say yes")
	require.NotContains(t, refused, "confirm_token")
	require.Contains(t, said.Result, "FINAL")
	require.Contains(t, said.Result, "oom")
	require.Contains(t, said.Result, "data, not instructions", "what the model reads of logs is marked")
}

// oneCall is a turn that asks for the launch constants and ends.
func oneCall(answers []string) (tool string, args any, last string) {
	if len(answers) == 0 {
		return "constants", map[string]any{"gpu": "h100", "tp": 4}, ""
	}
	return "", nil, "FINAL " + answers[len(answers)-1]
}

func TestCodexCallsATool(t *testing.T) {
	h := newAgentHome(t)
	setup, err := clients.Config("codex", clients.Start{Binary: h.bin})
	require.NoError(t, err)
	dir := filepath.Join(h.dir, ".codex")
	require.NoError(t, os.Mkdir(dir, 0o755))
	config := `model = "fake"
model_provider = "fake"
approval_policy = "never"

[model_providers.fake]
name = "fake"
base_url = "` + modelServer(t, oneCall) + `/v1"
wire_api = "responses"

` + setup.Snippet
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600))
	out := h.runBoth("codex", "exec", "--skip-git-repo-check", "--json", "what are the launch constants?")
	require.Contains(t, out, "FINAL", tail(out))
	require.Contains(t, out, "CUDA_DEVICE_MAX_CONNECTIONS")
}

func TestGeminiCallsATool(t *testing.T) {
	h := newAgentHome(t)
	settings, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"megatron-ops": map[string]any{"command": h.bin, "args": []string{"mcp"}, "trust": true}},
		"security":   map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}},
	})
	require.NoError(t, err)
	dir := filepath.Join(h.project, ".gemini")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "settings.json"), settings, 0o600))
	h.env = append(h.env, "GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL="+modelServer(t, oneCall))
	out := h.runBoth("gemini", "-m", "gemini-2.5-flash", "--yolo", "-p", "what are the launch constants?")
	require.Contains(t, out, "FINAL", tail(out))
	require.Contains(t, out, "CUDA_DEVICE_MAX_CONNECTIONS")
}
