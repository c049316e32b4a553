// Package profile is where people change what is known of them: which cluster user they
// are, with the proof of it, and their settings.
package profile

import (
	"context"
	"log/slog"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// Config says where what is known of people is kept, and how they are answered.
type Config struct {
	Policy  people.Policy
	Store   record.Store
	Service *ops.Service
	// Page makes a one-time link to the page for browsers; nil where none is served.
	Page   func(context.Context, ops.Caller) (string, error)
	People *people.Book
	Reply  *reply.Writer
	// Home draws a person's home tab anew.
	Home func(context.Context, incoming.Ask) []store.SlackMessage
	// Audit writes a change down that is no operation.
	Audit func(ctx context.Context, c *ops.Call, what string, in, result any)
	Now   func() time.Time
	Log   *slog.Logger
}

// A Desk changes what is known of a person, for nobody but them.
type Desk struct {
	cfg    Config
	people *people.Book
	reply  *reply.Writer
	now    func() time.Time
	log    *slog.Logger
}

// New returns a Desk.
func New(cfg Config) *Desk {
	return &Desk{cfg: cfg, people: cfg.People, reply: cfg.Reply, now: cfg.Now, log: cfg.Log}
}
