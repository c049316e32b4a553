package slacktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A Slack is a Server that listens, and that a test steers.
type Slack struct {
	t      testing.TB
	server *Server
	// URL is its address, and APIURL what SLACK_API_URL is to be.
	URL    string
	APIURL string
	open   atomic.Int64 // connections
}

// Start lets a Server listen until the test ends.
func Start(t testing.TB, cfg Config) *Slack {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Slack{t: t, server: New(cfg), URL: "http://" + l.Addr().String()}
	p.APIURL = p.URL + "/api/"
	srv := &http.Server{Handler: p.server, ReadHeaderTimeout: 10 * time.Second, ConnState: func(_ net.Conn, is http.ConnState) {
		switch is {
		case http.StateNew:
			p.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			p.open.Add(-1)
			p.server.mu.news.tell()
		}
	}}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return p
}

func (p *Slack) ctl(path string, in, out any) {
	p.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		p.t.Fatal(err)
	}
	res := httptest.NewRecorder()
	p.server.ServeHTTP(res, httptest.NewRequest(http.MethodPost, p.URL+"/_ctl/"+path, bytes.NewReader(raw)))
	if res.Code != http.StatusOK {
		p.t.Fatalf("%s: %d %s", path, res.Code, res.Body)
	}
	if out != nil {
		if err := json.Unmarshal(res.Body.Bytes(), out); err != nil {
			p.t.Fatal(err)
		}
	}
}

// State reads everything.
func (p *Slack) State() (s State) {
	p.t.Helper()
	if err := json.Unmarshal(p.server.state(), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// Left waits until nobody is connected any more. What a process said before it was killed
// is heard by then.
func (p *Slack) Left() {
	p.t.Helper()
	p.Wait("everybody leave", func(State) bool { return p.open.Load() == 0 })
}

// Target tells Slack where the app is.
func (p *Slack) Target(url string) { p.ctl("target?url="+url, nil, nil) }

// Deliver hands d to the app.
func (p *Slack) Deliver(d Delivery) (r Receipt) {
	p.t.Helper()
	p.ctl("deliver", d, &r)
	return r
}

// Slash types a command as U1 in C1, or as and where more says.
func (p *Slack) Slash(text string, more ...map[string]any) Receipt {
	p.t.Helper()
	return p.Deliver(Command(text, more...))
}

// Command is a slash command's delivery.
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
func (p *Slack) Event(event map[string]any) Receipt {
	p.t.Helper()
	return p.Deliver(Delivery{Kind: "events_api", Payload: m{"team_id": "T1", "event": event}})
}

// Interact sends an interaction: a button, a form, a shortcut.
func (p *Slack) Interact(payload map[string]any) Receipt {
	p.t.Helper()
	full := m{"type": "block_actions", "team": m{"id": "T1"}, "user": m{"id": "U1", "team_id": "T1"}, "api_app_id": "A1"}
	for k, v := range payload {
		full[k] = v
	}
	return p.Deliver(Delivery{Kind: "interactive", Payload: full})
}

// A Control is something that a person can press or choose, by its label.
type Control struct {
	Action, Value string
	// Type is the element's, such as button or overflow.
	Type string
}

// Find returns the button, or the entry of a menu or select, with that label.
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

// PressLabel presses what a message offers under that label, as a person does.
func (p *Slack) PressLabel(msg *Message, label, user string) Receipt {
	p.t.Helper()
	c, ok := Find(msg.Blocks, label)
	if !ok {
		p.t.Fatalf("no %q in %s", label, JSON(msg.Blocks))
	}
	return p.Press(msg, c.Action, c.Value, user)
}

// Press presses the button with that action id in a message, or chooses the entry
// of a menu.
func (p *Slack) Press(msg *Message, action, value, user string) Receipt {
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

// Decline presses a request's button Decline and sends the form that asks why.
func (p *Slack) Decline(msg *Message, action, value, user, reason string) Receipt {
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

// Fault makes something go wrong.
func (p *Slack) Fault(f Fault) { p.t.Helper(); p.ctl("fault", f, nil) }

// Calm ends all faults.
func (p *Slack) Calm() { p.t.Helper(); p.ctl("calm", nil, nil) }

// Disconnect ends the Socket Mode connections.
func (p *Slack) Disconnect(reason string) {
	p.t.Helper()
	p.ctl("disconnect?reason="+reason, nil, nil)
}

// Silence makes the Socket Mode connections half-open: TCP stays, and nothing
// comes or is answered.
func (p *Slack) Silence() { p.t.Helper(); p.ctl("silence", nil, nil) }

// Age makes trigger ids, response URLs and streams older.
func (p *Slack) Age(d time.Duration) { p.t.Helper(); p.ctl("age?by="+d.String(), nil, nil) }

// Members says who is in a channel or group; a channel may have its name behind its
// id: "C7 #runs".
func (p *Slack) Members(of map[string][]string) { p.t.Helper(); p.ctl("members", of, nil) }

// File puts a file into Slack, as if somebody had uploaded it.
func (p *Slack) File(name, content string) (f map[string]any) {
	p.t.Helper()
	p.ctl("file", Stored{Name: name, Data: []byte(content)}, &f)
	return f
}

// Wait waits until ok holds of the state, and returns it. A busy machine is no
// failure, so it waits for minutes.
func (p *Slack) Wait(what string, ok func(State) bool) State {
	p.t.Helper()
	return p.WaitFor(2*time.Minute, what, ok)
}

// WaitFor is Wait with a time of its own.
func (p *Slack) WaitFor(most time.Duration, what string, ok func(State) bool) State {
	p.t.Helper()
	end := time.Now().Add(most)
	for {
		changed := p.server.changed()
		s := p.State()
		for same := true; same; {
			if ok(s) {
				return s
			}
			if time.Now().After(end) {
				p.t.Fatalf("Slack never saw %s; it saw:\n%s", what, s.brief())
			}
			select {
			case <-changed:
				same = false
				time.Sleep(20 * time.Millisecond) // more may come with it
			case <-time.After(100 * time.Millisecond): // it may be about more than Slack
			}
		}
	}
}

// brief says what happened in a line for each call.
func (s State) brief() string {
	var b strings.Builder
	for _, c := range s.Calls {
		fmt.Fprintf(&b, "%s: %s %q %v\n", c.Method, c.Answer, c.Args["text"], c.Problems)
	}
	return b.String()
}
