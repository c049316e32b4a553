// Package bot connects Slack to the table of operations: it turns what people do in Slack into
// calls of operations, and their results into Block Kit. A request is stored, then
// acknowledged, and then carried out. Messages to Slack are queued in the database, so that a
// crash neither loses nor repeats one. Package internal/ops decides what an operation does and
// who may call it. This package has the commands, buttons, forms and approvals, and connects
// the packages below it.
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
	// SigningSecret proves that HTTP requests come from Slack. OldSigningSecret is accepted too
	// while the secret is rotated.
	SigningSecret    string
	OldSigningSecret string
	// Page returns a one-time link to the page for browsers; it is nil where no page is served.
	Page func(context.Context, ops.Caller) (string, error)
	// BotToken is the token of the only workspace; it is empty where workspaces install the app
	// by OAuth.
	BotToken string
	// AppToken switches Socket Mode on.
	AppToken string
	// APIURL is the address of a server that replaces Slack in tests. Its scheme, host and port
	// then count as Slack's for response URLs and uploads.
	APIURL string
	// OAuth lets workspaces install the app; it is nil where BotToken is set.
	OAuth *install.OAuth

	Service *ops.Service
	// Watchers are the running watchers, by cluster. Cards of jobs on a cluster without a
	// watcher do not change.
	Watchers map[string]*watch.Watcher
	Store    record.Store
	Policy   Policy
	// Interval is the time between two looks at the jobs that have a card; zero means 30 s.
	Interval time.Duration
	// EditPace is the least time between two edits of a card that bring new numbers only; zero
	// means 20 s. A change of state is shown at once.
	EditPace time.Duration
	// Site returns the submit form's initial values for a cluster; nil means that the form
	// starts empty.
	Site func(cluster string) map[string]string
	// Silence is how long a Socket Mode connection may bring no ping before it counts as dead;
	// zero means slack-go's 30 s.
	Silence time.Duration

	Now func() time.Time // nil means time.Now
	Log *slog.Logger     // nil means slog.Default
}

// A Policy says who may do what, by Slack's ids.
type Policy = people.Policy

// A Bot serves Slack. Receive or Handler takes requests, and Work carries them out.
type Bot struct {
	cfg         Config
	log         *slog.Logger
	now         func() time.Time
	api         *url.URL // nil means Slack itself
	plain       *http.Client
	receiver    *receive.Receiver
	work        chan struct{} // wakes workLoop
	out         *outbox.Sender
	reply       *reply.Writer
	inProgress  requestSet
	requesting  sync.Mutex // serializes requests for approval
	settling    sync.Map   // the ids of the requests that are being settled
	app         *install.App
	people      *people.Directory
	news        *jobnews.Notifier
	profile     *profile.Handler
	choiceCache choiceCache
	starts      sync.Map // cluster/partition/user → cachedStart
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
		// A redirect could lead anywhere, so a response URL's is not followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	b.app = install.New(install.Config{
		BotToken: cfg.BotToken, AppToken: cfg.AppToken, APIURL: cfg.APIURL, OAuth: cfg.OAuth, Policy: cfg.Policy, Store: cfg.Store, Now: b.now, Log: b.log,
	})
	b.receiver = receive.New(receive.Config{
		SigningSecret: cfg.SigningSecret, OldSigningSecret: cfg.OldSigningSecret, AppToken: cfg.AppToken, Silence: cfg.Silence,
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

// check returns an error for a configuration that cannot work.
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
		set := "SLACK_BOT_TOKEN"
		if c.OAuth != nil {
			set = "SLACK_CLIENT_ID"
		}
		return lang.Text{
			EN: "%s is set, but neither SLACK_SIGNING_SECRET (Slack's HTTP requests) nor SLACK_APP_TOKEN (Socket Mode): requests could not be trusted; set one of them",
			ZH: "已设置 %s，但 SLACK_SIGNING_SECRET（Slack 的 HTTP 请求）与 SLACK_APP_TOKEN（Socket Mode）都没有：请求无法验证；请设置其中之一",
		}.Err(set)
	}
	return nil
}

// Work carries out accepted requests, sends queued messages and follows jobs until ctx ends. Of
// several servers that share a Store only one may work at a time.
func (b *Bot) Work(ctx context.Context) {
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){b.workLoop, b.out.Run, b.sweepLoop, b.news.Run, b.pollLoop, b.openLoop} {
		wg.Go(func() { loop(ctx) })
	}
	wg.Wait()
}

// sweepLoop deletes what was finished more than two days ago: Slack repeats no request that
// late.
func (b *Bot) sweepLoop(ctx context.Context) {
	every(ctx, time.Hour, func() {
		if err := b.cfg.Store.Sweep(ctx, b.now().Add(-48*time.Hour), b.now()); err != nil && ctx.Err() == nil {
			b.log.Warn("slack: sweep", "err", err)
		}
	})
}

// every calls do now and then after each interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Person returns the caller for a person whom Slack has named outside of a request, such as by
// a sign-in elsewhere. It fails for a workspace that has not installed the app.
func (b *Bot) Person(ctx context.Context, team, user string) (ops.Caller, error) {
	return b.people.Person(ctx, team, user)
}

// ClusterUser returns the cluster user to whom a person in Slack (T…/U…) is linked now, or "".
func (b *Bot) ClusterUser(ctx context.Context, id string) (string, error) {
	team, user, _ := strings.Cut(id, "/")
	k, _, err := b.people.LinkOf(ctx, team, user)
	return k.User, err
}

// Decides reports whether there is anybody to whom an agent's request could be shown.
func (b *Bot) Decides() bool { return b.people.Decides() }

// Carry sends the card of a job that replaces another one to the places that have the other's
// card.
func (b *Bot) Carry(ctx context.Context, from slurm.Job, next slurm.JobID) error {
	return b.news.Carry(ctx, from, next)
}

// Notify posts a notice in the thread of the job's card, or directly to its owner where the job
// has no card. Where there is neither, the notice stays in the store.
func (b *Bot) Notify(ctx context.Context, n ops.Notice) error { return b.news.Notify(ctx, n) }

// Note posts a notice of this process about a job.
func (b *Bot) Note(ctx context.Context, j slurm.Job, what string, said lang.Text) error {
	return b.news.Note(ctx, j, what, said)
}

// Doctor checks that Slack is reachable, that the tokens are valid, and that the bot token has
// the scopes that the code uses. It posts nothing.
func (b *Bot) Doctor(ctx context.Context) []install.Check { return b.app.Doctor(ctx) }

// Receive keeps the Socket Mode connections open until ctx ends; without an app token it does
// nothing. Several servers that share a Store may receive at the same time.
func (b *Bot) Receive(ctx context.Context) { b.receiver.Receive(ctx) }

// Handler serves Slack's HTTP requests below /slack/. In Socket Mode it serves the installation
// only.
func (b *Bot) Handler() http.Handler { return b.receiver.Handler() }
