package mcp_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	sdkclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	sdk "github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A reader stands for a client's person. open is what they do with the link; it returns
// before the client reports that the link was opened.
type reader struct {
	open   func(link, message string)
	action sdk.ElicitationResponseAction
	asked  []sdk.ElicitationParams
}

func (p *reader) Elicit(_ context.Context, req sdk.ElicitationRequest) (*sdk.ElicitationResult, error) {
	p.asked = append(p.asked, req.Params)
	if p.open != nil {
		p.open(req.Params.URL, req.Params.Message)
	}
	return &sdk.ElicitationResult{ElicitationResponse: sdk.ElicitationResponse{Action: p.action, Content: map[string]any{"ok": true}}}, nil
}

// connectWithPages connects a client that shows its person pages, and forms if form is
// set.
func connectWithPages(t *testing.T, address string, p *reader, form bool) *sdkclient.Client {
	t.Helper()
	c, err := sdkclient.NewStreamableHttpClient(address, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer t"}))
	require.NoError(t, err)
	sdkclient.WithElicitationHandler(p)(c)
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() { c.Close() })
	hello := sdk.InitializeRequest{}
	hello.Params.ProtocolVersion = "2025-11-25"
	hello.Params.ClientInfo = sdk.Implementation{Name: "opener", Version: "1"}
	hello.Params.Capabilities.Elicitation = &sdk.ElicitationCapability{URL: &struct{}{}}
	if form {
		hello.Params.Capabilities.Elicitation.Form = &struct{}{}
	}
	_, err = c.Initialize(t.Context(), hello)
	require.NoError(t, err)
	return c
}

func submitBig(t *testing.T, c *sdkclient.Client, more int) *sdk.CallToolResult {
	t.Helper()
	req := sdk.CallToolRequest{}
	req.Params.Name = "submit"
	req.Params.Arguments = map[string]any{
		"force": true, "yaml": "env: {NOTE: \"" + strings.Repeat("x", more) + " <script>alert(1)</script>\"}",
		"spec": map[string]any{
			"name": "big", "nodes": 2, "worktree": "/w", "time": "1:00:00", "launcher": "custom", "launcher_argv": []string{"bash", "-c", "true"},
		},
	}
	res, err := c.CallTool(t.Context(), req)
	require.NoError(t, err)
	return res
}

// visit requests a page as a browser does.
func visit(t *testing.T, method, link, body string, header map[string]string) (status int, page string, h http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, link, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(raw), res.Header
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

func answerOf(message, answer string) string {
	return url.Values{"code": {sixDigits.FindString(message)}, "answer": {answer}}.Encode()
}

// A question that a form cannot show is asked on a page, completely, and the answer
// there decides, once.
func TestAPageAsksWhatAFormCannotShow(t *testing.T) {
	for _, c := range []struct {
		name      string
		open      func(t *testing.T, link, message string)
		action    sdk.ElicitationResponseAction
		submitted int
	}{
		{"yes", func(t *testing.T, link, message string) {
			require.NotContains(t, link, sixDigits.FindString(message), "the code does not stand in the link")
			status, page, h := visit(t, http.MethodGet, link, "", nil)
			require.Equal(t, 200, status)
			require.Contains(t, page, strings.Repeat("x", 20_000), "all of it")
			require.Contains(t, page, "#SBATCH --nodes=2")
			require.Contains(t, page, "SHA-256")
			require.Contains(t, page, "2 nodes × 8 GPUs × 01:00:00")
			require.Contains(t, page, "account alice")
			require.NotContains(t, page, "<script", "and nothing runs")
			require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
			require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
			_, style, _ := strings.Cut(page, "<style>")
			style, _, _ = strings.Cut(style, "</style>")
			sum := sha256.Sum256([]byte(style))
			require.Contains(t, h.Get("Content-Security-Policy"), "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'", "its own style is let through")
			require.Equal(t, "no-store", h.Get("Cache-Control"))
			require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
			status, page, _ = visit(t, http.MethodPost, link, answerOf(message, "yes"), nil)
			require.Equal(t, 200, status)
			require.Contains(t, page, "You said yes")
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				status, page, _ = visit(t, method, link, answerOf(message, "no"), nil)
				require.Equal(t, 410, status, "one answer")
				require.NotContains(t, page, "#SBATCH")
			}
		}, sdk.ElicitationResponseActionAccept, 1},
		{"no", func(t *testing.T, link, message string) {
			_, page, _ := visit(t, http.MethodPost, link, answerOf(message, "no"), nil)
			require.Contains(t, page, "You said no")
		}, sdk.ElicitationResponseActionAccept, 0},
		{"the client declines", nil, sdk.ElicitationResponseActionDecline, 0},
		{"yes on the page, and the client declines", func(t *testing.T, link, message string) {
			visit(t, http.MethodPost, link, answerOf(message, "yes"), nil)
		}, sdk.ElicitationResponseActionCancel, 0},
		{"three wrong codes", func(t *testing.T, link, message string) {
			wrong := url.Values{"code": {"x"}, "answer": {"yes"}}.Encode()
			for _, want := range []int{403, 403, 410, 410} {
				status, _, _ := visit(t, http.MethodPost, link, wrong, nil)
				require.Equal(t, want, status)
			}
			status, _, _ := visit(t, http.MethodPost, link, answerOf(message, "yes"), nil)
			require.Equal(t, 410, status)
		}, sdk.ElicitationResponseActionAccept, 0},
		{"one wrong code, and the right one", func(t *testing.T, link, message string) {
			status, page, _ := visit(t, http.MethodPost, link, "code=&answer=yes", nil)
			require.Equal(t, 403, status)
			require.Contains(t, page, "not the code")
			require.Contains(t, page, "<form", "it can be given again")
			visit(t, http.MethodPost, link, answerOf(message, "yes"), nil)
		}, sdk.ElicitationResponseActionAccept, 1},
		{"a form of another site, another's token, another page, another host, no answer", func(t *testing.T, link, message string) {
			for _, foreign := range []map[string]string{{"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "same-site"}} {
				status, _, _ := visit(t, http.MethodPost, link, answerOf(message, "yes"), foreign)
				require.Equal(t, 403, status, "%v", foreign)
			}
			for _, token := range []string{"Bearer b", "Bearer made-up"} {
				status, page, _ := visit(t, http.MethodGet, link, "", map[string]string{"Authorization": token})
				require.Equal(t, 403, status)
				require.NotContains(t, page, "#SBATCH")
				status, _, _ = visit(t, http.MethodPost, link, answerOf(message, "yes"), map[string]string{"Authorization": token})
				require.Equal(t, 403, status)
			}
			status, _, _ := visit(t, http.MethodGet, link[:len(link)-1]+"_", "", nil)
			require.Equal(t, 410, status)
			status, _, _ = visit(t, http.MethodPost, link, strings.Replace(answerOf(message, "yes"), "=yes", "=", 1), nil)
			require.Equal(t, 400, status)
			status, page, _ := visit(t, http.MethodGet, link, "", map[string]string{"Authorization": "Bearer t", "Accept-Language": "zh-CN,zh;q=0.9"})
			require.Equal(t, 200, status)
			require.Contains(t, page, "以账户 alice 的名义")
			require.Contains(t, page, `<html lang="zh">`)
			visit(t, http.MethodPost, link, answerOf(message, "no"), nil)
		}, sdk.ElicitationResponseActionAccept, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite()
			cfg, audit := config(t, s)
			p := &reader{action: c.action}
			if c.open != nil {
				p.open = func(link, message string) { c.open(t, link, message) }
			}
			address := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice, "b": {ID: "bob", User: "bob"}}})
			c1 := connectWithPages(t, address, p, true)
			told := make(chan any, 10)
			c1.OnNotification(func(n sdk.JSONRPCNotification) {
				if n.Method == "notifications/elicitation/complete" {
					told <- n.Params.AdditionalFields["elicitationId"]
				}
			})
			res := submitBig(t, c1, 20_000)
			require.Len(t, p.asked, 1)
			require.Equal(t, "url", p.asked[0].Mode)
			require.NotEmpty(t, p.asked[0].ElicitationID)
			require.True(t, strings.HasPrefix(p.asked[0].URL, strings.TrimSuffix(address, "/mcp")+"/mcp/consent/"), p.asked[0].URL)
			require.Contains(t, p.asked[0].Message, "2 nodes × 8 GPUs × 01:00:00")
			require.Len(t, s.subs, c.submitted)
			require.Equal(t, c.submitted == 0, res.IsError)
			if c.submitted == 1 {
				require.NotEmpty(t, (*audit)[len(*audit)-1].Agreed, "the audit names the script that was agreed to")
				require.Equal(t, p.asked[0].ElicitationID, <-told, "the client may close its dialog")
			} else {
				require.Contains(t, res.Content[0].(sdk.TextContent).Text, "did not say yes")
			}
		})
	}
}

// A question that fits a form is asked in a form; a client without forms is asked on a
// page.
func TestAPageIsAskedWhereItMustBe(t *testing.T) {
	for _, c := range []struct {
		form bool
		more int // characters of the specification, which the script has twice
		mode string
	}{{true, 1, "form"}, {false, 1, "url"}, {true, 4000, "url"}} {
		cfg, _ := config(t, newSite())
		p := &reader{action: sdk.ElicitationResponseActionDecline}
		submitBig(t, connectWithPages(t, serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}}), p, c.form), c.more)
		require.Len(t, p.asked, 1)
		require.Equal(t, c.mode, p.asked[0].Mode, "%v", c)
	}
}

// cancelling requests to cancel a job in protocol version 2026-07-28, as a client that
// opens pages and shows no forms. It returns the answer with the page and the state in
// it.
func cancelling(t *testing.T, address, token, job, more string) (body, state string, p sdk.ElicitationParams) {
	t.Helper()
	c := &client{t: t, url: address, header: map[string]string{
		"Authorization": "Bearer " + token, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "cancel",
	}}
	_, body = c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cancel","arguments":{"job":"` + job + `"}` + more + `,"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}}}`)
	var asked struct {
		Result struct {
			State    string `json:"requestState"`
			Requests struct {
				Confirm struct{ Params sdk.ElicitationParams } `json:"confirm"`
			} `json:"inputRequests"`
		} `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &asked), body)
	return body, asked.Result.State, asked.Result.Requests.Confirm.Params
}

// A person has at most sixteen pages: another one closes their oldest, and nobody
// else's.
func TestPagesAreFew(t *testing.T) {
	cfg, _ := config(t, newSite())
	address := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice, "b": {ID: "bob", User: "bob"}}})
	_, _, bobs := cancelling(t, address, "b", "4712", "")
	links := []string{bobs.URL}
	for range 17 {
		_, _, p := cancelling(t, address, "t", "4711", "")
		links = append(links, p.URL)
	}
	for i, link := range links {
		status, _, _ := visit(t, http.MethodGet, link, "", nil)
		require.Equal(t, map[bool]int{true: 410, false: 200}[i == 1], status, "page %d", i)
	}
	// An answered page does not count.
	_, _, answered := cancelling(t, address, "t", "4711", "")
	visit(t, http.MethodPost, answered.URL, answerOf(answered.Message, "no"), nil)
	_, _, _ = cancelling(t, address, "t", "4711", "")
	status, _, _ := visit(t, http.MethodGet, links[3], "", nil)
	require.Equal(t, 200, status)
}

// Protocol version 2026-07-28 has no sessions: the link is the answer to the first
// request, and the request after it waits for the answer on the page.
func TestAPageIsAskedWithoutASession(t *testing.T) {
	s := newSite()
	cfg, _ := config(t, s)
	address := serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}})
	_, state, p := cancelling(t, address, "t", "4711", "")
	status, page, _ := visit(t, http.MethodGet, p.URL, "", nil)
	require.Equal(t, 200, status)
	require.Contains(t, page, "cancel job 4711")
	visit(t, http.MethodPost, p.URL, answerOf(p.Message, "yes"), nil)
	require.Equal(t, slurm.Running, s.jobs["4711"].State, "the yes is for the call, which has not come")
	body, _, _ := cancelling(t, address, "t", "4711", `,"requestState":`+quote(state)+`,"inputResponses":{"confirm":{"action":"accept"}}`)
	require.Contains(t, body, `"cancelled":true`)
	require.Equal(t, slurm.Cancelled, s.jobs["4711"].State)
}

// A call that its client cancels closes its page.
func TestACancelledCallEndsItsPage(t *testing.T) {
	s := newSite()
	cfg, _ := config(t, s)
	link := make(chan sdk.ElicitationParams, 1)
	p := &reader{action: sdk.ElicitationResponseActionAccept}
	c := connectWithPages(t, serve(t, cfg, mcp.HTTP{Tokens: map[string]ops.Caller{"t": alice}}), p, true)
	p.open = func(string, string) { link <- p.asked[0] }
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		req := sdk.CallToolRequest{}
		req.Params.Name, req.Params.Arguments = "run", map[string]any{"job": "4711", "argv": []string{"bash", "-c", strings.Repeat("x", 17<<10)}}
		_, _ = c.CallTool(ctx, req) // it is given up
	}()
	asked := <-link
	status, page, _ := visit(t, http.MethodGet, asked.URL, "", nil)
	require.Equal(t, 200, status)
	require.Contains(t, page, strings.Repeat("x", 17<<10), "what decides is whole, however long")
	cancel()
	<-over
	require.Eventually(t, func() bool {
		status, _, _ := visit(t, http.MethodGet, asked.URL, "", nil)
		return status == 410
	}, 10*time.Second, 5*time.Millisecond)
}
