// Package receive is where Slack's requests arrive, over HTTP or Socket Mode: one is let
// in when Slack has sent it and its person does not hurry, handed over, and acknowledged
// only then. What it asks for is not looked at here.
package receive

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/install"
)

// Config says how Slack reaches the bot, and to whom its requests are handed.
type Config struct {
	// SigningSecret proves that HTTP requests come from Slack; OldSigningSecret is
	// accepted too, while secrets are being changed.
	SigningSecret    string
	OldSigningSecret string
	// AppToken switches Socket Mode on.
	AppToken string
	// Connections is how many Socket Mode connections are kept; zero is two, so that
	// one may be renewed while the other serves.
	Connections int
	// Silence is how long a Socket Mode connection may bring no ping before it is taken
	// for dead; zero is slack-go's 30 s.
	Silence time.Duration
	// Installs says that workspaces install the app here.
	Installs bool
	// API is the server that stands in for Slack; nil: Slack itself.
	API *url.URL
	App *install.App
	// PerMinute is how many requests one person may make a minute; zero is 20.
	PerMinute int
	// Accept writes a request down. When it returns nil the request may be acknowledged.
	Accept func(context.Context, incoming.Ask) error
	// Form answers a form that was sent, with what Slack shows in its place.
	Form func(context.Context, incoming.Ask) (any, error)
	Now  func() time.Time
	Log  *slog.Logger
}

// A Receiver takes Slack's requests.
type Receiver struct {
	cfg   Config
	app   *install.App
	api   *url.URL
	limit *limiter
	now   func() time.Time
	log   *slog.Logger
}

// New returns a Receiver.
func New(cfg Config) *Receiver {
	return &Receiver{cfg: cfg, app: cfg.App, api: cfg.API, limit: newLimiter(cmp.Or(cfg.PerMinute, 20)), now: cfg.Now, log: cfg.Log}
}
