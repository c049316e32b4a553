// Package outbox sends what is owed to Slack. A message is queued in the database
// before anything is said, sent within Slack's limits and in the order of its
// lane, looked for when a call had no answer, and said another way when Slack
// refuses it. What is said is none of its business.
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

// Config says how a Sender reaches Slack, and where what is owed is kept.
type Config struct {
	Store Store
	// Client is the client of a workspace.
	Client func(ctx context.Context, team string) (*slack.Client, error)
	// HTTP posts to response URLs, and follows no redirection.
	HTTP *http.Client
	// ResponseURL returns an address that may be posted to, or refuses it.
	ResponseURL func(raw string) (string, error)
	Now         func() time.Time
	Log         *slog.Logger
}

// A Store holds the messages owed to Slack, in order within a lane, and
// notes of messages that have begun.
type Store interface {
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

	Put(ctx context.Context, kind, key string, value any, expires time.Time) error
	Get(ctx context.Context, kind, key string, now time.Time, value any) (ok bool, err error)
	Delete(ctx context.Context, kind, key string) error
}

// A Sender sends what is owed to Slack: within its limits, in order, and neither
// lost nor doubled when a call has no answer.
type Sender struct {
	cfg   Config
	wake  signal
	paces pacer
	grows sync.Map // a request's key → *growing
	plain sync.Map // a workspace that has refused newer blocks → until when it is sent older ones
}

// New returns a Sender; Run must be running for anything to be sent.
func New(cfg Config) *Sender { return &Sender{cfg: cfg, wake: newSignal()} }

// Wake has the queue looked at now.
func (s *Sender) Wake() { s.wake.wake() }

// A signal wakes a loop; several wakes before it looks are one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}
