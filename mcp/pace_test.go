package mcp_test

import (
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
		require.Contains(t, r.Text, "That was a lot at once. Nothing was done; please try again in 20 s.")
		require.Contains(t, r.Text, "call wait once")
	}
	_, body := loop.post(`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"megatron-ops://jobs/4711"}}`)
	require.Contains(t, body, "try again in")
	other := connect(t, url, map[string]string{"Authorization": "Bearer b"})
	require.Equal(t, "RUNNING", other.do("status", `{"job":"4711"}`).Structured["state"])

	const complete = `{"jsonrpc":"2.0","id":10,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"megatron-ops://jobs/{job}"},"argument":{"name":"job","value":""}}}`
	_, body = other.post(complete)
	require.Contains(t, body, "4712")
	_, body = loop.post(complete)
	require.NotContains(t, body, "4712", "what is offered is read from the cluster too")
}
