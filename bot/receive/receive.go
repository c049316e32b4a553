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

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
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

// command stores a slash command, and returns the answer to one that came too often.
func (in *Receiver) command(ctx context.Context, cmd slack.SlashCommand) (reply any, err error) {
	a := incoming.DecodeCommand(cmd)
	if words := in.OverLimit(a); words != "" {
		return map[string]any{"response_type": "ephemeral", "text": answer.Escape(words)}, nil
	}
	return nil, in.cfg.Accept(ctx, a)
}

// interaction stores an interaction, and returns the answer to a form. It does nothing about
// one that is not ours.
func (in *Receiver) interaction(ctx context.Context, a incoming.Ask, ours bool) (reply any, err error) {
	switch {
	case !ours:
		return nil, nil
	case a.Kind == incoming.AsForm:
		return in.cfg.Form(ctx, a)
	}
	return nil, in.cfg.Accept(ctx, a)
}
