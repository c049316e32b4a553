package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// A daemon is the state that serve keeps while it runs, across reloads of its
// configuration.
type daemon struct {
	sh       shell   // in the language before any file changed it
	offer    offerIn // serve's own flags, which override the file
	state    string
	store    *store.Store
	addr     net.Addr
	log      *slog.Logger
	leader   *lead.Leader
	own      *prometheus.Registry
	requests *prometheus.HistogramVec
	current  atomic.Pointer[generation]
	replaced chan struct{} // receives after current was replaced
}

// A generation is everything that serve builds from one reading of its configuration.
// It is complete before it is activated.
type generation struct {
	cfg      config.Config
	svc      *ops.Service
	watchers map[string]*watch.Watcher
	policy   mcp.Policy
	agents   *mcpEndpoint
	handler  http.Handler
	page     string // URL of the page; empty: no page is served
	// receive gets Slack's requests by Socket Mode. leaderWork is what only the leading
	// server does.
	receive    func(context.Context)
	leaderWork []func(context.Context)
	// ctx ends when another generation is activated.
	ctx    context.Context //nolint:containedctx // it is this value's own life
	cancel context.CancelFunc
}

// An mcpEndpoint is /mcp with its open sessions. It survives a reload that does not
// change the settings it depends on.
type mcpEndpoint struct {
	offer   config.MCP
	access  mcp.HTTP
	lang    lang.Lang
	handler http.Handler
	stop    func()
}

// newDaemon opens what outlives reloads.
func newDaemon(sh *shell, offer offerIn, cfg config.Config) (*daemon, error) {
	text := slog.NewTextHandler(sh.err, nil)
	logTelemetryErrors(slog.New(text), slog.LevelWarn)
	d := &daemon{sh: *sh, offer: offer, log: slog.New(sh.telemetry.withExport(text)), own: prometheus.NewRegistry(), replaced: make(chan struct{}, 1)}
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
	d.own.MustRegister(outboxMetrics(d.store, d.log), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return d, nil
}

// ServeHTTP serves a request by the current generation.
func (d *daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.current.Load().handler.ServeHTTP(w, r)
}

// work receives from Slack, and does the leader's work while this server leads, each by
// the current generation.
func (d *daemon) work(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() {
		d.leader.Run(ctx, func(ctx context.Context) {
			for ctx.Err() == nil {
				c := d.current.Load()
				held, stop := cancelledByEither(ctx, c.ctx)
				runAll(c.leaderWork)(held)
				<-held.Done()
				stop()
			}
		})
	})
	for ctx.Err() == nil {
		c := d.current.Load()
		held, stop := context.WithCancel(ctx)
		running.Go(func() { c.receive(held) })
		select {
		case <-d.replaced:
			// Slack sends to any open connection: close the old ones once the new ones
			// are open.
			time.AfterFunc(5*time.Second, stop)
		case <-ctx.Done():
			stop()
		}
	}
	running.Wait()
}

// cancelledByEither returns a context that ends with ctx or with other.
func cancelledByEither(ctx, other context.Context) (context.Context, context.CancelFunc) {
	held, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return held, func() { stop(); cancel() }
}

func (d *daemon) activate(next *generation) error {
	if next.page != "" {
		if err := os.MkdirAll(d.state, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.state, addressFile), []byte(next.page+"\n"), 0o600); err != nil {
			return err
		}
	}
	go next.svc.Answerer().Warm() // so that the first question need not wait
	old := d.current.Swap(next)
	if old == nil {
		return nil
	}
	old.cancel()
	select {
	case d.replaced <- struct{}{}:
	default: // the pending signal covers this generation too
	}
	if old.agents != next.agents {
		old.agents.stop()
	}
	return nil
}

// reload reads the configuration and the files of secrets again. If they are wrong, it
// logs the errors and the current generation continues.
func (d *daemon) reload(ctx context.Context) {
	old := d.current.Load()
	next, err := d.rebuild(ctx, old)
	if err == nil {
		err = d.activate(next)
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

func (d *daemon) rebuild(ctx context.Context, old *generation) (next *generation, err error) {
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
	if err := refuseAdministrator(ctx, cfg); err != nil {
		return nil, err
	}
	if isGone(old.cfg.Path) {
		return nil, &ops.Error{
			Code: ops.BadInput, Field: "configuration", Message: lang.Text{EN: "%s is gone or empty, and its limits would go with it", ZH: "%s 已不存在或为空，其中的限制也会随之失效"}.With(old.cfg.Path),
			Fix: lang.Text{EN: "put it back; to run without a configuration, restart", ZH: "请放回该文件；若要不用配置运行，请重新启动"},
		}
	}
	if cfg.Store != old.cfg.Store {
		d.log.Warn("this field is taken by a restart alone", "field", "store")
		cfg.Store = old.cfg.Store
	}
	return d.build(cfg)
}

// isGone reports whether the file that was read at path exists no longer, or has been emptied, as
// by an editor on a full disk.
func isGone(path string) bool {
	text, err := os.ReadFile(path)
	return path != "" && (errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(text)) == 0)
}

// build makes everything that cfg asks for, or returns what is wrong with it. Nothing
// runs yet.
func (d *daemon) build(cfg config.Config) (*generation, error) {
	old := d.current.Load()
	sh := d.sh
	svc, err := sh.serviceOf(cfg)
	if err != nil {
		return nil, err
	}
	svc.Store = func() (*store.Store, error) { return d.store, nil }
	if old != nil { // an unchanged cluster keeps its connection and its request counts
		for name, cl := range old.svc.Clusters {
			before, now := old.cfg.Clusters[name], cfg.Clusters[name]
			before.Site, now.Site = job.Site{}, job.Site{}
			if svc.Clusters[name] != nil && reflect.DeepEqual(before, now) {
				svc.Clusters[name] = cl
			}
		}
	}
	gen := &generation{cfg: cfg, svc: svc, watchers: newWatchers(svc), receive: func(context.Context) {}}
	gen.ctx, gen.cancel = context.WithCancel(context.Background())
	if _, err := svc.RecallLastSeen(gen.ctx); err != nil {
		d.log.Warn("what the clusters showed last is not known", "error", err)
	}
	mux := http.NewServeMux()
	tell := logNews(d.log, sh.lang)
	registry := prometheus.NewRegistry() // metrics of this generation
	gen.leaderWork = append(gen.leaderWork, func(ctx context.Context) { runWatchers(ctx, gen.watchers) })
	var b *bot.Bot
	if slackConfigured() {
		if b, err = d.slack(&sh, gen); err != nil {
			return nil, err
		}
		tell = cardNews(b)
		mux.Handle("/slack/", b.Handler())
		gen.receive = b.Receive
		gen.leaderWork = append(gen.leaderWork, b.Work)
	}
	if len(cfg.Notify) > 0 {
		n, err := notifier(cfg, d.store, d.log)
		if err != nil {
			return nil, err
		}
		tell = alsoNotify(tell, n, svc)
		gen.leaderWork = append(gen.leaderWork, n.Run, func(ctx context.Context) { notifyApprovals(ctx, n, svc) })
		registry.MustRegister(notifyMetrics(n))
	}
	gen.leaderWork = append(gen.leaderWork, func(ctx context.Context) { keepLastSeen(ctx, svc, d.log) })
	gen.leaderWork = append(gen.leaderWork, func(ctx context.Context) {
		follower := follow.Follower{Service: svc, Watchers: gen.watchers, Tell: tell, Log: d.log}
		if err := follower.Run(ctx); err != nil {
			d.log.Error("jobs are not followed", "error", err)
		}
	})
	if gen.agents, err = d.agents(cfg, sh.lang); err != nil {
		return nil, err
	}
	for _, path := range []string{"/mcp", "/mcp/consent/", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		mux.Handle(path, gen.agents.handler)
	}
	if err := d.pages(mux, gen, b); err != nil {
		return nil, err
	}
	operators := b != nil && b.Decides() || gen.page != "" && len(cfg.Web.Operators) > 0
	gen.policy = agentPolicy(cfg, operators)
	jobs := prometheus.NewRegistry()
	registry.MustRegister(&slurmMetrics{clusters: svc.Clusters})
	jobs.MustRegister(&jobMetrics{service: svc, watchers: gen.watchers})
	mux.Handle("/metrics", metricsHandler(prometheus.Gatherers{d.own, registry}, jobs, gen.agents.access.Known()))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := d.store.Ping(r.Context()); err != nil {
			http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	gen.handler = instrument(mux, d.requests)
	return gen, nil
}

func (d *daemon) slack(sh *shell, gen *generation) (*bot.Bot, error) {
	s, err := sh.slackConfig(gen.cfg, gen.svc, d.store)
	if err != nil {
		return nil, err
	}
	s.Log, s.Watchers = d.log, gen.watchers
	if gen.cfg.Web.URL != "" {
		s.Page = func(ctx context.Context, who ops.Caller) (string, error) {
			link, err := web.Link(ctx, gen.svc, who, "")
			return strings.TrimSuffix(gen.cfg.Web.URL, "/") + link, err
		}
	}
	b, err := bot.New(s)
	if err != nil {
		return nil, &ops.Error{Code: ops.BadInput, Field: "SLACK_BOT_TOKEN", Message: lang.Said(err), Fix: lang.Text{EN: "docs/slack.md has the steps", ZH: "步骤见 docs/slack.md"}}
	}
	return b, nil
}

// agents returns the endpoint for agents: the current one if none of its settings has
// changed.
func (d *daemon) agents(cfg config.Config, l lang.Lang) (*mcpEndpoint, error) {
	offer, err := d.offer.over(cfg.MCP)
	if err != nil {
		return nil, err
	}
	door := &mcpEndpoint{offer: offer, lang: l}
	if door.access, err = mcpAccess(cfg.MCP, d.state); err != nil {
		return nil, err
	}
	if old := d.current.Load(); old != nil && old.agents.lang == l && reflect.DeepEqual(old.agents.offer, door.offer) &&
		reflect.DeepEqual(old.agents.access.Tokens, door.access.Tokens) {
		return old.agents, nil
	}
	server, err := mcp.NewServer(mcp.Config{
		Service:  func() (*ops.Service, error) { return d.current.Load().svc, nil },
		Toolsets: door.offer.Toolsets, Tools: door.offer.Tools, ReadOnly: door.offer.ReadOnly, Roots: door.offer.Roots,
		Version: version(), Log: d.log, Policy: func() mcp.Policy { return d.current.Load().policy },
	})
	if err != nil {
		return nil, err
	}
	door.handler, door.stop = server.HTTPHandler(door.access)
	return door, nil
}

// pages adds the page for browsers if it may be served. Its streams end with gen:
// browsers open them again and are authorised anew.
func (d *daemon) pages(mux *http.ServeMux, gen *generation, b *bot.Bot) error {
	page, err := webPage(gen.cfg, gen.svc, b, d.addr, d.log)
	if err != nil || page == nil {
		return err
	}
	pages := page.Handler()
	for _, path := range web.Paths {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/stream") {
				held, stop := cancelledByEither(r.Context(), gen.ctx)
				defer stop()
				r = r.WithContext(held)
			}
			pages.ServeHTTP(w, r)
		})
	}
	mux.Handle("/{$}", http.RedirectHandler("/web/jobs", http.StatusSeeOther))
	gen.page = cmp.Or(strings.TrimSuffix(gen.cfg.Web.URL, "/"), "http://"+d.addr.String())
	return nil
}
