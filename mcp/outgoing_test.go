package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
)

// Requests for something that does not exist, and invalid requests, get the protocol's
// own error codes, in its older and its newest version, on standard input and over
// HTTP.
func TestErrorsHaveTheirCodes(t *testing.T) {
	cfg, _ := config(t, newSite())
	conv := converse(t, cfg)
	conv.send(hello)
	conv.read()
	cfg2, _ := config(t, newSite())
	url := serve(t, cfg2, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	c := connect(t, url, map[string]string{"Authorization": "Bearer t"})
	for i, w := range []struct {
		method, params string
		old, newest    int
	}{
		{"resources/read", `{"uri":"skill://nosuch/SKILL.md"}`, -32002, -32602},
		{"resources/read", `{"uri":"skill://run-on-slurm/references/nosuch.md"}`, -32002, -32602},
		{"resources/read", `{"uri":"megatron-ops://rules/nosuch"}`, -32002, -32602},
		{"resources/read", `{"uri":"megatron-ops://jobs/99"}`, -32002, -32602},
		{"resources/read", `{"uri":"megatron-ops://jobs/99/logs"}`, -32002, -32602},
		{"resources/read", `{"uri":"job://test/99/spec"}`, -32002, -32602},
		{"resources/read", `{"uri":"megatron-ops://nosuch"}`, -32002, -32602},
		{"resources/read", `{"uri":"megatron-ops://jobs/4711/logs?page=first"}`, -32602, -32602},
		{"prompts/get", `{"name":"nosuch"}`, -32602, -32602},
		{"prompts/get", `{"name":"diagnose-job"}`, -32602, -32602},
		{"tools/call", `{"name":"nosuch"}`, -32602, -32602},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"nosuch"},"argument":{"name":"job","value":""}}`, -32602, -32602},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"nosuch://{job}"},"argument":{"name":"job","value":""}}`, -32602, -32602},
		{"no/such", `{}`, -32601, -32601},
	} {
		conv.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, i+10, w.method, w.params))
		said, _ := conv.read()["error"].(map[string]any)
		require.NotNil(t, said, w.params)
		require.EqualValues(t, w.old, said["code"], "%s: %v", w.params, said)
		require.NotContains(t, said["message"], "\x00", "%s: the mark stays inside", w.params)
		_, body := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":%q,"params":%s}`, w.method, w.params))
		require.Contains(t, body, fmt.Sprintf(`"code":%d`, w.old), "%s over HTTP", w.params)
		require.NotContains(t, body, `\u0000`)
		if strings.Contains(w.params, "rules/nosuch") {
			require.Contains(t, said["message"], "megatron-ops://rules lists them", "and what would work")
		}

		m := &client{t: t, url: url, header: map[string]string{
			"Authorization": "Bearer t", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": w.method, "Mcp-Name": nameIn(w.params),
		}}
		params := strings.TrimSuffix(w.params, "}")
		if params != "{" {
			params += ","
		}
		_, body = m.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s"_meta":{%s}}}`, w.method, params, strings.TrimPrefix(modern, ",")))
		require.Contains(t, body, fmt.Sprintf(`"code":%d`, w.newest), "%s in the newest version", w.params)
	}
	conv.close()
}

// nameIn returns what the header Mcp-Name has to repeat.
func nameIn(params string) string {
	for _, key := range []string{`{"uri":"`, `{"name":"`} {
		if rest, ok := strings.CutPrefix(params, key); ok {
			name, _, _ := strings.Cut(rest, `"`)
			return name
		}
	}
	return ""
}

// A message that merely looks like a marked one is somebody's text and stays unchanged.
func TestAQuotedMarkIsText(t *testing.T) {
	cfg, _ := config(t, newSite())
	conv := converse(t, cfg)
	conv.send(hello)
	conv.read()
	conv.send(`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"\\u0000unanswered\\u0000"}}`)
	require.EqualValues(t, 2, conv.read()["id"])
	conv.send(`{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"\u0000unanswered\u0000"}}`)
	require.EqualValues(t, 3, conv.read()["id"], "it is answered")
	conv.close()
}

// Over HTTP a cancelled call ends without an answer: its stream closes, or there is no
// stream.
func TestACancelledCallHasNoAnswerOverHTTP(t *testing.T) {
	s := newSite()
	cfg, _ := config(t, s)
	svc, err := cfg.Service()
	require.NoError(t, err)
	svc.Clusters["test"] = localSite{s}
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	c := connect(t, url, map[string]string{"Authorization": "Bearer t"})
	for i, meta := range []string{`{}`, `{"progressToken":"p"}`} {
		type answer struct {
			status int
			body   string
		}
		answered := make(chan answer, 1)
		asked := s.asked()
		go func() {
			res, body := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{"job":"4711"},"_meta":%s}}`,
				50+i, meta))
			answered <- answer{res.StatusCode, body}
		}()
		require.Eventually(t, func() bool { return s.asked() > asked+1 }, 10*time.Second, time.Millisecond, "it waits")
		other := &client{t: t, url: url, session: c.session, header: c.header}
		res, _ := other.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, 50+i))
		require.Equal(t, http.StatusAccepted, res.StatusCode)
		select {
		case a := <-answered:
			require.Less(t, a.status, 300)
			require.NotContains(t, a.body, fmt.Sprintf(`"id":%d`, 50+i), meta)
		case <-time.After(10 * time.Second):
			require.Fail(t, "the call goes on")
		}
	}
}

// chatty is a server with one tool, which sends three notifications without a pause.
func chatty() *sdkserver.MCPServer {
	lib := mcp.NewWiring("chatty", "1", slog.New(slog.DiscardHandler))
	lib.AddTool(sdk.NewTool("talk"), func(ctx context.Context, req sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			_ = lib.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": i})
			mcp.Notified(ctx)
		}
		return sdk.NewToolResultText("done"), nil
	})
	return lib
}

// The last notification of a call is written before its answer: on standard input, over
// HTTP and in the newest version, in each of many calls without a pause.
func TestTheLastNotificationArrives(t *testing.T) {
	const talk = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"talk","arguments":{},"_meta":{"progressToken":"p"%s}}}`
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- mcp.ServeStdio(t.Context(), chatty(), slog.New(slog.DiscardHandler), inR, outW)
		outW.Close()
	}()
	lines := bufio.NewScanner(outR)
	fmt.Fprintln(inW, hello)
	require.True(t, lines.Scan())
	fmt.Fprintln(inW, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for range 100 {
		fmt.Fprintf(inW, talk+"\n", "")
		for range 3 {
			require.True(t, lines.Scan())
			require.Contains(t, lines.Text(), `"method":"notifications/progress"`)
		}
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "done")
	}
	require.NoError(t, inW.Close())
	require.NoError(t, <-ended)

	handler, stop := mcp.NewHTTPWiring(chatty(), mcp.HTTP{Tokens: map[string]ops.Caller{readerToken: {ID: "suite"}}})
	srv := httptest.NewServer(signed(handler))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close(); stop() })
	older := connect(t, srv.URL+"/mcp", nil)
	newest := &client{t: t, url: srv.URL + "/mcp", header: map[string]string{
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
		"Mcp-Name": "talk",
	}}
	for range 50 {
		for c, meta := range map[*client]string{older: "", newest: modern} {
			_, body := c.post(fmt.Sprintf(talk, meta))
			require.Equal(t, 3, strings.Count(body, `"method":"notifications/progress"`), body)
			require.Greater(t, strings.Index(body, "done"), strings.LastIndex(body, "notifications/progress"), body)
		}
	}
}

// modern are the fields of _meta that mark a request of the newest version.
const modern = `,"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
