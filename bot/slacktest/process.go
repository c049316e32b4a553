package slacktest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Process is fakeslack running as a process of its own.
type Process struct {
	t testing.TB
	// URL is the server's address, and APIURL is the value for SLACK_API_URL.
	URL    string
	APIURL string
}

// buildDir contains the program; Main removes it.
var buildDir string

// Main runs a package's tests, and then removes what Start has built.
func Main(m *testing.M) int {
	code := m.Run()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir)
	}
	return code
}

// built builds the program once for all tests of a package, and returns its path.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fakeslack")
	if err != nil {
		return "", err
	}
	buildDir = dir
	bin := filepath.Join(dir, "fakeslack")
	cmd := exec.Command("go", "build", "-o", bin, "github.com/megatron-ops/megatron-ops/bot/slacktest/fakeslack")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// Start starts fakeslack, which ends with the test.
func Start(t testing.TB, cfg Config) *Process {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, bin, "-follow", "-listen", "127.0.0.1:0", "-secret", cfg.SigningSecret, "-target", cfg.Target, "-scopes", cfg.BotScopes) //nolint:gosec // our own program
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // fakeslack ends when its input does, so also where the tests are killed
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("fakeslack did not say where it listens: %v", err)
	}
	url := strings.TrimSpace(line)
	return &Process{t: t, URL: url, APIURL: url + "/api/"}
}

func (p *Process) ctl(path string, in, out any) {
	p.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := http.Post(p.URL+"/_ctl/"+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s %s %v", path, res.Status, body, err)
	}
	if out != nil {
		if err := json.Unmarshal(body, out); err != nil {
			p.t.Fatal(err)
		}
	}
}

// State returns the server's state.
func (p *Process) State() State {
	p.t.Helper()
	s, _, _ := p.since("")
	return s
}

// since returns the server's state where it has changed since stamp. Otherwise the server waits
// a little for a change.
func (p *Process) since(stamp string) (s State, now string, changed bool) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, p.URL+"/_ctl/state", http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("If-None-Match", stamp)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotModified {
		return s, stamp, false
	}
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		p.t.Fatal(err)
	}
	return s, res.Header.Get("ETag"), true
}

// Target tells the server the app's address.
func (p *Process) Target(url string) { p.ctl("target?url="+url, nil, nil) }

// Deliver sends d to the app.
func (p *Process) Deliver(d Delivery) (r Receipt) {
	p.t.Helper()
	p.ctl("deliver", d, &r)
	return r
}

// Slash types a command as U1 in C1; more overrides fields of the payload.
func (p *Process) Slash(text string, more ...map[string]any) Receipt {
	p.t.Helper()
	return p.Deliver(Command(text, more...))
}

// Command returns the delivery of a slash command.
func Command(text string, more ...map[string]any) Delivery {
	payload := m{
		"token": "not-looked-at", "team_id": "T1", "team_domain": "test", "channel_id": "C1", "channel_name": "general",
		"user_id": "U1", "user_name": "somebody", "command": "/megatron", "text": text, "api_app_id": "A1",
	}
	for _, x := range more {
		for k, v := range x {
			payload[k] = v
		}
	}
	return Delivery{Kind: "slash_commands", Payload: payload}
}

// Event sends an event.
func (p *Process) Event(event map[string]any) Receipt {
	p.t.Helper()
	return p.Deliver(Delivery{Kind: "events_api", Payload: m{"team_id": "T1", "event": event}})
}

// Interact sends an interaction, such as a button press, a form or a shortcut.
func (p *Process) Interact(payload map[string]any) Receipt {
	p.t.Helper()
	full := m{"type": "block_actions", "team": m{"id": "T1"}, "user": m{"id": "U1", "team_id": "T1"}, "api_app_id": "A1"}
	for k, v := range payload {
		full[k] = v
	}
	return p.Deliver(Delivery{Kind: "interactive", Payload: full})
}

// A Control is something that a person can press or choose.
type Control struct {
	Action, Value string
	// Type is the type of its element, such as button or overflow.
	Type string
}

// Find returns the button, or the option of a menu or select, with that label.
func Find(blocks []any, label string) (Control, bool) {
	for _, x := range blocks {
		b, _ := x.(m)
		es, _ := b["elements"].([]any)
		if a, ok := b["accessory"]; ok {
			es = append(es, a)
		}
		if e, ok := b["element"]; ok {
			es = append(es, e)
		}
		if children, ok := b["child_blocks"].([]any); ok {
			if c, ok := Find(children, label); ok {
				return c, true
			}
		}
		for _, y := range es {
			e, _ := y.(m)
			if t, ok := e["text"].(m); ok && str(t["text"]) == label && e["action_id"] != nil {
				return Control{str(e["action_id"]), str(e["value"]), str(e["type"])}, true
			}
			options, _ := e["options"].([]any)
			groups, _ := e["option_groups"].([]any)
			for _, g := range groups {
				group, _ := g.(m)
				inGroup, _ := group["options"].([]any)
				options = append(options, inGroup...)
			}
			for _, o := range options {
				option, _ := o.(m)
				if t, _ := option["text"].(m); str(t["text"]) == label {
					return Control{str(e["action_id"]), str(option["value"]), str(e["type"])}, true
				}
			}
		}
	}
	return Control{}, false
}

// PressLabel presses the control with that label in a message.
func (p *Process) PressLabel(msg *Message, label, user string) Receipt {
	p.t.Helper()
	c, ok := Find(msg.Blocks, label)
	if !ok {
		p.t.Fatalf("no %q in %s", label, JSON(msg.Blocks))
	}
	return p.Press(msg, c.Action, c.Value, user)
}

// Press presses the button with that action id in a message, or chooses that value in a menu.
func (p *Process) Press(msg *Message, action, value, user string) Receipt {
	p.t.Helper()
	act := m{"action_id": action, "type": "button", "value": value, "block_id": "b"}
	if strings.HasPrefix(action, "menu:") {
		act = m{"action_id": action, "type": "overflow", "selected_option": m{"value": value}, "block_id": "b"}
	}
	return p.Interact(m{
		"user": m{"id": user, "team_id": "T1"}, "channel": m{"id": msg.Channel},
		"container": m{"type": "message", "message_ts": msg.TS, "channel_id": msg.Channel, "is_ephemeral": msg.Only != "", "thread_ts": msg.Thread},
		"message":   m{"ts": msg.TS, "text": msg.Text},
		"actions":   []any{act},
	})
}

// Decline presses Decline below a request, and submits the form that asks for the reason.
func (p *Process) Decline(msg *Message, action, value, user, reason string) Receipt {
	p.t.Helper()
	p.Press(msg, action, value, user)
	var form map[string]any
	p.Wait("the form that asks why", func(st State) bool {
		for _, v := range st.Views {
			if v["private_metadata"] == value {
				form = v
			}
		}
		return form != nil
	})
	return p.Interact(m{"type": "view_submission", "user": m{"id": user, "team_id": "T1"}, "view": m{
		"id": form["id"], "callback_id": form["callback_id"], "private_metadata": value,
		"state": m{"values": m{"reason": m{"reason": m{"type": "plain_text_input", "value": reason}}}},
	}})
}

// Fault makes calls fail as f says.
func (p *Process) Fault(f Fault) { p.t.Helper(); p.ctl("fault", f, nil) }

// Calm removes all faults.
func (p *Process) Calm() { p.t.Helper(); p.ctl("calm", nil, nil) }

// Disconnect ends the Socket Mode connections.
func (p *Process) Disconnect(reason string) {
	p.t.Helper()
	p.ctl("disconnect?reason="+reason, nil, nil)
}

// Silence makes the Socket Mode connections half-open: TCP stays open, but nothing is sent or
// answered any more.
func (p *Process) Silence() { p.t.Helper(); p.ctl("silence", nil, nil) }

// Age makes trigger ids, response URLs and streams older.
func (p *Process) Age(d time.Duration) { p.t.Helper(); p.ctl("age?by="+d.String(), nil, nil) }

// Members sets the members of channels and groups. A channel's name may follow its id: "C7
// #runs".
func (p *Process) Members(of map[string][]string) { p.t.Helper(); p.ctl("members", of, nil) }

// File adds a file to Slack as if somebody had uploaded it.
func (p *Process) File(name, content string) (f map[string]any) {
	p.t.Helper()
	p.ctl("file", Stored{Name: name, Data: []byte(content)}, &f)
	return f
}

// Wait waits until ok returns true for the state, and returns that state. It waits for up to
// two minutes, since the machine may be busy.
func (p *Process) Wait(what string, ok func(State) bool) State {
	p.t.Helper()
	return p.WaitFor(2*time.Minute, what, ok)
}

// WaitFor is Wait with another time limit.
func (p *Process) WaitFor(most time.Duration, what string, ok func(State) bool) State {
	p.t.Helper()
	end := time.Now().Add(most)
	s, stamp, changed := p.since("")
	for !ok(s) {
		if time.Now().After(end) {
			p.t.Fatalf("Slack never saw %s; it saw:\n%s", what, s.brief())
		}
		if changed {
			time.Sleep(20 * time.Millisecond) // further changes often follow at once
		}
		var more State
		if more, stamp, changed = p.since(stamp); changed {
			s = more
		}
	}
	return s
}

// brief lists the calls, one a line.
func (s State) brief() string {
	var b strings.Builder
	for _, c := range s.Calls {
		fmt.Fprintf(&b, "%s: %s %q %v\n", c.Method, c.Answer, c.Args["text"], c.Problems)
	}
	return b.String()
}
