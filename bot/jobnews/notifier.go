// Package jobnews notifies people about jobs: by the card that follows a job through its life,
// the report of its end with the cause, the alarm that an expected run is missing, the incident
// that several jobs share, and the daily digest. It also keeps the subscriptions.
package jobnews

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// Config says what a Notifier watches, and how it notifies people.
type Config struct {
	Store   record.Store
	Service *ops.Service
	// Watchers are the running watchers, by cluster.
	Watchers map[string]*watch.Watcher
	// Interval is the time between two looks at the jobs that have a card; zero means 30 s.
	Interval time.Duration
	// EditPace is the least time between two edits of a card that bring new numbers only.
	EditPace time.Duration
	People   *people.Directory
	Reply    *reply.Writer
	Out      *outbox.Sender
	// Client returns the API client of a workspace, which lists the channels of a person.
	Client func(ctx context.Context, team string) (*slack.Client, error)
	Now    func() time.Time
	Log    *slog.Logger
}

// A Notifier keeps the cards of all jobs that somebody follows. It notices nothing unless Run is
// running.
type Notifier struct {
	cfg    Config
	people *people.Directory
	reply  *reply.Writer
	out    *outbox.Sender
	now    func() time.Time
	log    *slog.Logger
	// scriptsRead holds the jobs whose scripts were read. Only the watching loop uses it.
	scriptsRead map[string]bool
	cards       sync.Mutex // serializes changes of cards
	failing     sync.Mutex // serializes failures that may join an incident
	watchers    watchers
	rotation    rotation // used by the watching loop only
}

// New returns a Notifier.
func New(cfg Config) *Notifier {
	return &Notifier{cfg: cfg, people: cfg.People, reply: cfg.Reply, out: cfg.Out, now: cfg.Now, log: cfg.Log}
}

// logError logs an error that nothing else depends on; a nil error is ignored.
func (nf *Notifier) logError(level slog.Level, what string, err error, about ...any) {
	if err != nil {
		nf.log.Log(context.Background(), level, what, append(about, "err", err)...)
	}
}
