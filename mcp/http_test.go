package mcp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/mcp/mcptest"
	"github.com/stretchr/testify/require"
)

// serve starts a server of the operations.
func serve(t *testing.T, cfg mcp.Config, h mcp.HTTP) string {
	t.Helper()
	s, err := mcp.NewServer(cfg)
	require.NoError(t, err)
	signs := h.Tokens == nil && h.OAuth == nil
	if signs {
		who := cfg.Caller
		who.ReadOnly = true
		h.Tokens = map[string]ops.Caller{readerToken: who}
	}
	handler, stop := s.HTTPHandler(h)
	if signs {
		handler = signed(handler)
	}
	srv := httptest.NewServer(handler)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close(); stop() })
	return srv.URL + "/mcp"
}

// readerToken is the token of tests that are not about tokens: signed adds it to
// requests that have none.
const readerToken = "reader"

func signed(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+readerToken)
		}
		handler.ServeHTTP(w, r)
	})
}

// A client is a few lines of HTTP, so that a test sees the bytes of the protocol.
type client struct {
	t       testing.TB
	url     string
	session string
	header  map[string]string
}

// A reply is the head of an HTTP answer.
type reply struct {
	StatusCode int
	Header     http.Header
}

// post sends one message and returns the answer's head and body.
func (c *client) post(body string) (reply, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	for k, v := range c.header {
		req.Header.Set(k, v)
		if k == "Host" {
			req.Host = v
		}
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	return reply{res.StatusCode, res.Header}, string(raw)
}

// connect initializes a session.
func connect(t *testing.T, url string, header map[string]string) *client {
	t.Helper()
	c := &client{t: t, url: url, header: header}
	res, body := c.post(hello)
	require.Equal(t, http.StatusOK, res.StatusCode, body)
	c.session = res.Header.Get("Mcp-Session-Id")
	require.NotEmpty(t, c.session)
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// call calls a tool and returns all the messages of the answer.
func (c *client) call(tool, args, meta string) []map[string]any {
	c.t.Helper()
	if meta != "" {
		meta = `,"_meta":` + meta
	}
	res, body := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, tool, args, meta))
	require.Equal(c.t, http.StatusOK, res.StatusCode, body)
	var messages []map[string]any
	for line := range strings.SplitSeq(body, "\n") {
		line = strings.TrimPrefix(line, "data: ")
		if strings.HasPrefix(line, "{") {
			var m map[string]any
			require.NoError(c.t, json.Unmarshal([]byte(line), &m))
			messages = append(messages, m)
		}
	}
	return messages
}

func TestRequestsFromElsewhereAreRefused(t *testing.T) {
	url := serve(t, mcp.Config{}, mcp.HTTP{Hosts: []string{"ops.example.com"}, Origins: []string{"https://ops.example.com"}})
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"Origin", "https://evil.example", 403},
		{"Origin", "null", 403},
		{"Origin", "https://localhost.evil.example", 403},
		{"Host", "evil.example", 403},
		{"Host", "evil.example:80", 403},
		{"Host", "127.0.0.1.evil.example", 403},
		{"Origin", "http://localhost:3000", 200},
		{"Origin", "https://ops.example.com", 200},
		{"Host", "ops.example.com", 200},
		{"Host", "[::1]:80", 200},
	} {
		res, _ := (&client{t: t, url: url, header: map[string]string{c.header: c.value}}).post(hello)
		require.Equal(t, c.status, res.StatusCode, "%s: %s", c.header, c.value)
	}
	for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodDelete} {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		require.NoError(t, err)
		req.Header.Set("Origin", "https://evil.example")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		res.Body.Close()
		require.Equal(t, 403, res.StatusCode, method)
	}
}

// A server that starts without problems logs nothing.
func TestAGoodStartIsQuiet(t *testing.T) {
	var log bytes.Buffer
	cfg, _ := config(t, newSite())
	connect(t, serve(t, cfg, mcp.HTTP{Log: slog.New(slog.NewTextHandler(&log, nil))}), nil)
	require.Empty(t, log.String())
}

func TestBodiesAreBounded(t *testing.T) {
	c := &client{t: t, url: serve(t, mcp.Config{}, mcp.HTTP{})}
	res, _ := c.post(`{"x":"` + strings.Repeat("x", 5<<20) + `"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
	res, body := c.post(`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`)
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	require.Contains(t, body, "nests too deep")
	res, body = c.post(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat(`[{\"`, 100) + `"}}`)
	require.NotContains(t, body, "nests too deep", "what is quoted is no nesting")
	require.Equal(t, http.StatusNotFound, res.StatusCode, "it came to the sessions, and has none")

	// A message whose announced length is too long is refused before it arrives, and
	// nothing is allocated for it.
	address := strings.TrimSuffix(strings.TrimPrefix(c.url, "http://"), "/mcp")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", address, int64(1)<<40)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
}

// A client that sends its message very slowly does not keep its connection.
func TestSlowBodiesAreClosed(t *testing.T) {
	url := serve(t, mcp.Config{Caller: alice}, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}, BodyWithin: time.Millisecond})
	body, drops := io.Pipe()
	defer drops.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer t")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusRequestTimeout, res.StatusCode)
	require.True(t, res.Close)
}

func TestSessionsServeOnlyWhoTheyWereGivenTo(t *testing.T) {
	tokens := map[string]ops.Caller{"alice-token": {ID: "alice", User: "alice"}, "bob-token": {ID: "bob", User: "bob"}}
	url := serve(t, mcp.Config{}, mcp.HTTP{Tokens: tokens})
	alice := connect(t, url, map[string]string{"Authorization": "Bearer alice-token"})
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	res, _ := alice.post(ping)
	require.Equal(t, 200, res.StatusCode)
	res, _ = (&client{t: t, url: url, session: alice.session}).post(ping)
	require.Equal(t, http.StatusUnauthorized, res.StatusCode, "nobody")
	for name, c := range map[string]*client{
		"made up":          {t: t, url: url, session: "mcp-session-0f8fad5b-d9cb-469f-a165-70867728950e", header: alice.header},
		"bob with alice's": {t: t, url: url, session: alice.session, header: map[string]string{"Authorization": "Bearer bob-token"}},
		"none":             {t: t, url: url, header: alice.header},
	} {
		res, _ := c.post(ping)
		require.Equal(t, http.StatusNotFound, res.StatusCode, name)
	}
	ask := func(method, session, token string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		require.NoError(t, err)
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	require.Equal(t, http.StatusNotFound, ask(http.MethodGet, alice.session, "bob-token"), "what the server tells alice")
	require.Equal(t, http.StatusNotFound, ask(http.MethodGet, "mcp-MADEUP", "alice-token"))
	require.Equal(t, 200, ask(http.MethodGet, alice.session, "alice-token"))
	end := func(token string) int { return ask(http.MethodDelete, alice.session, token) }
	require.Equal(t, http.StatusNotFound, end("bob-token"))
	res, _ = alice.post(ping)
	require.Equal(t, 200, res.StatusCode, "nobody else ends it")
	require.Equal(t, 200, end("alice-token"))
	res, _ = alice.post(ping)
	require.Equal(t, http.StatusNotFound, res.StatusCode, "ended")
	require.Equal(t, http.StatusNotFound, end("alice-token"), "ended before")
}

// A caller that opens session after session and ends none, as some clients do for every
// call, keeps the newest ones: the others do not fill the server's memory.
func TestOneCallersSessionsAreBounded(t *testing.T) {
	tokens := map[string]ops.Caller{"alice-token": {ID: "alice", User: "alice"}, "bob-token": {ID: "bob", User: "bob"}}
	url := serve(t, mcp.Config{}, mcp.HTTP{Tokens: tokens})
	alice, bob := map[string]string{"Authorization": "Bearer alice-token"}, map[string]string{"Authorization": "Bearer bob-token"}
	status := func(c *client) int {
		res, _ := c.post(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		return res.StatusCode
	}
	bobs, oldest, used := connect(t, url, bob), connect(t, url, alice), connect(t, url, alice)
	newest := used
	for i := range 1100 {
		if i%100 == 0 {
			require.Equal(t, http.StatusOK, status(used))
		}
		newest = connect(t, url, alice)
	}
	require.Equal(t, http.StatusNotFound, status(oldest), "its client starts a new one")
	require.Equal(t, http.StatusOK, status(used), "a session that is used stays")
	require.Equal(t, http.StatusOK, status(newest))
	require.Equal(t, http.StatusOK, status(bobs), "another caller's sessions are their own")
}

func TestTokensDecideWhoAsks(t *testing.T) {
	url := serve(t, mcp.Config{}, mcp.HTTP{Tokens: map[string]ops.Caller{"right": {ID: "alice", User: "alice"}}})
	for auth, status := range map[string]int{"": 401, "Bearer wrong": 401, "Bearer ": 401, "Basic right": 401, "Bearer right": 200} {
		c := &client{t: t, url: url, header: map[string]string{}}
		if auth != "" {
			c.header["Authorization"] = auth
		}
		res, body := c.post(hello)
		require.Equal(t, status, res.StatusCode, auth)
		if status == 401 {
			require.Contains(t, res.Header.Get("WWW-Authenticate"), "Bearer ")
			require.NotContains(t, body, "wrong", "a token is never repeated")
		}
	}
}

func TestATokenMayBeNeededEvenHere(t *testing.T) {
	url := serve(t, mcp.Config{}, mcp.HTTP{OAuth: &mcp.OAuth{Issuer: "https://issuer.example", Resource: "http://localhost/mcp"}})
	res, _ := (&client{t: t, url: url}).post(hello)
	require.Equal(t, 401, res.StatusCode, "a client learns where to get a token")
}

// Every account of a machine can connect to loopback, so a loopback address is no proof
// of identity, whatever the request looks like.
func TestLoopbackIsNotAPerson(t *testing.T) {
	cfg, _ := config(t, newSite())
	s, err := mcp.NewServer(cfg)
	require.NoError(t, err)
	handler, stop := s.HTTPHandler(mcp.HTTP{})
	defer stop()
	for _, header := range []map[string]string{nil, {"X-Forwarded-For": "127.0.0.1"}, {"Authorization": "Bearer"}, {"Authorization": "Bearer "}} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(hello))
		req.RemoteAddr = "127.0.0.1:1"
		for name, value := range header {
			req.Header.Set(name, value)
		}
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, req)
		require.Equal(t, http.StatusUnauthorized, rec.Code, "%v", header)
	}
}

func TestAPanicsTextStaysInside(t *testing.T) {
	var log bytes.Buffer
	lib := mcp.NewWiring("test", "1", slog.New(slog.NewTextHandler(&log, nil)))
	mcptest.Toolset{Server: lib, Notified: mcp.Notified}.Add()
	handler, stop := mcp.NewHTTPWiring(lib, mcp.HTTP{Tokens: map[string]ops.Caller{readerToken: {}}})
	srv := httptest.NewServer(signed(handler))
	defer stop()
	defer srv.Close()
	c := connect(t, srv.URL+"/mcp", nil)
	raw, err := json.Marshal(c.call("test_panic", `{}`, ""))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "secret")
	require.Contains(t, string(raw), "internal error")
	require.Contains(t, log.String(), "a secret that no client may read")
	require.Contains(t, log.String(), "mcptest.go", "the stack is logged")
}

// Arguments reach their operation in whatever way they are written, and broken ones
// give the protocol's own error.
func TestOddlyWrittenArgumentsOverHTTP(t *testing.T) {
	c := &client{t: t, url: serve(t, mcp.Config{Tools: []string{"hostlist"}, Caller: alice}, mcp.HTTP{})}
	res, _ := c.post(hello)
	c.session = res.Header.Get("Mcp-Session-Id")
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"arguments":{"nodes":"n[1-4]"},"name":"hostlist"}}`:             `"count":4`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hostlist","argument\u0073":{"nodes":"n[1-4]"}}}`:        `"count":4`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hostlist","arguments":{"nodes":"n[1-4]","nodes":"x"}}}`: `is given twice`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hostlist","arguments":{"nodes":}}}`:                     `"code":-32700`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hostlist","arguments":[]}}`:                             `not an object`,
	} {
		_, answer := c.post(body)
		require.Contains(t, answer, want, body)
	}
}
