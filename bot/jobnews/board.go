// Package jobnews tells people of jobs without being asked: the card that follows a job
// through its life, its end with the cause, the alarm that a run is missing, the incident
// that several jobs share, the digest of a day; and it keeps who wants to hear of what.
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

// Config says what a Board watches, and by which ways it tells.
type Config struct {
	Store   record.Store
	Service *ops.Service
	// Watchers are the running watchers of the clusters.
	Watchers map[string]*watch.Watcher
	// Interval is how often the jobs that have a card are looked at; zero is 30 s.
	Interval time.Duration
	// EditPace is how long a card rests between edits that bring numbers only.
	EditPace time.Duration
	People   *people.Book
	Reply    *reply.Writer
	Out      *outbox.Sender
	// Client is the client of a workspace, which tells in which channels somebody is.
	Client func(ctx context.Context, team string) (*slack.Client, error)
	Now    func() time.Time
	Log    *slog.Logger
}

// A Board has the cards of all jobs that somebody follows. Run must be running for
// anything new to be heard of.
type Board struct {
	cfg    Config
	people *people.Book
	reply  *reply.Writer
	out    *outbox.Sender
	now    func() time.Time
	log    *slog.Logger
	// scriptsRead are the jobs whose scripts were looked at; the watching loop alone
	// has it.
	scriptsRead map[string]bool
	cards       sync.Mutex // one change of a card at a time
	failing     sync.Mutex // one failure at a time joins an incident
	watchers    watchers
	turns       turns // of the loop that watches
}

// New returns a Board.
func New(cfg Config) *Board {
	return &Board{cfg: cfg, people: cfg.People, reply: cfg.Reply, out: cfg.Out, now: cfg.Now, log: cfg.Log}
}

// noted writes down an error that nothing else depends on; nil is none.
func (b *Board) noted(level slog.Level, what string, err error, about ...any) {
	if err != nil {
		b.log.Log(context.Background(), level, what, append(about, "err", err)...)
	}
}
