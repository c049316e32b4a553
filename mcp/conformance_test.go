package mcp_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/mcp/mcptest"
)

// suiteServer serves the suite's own tools on the real server's wiring and
// returns its URL.
func suiteServer(t *testing.T) string {
	t.Helper()
	lib := mcp.NewWiring("conformance", "1", slog.New(slog.DiscardHandler),
		sdkserver.WithPromptCompletionProvider(mcptest.Completer{}))
	lib.EnableSampling()
	mcptest.Toolset{Server: lib, Notified: mcp.Notified}.Add()
	handler, stop := mcp.NewHTTPWiring(lib, mcp.HTTP{Tokens: map[string]ops.Caller{readerToken: {ID: "suite"}}})
	srv := httptest.NewServer(signed(handler))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close(); stop() })
	return srv.URL + "/mcp"
}

func suite(t *testing.T, pkg string, args ...string) (string, error) {
	t.Helper()
	kit := needsNode(t)
	args = append([]string{filepath.Join(kit.modules, pkg, "dist", "index.js"), "server", "--url", suiteServer(t), "-o", t.TempDir()}, args...)
	return run(t, 5*time.Minute, t.TempDir(), []string{"PATH=" + kit.path}, kit.node, args...)
}

var totals = regexp.MustCompile(`Total: (\d+) passed, (\d+) failed`)

func counts(t *testing.T, out string) (passed, failed int) {
	t.Helper()
	m := totals.FindStringSubmatch(out)
	require.NotNil(t, m, "the suite prints its totals:\n%s", tail(out))
	passed, _ = strconv.Atoi(m[1])
	failed, _ = strconv.Atoi(m[2])
	return passed, failed
}

func TestOfficialSuitePassesWhole(t *testing.T) {
	out, err := suite(t, "@modelcontextprotocol/conformance", "--suite", "all")
	require.NoError(t, err)
	passed, failed := counts(t, out)
	require.Zero(t, failed, tail(out))
	require.GreaterOrEqual(t, passed, 43)
}

func TestOfficialSuiteOf20251125PassesWhole(t *testing.T) {
	out, err := suite(t, "conformance-next", "--requirements", "2025-11-25")
	require.NoError(t, err)
	passed, failed := counts(t, out)
	require.Zero(t, failed, tail(out))
	require.GreaterOrEqual(t, passed, 80)
}

// All scored scenarios of the suite of 2026-07-28 pass. The suite also runs, unscored,
// the extension "tasks": the library implements only the experimental tasks of
// 2025-11-25, whose methods differ, so those scenarios cannot pass.
func TestOfficialSuiteOf20260728PassesWhereItIsScored(t *testing.T) {
	out, err := suite(t, "conformance-next", "--requirements", "2026-07-28")
	require.NoError(t, err)
	passed, _ := counts(t, out)
	require.GreaterOrEqual(t, passed, 163)
	for _, line := range regexp.MustCompile(`(?m)^\s*✗.*$`).FindAllString(out, -1) {
		require.Regexp(t, `✗ tasks-`, line)
	}
}

// A tool that needs a capability which its client did not declare is refused with the
// protocol's own code and status; the official suite asks for the same.
func TestAMissingCapabilityHasItsOwnCode(t *testing.T) {
	c := &client{t: t, url: suiteServer(t), header: map[string]string{
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "test_missing_capability",
	}}
	said, body := c.post(`{"jsonrpc":"2.0","id":"a<7","method":"tools/call","params":{"name":"test_missing_capability","arguments":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	require.Equal(t, http.StatusBadRequest, said.StatusCode, body)
	require.Equal(t, "application/json", said.Header.Get("Content-Type"))
	require.JSONEq(t, `{"jsonrpc":"2.0","id":"a<7","error":{"code":-32021,"message":"missing required client capability: \"sampling\"",`+
		`"data":{"requiredCapabilities":{"sampling":{}}}}}`, body)
}
