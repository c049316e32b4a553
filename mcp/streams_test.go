package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Every version that clients in use speak is answered in the same version; an unknown
// one gets the newest version with sessions.
func TestOlderClientsAreNegotiated(t *testing.T) {
	url := serve(t, mcp.Config{}, mcp.HTTP{})
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2099-01-01": "2025-11-25",
	} {
		c := &client{t: t, url: url}
		res, body := c.post(strings.Replace(hello, "2025-11-25", asked, 1))
		require.Contains(t, body, `"protocolVersion":"`+want+`"`, asked)
		c.session = res.Header.Get("Mcp-Session-Id")
		c.header = map[string]string{"MCP-Protocol-Version": want}
		r := c.do("constants", `{"gpu":"h100"}`)
		require.False(t, r.IsError, asked)
		require.Contains(t, r.Text, "MASTER_ADDR", asked)

		conv := converse(t, mcp.Config{})
		conv.send(strings.Replace(hello, "2025-11-25", asked, 1))
		require.Equal(t, want, conv.read()["result"].(map[string]any)["protocolVersion"])
		conv.close()
	}
	// The newest version needs neither initialize nor a session.
	c := &client{t: t, url: url, header: map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}}
	_, body := c.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	require.Contains(t, body, "2026-07-28", body)
	require.NotContains(t, body, `"error"`)
}

// The answer of a call whose connection was cut is sent again from where the client
// stopped reading.
func TestACutStreamResumes(t *testing.T) {
	url := suiteServer(t)
	c := connect(t, url, nil)
	request := func(ctx context.Context, method, body, last string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", c.session)
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		return res
	}
	ctx, cut := context.WithCancel(t.Context())
	res := request(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"test_tool_with_progress","arguments":{},`+
		`"_meta":{"progressToken":"p"}}}`, "")
	seen, last := events(t, res, 1)
	require.Contains(t, seen[0], `"progress":0`)
	cut()
	res.Body.Close()
	time.Sleep(150 * time.Millisecond) // it goes on, and ends, without a reader

	ctx, cut = context.WithTimeout(t.Context(), 10*time.Second)
	defer cut()
	res = request(ctx, http.MethodGet, "", last)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	seen, _ = events(t, res, 1)
	require.Contains(t, seen[0], `"progress":50`, "what came next, and nothing twice")

	res = request(ctx, http.MethodGet, "", "999999")
	res.Body.Close()
	require.NotEqual(t, http.StatusOK, res.StatusCode, "an event that never was")
	other := connect(t, url, nil)
	c.session = other.session
	res = request(ctx, http.MethodGet, "", last)
	res.Body.Close()
	require.NotEqual(t, http.StatusOK, res.StatusCode, "an event of somebody else's session")
}

// events reads n messages of a stream and returns them with the id of the last.
func events(t *testing.T, res *http.Response, n int) (messages []string, last string) {
	t.Helper()
	in := bufio.NewScanner(res.Body)
	for len(messages) < n && in.Scan() {
		if id, ok := strings.CutPrefix(in.Text(), "id: "); ok {
			last = id
		}
		if data, ok := strings.CutPrefix(in.Text(), "data: "); ok && strings.HasPrefix(data, "{") {
			messages = append(messages, data)
		}
	}
	require.Len(t, messages, n)
	return messages, last
}

// No log contains what a client sent: arguments may contain anything.
func TestArgumentsAreNotLogged(t *testing.T) {
	var log strings.Builder
	cfg, _ := config(t, newSite())
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	c := connect(t, serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}}), map[string]string{"Authorization": "Bearer t"})
	c.do("ask", `{"question":"is hunter2 a password?"}`)
	c.do("status", `{"job":"hunter2"}`)
	require.Contains(t, log.String(), "tool=ask")
	require.NotContains(t, log.String(), "hunter2")
	require.NotContains(t, log.String(), c.session, "nor is the session's id")
}

// Standard output carries only the protocol, whatever happens.
func TestStandardOutputIsOnlyProtocol(t *testing.T) {
	cfg, _ := config(t, newSite())
	conv := converse(t, cfg)
	conv.send(hello)
	conv.read()
	for i, line := range []string{
		`not json`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nosuch"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"status","arguments":[1]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"submit","arguments":{"spec":null}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"megatron-ops://jobs/%00"}}`,
	} {
		conv.send(line)
		m := conv.read() // fails on what is not JSON
		require.Equal(t, "2.0", m["jsonrpc"], "%d: %s", i, line)
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "goroutine")
	}
	conv.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 99))
	require.EqualValues(t, 99, conv.read()["id"], "and it goes on serving")
	conv.close()
}

// A wait may be a task over HTTP too: its request is answered at once, the task
// continues, its result is available later, and a cancelled task queries nothing more.
// A task belongs to its session alone.
func TestAWaitCanBeATaskOverHTTP(t *testing.T) {
	s := newSite()
	cfg, _ := config(t, s)
	calls := logCalls(&cfg)
	svc, err := cfg.Service()
	require.NoError(t, err)
	svc.Clusters["test"] = localSite{s}
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	c := connect(t, url, map[string]string{"Authorization": "Bearer t"})
	other := connect(t, url, map[string]string{"Authorization": "Bearer t"})
	begin := func() (params string) {
		t.Helper()
		created, problem := c.ask("tools/call", `{"name":"wait","arguments":{"job":"4711"},"task":{"ttl":60000}}`)
		require.Empty(t, problem)
		task := created["task"].(map[string]any)
		require.Equal(t, "working", task["status"])
		return fmt.Sprintf(`{"taskId":%q}`, task["taskId"])
	}
	task := begin()
	asked := s.asked()
	require.Eventually(t, func() bool { return s.asked() > asked+2 }, time.Minute, 10*time.Millisecond, "it waits on, its request answered")
	_, problem := other.ask("tasks/get", task)
	require.NotEmpty(t, problem, "another session has no task of that name")
	s.set("4711", func(j *slurm.Job) { j.State = slurm.Failed })
	result, problem := c.ask("tasks/result", task)
	require.Empty(t, problem)
	require.Equal(t, "FAILED", result["structuredContent"].(map[string]any)["state"])
	done, problem := c.ask("tasks/get", task)
	require.Empty(t, problem)
	require.Equal(t, "completed", done["status"])
	calls.awaitEnd(t, "wait")

	s.set("4711", func(j *slurm.Job) { j.State = slurm.Running })
	task = begin()
	cancelled, problem := c.ask("tasks/cancel", task)
	require.Empty(t, problem)
	require.Equal(t, "cancelled", cancelled["status"])
	calls.awaitEnd(t, "wait")
}

// Over HTTP too, subscribers are notified of a job's change, a long call reports its
// progress, and a cancelled one ends.
func TestLongThingsOverHTTP(t *testing.T) {
	s := newSite()
	cfg, _ := config(t, s)
	cfg.PollEvery = 20 * time.Millisecond
	calls := logCalls(&cfg)
	svc, err := cfg.Service()
	require.NoError(t, err)
	svc.Clusters["test"] = localSite{s}
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	c := connect(t, url, map[string]string{"Authorization": "Bearer t"})
	stream := func(method, body string) *http.Response {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Authorization", "Bearer t")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode)
		return res
	}
	news := stream(http.MethodGet, "")
	defer news.Body.Close()
	_, problem := c.ask("resources/subscribe", `{"uri":"megatron-ops://jobs/4712"}`)
	require.Empty(t, problem)
	s.awaitPolls(t, 2)
	s.set("4712", func(j *slurm.Job) { j.State = slurm.Failed })
	seen, _ := events(t, news, 1)
	require.Contains(t, seen[0], "notifications/resources/updated")
	require.Contains(t, seen[0], "megatron-ops://jobs/4712")
	_, problem = c.ask("resources/unsubscribe", `{"uri":"megatron-ops://jobs/4712"}`)
	require.Empty(t, problem)

	// A session with a stream for notifications may get its progress there.
	c = connect(t, url, map[string]string{"Authorization": "Bearer t"})
	wait := stream(http.MethodPost, `{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"name":"wait","arguments":{"job":"4711"},`+
		`"_meta":{"progressToken":"p"}}}`)
	defer wait.Body.Close()
	seen, _ = events(t, wait, 1)
	require.Contains(t, seen[0], `"progressToken":"p"`)
	res, _ := c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":41}}`)
	require.Equal(t, http.StatusAccepted, res.StatusCode)
	calls.awaitEnd(t, "wait")
}
