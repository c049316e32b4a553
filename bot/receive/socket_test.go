package receive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/install"
)

// A broken connection is opened again, after a delay that doubles up to half a minute, and
// after a second where it had served for a while.
func TestAConnectionThatBreaksIsBegunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		d := open(func(c *Config) { c.Now = time.Now })
		lasts := []time.Duration{0, 0, 0, 0, 0, 0, 0, time.Minute, time.Minute + time.Second, 0}
		var waits []time.Duration
		var ended time.Time
		d.socketLoop(ctx, 0, func(context.Context) error {
			if !ended.IsZero() {
				waits = append(waits, time.Since(ended))
			}
			if len(waits) == len(lasts) {
				stop()
				return ctx.Err()
			}
			time.Sleep(lasts[len(waits)])
			ended = time.Now()
			return errors.New("closed")
		})
		s := time.Second
		require.Equal(t, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, 30 * s, s, 2 * s}, waits)

		begun := time.Now()
		ctx, stop = context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, stop)
		times := 0
		d.socketLoop(ctx, 0, func(context.Context) error { times++; return errors.New("closed") })
		require.Equal(t, 300*time.Millisecond, time.Since(begun), "a server that ends does not wait")
		require.Equal(t, 1, times)
		d.socketLoop(ctx, 0, func(context.Context) error { times++; return nil })
		require.Equal(t, 1, times, "nor does it begin again")
	})
}

// An acked records acknowledgements.
type acked struct {
	ids    []string
	bodies []any
	fails  error
}

func (a *acked) Ack(req socketmode.Request, payload ...any) error {
	a.ids, a.bodies = append(a.ids, req.EnvelopeID), append(a.bodies, payload...)
	return a.fails
}

// A request over the socket is acknowledged once it is stored; failures are in the log.
func TestWhatIsAcknowledgedOverTheSocket(t *testing.T) {
	t.Parallel()
	request := func(body string) *socketmode.Request {
		return &socketmode.Request{EnvelopeID: "E1", Payload: json.RawMessage(body)}
	}
	for name, c := range map[string]struct {
		event socketmode.Event
		fails error // of what writes down
		lost  error // of the acknowledgement
		acked bool
		shown any
		log   string
	}{
		"a press":              {socketmode.Event{Type: socketmode.EventTypeInteractive, Request: request(press)}, nil, nil, true, nil, ""},
		"a form":               {socketmode.Event{Type: socketmode.EventTypeInteractive, Request: request(sent)}, nil, nil, true, "the errors", ""},
		"an event":             {socketmode.Event{Type: socketmode.EventTypeEventsAPI, Request: request(mention)}, nil, nil, true, nil, ""},
		"not written down":     {socketmode.Event{Type: socketmode.EventTypeInteractive, Request: request(press)}, errors.New("the database is away"), nil, false, nil, "not stored"},
		"not heard":            {socketmode.Event{Type: socketmode.EventTypeInteractive, Request: request(press)}, nil, errors.New("closed"), true, nil, "not acknowledged"},
		"a refused token":      {socketmode.Event{Type: socketmode.EventTypeInvalidAuth, Request: request(press)}, nil, nil, false, nil, "SLACK_APP_TOKEN"},
		"a greeting":           {socketmode.Event{Type: socketmode.EventTypeHello, Request: request(`{}`)}, nil, nil, false, nil, ""},
		"an event without one": {socketmode.Event{Type: socketmode.EventTypeInteractive}, nil, nil, false, nil, ""},
	} {
		var log bytes.Buffer
		d := open(func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		d.fails, d.form = c.fails, "the errors"
		a := &acked{fails: c.lost}
		d.envelope(t.Context(), a, c.event)
		require.Equal(t, c.acked, len(a.ids) == 1, name)
		if c.acked {
			require.Equal(t, []any{c.shown}, a.bodies, name)
		}
		require.Contains(t, log.String(), c.log, name)
		require.Equal(t, c.log == "", log.Len() == 0, name)
	}
}

// An event that Slack delivers again is accepted like the first one, and logged.
func TestAnEventThatComesAgain(t *testing.T) {
	t.Parallel()
	for again, told := range map[string]bool{"": false, "2": true} {
		var log bytes.Buffer
		d := open(func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		w := d.post("events", mention, "X-Slack-Retry-Num", again, "X-Slack-Retry-Reason", "http_timeout")
		require.Equal(t, http.StatusOK, w.Code)
		require.Len(t, d.in, 1)
		require.Equal(t, told, bytes.Contains(log.Bytes(), []byte("repeated event")))
	}
}

// A body that does not arrive is not waited for.
func TestABodyThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	d := open()
	r := httptest.NewRequest(http.MethodPost, "/slack/events", late{})
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusRequestTimeout, w.Code)
	require.Equal(t, "close", w.Header().Get("Connection"))
}

// A late body is one whose deadline has passed.
type late struct{}

func (late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// Workspaces install the app where that is wanted, over HTTP as beside the socket, and not
// many at once.
func TestWhereTheAppIsInstalled(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "xapp-1"} {
		d := open(func(c *Config) { c.Installs, c.AppToken, c.App = true, token, install.New(install.Config{}) })
		get := func(path string) int {
			w := httptest.NewRecorder()
			d.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w.Code
		}
		require.Equal(t, http.StatusForbidden, get("/slack/oauth?error=access_denied"))
		for range 2 {
			_, ok := d.limit.Take("install", noon)
			require.True(t, ok)
		}
		require.Equal(t, http.StatusTooManyRequests, get("/slack/install"))
	}
}

// What arrives in time over a connection is read to its end.
func TestARequestOverAConnection(t *testing.T) {
	t.Parallel()
	d := open()
	server := httptest.NewServer(d.Handler())
	t.Cleanup(server.Close)
	for range 2 { // the second on the same connection
		res, err := http.Post(server.URL+"/slack/events", "application/json", strings.NewReader(strings.Repeat(" ", 100_000)))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusUnauthorized, res.StatusCode, "it was read, and nobody has signed it")
	}
}
