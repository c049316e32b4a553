// Package bot is the Slack door: it turns what people do in Slack into calls of
// the table of operations and the answers into Block Kit. A request is written
// down, acknowledged, and worked on afterwards; what is owed to Slack is queued
// in the database, so that a crash loses nothing and repeats nothing. What an
// operation does, and who may call it, is decided in internal/ops. Here are commands,
// buttons, forms and approvals, and the wiring; each other idea has a room below.
package bot

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/bot/jobnews"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/profile"
	"github.com/megatron-ops/megatron-ops/bot/receive"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// Config says how to reach Slack and what to serve there.
type Config struct {
	// SigningSecret proves that HTTP requests come from Slack; OldSigningSecret is
	// accepted too, while secrets are being changed.
	SigningSecret    string
	OldSigningSecret string
	// Page makes a one-time link to the page for browsers; nil where none is served.
	Page func(context.Context, ops.Caller) (string, error)
	// BotToken is the token of the one workspace; empty where workspaces install
	// the app by OAuth.
	BotToken string
	// AppToken switches Socket Mode on.
	AppToken string
	// Connections is how many Socket Mode connections are kept; zero is two, so
	// that one may be renewed while the other serves.
	Connections int
	// APIURL is another server than Slack's, in tests. Its scheme, host and port
	// then count as Slack's for response URLs and uploads.
	APIURL string
	// OAuth lets workspaces install the app; nil where BotToken serves one.
	OAuth *install.OAuth

	Service *ops.Service
	// Watchers are the running watchers of the clusters; a cluster without one has
	// cards that stay as they were.
	Watchers map[string]*watch.Watcher
	Store    record.Store
	Policy   Policy
	// Interval is how often the jobs that have a card are looked at; zero is 30 s.
	Interval time.Duration
	// EditPace is how long a card rests between edits that bring numbers only; zero
	// is 20 s. A change of state is shown at once.
	EditPace time.Duration
	// Site gives the submit form its first values on a cluster; nil starts empty.
	Site func(cluster string) map[string]string
	// Silence is how long a Socket Mode connection may bring no ping before it is
	// taken for dead; zero is slack-go's 30 s.
	Silence time.Duration

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: slog.Default
}

// A Policy says who may do what, in Slack's ids.
type Policy = people.Policy

// A Bot serves Slack. Run must be running for anything to be answered.
type Bot struct {
	cfg      Config
	log      *slog.Logger
	now      func() time.Time
	api      *url.URL // nil: Slack itself
	plain    *http.Client
	receiver *receive.Receiver
	work     chan struct{} // wakes the loop that carries requests out
	out      *outbox.Sender
	reply    *reply.Writer
	flying   flight
	app      *install.App
	people   *people.Book
	news     *jobnews.Board
	profile  *profile.Desk
	offers   offers
	starts   sync.Map // cluster/partition/user → foundStart
}

// New checks cfg and returns a bot.
func New(cfg Config) (*Bot, error) {
	if cfg.Store == nil || cfg.Service == nil {
		return nil, errors.New("bot: needs a Service and a Store")
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.EditPace = cmp.Or(cfg.EditPace, 20*time.Second)
	b := &Bot{cfg: cfg, log: cfg.Log, now: cfg.Now, work: make(chan struct{}, 1)}
	if b.log == nil {
		b.log = slog.Default()
	}
	if b.now == nil {
		b.now = time.Now
	}
	if cfg.APIURL != "" {
		u, err := url.Parse(cfg.APIURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, lang.Text{EN: "SLACK_API_URL %q is not an http address", ZH: "SLACK_API_URL %q 不是 http 地址"}.Err(cfg.APIURL)
		}
		b.api = u
	}
	b.plain = &http.Client{
		Timeout: 10 * time.Second,
		// A response URL that leads on could lead anywhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	b.app = install.New(install.Config{
		BotToken: cfg.BotToken, AppToken: cfg.AppToken, APIURL: cfg.APIURL, OAuth: cfg.OAuth, Policy: cfg.Policy, Store: cfg.Store, Now: b.now, Log: b.log,
	})
	b.receiver = receive.New(receive.Config{
		SigningSecret: cfg.SigningSecret, OldSigningSecret: cfg.OldSigningSecret, AppToken: cfg.AppToken, Connections: cfg.Connections, Silence: cfg.Silence,
		Installs: cfg.OAuth != nil, API: b.api, App: b.app, PerMinute: cfg.Policy.PerMinute, Accept: b.accept, Form: b.sentForm, Now: b.now, Log: b.log,
	})
	b.out = outbox.New(outbox.Config{Store: cfg.Store, Client: b.app.Client, HTTP: b.plain, ResponseURL: b.receiver.ResponseURL, Now: b.now, Log: b.log})
	b.reply = reply.New(b.out)
	b.people = people.New(people.Config{Policy: cfg.Policy, Store: cfg.Store, Service: cfg.Service, Client: b.app.Client, Now: b.now, Log: b.log})
	b.news = jobnews.New(jobnews.Config{
		Store: cfg.Store, Service: cfg.Service, Watchers: cfg.Watchers, Interval: cfg.Interval, EditPace: cfg.EditPace,
		People: b.people, Reply: b.reply, Out: b.out, Client: b.app.Client, Now: b.now, Log: b.log,
	})
	b.profile = profile.New(profile.Config{
		Policy: cfg.Policy, Store: cfg.Store, Service: cfg.Service, Page: cfg.Page, People: b.people, Reply: b.reply,
		Home: b.home, Audit: b.audit, Now: b.now, Log: b.log,
	})
	return b, nil
}

// check refuses a configuration that could never serve.
func (c Config) check() error {
	if c.BotToken == "" && c.OAuth == nil {
		if c.AppToken != "" || c.SigningSecret != "" {
			return lang.Text{
				EN: "SLACK_BOT_TOKEN is missing: the app token or signing secret alone cannot answer; set it to the xoxb- token of the app's installation",
				ZH: "缺少 SLACK_BOT_TOKEN：只有应用级令牌或签名密钥无法回复；请设为应用安装后得到的 xoxb- 令牌",
			}.Err()
		}
		return lang.Text{
			EN: "no Slack token: set SLACK_BOT_TOKEN, and SLACK_SIGNING_SECRET or SLACK_APP_TOKEN",
			ZH: "没有 Slack 令牌：请设置 SLACK_BOT_TOKEN，以及 SLACK_SIGNING_SECRET 或 SLACK_APP_TOKEN",
		}.Err()
	}
	if c.BotToken != "" && !strings.HasPrefix(c.BotToken, "xox") {
		return lang.Text{EN: "SLACK_BOT_TOKEN does not look like one: a bot token begins with xoxb-", ZH: "SLACK_BOT_TOKEN 不像机器人令牌：应以 xoxb- 开头"}.Err()
	}
	if c.AppToken != "" && !strings.HasPrefix(c.AppToken, "xapp-") {
		return lang.Text{EN: "SLACK_APP_TOKEN does not look like one: an app-level token begins with xapp-", ZH: "SLACK_APP_TOKEN 不像应用级令牌：应以 xapp- 开头"}.Err()
	}
	if c.AppToken == "" && c.SigningSecret == "" {
		if c.OAuth != nil {
			return lang.Text{
				EN: "SLACK_CLIENT_ID is set, but neither SLACK_SIGNING_SECRET (Slack's HTTP requests) nor SLACK_APP_TOKEN (Socket Mode): requests could not be trusted; set one of them",
				ZH: "已设置 SLACK_CLIENT_ID，但 SLACK_SIGNING_SECRET（Slack 的 HTTP 请求）与 SLACK_APP_TOKEN（Socket Mode）都没有：请求无法验证；请设置其中之一",
			}.Err()
		}
		return lang.Text{
			EN: "SLACK_BOT_TOKEN is set, but neither SLACK_SIGNING_SECRET (Slack's HTTP requests) nor SLACK_APP_TOKEN (Socket Mode): requests could not be trusted; set one of them",
			ZH: "已设置 SLACK_BOT_TOKEN，但 SLACK_SIGNING_SECRET（Slack 的 HTTP 请求）与 SLACK_APP_TOKEN（Socket Mode）都没有：请求无法验证；请设置其中之一",
		}.Err()
	}
	return nil
}

// Work carries out what was accepted, sends what is owed and follows jobs, until
// ctx ends. Of several servers that share a Store one at a time may work.
func (b *Bot) Work(ctx context.Context) {
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){b.workLoop, b.out.Run, b.sweepLoop, b.news.Run, b.mailLoop, b.openLoop} {
		wg.Go(func() { loop(ctx) })
	}
	wg.Wait()
}

// sweepLoop forgets what was settled more than two days ago: Slack repeats
// nothing that late.
func (b *Bot) sweepLoop(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := b.cfg.Store.Sweep(ctx, b.now().Add(-48*time.Hour), b.now()); err != nil && ctx.Err() == nil {
			b.log.Warn("slack: sweep", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Person is a person of a workspace whom Slack has named outside of a request, such as
// by a sign-in elsewhere. A workspace that has not this app has nobody.
func (b *Bot) Person(ctx context.Context, team, user string) (ops.Caller, error) {
	return b.people.Person(ctx, team, user)
}

// Decides reports whether there is anybody whom an agent's request could be shown to.
func (b *Bot) Decides() bool { return b.people.Decides() }

// Carry gives the job that was submitted in place of another a card where that one has
// its own.
func (b *Bot) Carry(ctx context.Context, from slurm.Job, next slurm.JobID) error {
	return b.news.Carry(ctx, from, next)
}

// Notify shows a notice in the thread of the job's card, or directly to its owner where
// the job has no card; where there is neither, it waits.
func (b *Bot) Notify(ctx context.Context, n ops.Notice) error { return b.news.Notify(ctx, n) }

// Note is a notice that the process itself has about a job.
func (b *Bot) Note(ctx context.Context, j slurm.Job, what string, said lang.Text) error {
	return b.news.Note(ctx, j, what, said)
}

// Doctor checks that Slack is reachable, that the tokens are good, and that the bot
// token has the scopes that the code uses. It posts nothing.
func (b *Bot) Doctor(ctx context.Context) []install.Check { return b.app.Doctor(ctx) }

// Receive keeps the Socket Mode connections until ctx ends, where an app token is set. Of
// several servers that share a Store each may receive.
func (b *Bot) Receive(ctx context.Context) { b.receiver.Receive(ctx) }

// Handler answers Slack's HTTP requests below /slack/. In Socket Mode only the
// installation is served there.
func (b *Bot) Handler() http.Handler { return b.receiver.Handler() }
