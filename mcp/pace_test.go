package mcp_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
)

// An agent that calls without end is told when it may go on, in an answer that it can read.
// Others go on meanwhile.
func TestAnAgentInALoopIsToldToWait(t *testing.T) {
	cfg, _ := config(t, newSite())
	cfg.CallsPerMinute = 3
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"a": {ID: "one", User: "alice"}, "a2": {ID: "two", User: "alice"}, "b": {ID: "other", User: "bob"}}})
	loop := connect(t, url, map[string]string{"Authorization": "Bearer a"})
	for range 3 {
		require.Equal(t, "RUNNING", loop.do("status", `{"job":"4711"}`).Structured["state"])
	}
	again := connect(t, url, map[string]string{"Authorization": "Bearer a2"})
	for _, c := range []*client{loop, again} { // another session, or another of the person's tokens
		r := c.do("status", `{"job":"4711"}`)
		require.True(t, r.IsError)
		require.Contains(t, r.Text, "all agents of alice together may make 3 calls a minute, and have made them; nothing was done; call again in 20 s")
		require.Contains(t, r.Text, "call wait once")
		require.Contains(t, r.Text, "need tokens for different users")
	}
	_, body := loop.post(`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"megatron-ops://jobs/4711"}}`)
	require.Contains(t, body, "call again in")
	other := connect(t, url, map[string]string{"Authorization": "Bearer b"})
	require.Equal(t, "RUNNING", other.do("status", `{"job":"4711"}`).Structured["state"])

	const complete = `{"jsonrpc":"2.0","id":10,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"megatron-ops://jobs/{job}"},"argument":{"name":"job","value":""}}}`
	_, body = other.post(complete)
	require.Contains(t, body, "4712")
	_, body = loop.post(complete)
	require.NotContains(t, body, "4712", "what is offered is read from the cluster too")
}

// What is no call is counted too, in a larger number: a client that lists the tools without end
// takes as much work as one that calls them.
func TestListingsAreCountedToo(t *testing.T) {
	cfg, _ := config(t, newSite())
	cfg.CallsPerMinute = 2
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"a": {ID: "one", User: "alice"}, "b": {ID: "other", User: "bob"}}})
	loop := connect(t, url, map[string]string{"Authorization": "Bearer a"}) // two messages
	const list = `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`
	for range 18 {
		res, _ := loop.post(list)
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
	for _, body := range []string{list, hello} {
		res, said := loop.post(body)
		for range 20 {
			if res.StatusCode != http.StatusOK {
				break
			}
			res, said = loop.post(body) // three seconds had passed, which allow another message
		}
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		require.Contains(t, []string{"1", "2", "3"}, res.Header.Get("Retry-After"))
		require.Contains(t, said, "all agents of alice together may send 20 messages a minute, and have sent them; nothing was done; send again in "+res.Header.Get("Retry-After")+" s")
	}
	other := connect(t, url, map[string]string{"Authorization": "Bearer b"})
	require.Equal(t, "RUNNING", other.do("status", `{"job":"4711"}`).Structured["state"])
}
