package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

const bearer = "a-token-of-alice-0123456789"

// served is a server for real clients, with alice's token.
func served(t *testing.T) string {
	t.Helper()
	cfg, _ := config(t, newSite())
	cfg.Toolsets = nil
	return serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{bearer: alice}})
}

func TestClaudeCodeConnectsOverHTTP(t *testing.T) {
	h := newHome(t)
	h.run("claude", "mcp", "add", "--transport", "http", "megatron-ops", served(t), "--header", "Authorization: Bearer "+bearer)
	require.Regexp(t, `megatron-ops: .* - ✔ Connected`, h.run("claude", "mcp", "list"))
}

func TestCodexCallsAToolOverHTTP(t *testing.T) {
	h := newHome(t)
	dir := filepath.Join(h.dir, ".codex")
	require.NoError(t, os.Mkdir(dir, 0o755))
	config := `model = "fake"
model_provider = "fake"
approval_policy = "never"

[model_providers.fake]
name = "fake"
base_url = "` + modelServer(t, oneCall) + `/v1"
wire_api = "responses"

[mcp_servers.megatron-ops]
url = "` + served(t) + `"
bearer_token_env_var = "OPS_TOKEN"
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600))
	h.env = append(h.env, "OPS_TOKEN="+bearer)
	out := h.runBoth("codex", "exec", "--skip-git-repo-check", "--json", "what are the launch constants?")
	require.Contains(t, out, "FINAL", tail(out))
	require.Contains(t, out, "CUDA_DEVICE_MAX_CONNECTIONS")
}

func TestGeminiCallsAToolOverHTTP(t *testing.T) {
	h := newHome(t)
	settings, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"megatron-ops": map[string]any{
			"url": served(t), "type": "http", "headers": map[string]string{"Authorization": "Bearer " + bearer}, "trust": true,
		}},
		"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}},
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

// What agents are asked for most takes three calls at most, with the tools that
// are listed by default.
func TestThreeCallsAreEnough(t *testing.T) {
	s := newSite()
	s.set("4712", func(j *slurm.Job) { j.User, j.State, j.ExitCode = "alice", slurm.Failed, new("1:0") })
	cfg, _ := config(t, s)
	cfg.Toolsets = nil
	svc, err := cfg.Service()
	require.NoError(t, err)
	svc.Clusters["test"] = bigSite{s}
	c := connect(t, serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}}), map[string]string{"Authorization": "Bearer t"})

	plan := c.do("plan", submitArgs(goodSpec, ""))
	run := c.do("submit", submitArgs(goodSpec, plan.Structured["confirm_token"].(string)))
	require.Equal(t, "5001", run.Structured["job_id"], "a run is submitted with two")

	mine := c.do("list", `{"all":true,"state":["FAILED"]}`).Structured["jobs"].([]any)
	require.Len(t, mine, 1)
	id := mine[0].(map[string]any)["job_id"].(string)
	died := c.do("diagnose", `{"job":"`+id+`"}`)
	require.False(t, died.IsError, died.Text)
	require.NotEmpty(t, died.Structured["class"], "why a job died takes two, its id unknown")
	require.NotEmpty(t, died.Structured["advice"])

	free := c.do("nodes", `{}`)
	require.Contains(t, free.Text, "free GPUs", "what is free takes one")
}
