package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// mcpCommand serves one agent on standard input and output.
func mcpCommand(ctx context.Context, sh *shell, words []string) error {
	if len(words) > 0 && words[0] == "config" {
		return mcpConfig(sh, words[1:])
	}
	if len(words) > 0 && words[0] == "doctor" {
		return mcpDoctor(ctx, sh, words[1:])
	}
	// A file that cannot be read is told by the first call that needs the service:
	// an agent shows that, and not what a process says as it ends.
	cfg, _ := loadConfig()
	offer := agentFlags{cfg.MCP}
	rest, err := flags("mcp", words, offer.define)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return &ops.Error{
			Code: ops.BadInput, Field: rest[0], Message: lang.Text{EN: "mcp does not know %q", ZH: "mcp 不认识 %q"}.With(rest[0]),
			Fix: lang.Text{EN: "mcp, mcp config --client NAME, or mcp doctor", ZH: "用法：mcp、mcp config --client NAME 或 mcp doctor"},
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	service := sync.OnceValues(func() (*ops.Service, error) { return sh.service(dir) })
	srv, err := mcp.NewServer(mcp.Config{
		Service: service, Caller: osUser(ops.MCP),
		Toolsets: offer.Toolsets, Tools: offer.Tools, ReadOnly: offer.ReadOnly, Roots: offer.Roots,
		Policy: ownAgentPolicy(service, cfg), Lang: sh.lang, Version: version(), Log: sh.logger(),
	})
	if err != nil {
		return err
	}
	return srv.ServeStdio(ctx, sh.in, sh.out)
}

// agentFlags are what the configuration offers to agents, and flags that say
// otherwise.
type agentFlags struct{ config.MCP }

func (a *agentFlags) define(f *flag.FlagSet) {
	f.BoolVar(&a.ReadOnly, "read-only", a.ReadOnly, "")
	f.Func("toolsets", "", listFlag(&a.Toolsets))
	f.Func("tools", "", listFlag(&a.Tools))
	f.Func("roots", "", func(list string) error {
		if err := listFlag(&a.Roots)(list); err != nil {
			return err
		}
		for _, r := range a.Roots {
			if !filepath.IsAbs(r) {
				return lang.Text{EN: "%s is not an absolute path", ZH: "%s 不是绝对路径"}.Err(r)
			}
		}
		return nil
	})
}

// listFlag reads words with commas between, in place of what was there.
func listFlag(into *[]string) func(string) error {
	return func(list string) error {
		*into = strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
		return nil
	}
}

// logger writes to standard error: standard output is an answer's.
func (sh *shell) logger() *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("MEGATRON_OPS_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(sh.err, &slog.HandlerOptions{Level: level}))
}

// serve answers Slack and agents over HTTP until ctx ends.
func serve(ctx context.Context, sh *shell, words []string) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	if err := notAdministrator(ctx, cfg); err != nil {
		return err
	}
	if err := readSecrets(); err != nil {
		return err
	}
	listen := "127.0.0.1:8080"
	offer := agentFlags{cfg.MCP}
	if _, err := flags("serve", words, func(f *flag.FlagSet) {
		f.StringVar(&listen, "listen", listen, "")
		offer.define(f)
	}); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	svc, err := sh.service(dir)
	if err != nil {
		return err
	}
	st, err := svc.Store()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(sh.err, nil))

	mux := http.NewServeMux()
	var running sync.WaitGroup
	tell := logNews(log, sh.lang)
	agentPolicy := mcp.Policy{
		Tokens: cfg.MCP.Confirm == config.FallbackToken,
		Beyond: func(op string, in any) string { return beyondAgents(svc, cfg.Slack.Approval, op, in) },
	}
	go svc.Answerer().Warm() // the first question should not wait
	watchers := newWatchers(svc)
	led := []func(context.Context){func(ctx context.Context) { runWatchers(ctx, watchers) }}
	slackOn := slackAsked()
	if slackOn {
		slackConfig, err := sh.slackConfig(cfg, svc, st)
		if err != nil {
			return err
		}
		slackConfig.Log, slackConfig.Watchers = log, watchers
		if cfg.Web.URL != "" {
			slackConfig.Page = func(ctx context.Context, who ops.Caller) (string, error) {
				link, err := web.Link(ctx, svc, who, "")
				return strings.TrimSuffix(cfg.Web.URL, "/") + link, err
			}
		}
		b, err := bot.New(slackConfig)
		if err != nil {
			return &ops.Error{Code: ops.BadInput, Field: "SLACK_BOT_TOKEN", Message: lang.Said(err), Fix: lang.Text{EN: "docs/slack.md has the steps", ZH: "步骤见 docs/slack.md"}}
		}
		tell = cardNews(b, log)
		if b.Decides() {
			agentPolicy = askInSlack(agentPolicy, svc, cfg.Slack.Approval)
		}
		mux.Handle("/slack/", b.Handler())
		running.Go(func() { b.Receive(ctx) })
		led = append(led, b.Work)
	}
	if len(cfg.Notify) > 0 {
		n, err := notifier(cfg, st, log)
		if err != nil {
			return err
		}
		tell = alsoNotify(tell, n, cfg.Web.URL, log)
		led = append(led, n.Run)
	}
	led = append(led, func(ctx context.Context) {
		follower := follow.Follower{Service: svc, Watchers: watchers, Tell: tell, Log: log}
		if err := follower.Run(ctx); err != nil {
			log.Error("jobs are not followed", "error", err)
		}
	})
	leader := lead.Leader{Lease: st.Lease("leader", serverName()), Log: log}
	running.Go(func() { leader.Run(ctx, together(led)) })
	agents, err := mcp.NewServer(mcp.Config{
		Service:  func() (*ops.Service, error) { return svc, nil },
		Toolsets: offer.Toolsets, Tools: offer.Tools, ReadOnly: offer.ReadOnly, Roots: offer.Roots,
		Lang: sh.lang, Version: version(), Log: log, Policy: agentPolicy,
	})
	if err != nil {
		return err
	}
	state, err := config.StateDir(os.Getenv)
	if err != nil {
		return err
	}
	access, err := mcpAccess(cfg.MCP, state)
	if err != nil {
		return err
	}
	handler, stop := agents.HTTPHandler(access)
	defer stop()
	for _, path := range []string{"/mcp", "/mcp/consent/", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		mux.Handle(path, handler)
	}

	reg := prometheus.NewRegistry()
	requests := promauto.With(reg).NewHistogramVec(prometheus.HistogramOpts{
		Name: "megatron_ops_http_request_duration_seconds", Help: "Time that HTTP requests took, by the route and the class of the status.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"path", "class"})
	promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "megatron_ops_leads", Help: "1 on the server that watches the clusters and answers Slack, 0 on one that stands by.",
	}, func() float64 {
		if leader.Leads() {
			return 1
		}
		return 0
	})
	promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{Name: "megatron_ops_build_info", Help: "The version that runs; the value is 1."}, []string{"version"}).
		WithLabelValues(version()).Set(1)
	reg.MustRegister(&slurmMetrics{clusters: svc.Clusters}, storeMetrics{st, log},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	jobs := prometheus.NewRegistry()
	jobs.MustRegister(&jobMetrics{service: svc, watchers: watchers})
	mux.Handle("/metrics", metricsHandler(reg, jobs, access.Known()))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := st.Ping(r.Context()); err != nil {
			http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})

	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return &ops.Error{Code: ops.Failed, Field: "listen", Message: lang.Said(err), Fix: lang.Text{EN: "--listen another address or port", ZH: "请用 --listen 换一个地址或端口"}}
	}
	page, err := webPage(cfg, svc, ln.Addr(), log)
	if err != nil {
		return err
	}
	if page != nil {
		pages := page.Handler()
		for _, path := range web.Paths {
			mux.Handle(path, pages)
		}
		mux.Handle("/{$}", http.RedirectHandler("/web/jobs", http.StatusSeeOther))
		base := cmp.Or(strings.TrimSuffix(cfg.Web.URL, "/"), "http://"+ln.Addr().String())
		if err := os.MkdirAll(state, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(state, addressFile), []byte(base+"\n"), 0o600); err != nil {
			return err
		}
	}
	server := &http.Server{
		Handler:           counted(mux, requests),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	fmt.Fprintf(sh.err, "megatron-ops: serving on http://%s (Slack: %s)\n", ln.Addr(), onOff(slackOn))
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// What was accepted is carried on with or is in the store: ten seconds are for
	// answers that are being written.
	shut, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(shut); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	running.Wait()
	return nil
}

// slackAsked reports whether any of Slack's variables is set.
func slackAsked() bool {
	for _, name := range []string{"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// slackConfig is Slack's variables and what the configuration says of it.
func (sh *shell) slackConfig(cfg config.Config, svc *ops.Service, st *store.Store) (bot.Config, error) {
	install, err := slackInstall(cfg.Slack)
	if err != nil {
		return bot.Config{}, err
	}
	return bot.Config{
		SigningSecret: os.Getenv("SLACK_SIGNING_SECRET"), OldSigningSecret: os.Getenv("SLACK_SIGNING_SECRET_OLD"), BotToken: os.Getenv("SLACK_BOT_TOKEN"),
		AppToken: os.Getenv("SLACK_APP_TOKEN"), APIURL: os.Getenv("SLACK_API_URL"), OAuth: install,
		Service: svc, Store: st.Slack(), Policy: slackPolicy(svc, cfg.Slack), Site: siteValues(svc), Log: sh.logger(),
	}, nil
}

// siteValues are what a site's profile puts into the submit form.
func siteValues(svc *ops.Service) func(cluster string) map[string]string {
	return func(cluster string) map[string]string {
		site := svc.Sites(cluster)
		values := map[string]string{"partition": site.Partition, "account": site.Account, "gpu": site.GPU, "time": site.Time}
		if site.GPUsPerNode > 0 {
			values["gpus_per_node"] = strconv.Itoa(site.GPUsPerNode)
		}
		maps.DeleteFunc(values, func(_, v string) bool { return v == "" })
		return values
	}
}

// newWatchers makes one watcher for each cluster that can be watched: whoever
// wants to know of jobs subscribes, and the cluster is asked once. Operations that
// read are answered by the same questions.
func newWatchers(svc *ops.Service) map[string]*watch.Watcher {
	all, views := map[string]*watch.Watcher{}, map[string]ops.View{}
	for name, cl := range svc.Clusters {
		if c, ok := cl.(interface {
			Name() string
			Jobs(context.Context, slurm.Filter) ([]slurm.Job, error)
			Past(context.Context, slurm.Filter) ([]slurm.Job, error)
		}); ok {
			view := watch.NewShared(c, watch.Options{})
			if cl.Kind() != "local" { // which costs nobody anything to ask
				views[name] = view
			}
			all[name] = watch.New(view, watch.Options{})
		}
	}
	svc.Views = views
	return all
}

// runWatchers watches until ctx ends. What is watched begins anew with each term:
// another server has told of what happened meanwhile.
func runWatchers(ctx context.Context, watchers map[string]*watch.Watcher) {
	var wg sync.WaitGroup
	for _, w := range watchers {
		wg.Go(func() { w.Run(ctx) })
	}
	wg.Wait()
	for _, w := range watchers {
		w.Clear()
	}
}

// together does all of work until each has ended.
func together(work []func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		var wg sync.WaitGroup
		for _, f := range work {
			wg.Go(func() { f(ctx) })
		}
		wg.Wait()
	}
}

// serverName tells this process from every other that shares the database.
func serverName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text())
}

// logNews is where there is no Slack: the server's own terminal hears of what
// goes wrong with running jobs.
func logNews(log *slog.Logger, l lang.Lang) func(context.Context, follow.News) {
	return func(_ context.Context, n follow.News) {
		for _, a := range n.Alarms {
			log.Warn(view.Plainly(a.Says(l)), "job", n.Job.ID, "name", n.Job.Name, "alarm", a.ID, "node", a.Node)
		}
		if n.Incident != nil {
			log.Warn(view.Plainly(n.Incident.Says().In(l)))
		}
	}
}

// cardNews tells in the thread of a job's card what was done beyond watching,
// and what goes wrong while the job runs; the states themselves the bot has
// from the watchers.
func cardNews(b *bot.Bot, log *slog.Logger) func(context.Context, follow.News) {
	return func(ctx context.Context, n follow.News) {
		for _, a := range n.Alarms {
			if err := b.Notify(ctx, a.Notice(n.Job)); err != nil && ctx.Err() == nil {
				log.Error("an alarm was not posted", "job", n.Job.ID, "alarm", a.ID, "error", err)
			}
		}
		if n.Next != "" {
			if err := b.Carry(ctx, n.Job, n.Next); err != nil && ctx.Err() == nil {
				log.Error("the next job's card was not written", "job", n.Next, "error", err)
			}
		}
		if i := n.Incident; i != nil {
			notice := ops.Notice{
				Key: "incident/" + i.Where + "/" + string(n.Job.ID), Cluster: n.Job.Cluster, Job: n.Job.ID, Owner: n.Job.User,
				Title: i.Says(),
			}
			if err := b.Notify(ctx, notice); err != nil && ctx.Err() == nil {
				log.Error("an incident was not posted", "job", n.Job.ID, "error", err)
			}
		}
		if n.Why == (lang.Text{}) {
			return
		}
		if err := b.Note(ctx, n.Job, n.Why.EN, n.Why); err != nil && ctx.Err() == nil {
			log.Error("a job's thread was not written", "job", n.Job.ID, "error", err)
		}
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off, no SLACK_ variables"
}

// counted times requests; the path's label is one of few, whatever is asked.
func counted(mux *http.ServeMux, requests *prometheus.HistogramVec) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		if pattern == "" {
			pattern = "other"
		}
		rec := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		began := time.Now()
		mux.ServeHTTP(rec, r)
		if rec.Header().Get("Content-Type") != "text/event-stream" { // a stream lasts as long as somebody looks
			requests.WithLabelValues(pattern, fmt.Sprintf("%dxx", rec.status/100)).Observe(time.Since(began).Seconds())
		}
	})
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.status = code
	s.ResponseWriter.WriteHeader(code)
}

// Flush sends what is written so far, as streams need.
func (s *statusRecorder) Flush() {
	if f, ok := s.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap lets streams be flushed through the recorder.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
