package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// reload rewrites the server's configuration and signals the server.
func (s *server) reload(config string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.home, "megatron-ops.yaml"), []byte(config), 0o600))
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGHUP))
}

// A session is an agent's session at /mcp.
type session struct {
	s         *server
	token, id string
	more      map[string]string // headers
}

// send sends one message and returns the status.
func (c *session) send(message string) int {
	c.s.t.Helper()
	status, _ := c.exchange(message)
	return status
}

// ask sends one message and returns the answer.
func (c *session) ask(message string) string {
	c.s.t.Helper()
	_, answer := c.exchange(message)
	return answer
}

func (c *session) exchange(message string) (status int, answer string) {
	c.s.t.Helper()
	req, err := http.NewRequestWithContext(c.s.t.Context(), http.MethodPost, c.s.url+"/mcp", strings.NewReader(message))
	require.NoError(c.s.t, err)
	for name, value := range map[string]string{
		"Authorization": "Bearer " + c.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": c.id,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	for name, value := range c.more {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(c.s.t, err)
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.id = id
	}
	b, err := io.ReadAll(res.Body)
	require.NoError(c.s.t, err)
	return res.StatusCode, string(b)
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	listTools  = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// SIGHUP reloads the configuration, completely or not at all. What the change does not
// concern continues.
func TestSIGHUPTakesTheNewConfigurationOrKeepsTheOld(t *testing.T) {
	t.Parallel()
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	s := newServer(t, "", "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret, "SLACK_API_URL="+slack.APIURL)
	for _, name := range []string{"first", "second"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.home, name), []byte("the-"+name+"-token-of-an-agent\n"), 0o600))
	}
	tokens := func(name string) string { return "mcp: {tokens: [{file: " + name + ", id: " + name + "}]}\n" }
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "megatron-ops.yaml"), []byte(tokens("first")), 0o600))
	s.start("")
	slack.Target(s.url)
	s.logged("this server leads", 1)
	first, second := &session{s: s, token: "the-first-token-of-an-agent"}, &session{s: s, token: "the-second-token-of-an-agent"}
	require.Equal(t, http.StatusOK, first.send(initialize))
	require.Equal(t, http.StatusUnauthorized, second.send(initialize))
	require.Equal(t, http.StatusOK, slack.Slash("list").Status)
	until(slack, "not linked to a cluster user")

	s.reload(tokens("first") + "slack: {links: {U1: alice}}\nknowledge: {model_per_day: 3}\n")
	s.logged(`changed="slack.links knowledge.model_per_day" agents="their sessions go on"`, 1)
	require.Equal(t, http.StatusOK, first.send(listTools), "an agent's session goes on")
	require.Equal(t, http.StatusOK, slack.Slash("list").Status)
	until(slack, "No waiting or running jobs found")

	s.reload(tokens("second") + "slack:\n  links: {U1: alice}\n  operatorz: [U1]\nnotify: {x: {kind: pigeon}}\n")
	s.logged("the configuration was refused; the one before goes on", 2)
	s.logged("slack.operatorz", 1)
	s.logged("megatron-ops.yaml, line 4)", 1)
	require.Equal(t, http.StatusOK, first.send(listTools), "what was refused was not taken in part")
	require.Equal(t, http.StatusUnauthorized, second.send(initialize))

	s.reload("mcp: {tokens: [{file: first, id: first}, {file: first, id: again}]}\n")
	s.logged("first holds the token of first too", 1)
	require.NoError(t, os.Remove(filepath.Join(s.home, "megatron-ops.yaml")))
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.logged("megatron-ops.yaml is gone or empty, and its limits would go with it", 1)
	s.reload("\n")
	s.logged("megatron-ops.yaml is gone or empty, and its limits would go with it", 2)
	require.Equal(t, http.StatusOK, first.send(listTools), "its tokens are still asked for")

	s.reload(tokens("second") + "store: /tmp/elsewhere.db\n")
	s.logged("taken by a restart alone\" field=store", 1)
	s.logged(`agents="they begin new sessions"`, 1)
	require.Equal(t, http.StatusUnauthorized, first.send(listTools), "the token is no longer configured")
	require.Equal(t, http.StatusOK, second.send(initialize))
	require.NoFileExists(t, "/tmp/elsewhere.db")
	require.True(t, leads(s), "who leads goes on leading")

	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NotContains(t, <-s.said, "leads no more")
	require.NoError(t, s.cmd.Wait())
}
