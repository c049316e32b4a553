package receive

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// maxBody is the greatest size of a request body in bytes. Larger ones are refused before they
// are hashed; Slack sends far less.
const maxBody = 1 << 20

// Handler serves Slack's HTTP requests below /slack/. Every request must carry Slack's
// signature, including ssl_check and url_verification. In Socket Mode it serves the
// installation only.
func (in *Receiver) Handler() http.Handler {
	mux := http.NewServeMux()
	if in.cfg.Installs {
		mux.HandleFunc("GET /slack/install", func(w http.ResponseWriter, r *http.Request) {
			if _, ok := in.limit.Take("install", in.cfg.Now()); !ok {
				http.Error(w, "too many installations at once: try again in a minute", http.StatusTooManyRequests)
				return
			}
			in.cfg.App.ServeInstall(w, r)
		})
		mux.HandleFunc("GET /slack/oauth", in.cfg.App.ServeOAuth)
	}
	if in.cfg.AppToken != "" {
		return mux
	}
	mux.Handle("POST /slack/commands", in.signed(in.serveCommand))
	mux.Handle("POST /slack/interactions", in.signed(in.serveInteraction))
	mux.Handle("POST /slack/interactive", in.signed(in.serveInteraction)) // an older name that Slack used
	mux.Handle("POST /slack/events", in.signed(in.serveEvent))
	return mux
}

// bodyWithin is how long reading a request's body may take. Slack itself gives up after three
// seconds.
const bodyWithin = 5 * time.Second

// signed reads the body and calls next where Slack has signed it. The verification token in the
// body is ignored.
func (in *Receiver) signed(next func(http.ResponseWriter, *http.Request, []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Now().Add(bodyWithin)) // setting it fails only where there is no network connection, as in tests
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		_ = connection.SetReadDeadline(time.Time{})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.Header().Set("Connection", "close")
			http.Error(w, "request did not arrive in time", http.StatusRequestTimeout)
			return
		}
		if err != nil {
			http.Error(w, "request too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err := incoming.Verify(r.Header, body, in.cfg.Now(), in.cfg.SigningSecret, in.cfg.OldSigningSecret); err != nil {
			in.cfg.Log.Warn("slack: refused a request", "path", r.URL.Path, "why", err.Error())
			http.Error(w, "not signed by Slack", http.StatusUnauthorized)
			return
		}
		next(w, r, body)
	})
}

func (in *Receiver) serveCommand(w http.ResponseWriter, r *http.Request, body []byte) {
	form, ok := formOf(w, body)
	if !ok {
		return
	}
	reply, err := in.command(r.Context(), commandOf(form))
	in.acknowledge(w, reply, err)
}

// formOf reads a form; ok is false where w is answered already: for a body that is no form, and
// for Slack's ssl_check.
func formOf(w http.ResponseWriter, body []byte) (form url.Values, ok bool) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		http.Error(w, "not a form", http.StatusBadRequest)
		return nil, false
	}
	return form, form.Get("ssl_check") != "1"
}

func commandOf(form url.Values) slack.SlashCommand {
	return slack.SlashCommand{
		TeamID: form.Get("team_id"), EnterpriseID: form.Get("enterprise_id"),
		ChannelID: form.Get("channel_id"), UserID: form.Get("user_id"),
		Command: form.Get("command"), Text: form.Get("text"),
		ResponseURL: form.Get("response_url"), TriggerID: form.Get("trigger_id"),
	}
}

func (in *Receiver) serveInteraction(w http.ResponseWriter, r *http.Request, body []byte) {
	form, ok := formOf(w, body)
	if !ok {
		return
	}
	a, ok, err := incoming.DecodeInteraction([]byte(form.Get("payload")))
	if err != nil {
		http.Error(w, "not an interaction", http.StatusBadRequest)
		return
	}
	reply, err := in.interaction(r.Context(), a, ok)
	in.acknowledge(w, reply, err)
}

func (in *Receiver) serveEvent(w http.ResponseWriter, r *http.Request, body []byte) {
	var e incoming.Event
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, "not an event", http.StatusBadRequest)
		return
	}
	switch e.Type {
	case "url_verification":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, e.Challenge)
		return
	case "app_rate_limited":
		in.cfg.Log.Warn("slack: events are being dropped by Slack's limit", "team", e.TeamID)
		return
	}
	a, ok := incoming.DecodeEvent(e)
	if !ok {
		return
	}
	if n := r.Header.Get("X-Slack-Retry-Num"); n != "" {
		// Slack delivers the same event again. Its id tells that it was handled already. The
		// header's reason says that our earlier acknowledgement was late or lost.
		in.cfg.Log.Info("slack: repeated event", "event", e.EventID, "retry", n, "reason", r.Header.Get("X-Slack-Retry-Reason"))
	}
	in.acknowledge(w, nil, in.cfg.Accept(r.Context(), a))
}

// acknowledge answers a request that was stored. One that could not be stored is not
// acknowledged: Slack then tells the person, and delivers events again.
func (in *Receiver) acknowledge(w http.ResponseWriter, reply any, err error) {
	switch {
	case err != nil:
		in.cfg.Log.Error("slack: not stored", "err", err)
		http.Error(w, "not stored", http.StatusServiceUnavailable)
	case reply != nil:
		writeJSON(w, reply)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

// slackHosts are the hosts that an answer may be posted to. A response_url comes from a
// request, and even a signed request must not make us post elsewhere. The second host is
// GovSlack's.
var slackHosts = map[string]bool{"hooks.slack.com": true, "hooks.slack-gov.com": true}

var errNotSlack = lang.Text{EN: "the response_url is not Slack's", ZH: "response_url 不是 Slack 的地址"}.Err()

// ResponseURL returns raw where it is an address of Slack's or of the server that replaces
// Slack in tests.
func (in *Receiver) ResponseURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Fragment != "" {
		return "", errNotSlack
	}
	if in.cfg.API != nil {
		if u.Scheme == in.cfg.API.Scheme && u.Host == in.cfg.API.Host {
			return u.String(), nil
		}
		return "", errNotSlack
	}
	if u.Scheme != "https" || !slackHosts[strings.ToLower(u.Hostname())] || u.Port() != "" && u.Port() != "443" {
		return "", errNotSlack
	}
	return u.String(), nil
}
