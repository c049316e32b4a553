package slacktest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A Slack is a Server with an address, for one test.
type Slack struct {
	*Server
	t           testing.TB
	connections atomic.Int64
	// URL is the server's address, and APIURL is the value for SLACK_API_URL.
	URL    string
	APIURL string
}

// Start starts a Slack on a port of its own, which also other processes reach.
func Start(t testing.TB, cfg Config) *Slack {
	t.Helper()
	s := &Slack{Server: New(cfg), t: t}
	front := httptest.NewUnstartedServer(s.Server)
	front.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.connections.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.connections.Add(-1)
		}
	}
	front.Start()
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	s.URL, s.APIURL = front.URL, front.URL+"/api/"
	return s
}

// AwaitHangUp waits until nobody is connected any more, so that all requests of a process that
// was killed have had their effect.
func (s *Slack) AwaitHangUp() {
	s.t.Helper()
	// Connections are accepted in their order: once this one is answered, the killed process'
	// connections are counted.
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = res.Body.Close()
	for s.connections.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// StartInMemory starts a Slack that only this process reaches, without a network and without
// Socket Mode. See ServeInMemory.
func StartInMemory(t testing.TB, cfg Config) *Slack {
	t.Helper()
	server := New(cfg)
	url := ServeInMemory(t, server)
	return &Slack{Server: server, t: t, URL: url, APIURL: url + "/api/"}
}

// Deliver sends d to the app.
func (s *Slack) Deliver(d Delivery) Receipt {
	s.t.Helper()
	return s.Server.Deliver(context.Background(), d, s.URL)
}

// Slash types a command as U1 in C1; more overrides fields of the payload.
func (s *Slack) Slash(text string, more ...map[string]any) Receipt {
	s.t.Helper()
	return s.Deliver(Command(text, more...))
}

// Command returns the delivery of a slash command.
func Command(text string, more ...map[string]any) Delivery {
	payload := m{
		"token": "not-looked-at", "team_id": "T1", "team_domain": "test", "channel_id": "C1", "channel_name": "general",
		"user_id": "U1", "user_name": "somebody", "command": "/megatron", "text": text, "api_app_id": "A1",
	}
	for _, x := range more {
		maps.Copy(payload, x)
	}
	return Delivery{Kind: "slash_commands", Payload: payload}
}

// Event sends an event.
func (s *Slack) Event(event map[string]any) Receipt {
	s.t.Helper()
	return s.Deliver(Delivery{Kind: "events_api", Payload: m{"team_id": "T1", "event": event}})
}

// Interact sends an interaction, such as a button press, a form or a shortcut.
func (s *Slack) Interact(payload map[string]any) Receipt {
	s.t.Helper()
	full := m{"type": "block_actions", "team": m{"id": "T1"}, "user": m{"id": "U1", "team_id": "T1"}, "api_app_id": "A1"}
	maps.Copy(full, payload)
	return s.Deliver(Delivery{Kind: "interactive", Payload: full})
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

// LabelOf returns the label of the button, or of the option, with that action id and value; it is
// empty where there is none.
func LabelOf(v any, action, value string) (label string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if label = LabelOf(x, action, value); label != "" {
				return label
			}
		}
	case m:
		t, _ := v["text"].(m)
		if str(v["value"]) == value && (v["action_id"] == nil || str(v["action_id"]) == action) && t != nil {
			return str(t["text"])
		}
		for _, k := range []string{"elements", "accessory", "element", "options", "child_blocks"} {
			if label = LabelOf(v[k], action, value); label != "" {
				return label
			}
		}
	}
	return ""
}

// PressLabel presses the control with that label in a message.
func (s *Slack) PressLabel(msg *Message, label, user string) Receipt {
	s.t.Helper()
	c, ok := Find(msg.Blocks, label)
	if !ok {
		s.t.Fatalf("no %q in %s", label, JSON(msg.Blocks))
	}
	return s.Press(msg, c.Action, c.Value, user)
}

// Press presses the button with that action id in a message, or chooses that value in a menu.
func (s *Slack) Press(msg *Message, action, value, user string) Receipt {
	s.t.Helper()
	label := m{"type": "plain_text", "text": LabelOf(msg.Blocks, action, value)}
	act := m{"action_id": action, "type": "button", "value": value, "text": label, "block_id": "b"}
	if strings.HasPrefix(action, "menu:") {
		act = m{"action_id": action, "type": "overflow", "selected_option": m{"value": value, "text": label}, "block_id": "b"}
	}
	return s.Interact(m{
		"user": m{"id": user, "team_id": "T1"}, "channel": m{"id": msg.Channel},
		"container": m{"type": "message", "message_ts": msg.TS, "channel_id": msg.Channel, "is_ephemeral": msg.Only != "", "thread_ts": msg.Thread},
		"message":   m{"ts": msg.TS, "text": msg.Text},
		"actions":   []any{act},
	})
}

// Decline presses Decline below a request, and submits the form that asks for the reason.
func (s *Slack) Decline(msg *Message, action, value, user, reason string) Receipt {
	s.t.Helper()
	s.Press(msg, action, value, user)
	var form map[string]any
	s.Wait("the form that asks why", func(st State) bool {
		for _, v := range st.Views {
			if v["private_metadata"] == value {
				form = v
			}
		}
		return form != nil
	})
	return s.Interact(m{"type": "view_submission", "user": m{"id": user, "team_id": "T1"}, "view": m{
		"id": form["id"], "callback_id": form["callback_id"], "private_metadata": value,
		"state": m{"values": m{"reason": m{"reason": m{"type": "plain_text_input", "value": reason}}}},
	}})
}

// File adds a file to Slack as if somebody had uploaded it, and returns it as events have it.
func (s *Slack) File(name, content string) map[string]any {
	return s.addFile(Stored{Name: name, Data: []byte(content)}, s.URL)
}

// Wait waits until ok returns true for the state, and returns that state. It waits for up to
// two minutes, since the machine may be busy.
func (s *Slack) Wait(what string, ok func(State) bool) State {
	s.t.Helper()
	return s.WaitFor(2*time.Minute, what, ok)
}

// WaitFor is Wait with another time limit.
func (s *Slack) WaitFor(most time.Duration, what string, ok func(State) bool) State {
	s.t.Helper()
	const soon, late = 50 * time.Millisecond, time.Second
	pause := soon
	for end := time.Now().Add(most); ; {
		changed := s.changed()
		st := s.State()
		if ok(st) {
			return st
		}
		if time.Now().After(end) {
			s.t.Fatalf("Slack never saw %s; it saw:\n%s", what, st.brief())
		}
		select {
		case <-changed:
			time.Sleep(5 * time.Millisecond) // further changes often follow at once
			pause = soon
		case <-time.After(pause): // ok may look at more than Slack
			pause = min(2*pause, late)
		}
	}
}

// brief lists the calls, one a line.
func (st State) brief() string {
	var b strings.Builder
	for _, c := range st.Calls {
		fmt.Fprintf(&b, "%s: %s %q %v\n", c.Method, c.Answer, c.Args["text"], c.Problems)
	}
	return b.String()
}
