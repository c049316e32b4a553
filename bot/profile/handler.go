// Package profile lets people change what the bot knows about them: the link to their cluster
// user, which needs a proof, and their settings.
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

// Config says where data about people is kept and how they are answered.
type Config struct {
	Policy  people.Policy
	Store   record.Store
	Service *ops.Service
	// Page returns a one-time link to the page for browsers; it is nil where no page is served.
	Page   func(context.Context, ops.Caller) (string, error)
	People *people.Directory
	Reply  *reply.Writer
	// Home draws a person's home tab again.
	Home func(context.Context, incoming.Ask) []store.SlackMessage
	// Audit records a change that is not an operation.
	Audit func(ctx context.Context, c *ops.Call, what string, in, result any)
	Now   func() time.Time
	Log   *slog.Logger
}

// A Handler changes what the bot knows about the person who asks, and about nobody else.
type Handler struct{ cfg Config }

// New returns a Handler.
func New(cfg Config) *Handler { return &Handler{cfg} }
