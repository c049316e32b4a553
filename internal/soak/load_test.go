package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

// people is the number of users who type commands, and owners of those whose jobs run.
const people, owners = 200, 100

// kinds are the commands: a quarter of them are lists.
var kinds = []struct {
	kind   string
	weight int
	words  func(r *run, n int) string
}{
	{"list", 25, func(_ *run, n int) string {
		return []string{"list --user all", "list", fmt.Sprintf("list --user u%02d", n%owners)}[n%3]
	}},
	{"status", 20, func(r *run, _ int) string { return fmt.Sprint("status ", firstJob+rand.IntN(r.jobs)) }},
	{"whoami", 15, func(*run, int) string { return "whoami" }},
	{"help", 12, func(*run, int) string { return "help" }},
	{"queue", 5, func(*run, int) string { return "queue" }},
	{"partitions", 6, func(*run, int) string { return "partitions" }},
	{"mention", 15, func(*run, int) string { return "<@UBOT> whoami" }},
	{"submit", 2, func(r *run, n int) string {
		return fmt.Sprintf("submit --yes --force --name slack-%d --nodes 1 --gpus-per-node 0 --time 5 --worktree %s --launcher custom --launcher-argv true", n, r.tree)
	}},
}

// command types one command of the mix.
func (r *run) command(ctx context.Context, n int) {
	left := rand.IntN(100)
	for _, k := range kinds {
		if left -= k.weight; left >= 0 {
			continue
		}
		c := &command{kind: k.kind, words: k.words(r, n), at: time.Now(), calm: r.calm()}
		if k.kind == "submit" {
			c.submits = fmt.Sprintf("slack-%d", n)
		}
		r.typed(ctx, c, fmt.Sprintf("CMD%d", n), fmt.Sprintf("U%03d", rand.IntN(people)))
		return
	}
}

// slackWaits is the time after which Slack shows that a command timed out.
const slackWaits = 3 * time.Second

// typed has Slack deliver a command. If it is not acknowledged, the user types it
// again; Slack repeats an event by itself.
func (r *run) typed(ctx context.Context, c *command, channel, who string) {
	r.ledger.mu.Lock()
	r.ledger.commands[channel] = c
	r.ledger.mu.Unlock()
	d := slacktest.Command(c.words, map[string]any{"channel_id": channel, "user_id": who})
	tries := 1
	if c.kind == "mention" {
		d = slacktest.Delivery{Kind: "events_api", Payload: map[string]any{
			"team_id": "T1", "event_id": "Ev" + channel,
			"event": map[string]any{"type": "app_mention", "user": who, "channel": channel, "ts": fmt.Sprintf("%d.000100", time.Now().Unix()), "text": c.words},
		}}
		tries = 4
	}
	for range tries {
		short, cancel := context.WithTimeout(ctx, slackWaits)
		receipt := r.slack.Deliver(short, d, r.slackURL)
		cancel()
		if receipt.Status == http.StatusOK {
			r.ledger.mu.Lock()
			c.acked, c.ack = true, time.Duration(receipt.MS*float64(time.Millisecond))
			if receipt.Body != "" && !strings.HasPrefix(receipt.Body, "{}") {
				if c.answers++; c.answers == 1 {
					c.answered = c.ack
				}
			}
			r.ledger.mu.Unlock()
			return
		}
		if tries > 1 {
			time.Sleep(5 * time.Second) // Slack's own pauses are longer
		}
	}
}

// people types perMinute commands a minute until ctx ends, or fewer on a slow machine.
func (r *run) people(ctx context.Context) {
	slots := make(chan struct{}, 64)
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(time.Minute / time.Duration(r.perMinute))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		slots <- struct{}{}
		wg.Go(func() { defer func() { <-slots }(); r.command(context.WithoutCancel(ctx), n) })
	}
}

const agentToken = "0123456789abcdef0123456789abcdef"

// An agent uses MCP over HTTP.
type agent struct {
	r       *run
	name    string
	session string
	n       int
}

var client = &http.Client{Timeout: 30 * time.Second}

// post sends one JSON-RPC message.
func (a *agent) post(ctx context.Context, body map[string]any) (string, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.r.server.url()+"/mcp", bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+agentToken)
	if a.session != "" {
		req.Header.Set("Mcp-Session-Id", a.session)
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		a.session = id
	}
	b, err := io.ReadAll(res.Body)
	if res.StatusCode == http.StatusNotFound {
		a.session = ""
	}
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", res.Status, b)
	}
	return string(b), err
}

// call calls a tool, and starts a session if there is none.
func (a *agent) call(ctx context.Context, tool string, args map[string]any) (string, error) {
	if a.session == "" {
		if _, err := a.post(ctx, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": a.name, "version": "1"},
		}}); err != nil {
			a.session = ""
			return "", err
		}
		if _, err := a.post(ctx, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
			return "", err
		}
	}
	a.n++
	return a.post(ctx, map[string]any{"jsonrpc": "2.0", "id": a.n + 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
}

// A wish is a submission by an agent, which is repeated with its key until it is
// answered.
type wish struct {
	name, key, job string
	last           string // what was answered last
}

var (
	jobID   = regexp.MustCompile(`\\?"job_id\\?":\s*\\?"(\d+)\\?"`)
	confirm = regexp.MustCompile(`\\?"confirm_token\\?":\s*\\?"([^"\\]+)\\?"`)
)

// agent reads and submits until ctx ends. It completes the submissions that it started
// while whole lasts.
func (r *run) agent(ctx, whole context.Context, number int) {
	a := &agent{r: r, name: fmt.Sprintf("agent-%d", number)}
	for i := 0; ctx.Err() == nil; i++ {
		calls := []func(){
			func() { _, _ = a.call(whole, "list", map[string]any{}) },
			func() {
				_, _ = a.call(whole, "status", map[string]any{"job": fmt.Sprint(firstJob + rand.IntN(r.jobs))})
			},
			func() { _, _ = a.call(whole, "list", map[string]any{"all": true}) },
			func() { a.submit(whole, fmt.Sprintf("%s-%d", a.name, i)) },
		}
		calls[i%len(calls)]()
		r.agentCalls.Add(1)
		pause(ctx, time.Duration(1000+rand.IntN(2000))*time.Millisecond)
	}
}

func (a *agent) submit(ctx context.Context, name string) {
	w := &wish{name: name, key: "key-" + name}
	a.r.mu.Lock()
	a.r.wishes = append(a.r.wishes, w)
	a.r.mu.Unlock()
	args := map[string]any{"idempotency_key": w.key, "spec": map[string]any{
		"name": name, "nodes": 1, "gpus_per_node": 0, "time": "5", "launcher": "custom", "launcher_argv": []string{"true"}, "worktree": a.r.tree,
	}}
	for ctx.Err() == nil {
		answer, err := a.call(ctx, "submit", args)
		if err != nil {
			answer = err.Error()
		}
		w.last = answer
		if m := jobID.FindStringSubmatch(answer); m != nil {
			w.job = m[1]
			return
		}
		if m := confirm.FindStringSubmatch(answer); m != nil && args["confirm_token"] != m[1] {
			args["confirm_token"] = m[1]
			continue
		}
		delete(args, "confirm_token") // one that was used, or of a life before: the next answer has another
		pause(ctx, time.Second)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// viewer looks at the page and follows its updates until ctx ends.
func (r *run) viewer(ctx context.Context, seen, broken *atomic.Int64) {
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	signedIn := false
	for ctx.Err() == nil {
		if !signedIn {
			signedIn = r.signIn(browser)
			pause(ctx, time.Second)
			continue
		}
		if res, err := get(ctx, browser, r.server.url()+"/web/jobs"); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		look, stop := context.WithTimeout(ctx, time.Duration(10+rand.IntN(30))*time.Second)
		if res, err := get(look, browser, r.server.url()+"/web/jobs/stream"); err == nil {
			buffer := make([]byte, 4096)
			for {
				n, err := res.Body.Read(buffer)
				seen.Add(int64(bytes.Count(buffer[:n], []byte("data:"))))
				if err != nil {
					break
				}
			}
			res.Body.Close()
		}
		if look.Err() == nil {
			broken.Add(1)
			pause(ctx, time.Second)
		}
		stop()
	}
}

func get(ctx context.Context, c *http.Client, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err == nil && res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, fmt.Errorf("%s: %s", address, res.Status)
	}
	return res, err
}

// signIn uses a one-time link from the shell.
func (r *run) signIn(browser *http.Client) bool {
	out, err := r.server.command("web").Output()
	link, bad := url.Parse(strings.TrimSpace(string(out)))
	if err != nil || bad != nil {
		return false
	}
	res, err := browser.PostForm(r.server.url()+"/web/login", link.Query())
	if err != nil {
		return false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return err == nil && strings.Contains(string(body), "<h1>Jobs</h1>")
}
