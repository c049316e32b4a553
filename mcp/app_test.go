package mcp_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

const appCapability = `"capabilities":{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// Only a client that draws MCP Apps learns of the view. The page that it reads loads
// nothing from elsewhere.
func TestAppsAreOfferedToClientsThatDrawThem(t *testing.T) {
	cfg, _ := config(t, newSite())
	for _, draws := range []bool{false, true, false} {
		conv := converse(t, cfg)
		first := hello
		if draws {
			first = strings.Replace(hello, `"capabilities":{}`, appCapability, 1)
		}
		conv.send(first)
		conv.read()
		conv.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		views := map[string]any{}
		for _, tool := range conv.read()["result"].(map[string]any)["tools"].([]any) {
			if meta, ok := tool.(map[string]any)["_meta"].(map[string]any); ok {
				views[tool.(map[string]any)["name"].(string)] = meta["ui"].(map[string]any)["resourceUri"]
			}
		}
		conv.send(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"ui://megatron-ops/job.html"}}`)
		read := conv.read()["result"].(map[string]any)["contents"].([]any)[0].(map[string]any)
		conv.close()
		if !draws {
			require.Empty(t, views)
			continue
		}
		require.Equal(t, map[string]any{"status": "ui://megatron-ops/job.html", "metrics": "ui://megatron-ops/job.html"}, views)
		require.Equal(t, "text/html;profile=mcp-app", read["mimeType"])
		require.NotRegexp(t, regexp.MustCompile(`(src|href)=|innerHTML|eval\(`), read["text"])
	}
}

// The view shows a job's card and curves from the tools' answers, in the host's
// language, and calls the tool again if the host allows it.
func TestTheAppDrawsWhatTheToolsAnswer(t *testing.T) {
	kit := needsNode(t)
	s := newSite()
	s.set("4711", func(j *slurm.Job) { j.Name = "<img onerror=x>" })
	cfg, _ := config(t, s)
	conv := converse(t, cfg)
	conv.send(strings.Replace(hello, `"capabilities":{}`, appCapability, 1))
	conv.read()
	result := func(method, params string) map[string]any {
		conv.send(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`)
		return conv.read()["result"].(map[string]any)
	}
	page := result("resources/read", `{"uri":"ui://megatron-ops/job.html"}`)["contents"].([]any)[0].(map[string]any)["text"]
	status := result("tools/call", `{"name":"status","arguments":{"job":"4711"}}`)
	gone := result("tools/call", `{"name":"status","arguments":{"job":"99"}}`)
	conv.close()
	metrics := map[string]any{"structuredContent": map[string]any{
		"runs":        []any{map[string]any{"name": "run", "last_iteration": 30, "train_iters": 100, "loss": 2.5, "eta_s": 90}},
		"loss_curves": []any{[]any{map[string]any{"iteration": 10, "value": 4.0}, map[string]any{"iteration": 30, "value": 2.0}}},
		"findings":    []any{"the loss jumps"},
	}}
	input, err := json.Marshal(map[string]any{
		"page": page, "capabilities": map[string]any{"serverTools": map[string]any{}},
		"context": map[string]any{"locale": "zh-CN", "toolInfo": map[string]any{"tool": map[string]any{"name": "status"}}},
		"answers": []any{
			map[string]any{"input": map[string]any{"job": "4711"}, "result": status},
			map[string]any{"input": map[string]any{"jobs": []string{"4711"}}, "result": metrics},
			map[string]any{"input": map[string]any{"job": "99"}, "result": gone},
		},
	})
	require.NoError(t, err)
	script, err := filepath.Abs("testdata/app.mjs")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), kit.node, script)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	var told struct {
		Said  []map[string]any
		Drawn [][]string
	}
	require.NoError(t, json.Unmarshal(out, &told))
	drawn := make([]string, len(told.Drawn))
	for i, words := range told.Drawn {
		drawn[i] = strings.Join(words, "\n")
	}
	require.Len(t, drawn, 4)
	require.Contains(t, drawn[0], "4711  <img onerror=x>  RUNNING")
	require.Contains(t, drawn[0], "分区\nprod")
	require.Contains(t, drawn[0], "01:00:00 / 24:00:00")
	require.NotContains(t, strings.Join(drawn, ""), "forged", "what does not come from the host is nothing")
	require.Contains(t, drawn[1], "points 2.00,2.00 98.00,98.00")
	require.Contains(t, drawn[1], "30 / 100")
	require.Contains(t, drawn[1], "the loss jumps")
	require.Contains(t, drawn[2], "not known to Slurm")
	require.Equal(t, drawn[0], drawn[3], "the button asks again")
	methods := []string{}
	for _, m := range told.Said {
		method, _ := m["method"].(string)
		methods = append(methods, method)
	}
	require.Equal(t, []string{
		"ui/initialize", "ui/notifications/initialized", "ui/notifications/size-changed", "ui/notifications/size-changed", "ui/notifications/size-changed",
		"tools/call", "ui/notifications/size-changed", "",
	}, methods)
	require.Equal(t, map[string]any{"name": "status", "arguments": map[string]any{"job": "99"}}, told.Said[5]["params"])
}

// A client of the newest protocol learns how long it may cache a listing, and for whom.
// A resource's contents change, so nobody may cache them.
func TestListingsMayBeKept(t *testing.T) {
	cfg, _ := config(t, newSite())
	address := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	for method, want := range map[string]float64{"tools/list": 600_000, "prompts/list": 600_000, "resources/read": 0, "server/discover": 600_000} {
		c := &client{t: t, url: address, header: map[string]string{
			"Authorization": "Bearer t", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": "megatron-ops://rules",
		}}
		_, body := c.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"uri":"megatron-ops://rules","_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`)
		var answer struct{ Result map[string]any }
		require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
		require.EqualValues(t, want, answer.Result["ttlMs"], "%s: %.300s", method, body)
		require.Equal(t, "private", answer.Result["cacheScope"], method)
		if method == "server/discover" {
			require.Contains(t, body, "data:image/svg+xml")
			require.Contains(t, body, "io.modelcontextprotocol/ui")
		}
	}
}

// One client's listing does not affect another's: on one server, a client that draws
// views learns of them after a client that does not.
func TestAppsOfOneServerForSeveralClients(t *testing.T) {
	cfg, _ := config(t, newSite())
	address := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	for _, draws := range []bool{false, true, false, true} {
		c := &client{t: t, url: address, header: map[string]string{
			"Authorization": "Bearer t", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list",
		}}
		capabilities := "{}"
		if draws {
			capabilities = "{" + strings.TrimPrefix(appCapability, `"capabilities":{`)
		}
		_, body := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`)
		require.Contains(t, body, `"name":"status"`)
		require.Equal(t, draws, strings.Contains(body, "ui://megatron-ops/job.html"), body[:min(300, len(body))])
	}
}

// The server's capabilities are pinned, because a client enables what it reads here.
func TestInitializeSaysWhatTheServerCan(t *testing.T) {
	cfg, _ := config(t, newSite())
	conv := converse(t, cfg)
	conv.send(hello)
	result := conv.read()["result"].(map[string]any)
	conv.close()
	raw, err := json.Marshal(result["capabilities"])
	require.NoError(t, err)
	require.JSONEq(t, `{
		"completions": {}, "elicitation": {}, "logging": {}, "extensions": {"io.modelcontextprotocol/ui": {}},
		"prompts": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}, "tools": {"listChanged": true},
		"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
	}`, string(raw))
	require.Contains(t, result["instructions"], "--toolsets")
}
