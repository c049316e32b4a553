package bot

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

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// maxBody is refused before it is hashed: Slack sends far less.
const maxBody = 1 << 20

// Handler answers Slack's HTTP requests below /slack/. Every request must carry
// Slack's signature, ssl_check and url_verification included. In Socket Mode
// only the installation is served here.
func (b *Bot) Handler() http.Handler {
	mux := http.NewServeMux()
	if b.cfg.OAuth != nil {
		mux.HandleFunc("GET /slack/install", b.serveInstall)
		mux.HandleFunc("GET /slack/oauth", b.serveOAuth)
	}
	if b.cfg.AppToken != "" {
		return mux
	}
	mux.Handle("POST /slack/commands", b.signed(b.serveCommand))
	mux.Handle("POST /slack/interactions", b.signed(b.serveInteraction))
	mux.Handle("POST /slack/interactive", b.signed(b.serveInteraction)) // Slack's own older name
	mux.Handle("POST /slack/events", b.signed(b.serveEvent))
	return mux
}

// bodyWithin is how long a request's body may take. Slack itself gives up after
// three seconds.
const bodyWithin = 5 * time.Second

// signed reads the body and lets it through when Slack has signed it. The
// verification token in the body is never looked at.
func (b *Bot) signed(next func(http.ResponseWriter, *http.Request, []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Now().Add(bodyWithin)) // what has no deadlines is no connection
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
		if err := incoming.Verify(r.Header, body, b.now(), b.cfg.SigningSecret, b.cfg.OldSigningSecret); err != nil {
			b.log.Warn("slack: refused a request", "path", r.URL.Path, "why", err.Error())
			http.Error(w, "not signed by Slack", http.StatusUnauthorized)
			return
		}
		next(w, r, body)
	})
}

func (b *Bot) serveCommand(w http.ResponseWriter, r *http.Request, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		http.Error(w, "not a form", http.StatusBadRequest)
		return
	}
	if form.Get("ssl_check") == "1" {
		return
	}
	a := incoming.DecodeCommand(commandOf(form))
	if words := b.overLimit(a); words != "" {
		writeJSON(w, map[string]any{"response_type": "ephemeral", "text": answer.Escape(words)})
		return
	}
	b.accepted(w, r, a)
}

func commandOf(form url.Values) slack.SlashCommand {
	return slack.SlashCommand{
		TeamID: form.Get("team_id"), EnterpriseID: form.Get("enterprise_id"),
		ChannelID: form.Get("channel_id"), UserID: form.Get("user_id"),
		Command: form.Get("command"), Text: form.Get("text"),
		ResponseURL: form.Get("response_url"), TriggerID: form.Get("trigger_id"),
	}
}

func (b *Bot) serveInteraction(w http.ResponseWriter, r *http.Request, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		http.Error(w, "not a form", http.StatusBadRequest)
		return
	}
	if form.Get("ssl_check") == "1" {
		return
	}
	a, ok, err := incoming.DecodeInteraction([]byte(form.Get("payload")))
	if err != nil {
		http.Error(w, "not an interaction", http.StatusBadRequest)
		return
	}
	if !ok {
		return
	}
	if a.Kind == incoming.AsForm {
		body, err := b.sentForm(r.Context(), a)
		if err != nil {
			b.log.Error("slack: form", "err", err)
			http.Error(w, "not stored", http.StatusServiceUnavailable)
			return
		}
		if body != nil {
			writeJSON(w, body)
		}
		return
	}
	b.accepted(w, r, a)
}

func (b *Bot) serveEvent(w http.ResponseWriter, r *http.Request, body []byte) {
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
		b.log.Warn("slack: events are being dropped by Slack's limit", "team", e.TeamID)
		return
	}
	a, ok := incoming.DecodeEvent(e)
	if !ok {
		return
	}
	if n := r.Header.Get("X-Slack-Retry-Num"); n != "" {
		// The same event once more: its id decides, and the reason tells us that an
		// earlier acknowledgement was late or lost.
		b.log.Info("slack: repeated event", "event", e.EventID, "retry", n, "reason", r.Header.Get("X-Slack-Retry-Reason"))
	}
	b.accepted(w, r, a)
}

// accepted writes the ask down, then acknowledges it. An ask that cannot be
// written down is not acknowledged: Slack tells the person, and repeats events.
func (b *Bot) accepted(w http.ResponseWriter, r *http.Request, a incoming.Ask) {
	if err := b.accept(r.Context(), a); err != nil {
		b.log.Error("slack: not stored", "err", err)
		http.Error(w, "not stored", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

// slackHosts may be handed an answer: a response_url comes from a request, and
// even a signed one is not followed elsewhere. The second host is GovSlack's.
var slackHosts = map[string]bool{"hooks.slack.com": true, "hooks.slack-gov.com": true}

var errNotSlack = lang.Text{EN: "the response_url is not Slack's", ZH: "response_url 不是 Slack 的地址"}.Err()

// responseURL returns raw when it is an address of Slack's, or of the server
// that stands in for Slack.
func (b *Bot) responseURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Fragment != "" {
		return "", errNotSlack
	}
	if b.api != nil {
		if u.Scheme == b.api.Scheme && u.Host == b.api.Host {
			return u.String(), nil
		}
		return "", errNotSlack
	}
	if u.Scheme != "https" || !slackHosts[strings.ToLower(u.Hostname())] || u.Port() != "" && u.Port() != "443" {
		return "", errNotSlack
	}
	return u.String(), nil
}
