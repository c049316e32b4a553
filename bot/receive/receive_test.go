package receive

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/pace"
)

const secret = "8f742231b10e8888abcd99yyyzzz85a5"

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A door is a Receiver, and the requests that it has accepted.
type door struct {
	*Receiver
	in    []incoming.Ask
	fails error
	form  any
}

func open(change ...func(*Config)) *door {
	d := &door{}
	cfg := Config{
		SigningSecret: secret, PerMinute: 2, Now: func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler),
		Accept: func(_ context.Context, a incoming.Ask) error { d.in = append(d.in, a); return d.fails },
		Form:   func(_ context.Context, a incoming.Ask) (any, error) { d.in = append(d.in, a); return d.form, d.fails },
	}
	for _, f := range change {
		f(&cfg)
	}
	d.Receiver = New(cfg)
	return d
}

// post sends a signed body.
func (d *door) post(path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/slack/"+path, strings.NewReader(body))
	stamp := strconv.FormatInt(noon.Unix(), 10)
	m := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(m, "v0:%s:%s", stamp, body)
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(m.Sum(nil)))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, r)
	return w
}

func payload(body string) string { return url.Values{"payload": {body}}.Encode() }

const (
	mention = `{"team_id":"T1","event":{"type":"app_mention","user":"U1","channel":"C1","ts":"1.1","text":"help"}}`
	press   = `{"type":"block_actions","user":{"id":"U1"},"actions":[{"block_id":"b","action_id":"take"}]}`
	sent    = `{"type":"view_submission","user":{"id":"U1"},"view":{"id":"V1"}}`
)

// What Slack has signed is let in and handed over, and acknowledged only then.
func TestWhatIsLetIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, body string
		status     int
		kind       incoming.Kind // empty: nothing is handed over
		says       string
	}{
		"a command":              {"commands", "team_id=T1&user_id=U1&text=help", 200, incoming.AsCommand, ""},
		"its check":              {"commands", "ssl_check=1&token=x", 200, "", ""},
		"no form":                {"commands", "%zz", 400, "", "not a form"},
		"a press":                {"interactions", payload(press), 200, incoming.AsButton, ""},
		"by Slack's older name":  {"interactive", payload(press), 200, incoming.AsButton, ""},
		"a form":                 {"interactions", payload(sent), 200, incoming.AsForm, ""},
		"a closed form":          {"interactions", payload(`{"type":"view_closed"}`), 200, "", ""},
		"no interaction":         {"interactions", payload(`{`), 400, "", "not an interaction"},
		"an interaction's check": {"interactions", "ssl_check=1", 200, "", ""},
		"no form there":          {"interactions", "%zz", 400, "", "not a form"},
		"an event":               {"events", mention, 200, incoming.AsMessage, ""},
		"a challenge":            {"events", `{"type":"url_verification","challenge":"<b>3eZ</b>"}`, 200, "", "<b>3eZ</b>"},
		"Slack's limit":          {"events", `{"type":"app_rate_limited","event":{"type":"app_uninstalled"}}`, 200, "", ""},
		"what is not for us":     {"events", `{"event":{"type":"reaction_added"}}`, 200, "", ""},
		"no event":               {"events", `{`, 400, "", "not an event"},
		"too much":               {"events", strings.Repeat("x", maxBody+1), 413, "", "too large"},
	} {
		d := open()
		w := d.post(c.path, c.body)
		require.Equal(t, c.status, w.Code, name)
		require.Contains(t, w.Body.String(), c.says, name)
		if c.kind == "" {
			require.Empty(t, d.in, name)
			continue
		}
		require.Len(t, d.in, 1, name)
		require.Equal(t, c.kind, d.in[0].Kind, name)
		require.Empty(t, w.Body.String(), name)

		d.fails = errors.New("the database is away")
		d.limit = pace.New(9)
		require.Equal(t, http.StatusServiceUnavailable, d.post(c.path, c.body).Code, "%s: what is not written down is not acknowledged", name)
	}
	w := open().post("events", `{"type":"url_verification","challenge":"x"}`)
	require.Contains(t, w.Header().Get("Content-Type"), "text/plain")
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
}

// What nobody has signed is refused, whatever it is; where the socket serves, HTTP is closed.
func TestWhatIsNotSignedIsRefused(t *testing.T) {
	t.Parallel()
	d := open()
	for _, path := range []string{"commands", "interactions", "interactive", "events"} {
		require.Equal(t, http.StatusUnauthorized, d.post(path, "ssl_check=1", "X-Slack-Signature", "v0=00").Code, path)
		require.Equal(t, http.StatusNotFound, open(func(c *Config) { c.AppToken = "xapp-1" }).post(path, "").Code, path)
	}
	require.Empty(t, d.in)
	rotated := open(func(c *Config) { c.SigningSecret, c.OldSigningSecret = "new", secret })
	require.Equal(t, http.StatusOK, rotated.post("commands", "text=help").Code, "while secrets are being changed")
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/slack/install", nil))
	require.Equal(t, http.StatusNotFound, w.Code, "nobody installs here")
}

// The answer to a form is shown in its place.
func TestAFormIsAnswered(t *testing.T) {
	t.Parallel()
	d := open()
	d.form = map[string]string{"response_action": "errors"}
	w := d.post("interactions", payload(sent))
	require.JSONEq(t, `{"response_action":"errors"}`, w.Body.String())
	require.Contains(t, w.Header().Get("Content-Type"), "application/json")
}

// The socket brings what HTTP brings; what can never be read is acknowledged, what was
// not written down is not.
func TestTheSocketBringsTheSame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind socketmode.EventType
		body string
		want incoming.Kind
	}{
		"a command":          {socketmode.EventTypeSlashCommand, `{"team_id":"T1","user_id":"U1","text":"help"}`, incoming.AsCommand},
		"no command":         {socketmode.EventTypeSlashCommand, `[]`, ""},
		"a press":            {socketmode.EventTypeInteractive, press, incoming.AsButton},
		"a form":             {socketmode.EventTypeInteractive, sent, incoming.AsForm},
		"a closed form":      {socketmode.EventTypeInteractive, `{"type":"view_closed"}`, ""},
		"no interaction":     {socketmode.EventTypeInteractive, `[]`, ""},
		"an event":           {socketmode.EventTypeEventsAPI, mention, incoming.AsMessage},
		"what is not for us": {socketmode.EventTypeEventsAPI, `{"event":{"type":"reaction_added"}}`, ""},
		"no event":           {socketmode.EventTypeEventsAPI, `[]`, ""},
	} {
		d := open()
		d.form = "the errors"
		body, err := d.payload(t.Context(), c.kind, json.RawMessage(c.body))
		require.NoError(t, err, name)
		if c.want == "" {
			require.Empty(t, d.in, name)
			continue
		}
		require.Len(t, d.in, 1, name)
		require.Equal(t, c.want, d.in[0].Kind, name)
		require.Equal(t, c.want == incoming.AsForm, body != nil, name)
		d.fails = errors.New("the database is away")
		_, err = d.payload(t.Context(), c.kind, json.RawMessage(c.body))
		require.Error(t, err, name)
	}
	d := open()
	for i := range 3 {
		body, err := d.payload(t.Context(), socketmode.EventTypeSlashCommand, json.RawMessage(`{"user_id":"U1"}`))
		require.NoError(t, err)
		require.Equal(t, i == 2, body != nil)
	}
	require.Len(t, d.in, 2, "who hurries is told, and nothing is done")
	d.Receive(t.Context()) // without an app token there is nothing to receive
}

// Each person may ask so often a minute, and is told when they may ask again.
func TestWhoAsksTooOftenIsTold(t *testing.T) {
	t.Parallel()
	d := open()
	require.Empty(t, d.OverLimit(incoming.Ask{User: "U1"}))
	require.Empty(t, d.OverLimit(incoming.Ask{User: "U1"}))
	require.Contains(t, d.OverLimit(incoming.Ask{User: "U1", Text: "help"}), "try again in 30 s")
	require.Contains(t, d.OverLimit(incoming.Ask{User: "U1", Text: "帮助"}), "30 秒")
	require.Empty(t, d.OverLimit(incoming.Ask{User: "U1", Terminal: &incoming.Terminal{}}))
	w := d.post("commands", "user_id=U1&text=help")
	require.Empty(t, d.in[0:0])
	require.Equal(t, http.StatusOK, w.Code)
	for range 2 {
		w = d.post("commands", "user_id=U1&text=help")
	}
	require.Contains(t, w.Body.String(), "try again in")
	require.Contains(t, w.Body.String(), `"ephemeral"`)
}

// An answer is posted to Slack's own hosts only, over TLS.
func TestAnswersGoToSlackOnly(t *testing.T) {
	t.Parallel()
	stand, _ := url.Parse("http://127.0.0.1:9999/api/")
	real, played := open(), open(func(c *Config) { c.API = stand })
	for raw, ok := range map[string]bool{
		"https://hooks.slack.com/commands/1": true, "https://hooks.slack-gov.com/x": true, "https://hooks.slack.com:443/x": true, "https://HOOKS.slack.com/x": true,
		"http://hooks.slack.com/x": false, "https://hooks.slack.com:8443/x": false, "https://hooks.slack.com.evil.example/x": false, "https://evil.example/x": false,
		"https://a@hooks.slack.com/x": false, "https://hooks.slack.com/x#y": false, "": false, "https://hooks.slack.com/%zz": false, "http://127.0.0.1:9999/x": false,
	} {
		to, err := real.ResponseURL(raw)
		require.Equal(t, ok, err == nil, raw)
		require.Equal(t, ok, to != "", raw)
	}
	for raw, ok := range map[string]bool{"http://127.0.0.1:9999/x": true, "https://127.0.0.1:9999/x": false, "http://127.0.0.1:9998/x": false, "https://hooks.slack.com/x": false} {
		_, err := played.ResponseURL(raw)
		require.Equal(t, ok, err == nil, raw)
	}
}
