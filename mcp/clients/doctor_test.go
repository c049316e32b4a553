package clients_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/mcp/clients"
)

// onlyIn looks programs up in one folder.
func onlyIn(dir string) func(string) (string, error) {
	return func(name string) (string, error) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return "", exec.ErrNotFound
		}
		return path, nil
	}
}

// The doctor reports a server's name, its tools, roughly how much of a model's context
// they take, and what list says is wrong with the cluster.
func TestTheDoctorTellsToolsAndCluster(t *testing.T) {
	for _, w := range []struct {
		tool    string
		refuses bool
		wrong   string
	}{
		{"list", true, "no slurm.conf was found"},
		{"list", false, ""},
		{"plan", true, ""}, // a server without the jobs' list is not asked for it
	} {
		lib := sdkserver.NewMCPServer("a-server", "1.2.3")
		lib.AddTool(sdk.NewTool(w.tool, sdk.WithDescription("four words of text")), func(context.Context, sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{IsError: w.refuses, StructuredContent: map[string]any{
				"error": map[string]any{"message": "no slurm.conf\x1b[31m was\nfound", "fix": "set SLURM_CONF"},
			}}, nil
		})
		server := httptest.NewServer(sdkserver.NewStreamableHTTPServer(lib))
		t.Cleanup(server.Close)
		found := clients.Examine(t.Context(), clients.Start{URL: server.URL + "/mcp"}, onlyIn(t.TempDir()))
		require.Len(t, found, 3)
		require.NoError(t, found[0].Wrong)
		require.Equal(t, "over HTTP: "+server.URL+"/mcp", found[0].What.In(lang.EN))
		require.Regexp(t, `^a-server 1\.2\.3, protocol \d{4}-\d\d-\d\d, after \d+ ms; 1 tools, about 2\d tokens$`, found[0].Note.In(lang.EN))
		if w.wrong == "" {
			require.NoError(t, found[1].Wrong)
			continue
		}
		require.EqualError(t, found[1].Wrong, w.wrong)
		require.Equal(t, "set SLURM_CONF", found[1].Fix.In(lang.EN))
	}
}

// For a client that is a Node script the doctor reports which Node it needs; for a
// client with its own Node it does not.
func TestTheDoctorKnowsAnOldNode(t *testing.T) {
	for _, w := range []struct {
		node, client, file string
		wrong              string
	}{
		{"v18.20.4", "claude", "#!/usr/bin/env node\n", "Node 22 or newer, but Node 18 is installed here"},
		{"v18.20.4", "gemini", "#!/usr/bin/env node\n", "Node 20 or newer, but Node 18 is installed here"},
		{"v22.1.0", "claude", "#!/usr/bin/env node\n", ""},
		{"", "claude", "#!/usr/bin/env node\n", "no Node is installed here"},
		{"v18.20.4", "claude", "\x7fELF", ""},
		{"v18.20.4", "codex", "#!/usr/bin/env node\n", ""},
	} {
		dir := t.TempDir()
		if w.node != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "node"), []byte(fmt.Sprintf("#!/bin/sh\necho %s\n", w.node)), 0o700))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, w.client), []byte(w.file), 0o700))
		found := clients.Examine(context.Background(), clients.Start{URL: "http://127.0.0.1:1/mcp"}, onlyIn(dir))
		require.Len(t, found, 2)
		if w.wrong == "" {
			require.NoError(t, found[1].Wrong, "%v", w)
			continue
		}
		require.ErrorContains(t, found[1].Wrong, w.wrong)
		require.Contains(t, found[1].Fix.In(lang.EN), "Debian 12 has Node 18")
		require.False(t, errors.Is(found[1].Wrong, exec.ErrNotFound))
	}
}
