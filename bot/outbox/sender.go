// Package outbox sends queued messages to Slack. A message is queued in the database before it
// is sent. Messages are sent within Slack's rate limits and in the order of their lane. Where a
// call had no answer, the message is searched for before it is sent again; where Slack refuses
// it, it is sent in another form. The package knows nothing about what the messages say.
package outbox

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/store"
)

// Config says how a Sender reaches Slack and where queued messages are kept.
type Config struct {
	Store Store
	// Client returns the API client of a workspace.
	Client func(ctx context.Context, team string) (*slack.Client, error)
	// HTTP posts to response URLs and follows no redirects.
	HTTP *http.Client
	// ResponseURL returns the address to post to, or an error where raw is not an address of
	// Slack's.
	ResponseURL func(raw string) (string, error)
	Now         func() time.Time
	Log         *slog.Logger
}

// A Store holds the queued messages, in order within a lane, and notes about streamed messages.
type Store interface {
	store.Documents
	Enqueue(ctx context.Context, owed ...store.SlackMessage) error
	Due(ctx context.Context, now time.Time, limit int) ([]store.SlackMessage, error)
	Body(ctx context.Context, id int64) (string, error)
	Trying(ctx context.Context, m store.SlackMessage, now time.Time) (ok bool, err error)
	Sent(ctx context.Context, m store.SlackMessage, at store.SlackRef) error
	Later(ctx context.Context, id int64, until time.Time, why string, settled bool) error
	Bury(ctx context.Context, id int64, why string) error
	Buried(ctx context.Context, limit int) ([]store.SlackMessage, error)
	Ref(ctx context.Context, key string) (store.SlackRef, bool, error)
	Gone(ctx context.Context, keys ...string) (bool, error)
	Find(ctx context.Context, at store.SlackRef) (key string, ok bool, err error)
	UnderWay(ctx context.Context, since time.Time) (bool, error)
}

// A Sender sends queued messages to Slack within its rate limits and in order. A call without
// an answer neither loses nor doubles a message.
type Sender struct {
	cfg     Config
	wake    signal
	limiter rateLimiter
	streams sync.Map // request key → *stream
	plain   sync.Map // workspace that refused newer blocks → the time until which it is sent older ones
}

// New returns a Sender. Nothing is sent unless Run is running.
func New(cfg Config) *Sender { return &Sender{cfg: cfg, wake: newSignal()} }

// Wake makes Run look at the queue now.
func (s *Sender) Wake() { s.wake.wake() }

// A signal wakes a loop. Wakes that come before the loop looks count as one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}
