// Package receive takes Slack's requests over HTTP or Socket Mode. It verifies that Slack sent
// a request, applies the person's rate limit, hands the request over, and acknowledges it only
// then. It does not look at what the request asks for.
package receive

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/pace"
)

// Config says how Slack reaches the bot, and to whom its requests are handed.
type Config struct {
	// SigningSecret proves that HTTP requests come from Slack. OldSigningSecret is accepted too
	// while the secret is rotated.
	SigningSecret    string
	OldSigningSecret string
	// AppToken switches Socket Mode on.
	AppToken string
	// Silence is how long a Socket Mode connection may bring no ping before it counts as dead;
	// zero means slack-go's 30 s.
	Silence time.Duration
	// Installs says that workspaces install the app here.
	Installs bool
	// API is the server that replaces Slack in tests; nil means Slack itself.
	API *url.URL
	App *install.App
	// PerMinute is how many requests one person may make in a minute; zero means 20.
	PerMinute int
	// Accept stores a request. Once it returns nil, the request may be acknowledged.
	Accept func(context.Context, incoming.Ask) error
	// Form handles a submitted form and returns the body that answers Slack.
	Form func(context.Context, incoming.Ask) (any, error)
	Now  func() time.Time
	Log  *slog.Logger
}

// A Receiver takes Slack's requests.
type Receiver struct {
	cfg   Config
	limit *pace.Limiter
}

// New returns a Receiver.
func New(cfg Config) *Receiver {
	return &Receiver{cfg: cfg, limit: pace.New(cmp.Or(cfg.PerMinute, 20))}
}

// OverLimit returns what to tell a person who sends too many requests; it is empty where the
// request may proceed.
func (in *Receiver) OverLimit(a incoming.Ask) string {
	if a.Terminal != nil {
		return ""
	}
	wait, ok := in.limit.Take(a.Team+"/"+a.User, in.cfg.Now())
	if ok {
		return ""
	}
	return pace.Said(wait).In(lang.Of(a.Text))
}
