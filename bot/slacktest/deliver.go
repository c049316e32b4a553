package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Delivery is a request of Slack to the app: a slash command, an interaction or an event.
type Delivery struct {
	// Kind is "slash_commands", "interactive" or "events_api".
	Kind    string         `json:"kind"`
	Payload map[string]any `json:"payload"`
	// Socket delivers over Socket Mode instead of HTTP.
	Socket bool `json:"socket"`
	// Times is how often the same request is delivered, as Slack repeats it when an
	// acknowledgement is lost; 0 means once.
	Times int `json:"times"`
	// Raw, where it is not empty, is the body. It is sent to Path with Headers.
	Raw     string            `json:"raw"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	// AgeS is the age of the signature's time in seconds. Secret is the secret to sign with, in
	// place of the server's.
	AgeS   int    `json:"age_s"`
	Secret string `json:"secret"`
}

// A Receipt is the app's acknowledgement.
type Receipt struct {
	Status  int         `json:"status"`
	Header  http.Header `json:"header,omitempty"`
	Body    string      `json:"body"`
	MS      float64     `json:"ms"`
	Error   string      `json:"error,omitempty"`
	Trigger string      `json:"trigger,omitempty"`
	// Response is the id in the path of the delivery's response_url.
	Response string `json:"response,omitempty"`
}

// Deliver sends d to the app and waits for the acknowledgement; here is the server's own
// address.
func (s *Server) Deliver(ctx context.Context, d Delivery, here string) Receipt {
	var r Receipt
	d.Payload = copied(d.Payload) // the caller may deliver it again
	s.mu.Lock()
	if d.Kind != "events_api" && d.Payload != nil {
		r.Trigger = s.id("trigger.")
		r.Response = s.id("R")
		u := &responseURL{channel: str(d.Payload["channel_id"]), user: str(d.Payload["user_id"]), made: time.Now()}
		if c, ok := d.Payload["channel"].(m); ok {
			u.channel = str(c["id"])
		}
		if x, ok := d.Payload["user"].(m); ok {
			u.user = str(x["id"])
		}
		if c, ok := d.Payload["container"].(m); ok && c["message_ts"] != nil {
			u.ts = str(c["message_ts"])
		}
		s.responses[r.Response] = u
		s.triggers[r.Trigger] = time.Now()
		setDefault(d.Payload, "trigger_id", r.Trigger)
		setDefault(d.Payload, "response_url", here+"/response/"+r.Response)
	}
	if d.Kind == "events_api" && d.Payload != nil {
		setDefault(d.Payload, "event_id", s.id("Ev"))
		setDefault(d.Payload, "type", "event_callback")
		setDefault(d.Payload, "team_id", "T1")
	}
	s.mu.Unlock()
	times := max(1, d.Times)
	for i := range times {
		var again Receipt
		if d.Socket {
			again = s.sockets.deliver(ctx, d, i)
		} else {
			again = s.post(ctx, d, i)
		}
		again.Trigger, again.Response = r.Trigger, r.Response
		if i == 0 || again.Error != "" {
			r = again
		}
	}
	return r
}

// copied returns a deep copy of a JSON object.
func copied(payload map[string]any) (c map[string]any) {
	raw, _ := json.Marshal(payload)
	_ = json.Unmarshal(raw, &c)
	return c
}

func setDefault(p map[string]any, key string, v any) {
	if _, ok := p[key]; !ok {
		p[key] = v
	}
}

var paths = map[string]string{
	"slash_commands": "/slack/commands", "interactive": "/slack/interactions", "events_api": "/slack/events",
}

// post delivers over HTTP with a signature.
func (s *Server) post(ctx context.Context, d Delivery, retry int) Receipt {
	body, path := d.Raw, d.Path
	contentType := "application/x-www-form-urlencoded"
	if path == "" {
		path = paths[d.Kind]
	}
	if d.Raw == "" {
		switch d.Kind {
		case "slash_commands":
			form := url.Values{}
			for k, v := range d.Payload {
				form.Set(k, str(v))
			}
			body = form.Encode()
		case "interactive":
			raw, _ := json.Marshal(d.Payload)
			body = url.Values{"payload": {string(raw)}}.Encode()
		}
	}
	if d.Kind == "events_api" {
		contentType = "application/json"
		if d.Raw == "" {
			raw, _ := json.Marshal(d.Payload)
			body = string(raw)
		}
	}
	secret := s.cfg.SigningSecret
	if d.Secret != "" {
		secret = d.Secret
	}
	stamp := strconv.FormatInt(time.Now().Unix()-int64(d.AgeS), 10)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.Target+path, strings.NewReader(body))
	if err != nil {
		return Receipt{Error: err.Error()}
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Slack-Request-Timestamp", stamp)
	req.Header.Set("X-Slack-Signature", Sign(secret, stamp, []byte(body)))
	if retry > 0 {
		req.Header.Set("X-Slack-Retry-Num", strconv.Itoa(retry))
		req.Header.Set("X-Slack-Retry-Reason", "http_timeout")
	}
	for k, v := range d.Headers {
		if v == "" {
			req.Header.Del(k)
			continue
		}
		req.Header.Set(k, v)
	}
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return Receipt{Error: err.Error()}
	}
	defer res.Body.Close()
	var b bytes.Buffer
	_, _ = io.Copy(&b, res.Body)
	return Receipt{
		Status: res.StatusCode, Header: res.Header, Body: b.String(),
		MS: float64(time.Since(began).Microseconds()) / 1000,
	}
}

// Sign returns Slack's signature of a body.
func Sign(secret, stamp string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("v0:" + stamp + ":"))
	h.Write(body)
	return "v0=" + hex.EncodeToString(h.Sum(nil))
}
