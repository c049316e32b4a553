package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// asking is hello of a client that can ask its person.
func asking(hello string) string {
	return strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
}

// quote is text as a JSON string.
func quote(text string) string {
	raw, _ := json.Marshal(text) // a string always can
	return string(raw)
}

// Protocol version 2026-07-28 has no sessions: the question is the answer to the first
// request, and the person's yes comes with a second, complete request.
func TestAPersonIsAskedWithoutASession(t *testing.T) {
	s := newSite()
	cfg, _ := config(t, s)
	beyond := ""
	cfg.Policy = func() mcp.Policy {
		return mcp.Policy{
			Beyond:  func(*ops.Call, string, any) string { return beyond },
			Approve: func(context.Context, *ops.Call, any, consent.Request) (bool, error) { return false, nil },
		}
	}
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	c := &client{t: t, url: url, header: map[string]string{
		"Authorization": "Bearer t", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "cancel",
	}}
	call := func(job, more string) (reply, string) {
		return c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cancel","arguments":{"job":%q}%s,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, job, more))
	}
	_, body := call("4711", "")
	var asked struct {
		Result struct {
			State    string                     `json:"requestState"`
			Requests map[string]json.RawMessage `json:"inputRequests"`
		} `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &asked), body)
	require.Contains(t, string(asked.Result.Requests["confirm"]), "cancel job 4711")
	yes := func(state string) string {
		return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"confirm":{"action":"accept","content":{"ok":true}}}`, state)
	}
	tampered := "A" + asked.Result.State[1:]
	if tampered == asked.Result.State {
		tampered = "B" + asked.Result.State[1:]
	}
	for name, state := range map[string]string{"tampered": tampered, "made up": "x"} {
		_, body = call("4711", yes(state))
		require.Contains(t, body, `"error"`, name)
		require.Equal(t, slurm.Running, s.jobs["4711"].State, name)
	}
	_, body = call("4712", yes(asked.Result.State))
	require.Contains(t, body, `"error"`, "the answer to another question")
	beyond = "it has grown beyond the limits"
	_, body = call("4711", yes(asked.Result.State))
	require.Contains(t, body, "needs an approval by an operator by now", "the person's yes is for what was within the limits")
	require.Equal(t, slurm.Running, s.jobs["4711"].State)
	beyond = ""
	_, body = call("4711", yes(asked.Result.State))
	require.Contains(t, body, `"cancelled":true`)
	require.Equal(t, slurm.Cancelled, s.jobs["4711"].State)
}

// A conversation is a stdio session, line by line. It reads the server's messages at
// once, as a client does: a client that does not read would block the server.
type conversation struct {
	t   *testing.T
	in  io.WriteCloser
	out chan string
	end chan error
}

func converse(t *testing.T, cfg mcp.Config) *conversation {
	t.Helper()
	s, err := mcp.NewServer(cfg)
	require.NoError(t, err)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &conversation{t, inW, make(chan string, 1000), make(chan error, 1)}
	go func() {
		lines := bufio.NewReader(outR)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				close(c.out)
				return
			}
			c.out <- line
		}
	}()
	go func() {
		c.end <- s.ServeStdio(t.Context(), inR, outW)
		outW.Close()
	}()
	return c
}

func (c *conversation) send(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	require.NoError(c.t, err)
}

func (c *conversation) read() map[string]any {
	c.t.Helper()
	select {
	case line := <-c.out:
		var m map[string]any
		require.NoError(c.t, json.Unmarshal([]byte(line), &m), line)
		return m
	case <-time.After(20 * time.Second):
		require.Fail(c.t, "the server says nothing")
		return nil
	}
}

func (c *conversation) close() {
	c.t.Helper()
	require.NoError(c.t, c.in.Close())
	select {
	case err := <-c.end:
		require.NoError(c.t, err)
	case <-time.After(20 * time.Second):
		require.Fail(c.t, "the server does not end")
	}
}

// A plan's handle stands for its specification, for the caller who planned it.
func TestAPlansHandleIsSubmitted(t *testing.T) {
	s := newSite()
	cfg, _ := config(t, s)
	url := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice, "b": {ID: "bob", User: "bob"}}})
	c := connect(t, url, map[string]string{"Authorization": "Bearer t"})
	plan := c.do("plan", submitArgs(goodSpec, ""))
	handle, _ := plan.Structured["plan"].(string)
	require.NotEmpty(t, handle)
	require.Contains(t, plan.Text, handle)
	bob := connect(t, url, map[string]string{"Authorization": "Bearer b"})
	for name, r := range map[string]result{
		"bob's":   bob.do("submit", fmt.Sprintf(`{"plan":%q}`, handle)),
		"made up": c.do("submit", `{"plan":"p0123456789abcdef"}`),
		"both":    c.do("submit", fmt.Sprintf(`{"plan":%q,"spec":%s}`, handle, goodSpec)),
	} {
		require.True(t, r.IsError, name)
		require.Equal(t, "plan", r.Structured["error"].(map[string]any)["field"], name)
	}
	done := c.do("submit", fmt.Sprintf(`{"plan":%q,"confirm_token":%q}`, handle, plan.Structured["confirm_token"]))
	require.False(t, done.IsError, done.Text)
	require.Len(t, s.subs, 1)
	require.Contains(t, s.subs[0].Script, "--tensor-model-parallel-size 4")

	bad := c.do("plan", submitArgs(strings.Replace(goodSpec, `"--num-attention-heads","32"`, `"--num-attention-heads","30"`, 1), ""))
	require.NotContains(t, bad.Structured, "plan", "what was not accepted has no handle")

	// The job's specification can be read, and can be submitted with a change.
	_, body := c.post(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"job://test/5001/spec"}}`)
	require.Contains(t, body, `tensor-model-parallel-size`)
	_, body = bob.post(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"job://test/5001/spec"}}`)
	require.Contains(t, body, "its owner's")
	asked := c.do("submit", `{"from":"5001","spec":{"args":["--micro-batch-size","2"]},"without":["bf16"]}`)
	done = c.do("submit", fmt.Sprintf(`{"from":"5001","spec":{"args":["--micro-batch-size","2"]},"without":["bf16"],"confirm_token":%q}`,
		asked.Structured["confirm_token"]))
	require.False(t, done.IsError, asked.Text+done.Text)
	require.Contains(t, s.subs[1].Script, "--micro-batch-size 2")
	require.NotContains(t, s.subs[1].Script, "--micro-batch-size 1")
	require.NotContains(t, s.subs[1].Script, "--bf16")
}
