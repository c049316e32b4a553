package main

import (
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
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/follow"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/mcp"
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
	// The first call that needs the service reports a file that cannot be read: an
	// agent shows that error, but not what a process prints as it ends.
	cfg, _ := loadConfig()
	offer := agentFlags{cfg.MCP}
	rest, err := flags("mcp", words, offer.define)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return ops.InputError(rest[0],
			lang.Text{EN: "mcp does not accept %q", ZH: "mcp 不认识 %q"}.With(rest[0]),
			lang.Text{EN: "mcp, mcp config --client NAME, or mcp doctor", ZH: "用法：mcp、mcp config --client NAME 或 mcp doctor"})
	}
	service := sync.OnceValues(sh.service)
	srv, err := mcp.NewServer(mcp.Config{
		Service: service, Caller: osUser(ops.MCP),
		Toolsets: offer.Toolsets, Tools: offer.Tools, ReadOnly: offer.ReadOnly, Roots: offer.Roots,
		Policy: func() mcp.Policy { return ownAgentPolicy(cfg) }, Version: version(), Log: sh.logger(),
	})
	if err != nil {
		return err
	}
	return srv.ServeStdio(ctx, sh.in, sh.out)
}

// agentFlags are what the configuration offers to agents, and the flags that override
// it.
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

// listFlag returns a flag function that replaces a list by words separated by commas.
func listFlag(into *[]string) func(string) error {
	return func(list string) error {
		*into = strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
		return nil
	}
}

// logger writes to standard error: standard output belongs to answers.
func (sh *shell) logger() *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("MEGATRON_OPS_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(sh.telemetry.withExport(slog.NewTextHandler(sh.err, &slog.HandlerOptions{Level: level})))
}

// serveFlags are the flags of serve.
type serveFlags struct {
	listen, pprof string
	offer         agentFlags
}

func readServeFlags(words []string, cfg config.Config) (serveFlags, error) {
	said := serveFlags{listen: "127.0.0.1:8080", offer: agentFlags{cfg.MCP}}
	_, err := flags("serve", words, func(f *flag.FlagSet) {
		f.StringVar(&said.listen, "listen", said.listen, "")
		f.StringVar(&said.pprof, "pprof", "", "")
		said.offer.define(f)
	})
	return said, err
}

// serve serves Slack, agents and browsers over HTTP until ctx ends.
func serve(ctx context.Context, sh *shell, words []string) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	if err := refuseAdministrator(ctx, cfg); err != nil {
		return err
	}
	if _, err := readSecrets(); err != nil {
		return err
	}
	said, err := readServeFlags(words, cfg)
	if err != nil {
		return err
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	d, err := newDaemon(sh, words, cfg)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", said.listen)
	if err != nil {
		return &ops.Error{Code: ops.Failed, Field: "listen", Message: lang.Said(err), Fix: lang.Text{EN: "--listen another address or port", ZH: "请用 --listen 换一个地址或端口"}}
	}
	defer func() { _ = ln.Close() }() // Shutdown has closed it already after serving
	if said.pprof != "" {
		stop, err := serveProfiles(said.pprof, d.log)
		if err != nil {
			return err
		}
		defer stop()
	}
	d.addr = ln.Addr()
	first, err := d.build(cfg)
	if err != nil {
		return err
	}
	if err := d.activate(first); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { d.work(ctx) })
	server := &http.Server{
		Handler:           bodiesInTime(d),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelWarn),
	}
	fmt.Fprintf(sh.err, "megatron-ops: serving on http://%s (Slack: %s)\n", ln.Addr(), onOff(slackConfigured()))
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	terminal := isTerminal(sh.err)
	for ended := false; !ended; {
		select {
		case err := <-failed:
			return err
		case <-reload:
			if ended = terminal && !isTerminal(sh.err); !ended { // a closing terminal sends SIGHUP too
				d.reload(ctx)
			}
		case <-ctx.Done():
			ended = true
		}
	}
	// Requests that were accepted continue or are in the store; ten seconds are for
	// answers that are being written.
	shut, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(shut); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	running.Wait()
	return nil
}

// slackConfigured reports whether any of Slack's variables is set.
func slackConfigured() bool {
	return slices.ContainsFunc([]string{"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET"}, func(name string) bool {
		return os.Getenv(name) != ""
	})
}

// slackConfig combines Slack's variables with the configuration.
func (sh *shell) slackConfig(cfg config.Config, svc *ops.Service, st *store.Store) (bot.Config, error) {
	install, err := slackInstall(cfg.Slack)
	if err != nil {
		return bot.Config{}, err
	}
	return bot.Config{
		SigningSecret: os.Getenv("SLACK_SIGNING_SECRET"), OldSigningSecret: os.Getenv("SLACK_SIGNING_SECRET_OLD"), BotToken: os.Getenv("SLACK_BOT_TOKEN"),
		AppToken: os.Getenv("SLACK_APP_TOKEN"), APIURL: os.Getenv("SLACK_API_URL"), OAuth: install,
		Service: svc, Store: st.Slack(), Policy: slackPolicy(svc, cfg), Site: siteValues(svc), Log: sh.logger(),
	}, nil
}

// siteValues returns the values that a cluster's site profile gives the submit form.
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

// newWatchers makes one watcher for each cluster. Everything that
// follows jobs subscribes to it, so the cluster is polled once. Reading operations are
// answered from the same polls.
func newWatchers(svc *ops.Service) map[string]*watch.Watcher {
	all, views := map[string]*watch.Watcher{}, map[string]ops.View{}
	for name, cl := range svc.Clusters {
		view := watch.NewShared(cl, watch.Options{})
		if cl.Kind() != "local" { // polling it is free
			views[name] = view
		}
		all[name] = watch.New(view, watch.Options{})
	}
	svc.Views = views
	return all
}

// keepLastSeen stores what the clusters show, for a time when they do not answer. Other
// processes read it too, and so does this one after a restart.
func keepLastSeen(ctx context.Context, svc *ops.Service, log *slog.Logger) {
	// The previous leader may have seen more than this server.
	seen, err := svc.RecallLastSeen(ctx)
	if err != nil && ctx.Err() == nil {
		log.Warn("what the clusters showed last is not known", "error", err)
	}
	keep := func(ctx context.Context) {
		for name := range svc.Views {
			at, err := svc.KeepLastSeen(ctx, name, seen[name])
			if err != nil && ctx.Err() == nil {
				log.Warn("what a cluster shows was not written down", "cluster", name, "error", err)
			}
			seen[name] = at
		}
	}
	for wait := 5 * time.Second; ops.Pause(ctx, wait); wait = 20 * time.Second {
		keep(ctx)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	keep(end)
}

// runWatchers watches until ctx ends. Each term as leader starts with an empty state:
// another server has reported what happened meanwhile.
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

// runAll runs all of work at once and returns when each has ended.
func runAll(work []func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		var wg sync.WaitGroup
		for _, f := range work {
			wg.Go(func() { f(ctx) })
		}
		wg.Wait()
	}
}

// serverName identifies this process among all that share the database.
func serverName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text())
}

// logNews logs problems of running jobs. It is for servers without Slack.
func logNews(log *slog.Logger, l lang.Lang) func(context.Context, follow.News) error {
	return func(_ context.Context, n follow.News) error {
		for _, a := range n.Alarms {
			log.Warn(view.Plainly(a.Says(l)), "job", n.Job.ID, "name", n.Job.Name, "alarm", a.ID, "node", a.Node)
		}
		if n.Incident != nil {
			log.Warn(view.Plainly(n.Incident.Says().In(l)))
		}
		return nil
	}
}

// cardNews posts to the thread of a job's card what was done beyond watching, and what
// goes wrong while the job runs. The bot gets the job's states from the watchers. Each
// post has a key, so that it may be repeated.
func cardNews(b *bot.Bot) func(context.Context, follow.News) error {
	return func(ctx context.Context, n follow.News) error {
		var failed []error
		for _, a := range n.Alarms {
			failed = append(failed, b.Notify(ctx, a.Notice(n.Job)))
		}
		if n.Next != "" {
			failed = append(failed, b.Carry(ctx, n.Job, n.Next))
		}
		if i := n.Incident; i != nil {
			failed = append(failed, b.Notify(ctx, ops.Notice{
				Key: "incident/" + i.Where + "/" + string(n.Job.ID), Cluster: n.Job.Cluster, Job: n.Job.ID, Owner: n.Job.User,
				Title: i.Says(), Incident: i.Jobs,
			}))
		}
		if n.Why != (lang.Text{}) {
			failed = append(failed, b.Note(ctx, n.Job, n.Why.EN, n.Why))
		}
		return errors.Join(failed...)
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off, no SLACK_ variables"
}
