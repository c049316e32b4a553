package outbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A stage has a Sender that sends to the played Slack, by a clock of its own and without a
// network.
type stage struct {
	*Sender
	t      *testing.T
	slack  *slacktest.Server
	store  *store.Slack
	began  time.Time
	skew   atomic.Int64 // how far the Sender's clock is ahead, for hours in which nothing happens
	stop   func()       // kills what sends
	chosen func()       // is called once, before a message is marked as tried
	// errors has what the Sender logged as an error.
	errors bytes.Buffer
	// hooks are the answers of response URLs, in turn; posted is what was posted to them.
	hooks  []func(w http.ResponseWriter)
	posted []string
}

// play runs test on a stage.
func play(t *testing.T, test func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "slack.db"))
		require.NoError(t, err)
		defer db.Close()
		s := &stage{t: t, slack: slacktest.New(slacktest.Config{}), store: db.Slack(), began: time.Now()}
		s.start()
		defer func() {
			s.stop()
			for line := range strings.Lines(s.errors.String()) {
				require.Contains(t, line, "gave a message up", "nothing else is an error")
			}
		}()
		test(t, s)
	})
}

type watchedStore struct {
	*store.Slack
	s *stage
}

func (w watchedStore) Trying(ctx context.Context, m store.SlackMessage, now time.Time) (bool, error) {
	if f := w.s.chosen; f != nil {
		w.s.chosen = nil
		f()
	}
	return w.Slack.Trying(ctx, m, now)
}

func (s *stage) now() time.Time { return time.Now().Add(time.Duration(s.skew.Load())) }

// start starts a Sender, as a new process does.
func (s *stage) start() {
	h := &http.Client{Transport: s}
	s.Sender = New(Config{
		Store: watchedStore{s.store, s}, HTTP: h, Now: s.now, Log: slog.New(slog.NewTextHandler(&s.errors, &slog.HandlerOptions{Level: slog.LevelError})),
		Client: func(context.Context, string) (*slack.Client, error) {
			return slack.New("xoxb-1", slack.OptionHTTPClient(h), slack.OptionAPIURL("http://slack/api/")), nil
		},
		ResponseURL: func(raw string) (string, error) {
			if strings.HasPrefix(raw, "https://hooks.slack.com/") {
				return raw, nil
			}
			return "", errors.New("not an address of Slack's")
		},
	})
	ctx, cancel := context.WithCancel(s.t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Run(ctx)
	}()
	s.stop = func() { cancel(); <-over }
}

// RoundTrip passes a request to the server that plays Slack, or to a response address.
func (s *stage) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "hooks.slack.com" {
		return slacktest.RoundTrip(http.HandlerFunc(s.serveHook), r)
	}
	return slacktest.RoundTrip(s.slack, r)
}

func (s *stage) serveHook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	require.NoError(s.t, err)
	s.posted = append(s.posted, string(body))
	if len(s.hooks) > 0 {
		s.hooks[0](w)
		s.hooks = s.hooks[1:]
	}
}

// owe queues a message; messages of one lane are sent in order.
func (s *stage) owe(key, lane string, o Message) {
	s.t.Helper()
	s.oweAll(s.Owe(key, lane, o))
}

func (s *stage) oweAll(owed ...store.SlackMessage) {
	s.t.Helper()
	require.NoError(s.t, s.store.Enqueue(s.t.Context(), owed...))
	s.Wake()
}

func (s *stage) fault(all ...slacktest.Fault) {
	for _, f := range all {
		s.slack.Fault(f)
	}
}

// after lets time pass, and returns the state of Slack then.
func (s *stage) after(d time.Duration) slacktest.State {
	s.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	return s.slack.State()
}

// stands describes what people see, one a line: where, for whom, in which thread, and the text.
func stands(st slacktest.State) (lines []string) {
	texts := map[string]string{}
	for _, m := range st.Messages {
		where := m.Channel
		if m.Only != "" {
			where += " for " + m.Only
		}
		if m.Thread != "" {
			where += " below " + cmp.Or(texts[m.Thread], m.Thread)
		}
		texts[m.TS] = m.Text
		lines = append(lines, where+": "+m.Text)
	}
	for _, f := range st.Files {
		if f.Done {
			where := f.Channel
			if f.Thread != "" {
				where += " below " + texts[f.Thread]
			}
			lines = append(lines, where+": "+f.Name+" "+string(f.Data))
		}
	}
	return lines
}

// times returns when methods were called, since began.
func (s *stage) times(st slacktest.State, methods ...string) (at []time.Duration) {
	for _, c := range st.Calls {
		if slices.Contains(methods, c.Method) {
			at = append(at, c.At.Sub(s.began))
		}
	}
	return at
}

// givenUp returns the messages that were given up, and why.
func (s *stage) givenUp() (lines []string) {
	s.t.Helper()
	buried, err := s.store.Buried(s.t.Context(), 9)
	require.NoError(s.t, err)
	for _, m := range buried {
		lines = append(lines, m.Key+": "+m.Error)
	}
	return lines
}
