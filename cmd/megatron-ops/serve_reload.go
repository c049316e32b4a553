package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/follow"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lead"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/internal/web"
	"github.com/megatron-ops/megatron-ops/mcp"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// A daemon is what serve keeps while it runs, however often its configuration is
// read again.
type daemon struct {
	sh       shell    // in the language that no file has changed yet
	words    []string // serve's own, which win over the file
	state    string
	store    *store.Store
	at       net.Addr
	log      *slog.Logger
	leader   *lead.Leader
	own      *prometheus.Registry
	requests *prometheus.HistogramVec
	now      atomic.Pointer[configured]
	replaced chan struct{} // hears that now is another
}

// A configured is what serve has built from one reading of its configuration. It
// is whole before it is taken.
type configured struct {
	cfg      config.Config
	svc      *ops.Service
	watchers map[string]*watch.Watcher
	policy   mcp.Policy
	agents   *agentDoor
	handler  http.Handler
	page     string // the page's address; empty where none is served
	// receive has Slack's requests by Socket Mode; led is what one of several servers does.
	receive func(context.Context)
	led     []func(context.Context)
	// over ends when another is taken.
	over context.Context //nolint:containedctx // it is this value's own life
	end  context.CancelFunc
}

// An agentDoor is /mcp with the sessions that agents have begun there: they go on
// as long as what they stand on is configured alike.
type agentDoor struct {
	offer   agentFlags
	access  mcp.HTTP
	lang    lang.Lang
	handler http.Handler
	stop    func()
}

// newDaemon opens what lasts.
func newDaemon(sh *shell, words []string, cfg config.Config) (*daemon, error) {
	text := slog.NewTextHandler(sh.err, nil)
	tellTelemetry(slog.New(text), slog.LevelWarn)
	d := &daemon{sh: *sh, words: words, log: slog.New(sh.telemetry.also(text)), own: prometheus.NewRegistry(), replaced: make(chan struct{}, 1)}
	svc, err := sh.serviceOf(cfg)
	if err != nil {
		return nil, err
	}
	if d.store, err = svc.Store(); err != nil {
		return nil, err
	}
	if d.state, err = config.StateDir(os.Getenv); err != nil {
		return nil, err
	}
	d.leader = &lead.Leader{Lease: d.store.Lease("leader", serverName()), Log: d.log}
	d.requests = promauto.With(d.own).NewHistogramVec(prometheus.HistogramOpts{
		Name: "megatron_ops_http_request_duration_seconds", Help: "Time that HTTP requests took, by the route and the class of the status.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"path", "class"})
	promauto.With(d.own).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "megatron_ops_leads", Help: "1 on the server that watches the clusters and answers Slack, 0 on one that stands by.",
	}, func() float64 {
		if d.leader.Leads() {
			return 1
		}
		return 0
	})
	promauto.With(d.own).NewGaugeVec(prometheus.GaugeOpts{Name: "megatron_ops_build_info", Help: "The version that runs; the value is 1."}, []string{"version"}).
		WithLabelValues(version()).Set(1)
	d.own.MustRegister(storeMetrics{d.store, d.log}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return d, nil
}

// ServeHTTP answers by the configuration of the moment.
func (d *daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.now.Load().handler.ServeHTTP(w, r)
}

// work receives from Slack, and does what one of several servers does while this
// one leads, each by the configuration of the moment.
func (d *daemon) work(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() {
		d.leader.Run(ctx, func(ctx context.Context) {
			for ctx.Err() == nil {
				c := d.now.Load()
				held, stop := endingWith(ctx, c.over)
				together(c.led)(held)
				<-held.Done()
				stop()
			}
		})
	})
	for ctx.Err() == nil {
		c := d.now.Load()
		held, stop := context.WithCancel(ctx)
		running.Go(func() { c.receive(held) })
		select {
		case <-d.replaced:
			// Slack sends to whichever connection there is: the old ones go once the new
			// ones are there.
			time.AfterFunc(5*time.Second, stop)
		case <-ctx.Done():
			stop()
		}
	}
	running.Wait()
}

// endingWith is ctx that ends with other too.
func endingWith(ctx, other context.Context) (context.Context, context.CancelFunc) {
	held, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return held, func() { stop(); cancel() }
}

// take makes c what is served by.
func (d *daemon) take(c *configured) error {
	if c.page != "" {
		if err := os.MkdirAll(d.state, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.state, addressFile), []byte(c.page+"\n"), 0o600); err != nil {
			return err
		}
	}
	go c.svc.Answerer().Warm() // the first question should not wait
	old := d.now.Swap(c)
	if old == nil {
		return nil
	}
	old.end()
	select {
	case d.replaced <- struct{}{}:
	default: // whoever has yet to hear of the one before hears of this one
	}
	if old.agents != c.agents {
		old.agents.stop()
	}
	return nil
}

// reload reads the configuration again, and the files of secrets. What is wrong with
// it is told, and the one before goes on.
func (d *daemon) reload(ctx context.Context) {
	old := d.now.Load()
	next, err := d.again(ctx, old)
	if err == nil {
		err = d.take(next)
	}
	if err != nil {
		e := ops.AsError(err)
		for _, e := range append([]*ops.Error{e}, e.More...) {
			d.log.Error("the configuration was refused; the one before goes on",
				"problem", view.Plainly(e.Line(d.sh.lang)), "fix", view.Plainly(e.Fix.In(d.sh.lang)))
		}
		return
	}
	d.log.Info("the configuration was read again", "file", next.cfg.Path, "changed", strings.Join(config.Changes(old.cfg, next.cfg), " "),
		"agents", map[bool]string{true: "their sessions go on", false: "they begin new sessions"}[old.agents == next.agents])
}

func (d *daemon) again(ctx context.Context, old *configured) (next *configured, err error) {
	undo, err := readSecrets()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	cfg, err := loadConfig()
	if err != nil {
		return nil, err
	}
	if err := notAdministrator(ctx, cfg); err != nil {
		return nil, err
	}
	if cfg.Store != old.cfg.Store {
		d.log.Warn("this field is taken by a restart alone", "field", "store")
		cfg.Store = old.cfg.Store
	}
	return d.build(cfg)
}

// build makes all that cfg asks for, or says what is wrong with it. Nothing of it
// runs yet.
func (d *daemon) build(cfg config.Config) (*configured, error) {
	old := d.now.Load()
	sh := d.sh
	svc, err := sh.serviceOf(cfg)
	if err != nil {
		return nil, err
	}
	svc.Store = func() (*store.Store, error) { return d.store, nil }
	if old != nil { // a cluster keeps its connection, and the count of what it was asked
		for name, cl := range old.svc.Clusters {
			before, now := old.cfg.Clusters[name], cfg.Clusters[name]
			before.Site, now.Site = job.Site{}, job.Site{}
			if svc.Clusters[name] != nil && reflect.DeepEqual(before, now) {
				svc.Clusters[name] = cl
			}
		}
	}
	c := &configured{cfg: cfg, svc: svc, watchers: newWatchers(svc), receive: func(context.Context) {}}
	c.over, c.end = context.WithCancel(context.Background())
	if _, err := svc.RecallLastSeen(c.over); err != nil {
		d.log.Warn("what the clusters showed last is not known", "error", err)
	}
	c.policy = mcp.Policy{
		Tokens: cfg.MCP.Confirm == config.FallbackToken,
		Beyond: func(_ string, in any) string { return beyondAgents(svc, cfg.Slack.Approval, in) },
	}
	mux := http.NewServeMux()
	tell := logNews(d.log, sh.lang)
	registry := prometheus.NewRegistry() // of what c names
	c.led = append(c.led, func(ctx context.Context) { runWatchers(ctx, c.watchers) })
	var b *bot.Bot
	if slackAsked() {
		if b, err = d.slack(&sh, c); err != nil {
			return nil, err
		}
		tell = cardNews(b)
		mux.Handle("/slack/", b.Handler())
		c.receive = b.Receive
		c.led = append(c.led, b.Work)
	}
	if len(cfg.Notify) > 0 {
		n, err := notifier(cfg, d.store, d.log)
		if err != nil {
			return nil, err
		}
		tell = alsoNotify(tell, n, svc)
		c.led = append(c.led, n.Run, func(ctx context.Context) { tellApprovals(ctx, n, svc) })
		registry.MustRegister(notifyMetrics{n})
	}
	c.led = append(c.led, func(ctx context.Context) { keepLastSeen(ctx, svc, d.log) })
	c.led = append(c.led, func(ctx context.Context) {
		follower := follow.Follower{Service: svc, Watchers: c.watchers, Tell: tell, Log: d.log}
		if err := follower.Run(ctx); err != nil {
			d.log.Error("jobs are not followed", "error", err)
		}
	})
	if c.agents, err = d.agents(cfg, sh.lang); err != nil {
		return nil, err
	}
	for _, path := range []string{"/mcp", "/mcp/consent/", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		mux.Handle(path, c.agents.handler)
	}
	if err := d.pages(mux, c, b); err != nil {
		return nil, err
	}
	if b != nil && b.Decides() || c.page != "" && len(cfg.Web.Operators) > 0 {
		c.policy = askOperators(c.policy, svc, cfg.Slack.Approval)
	}
	jobs := prometheus.NewRegistry()
	registry.MustRegister(&slurmMetrics{clusters: svc.Clusters})
	jobs.MustRegister(&jobMetrics{service: svc, watchers: c.watchers})
	mux.Handle("/metrics", metricsHandler(prometheus.Gatherers{d.own, registry}, jobs, c.agents.access.Known()))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := d.store.Ping(r.Context()); err != nil {
			http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	c.handler = counted(mux, d.requests)
	return c, nil
}

// slack is the bot as c has it configured.
func (d *daemon) slack(sh *shell, c *configured) (*bot.Bot, error) {
	s, err := sh.slackConfig(c.cfg, c.svc, d.store)
	if err != nil {
		return nil, err
	}
	s.Log, s.Watchers = d.log, c.watchers
	if c.cfg.Web.URL != "" {
		s.Page = func(ctx context.Context, who ops.Caller) (string, error) {
			link, err := web.Link(ctx, c.svc, who, "")
			return strings.TrimSuffix(c.cfg.Web.URL, "/") + link, err
		}
	}
	b, err := bot.New(s)
	if err != nil {
		return nil, &ops.Error{Code: ops.BadInput, Field: "SLACK_BOT_TOKEN", Message: lang.Said(err), Fix: lang.Text{EN: "docs/slack.md has the steps", ZH: "步骤见 docs/slack.md"}}
	}
	return b, nil
}

// agents is the door for agents, the one there is where nothing of it has changed.
func (d *daemon) agents(cfg config.Config, l lang.Lang) (*agentDoor, error) {
	said, err := readServeFlags(d.words, cfg)
	if err != nil {
		return nil, err
	}
	door := &agentDoor{offer: said.offer, lang: l}
	if door.access, err = mcpAccess(cfg.MCP, d.state); err != nil {
		return nil, err
	}
	if old := d.now.Load(); old != nil && old.agents.lang == l && reflect.DeepEqual(old.agents.offer, door.offer) &&
		reflect.DeepEqual(old.agents.access.Tokens, door.access.Tokens) {
		return old.agents, nil
	}
	server, err := mcp.NewServer(mcp.Config{
		Service:  func() (*ops.Service, error) { return d.now.Load().svc, nil },
		Toolsets: door.offer.Toolsets, Tools: door.offer.Tools, ReadOnly: door.offer.ReadOnly, Roots: door.offer.Roots,
		Version: version(), Log: d.log, Policy: func() mcp.Policy { return d.now.Load().policy },
	})
	if err != nil {
		return nil, err
	}
	door.handler, door.stop = server.HTTPHandler(door.access)
	return door, nil
}

// pages are the page for browsers, where it may be served. Its streams end with c:
// browsers open them again, and are who they are by then.
func (d *daemon) pages(mux *http.ServeMux, c *configured, b *bot.Bot) error {
	page, err := webPage(c.cfg, c.svc, b, d.at, d.log)
	if err != nil || page == nil {
		return err
	}
	pages := page.Handler()
	for _, path := range web.Paths {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/stream") {
				held, stop := endingWith(r.Context(), c.over)
				defer stop()
				r = r.WithContext(held)
			}
			pages.ServeHTTP(w, r)
		})
	}
	mux.Handle("/{$}", http.RedirectHandler("/web/jobs", http.StatusSeeOther))
	c.page = cmp.Or(strings.TrimSuffix(c.cfg.Web.URL, "/"), "http://"+d.at.String())
	return nil
}
