//go:build clients

package mcp_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/mcp/clients"
)

// clientTools is the folder of the vendors' agents, relative to this package.
const clientTools = "../tools/clients/node_modules"

// newAgentHome is newHome with the vendors' agents, which `make test-clients`
// installs and runs.
func newAgentHome(t *testing.T) *home {
	t.Helper()
	h := newHome(t)
	modules, err := filepath.Abs(clientTools)
	require.NoError(t, err)
	_, err = os.Stat(modules)
	require.NoError(t, err, "run `make test-clients`, which installs them")
	h.kit.modules = modules
	h.env = append(h.env, "PATH="+filepath.Join(modules, ".bin")+":"+h.kit.path)
	return h
}

// ownBinaries are patterns for agents whose binary is in a package of its own: the
// script that would link it does not run where install scripts are disabled.
var ownBinaries = map[string]string{
	"claude":   "@anthropic-ai/claude-code-linux-*/claude",
	"opencode": "opencode-linux-*/bin/opencode",
}

// agent is the path where npm installed one of the agents.
func (h *home) agent(name string) string {
	pattern, ok := ownBinaries[name]
	if !ok {
		return h.program(name)
	}
	found, err := filepath.Glob(filepath.Join(h.kit.modules, pattern))
	require.NoError(h.t, err)
	for _, f := range found {
		if !strings.Contains(f, "musl") {
			return f
		}
	}
	h.t.Fatalf("%s is not installed in %s", name, h.kit.modules)
	return ""
}

// runAgent runs one of the agents in the project.
func (h *home) runAgent(name string, args ...string) string {
	h.t.Helper()
	out, err := run(h.t, 2*time.Minute, h.project, h.env, h.agent(name), args...)
	require.NoError(h.t, err, out)
	return out
}

func TestClaudeCodeConnects(t *testing.T) {
	h := newAgentHome(t)
	setup, err := clients.Config("claude", clients.Start{Binary: h.bin})
	require.NoError(t, err)
	h.shell(strings.Replace(setup.Command, "claude ", h.agent("claude")+" ", 1))
	require.Regexp(t, `megatron-ops: .* - ✔ Connected`, h.runAgent("claude", "mcp", "list"))
}

func TestGeminiConnects(t *testing.T) {
	h := newAgentHome(t)
	setup, err := clients.Config("gemini", clients.Start{Binary: h.bin})
	require.NoError(t, err)
	h.shell(setup.Command)
	require.Regexp(t, `✓ megatron-ops.* - Connected`, h.runBoth("gemini", "mcp", "list"))
}

func TestOpenCodeConnects(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("OpenCode's binary is pinned for Linux on x64 alone")
	}
	h := newAgentHome(t)
	setup, err := clients.Config("opencode", clients.Start{Binary: h.bin})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(h.project, "opencode.json"), []byte(setup.Snippet), 0o600))
	require.Regexp(t, `✓ megatron-ops \S*connected`, h.runBoth("opencode", "mcp", "list"))
}

func TestCodexTakesTheConfiguration(t *testing.T) {
	h := newAgentHome(t)
	setup, err := clients.Config("codex", clients.Start{Binary: h.bin})
	require.NoError(t, err)
	h.shell(setup.Command)
	require.Contains(t, h.runAgent("codex", "mcp", "list"), "megatron-ops")
	// Codex accepts the printed snippet as well, which passes on more of its
	// environment.
	file := filepath.Join(h.dir, ".codex", "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(setup.Snippet), 0o600))
	require.Contains(t, h.runAgent("codex", "mcp", "get", "megatron-ops"), h.bin)
}

// shell runs a printed command as a person would paste it.
func (h *home) shell(command string) {
	h.t.Helper()
	out, err := run(h.t, time.Minute, h.project, h.env, "sh", "-c", command+" </dev/null")
	require.NoError(h.t, err, out)
}

// runBoth also returns standard error, where some clients write their lists.
func (h *home) runBoth(name string, args ...string) string {
	h.t.Helper()
	out, err := run(h.t, time.Minute, h.project, h.env, "sh", append([]string{"-c", `"$0" "$@" 2>&1 </dev/null`, h.agent(name)}, args...)...)
	require.NoError(h.t, err, out)
	return out
}

// The repository is a valid plugin for each vendor, as the vendor's own program
// reports.
func TestTheRepositoryIsAPlugin(t *testing.T) {
	h := newAgentHome(t)
	root := h.copyOfRepository()
	require.Contains(t, h.runAgent("claude", "plugin", "validate", root), "Validation passed")
	require.Contains(t, h.runBoth("gemini", "extensions", "validate", root), "successfully validated")
	h.runAgent("codex", "plugin", "marketplace", "add", root)
	h.runAgent("codex", "plugin", "add", "megatron-ops@megatron-ops")
	require.Contains(t, h.runAgent("codex", "mcp", "get", "megatron-ops"), "SLURM_CONF")
}

// copyOfRepository is a folder with the files that git tracks, as a user's clone has
// them: Codex copies the whole folder, and a developer's has gigabytes of npm packages.
func (h *home) copyOfRepository() string {
	h.t.Helper()
	root := h.t.TempDir()
	out, err := run(h.t, time.Minute, "..", h.env, "sh", "-c", `git ls-files -z | xargs -0 cp --parents -t "$0"`, root)
	require.NoError(h.t, err, out)
	return root
}
