// Package install manages the app in workspaces: its scopes and manifest, its installation and
// removal, the API client of each workspace, and the checks of all of these.
package install

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
)

// Config describes the app.
type Config struct {
	// BotToken is the token of the only workspace; it is empty where workspaces install the app
	// by OAuth.
	BotToken string
	// AppToken is set for Socket Mode.
	AppToken string
	// APIURL is the address of a server that replaces Slack in tests.
	APIURL string
	OAuth  *OAuth
	Policy people.Policy
	Store  record.Store
	Now    func() time.Time
	Log    *slog.Logger
}

// An App reaches the workspaces that have installed it.
type App struct {
	cfg     Config
	clients sync.Map // team → *slack.Client
}

// New returns an App.
func New(cfg Config) *App { return &App{cfg: cfg} }

// Client returns the API client of a workspace.
func (p *App) Client(ctx context.Context, team string) (*slack.Client, error) {
	if c, ok := p.clients.Load(team); ok {
		return c.(*slack.Client), nil
	}
	token, err := p.Token(ctx, team)
	if err != nil {
		return nil, err
	}
	c := slack.New(token, p.Options()...)
	p.clients.Store(team, c)
	return c, nil
}

// Token returns the bot token of a workspace.
func (p *App) Token(ctx context.Context, team string) (string, error) {
	if p.cfg.BotToken != "" {
		return p.cfg.BotToken, nil
	}
	return p.installed(ctx, team)
}

// Options returns the options of every API client.
func (p *App) Options() []slack.Option {
	opts := []slack.Option{slack.OptionHTTPClient(&http.Client{Timeout: 20 * time.Second})}
	if p.cfg.AppToken != "" {
		opts = append(opts, slack.OptionAppLevelToken(p.cfg.AppToken))
	}
	if p.cfg.APIURL != "" {
		opts = append(opts, slack.OptionAPIURL(strings.TrimSuffix(p.cfg.APIURL, "/")+"/"))
	}
	return opts
}
