//go:build clients

package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
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
	h := newAgentHome(t)
	h.runAgent("claude", "mcp", "add", "--transport", "http", "megatron-ops", served(t), "--header", "Authorization: Bearer "+bearer)
	require.Regexp(t, `megatron-ops: .* - ✔ Connected`, h.runAgent("claude", "mcp", "list"))
}

func TestCodexCallsAToolOverHTTP(t *testing.T) {
	h := newAgentHome(t)
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
	h := newAgentHome(t)
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
