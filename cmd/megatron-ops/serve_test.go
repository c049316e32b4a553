package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

func TestServeWithoutSlackServesTheRest(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.start("")
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/slack/commands": 404, "/slack/install": 404} {
		got, body := s.get(path)
		require.Equal(t, want, got, "%s: %s", path, body)
	}
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Contains(t, <-s.said, "Slack: off")
	require.NoError(t, s.cmd.Wait(), "SIGTERM is an orderly end")
}

func TestSlacksVariablesThatCannotServeEndWithTwo(t *testing.T) {
	t.Parallel()
	key := "MEGATRON_OPS_SLACK_KEY=" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	install := "slack: {install: {url: https://ops.example.org}}"
	for name, c := range map[string]struct {
		config string
		env    []string
		says   string
	}{
		"a bot token alone":             {"", []string{"SLACK_BOT_TOKEN=xoxb-1"}, "neither SLACK_SIGNING_SECRET"},
		"a signing secret alone":        {"", []string{"SLACK_SIGNING_SECRET=s"}, "SLACK_BOT_TOKEN is missing"},
		"an app token alone":            {"", []string{"SLACK_APP_TOKEN=xapp-1"}, "SLACK_BOT_TOKEN is missing"},
		"a client without its secret":   {"", []string{"SLACK_CLIENT_ID=1.2"}, "belong together"},
		"one workspace and many":        {install, []string{"SLACK_CLIENT_ID=1.2", "SLACK_CLIENT_SECRET=x", "SLACK_BOT_TOKEN=xoxb-1", key}, "unset one of the two"},
		"an install without an address": {"", []string{"SLACK_CLIENT_ID=1.2", "SLACK_CLIENT_SECRET=x", key}, "not an https address"},
		"an install without a key":      {install, []string{"SLACK_CLIENT_ID=1.2", "SLACK_CLIENT_SECRET=x"}, "no key to encrypt"},
		"a key that is too short":       {install, []string{"SLACK_CLIENT_ID=1.2", "SLACK_CLIENT_SECRET=x", "MEGATRON_OPS_SLACK_KEY=c2hvcnQ="}, "32 bytes in base64"},
		"an install nobody can trust":   {install, []string{"SLACK_CLIENT_ID=1.2", "SLACK_CLIENT_SECRET=x", key}, "neither SLACK_SIGNING_SECRET"},
	} {
		out, err := newServer(t, c.config, c.env...).command("serve", "--listen", "127.0.0.1:0").CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, name)
		require.Equal(t, 2, exit.ExitCode(), "%s: %s", name, out)
		require.Contains(t, string(out), c.says, name)
	}
	s := newServer(t, "slack: {install: {url: https://ops.example.org, key_file: key}}", "SLACK_CLIENT_ID=1.2", "SLACK_CLIENT_SECRET=x", "SLACK_SIGNING_SECRET=s")
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "key"), []byte("x"), 0o644))
	out, err := s.command("serve").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "can be read by others")
}

// installAs acts as a browser that installs the app, following Slack's redirects.
func installAs(t *testing.T, s *server, code string) int {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := browser.Get(s.url + "/slack/install")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusFound, res.StatusCode)
	to, err := url.Parse(res.Header.Get("Location"))
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:1/slack/oauth", to.Query().Get("redirect_uri"))
	require.Equal(t, strings.Join(install.Scopes(bot.Policy{}), ","), to.Query().Get("scope"))
	res, err = browser.Get(s.url + "/slack/oauth?code=" + code + "&state=" + to.Query().Get("state"))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}

func TestSeveralWorkspacesInstallAndKeepTheirTokensEncrypted(t *testing.T) {
	t.Parallel()
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret, BotScopes: strings.Join(install.Scopes(bot.Policy{}), ",")})
	key := func(b byte) string {
		return "MEGATRON_OPS_SLACK_KEY=" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
	}
	s := newServer(t, "slack: {install: {url: 'http://127.0.0.1:1'}}", "SLACK_API_URL="+slack.APIURL,
		"SLACK_CLIENT_ID=1.2", "SLACK_CLIENT_SECRET=cs", "SLACK_SIGNING_SECRET="+signingSecret, key(7))
	s.start("")
	slack.Target(s.url)
	require.Equal(t, http.StatusOK, installAs(t, s, "one"))
	require.Equal(t, http.StatusOK, installAs(t, s, "two"))
	require.Equal(t, http.StatusBadGateway, installAs(t, s, "bad"))

	mention := func(team, ts string) {
		slack.Deliver(slacktest.Delivery{Kind: "events_api", Payload: map[string]any{"team_id": team, "event": map[string]any{
			"type": "app_mention", "user": "U1", "channel": "C" + team, "ts": ts, "text": "<@UBOT> help",
		}}})
	}
	answered := func(team, ts string) {
		t.Helper()
		slack.Wait("an answer in "+team, func(st slacktest.State) bool {
			for _, m := range st.Messages {
				if m.Channel == "C"+team && m.Thread == ts && m.Token == "xoxb-of-"+strings.TrimPrefix(team, "T-") {
					return true
				}
			}
			return false
		})
	}
	mention("T-one", "1.000100")
	mention("T-two", "1.000200")
	answered("T-one", "1.000100")
	answered("T-two", "1.000200")

	// The disk contains no token and no secret.
	files, err := filepath.Glob(filepath.Join(s.home, "state", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "xoxb-of", f)
		require.NotContains(t, string(raw), base64.StdEncoding.EncodeToString([]byte("xoxb-of-one"))[:12], f)
	}
	s.kill()
	s.start("") // with the same key the tokens are read again
	slack.Target(s.url)
	mention("T-two", "1.000300")
	answered("T-two", "1.000300")
	out, err := s.command("doctor").CombinedOutput()
	require.Contains(t, string(out), "2 have installed the app", "%v", err)
	require.Contains(t, string(out), "Slack scopes of T-one")
	s.kill()
	s.env = append(s.env, key(8))
	out, err = s.command("doctor").CombinedOutput()
	require.Error(t, err, "a key that was lost")
	require.Contains(t, string(out), "cannot be read with this key")
	require.Contains(t, string(out), "install the app again")
}

// Every acknowledged request is answered once, whenever the process is killed: requests
// are on the disk before the acknowledgement, and answers before they are sent.
func TestAKilledServerAnswersEveryCommandOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("ten servers, killed one after the other, are not for -short")
	}
	t.Parallel()
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	slack.Fault(slacktest.Fault{Method: "chat.postMessage", Rate: 1, DelayMS: 40}) // so that kills hit sends
	s := newServer(t, "slack: {per_minute: 10000}", "SLACK_API_URL="+slack.APIURL, "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret)
	var acked []string
	for round := range 10 {
		s.start("")
		slack.Target(s.url)
		stop := time.Now().Add(time.Duration(60+40*round) * time.Millisecond)
		for i := 0; i < 8 || time.Now().Before(stop); i++ {
			ts := fmt.Sprintf("%d.%06d", 100+round, 100+i)
			r := slack.Event(map[string]any{"type": "app_mention", "user": fmt.Sprintf("U%d", i%7), "channel": fmt.Sprintf("C%d", len(acked)), "ts": ts, "text": "<@UBOT> help"})
			if r.Status == http.StatusOK {
				acked = append(acked, ts)
			}
		}
		s.kill()
	}
	slack.Calm()
	s.start("")
	require.Greater(t, len(acked), 50)
	var last slacktest.State
	slack.Wait(fmt.Sprintf("%d answers", len(acked)), func(st slacktest.State) bool {
		last = st
		return len(st.Messages) >= len(acked)
	})
	time.Sleep(time.Second)
	answers := map[string]int{}
	for _, m := range slack.State().Messages {
		answers[m.Thread]++
	}
	for _, ts := range acked {
		require.Equal(t, 1, answers[ts], "the answer to %s; %d messages", ts, len(last.Messages))
	}
}

// An agent's call that exceeds a limit is decided in Slack, through the real process
// and both transports.
func TestAnAgentsCallIsApprovedInSlack(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	require.NoError(t, err)
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	token := "0123456789abcdef0123456789abcdef"
	s := newServer(t, fmt.Sprintf(`
slack:
  operators: [U5]
  links: {U5: grace}
  approval: {channel: C-ops, gpu_hours: 1}
mcp:
  tokens: [{file: agent.token, id: nightly, user: %s}]
`, me.Username), "SLACK_API_URL="+slack.APIURL, "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret)
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "agent.token"), []byte(token), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(s.home, "tree", ".venv"), 0o755))
	s.start("")
	slack.Target(s.url)
	key := "night-1"
	submit := func() string {
		t.Helper()
		args := map[string]any{"idempotency_key": key, "spec": map[string]any{
			"name": "big", "nodes": 2, "gpus_per_node": 8, "gpu": "h100", "time": "2:00:00", "worktree": filepath.Join(s.home, "tree"), "log_dir": "logs",
			"args": strings.Fields("--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 64 --train-iters 100 --lr 1e-4 --bf16 --tensor-model-parallel-size 4 --mock-data --tokenizer-type NullTokenizer --vocab-size 1000"),
		}}
		return callTool(t, s.url, token, "submit", args)
	}
	require.Contains(t, submit(), "waits for an approval")
	q, value := agentAsked(t, slack, "32 GPU hours")
	require.Contains(t, slacktest.JSON(q.Blocks), "nightly")
	require.Contains(t, submit(), "waits for an approval", "asked again before the decision")
	slack.Press(q, "agent_yes", value, "U5")
	slack.Wait("the decision", func(st slacktest.State) bool {
		for _, m := range st.Messages {
			if m.TS == q.TS && m.Edits > 0 {
				return strings.Contains(slacktest.JSON(m.Blocks), "next call does it")
			}
		}
		return false
	})
	require.Contains(t, submit(), "submitted to local as job")
	require.Contains(t, submit(), "had been submitted to local already", "a lost answer needs no second approval")
	key = "night-2"
	require.Contains(t, submit(), "waits for an approval", "an approval serves one call")
	s.cancel("1")
	out, err := s.command("audit").CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), "approve")
	require.Contains(t, string(out), "T1/U5")
	require.Contains(t, string(out), "nightly, by test-agent", "the agent and whom it asked for")
}

// agentAsked waits for an agent's undecided request that contains words, and returns it
// with the value that its buttons send.
func agentAsked(t *testing.T, slack *slacktest.Slack, words string) (q *slacktest.Message, value string) {
	t.Helper()
	slack.Wait("the request", func(st slacktest.State) bool {
		for _, m := range st.Messages {
			drawn := slacktest.JSON(m.Blocks)
			if m.Channel == "C-ops" && strings.Contains(drawn, "An agent asks for your approval") && strings.Contains(drawn, words) {
				q = m
			}
		}
		return q != nil
	})
	for _, b := range q.Blocks {
		raw, err := json.Marshal(b)
		require.NoError(t, err)
		var row struct {
			Elements []struct {
				Action string `json:"action_id"`
				Value  string `json:"value"`
			} `json:"elements"`
		}
		if json.Unmarshal(raw, &row) == nil {
			for _, e := range row.Elements {
				if e.Action == "agent_yes" {
					value = e.Value
				}
			}
		}
	}
	require.NotEmpty(t, value)
	return q, value
}

// Without configured tokens the server creates one that only this account can read, and
// accepts no request without it.
func TestTheServerMakesItsOwnToken(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.start("")
	file := filepath.Join(s.home, "state", "mcp.token")
	st, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	token, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, callTool(t, s.url, strings.TrimSpace(string(token)), "list", map[string]any{}), `"jobs":[]`)
	require.Contains(t, callTool(t, s.url, strings.TrimSpace(string(token)), "submit", map[string]any{"spec": small(s, "no")}), "not_allowed")
	require.Contains(t, callTool(t, s.url, "", "list", map[string]any{}), "bearer token")
	require.Contains(t, callTool(t, s.url, "0123456789abcdef", "list", map[string]any{}), "not known here")
	out, err := s.command("mcp", "config", "--client", "claude", "--url", s.url+"/mcp").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), strings.TrimSpace(string(token)))
}

// callTool calls a tool over /mcp and returns everything that it answers.
func callTool(t *testing.T, base, token, name string, args map[string]any) string {
	t.Helper()
	session := ""
	post := func(body map[string]any) string {
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		req, err := http.NewRequest(http.MethodPost, base+"/mcp", bytes.NewReader(raw))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+token)
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(b)
	}
	post(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test-agent", "version": "1"},
	}})
	post(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return post(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
}

// callStdio starts the program for an agent on standard input, initializes, calls a
// tool, and returns everything that it answers.
func callStdio(t *testing.T, s *server, name string, args map[string]any) string {
	t.Helper()
	cmd := s.command("mcp")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test-agent","version":"1"}}}`+"\n")
	require.NoError(t, err)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, json.NewEncoder(in).Encode(map[string]any{
		"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args},
	}))
	require.NoError(t, in.Close())
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	return string(rest)
}

// An agent on standard input has the same limits, and asks in the same place if it
// shares the server's store.
func TestAnAgentOnStandardInputIsHeldToTheLimits(t *testing.T) {
	t.Parallel()
	slack := slacktest.Start(t, slacktest.Config{SigningSecret: signingSecret})
	config := "slack:\n  operators: [U5]\n  approval: {channel: C-ops, gpu_hours: 1}\n"
	ask := func(s *server) string {
		return callStdio(t, s, "submit", map[string]any{"spec": small(s, "big")})
	}
	alone := newServer(t, config)
	require.Contains(t, ask(alone), "32 GPU hours, more than 1, so a person has to say yes")

	s := newServer(t, config, "SLACK_API_URL="+slack.APIURL, "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET="+signingSecret,
		"MEGATRON_OPS_STORE="+filepath.Join(t.TempDir(), "shared.db"))
	s.start("")
	slack.Target(s.url)
	require.Contains(t, ask(s), "waits for an approval by an operator")
	agentAsked(t, slack, "test-agent")
}

// cancel ends a job and waits for its end: until then the job writes into the folder
// that the test removes.
func (s *server) cancel(job string) {
	s.t.Helper()
	_ = s.command("cancel", job, "--yes").Run() // it may have ended by itself
	require.Eventually(s.t, func() bool {
		out, _ := s.command("status", job, "-o", "json").Output()
		return regexp.MustCompile(`"(FAILED|CANCELLED|COMPLETED)"`).Match(out)
	}, 20*time.Second, 100*time.Millisecond)
}

// small returns a job that ends at once.
func small(s *server, name string) map[string]any {
	return map[string]any{
		"name": name, "nodes": 2, "gpus_per_node": 8, "time": "2:00:00", "launcher": "custom", "launcher_argv": []string{"true"}, "worktree": s.home,
	}
}
