package main

import (
	"context"
	"crypto/rand"
	"errors"
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
func mcpCommand(ctx context.Context, sh *shell, in offerIn) error {
	// The first call that needs the service reports a file that cannot be read: an
	// agent shows that error, but not what a process prints as it ends.
	cfg, _ := loadConfig()
	offer, err := in.over(cfg.MCP)
	if err != nil {
		return err
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

// An offerIn says what agents are offered, in place of what the configuration says.
type offerIn struct {
	ReadOnly *bool    `help:"offer no operation that changes something" zh:"不提供任何会改变状态的操作"`
	Toolsets []string `help:"groups of tools to offer, with commas" zh:"要提供的工具组，用逗号分隔"`
	Tools    []string `help:"further single operations to offer, with commas" zh:"另外提供的单个操作，用逗号分隔"`
	Roots    []string `help:"folders below which agents may name files to read, with commas" zh:"智能体可读取其中文件的目录，用逗号分隔"`
}

// over returns c with what was given in its place.
func (in offerIn) over(c config.MCP) (config.MCP, error) {
	if in.ReadOnly != nil {
		c.ReadOnly = *in.ReadOnly
	}
	if in.Toolsets != nil {
		c.Toolsets = in.Toolsets
	}
	if in.Tools != nil {
		c.Tools = in.Tools
	}
	if in.Roots != nil {
		c.Roots = in.Roots
	}
	for _, r := range in.Roots {
		if !filepath.IsAbs(r) {
			return c, ops.InputError("roots", lang.Text{EN: "%s is not an absolute path", ZH: "%s 不是绝对路径"}.With(r), lang.Same("--roots /lustre/logs"))
		}
	}
	return c, nil
}

// args returns the flags that say the same.
func (in offerIn) args() (args []string) {
	switch {
	case in.ReadOnly == nil:
	case *in.ReadOnly:
		args = append(args, "--read-only")
	default:
		args = append(args, "--read-only=false")
	}
	for _, flag := range []struct {
		name string
		list []string
	}{{"--toolsets", in.Toolsets}, {"--tools", in.Tools}, {"--roots", in.Roots}} {
		if flag.list != nil {
			args = append(args, flag.name, strings.Join(flag.list, ","))
		}
	}
	return args
}

// logger writes to standard error: standard output belongs to answers.
func (sh *shell) logger() *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("MEGATRON_OPS_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(sh.telemetry.withExport(slog.NewTextHandler(sh.err, &slog.HandlerOptions{Level: level})))
}

// A serveIn says where serve listens, and what it offers to agents.
type serveIn struct {
	Listen string `default:"127.0.0.1:8080" help:"address and port; 127.0.0.1:8080 where left out" zh:"监听地址与端口；默认 127.0.0.1:8080"`
	Pprof  string `help:"serve Go's profiles at this loopback address" zh:"在该回环地址提供 Go 的性能剖析"`
	offerIn
}

// serve serves Slack, agents and browsers over HTTP until ctx ends.
func serve(ctx context.Context, sh *shell, in serveIn) error {
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
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	d, err := newDaemon(sh, in.offerIn, cfg)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", in.Listen)
	if err != nil {
		return &ops.Error{Code: ops.Failed, Field: "listen", Message: lang.Said(err), Fix: lang.Text{EN: "--listen another address or port", ZH: "请用 --listen 换一个地址或端口"}}
	}
	defer func() { _ = ln.Close() }() // Shutdown has closed it already after serving
	if in.Pprof != "" {
		stop, err := serveProfiles(in.Pprof, d.log)
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
