package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/web"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// webPage is the page for browsers, or nil where the server listens beyond this
// machine and the configuration does not say how browsers reach it.
func webPage(cfg config.Config, svc *ops.Service, at net.Addr, log *slog.Logger) (*web.Server, error) {
	local, err := netip.ParseAddrPort(at.String())
	if cfg.Web.URL == "" && (err != nil || !local.Addr().IsLoopback()) {
		return nil, nil //nolint:nilnil // no page is served
	}
	c := web.Config{
		Service: svc, URL: cfg.Web.URL, Operators: cfg.Web.Operators, Log: log,
		Held: func(op string, in any) lang.Text {
			if cfg.Slack.Approval.None() {
				return lang.Text{}
			}
			return needsApproval(svc, cfg.Slack.Approval, op, in)
		},
	}
	if cfg.Slack.LinkDir != "" {
		c.Proof = linkFolder(cfg.Slack).Owner
	}
	return web.New(c)
}

// addressFile holds where the page is, for the account that serves it.
const addressFile = "web.url"

// webCommand prints a one-time link that signs the account in which serves the
// page, at a job's page where one is named.
func webCommand(ctx context.Context, sh *shell, words []string) error {
	to := ""
	if len(words) > 1 || len(words) == 1 && !slurm.IsJobID(words[0]) {
		return ops.InputError("job", lang.Text{EN: "web takes one job's id, or nothing", ZH: "web 只接受一个作业号，或不带参数"}, lang.Text{EN: "web 4711", ZH: "例如：web 4711"})
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	svc, err := sh.service(dir)
	if err != nil {
		return err
	}
	if len(words) == 1 {
		to = web.Path(svc.Default, slurm.JobID(words[0]))
	}
	state, err := config.StateDir(os.Getenv)
	if err != nil {
		return err
	}
	base, err := os.ReadFile(filepath.Join(state, addressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return ops.NotFoundError("", lang.Text{EN: "this account serves no page", ZH: "本账号没有提供网页服务"},
			lang.Text{EN: "megatron-ops serve, then this again; a site's own server gives a link by /megatron web in Slack", ZH: "先运行 megatron-ops serve；站点的服务可在 Slack 中用 /megatron web 获取链接"})
	}
	if err != nil {
		return err
	}
	link, err := web.Link(ctx, svc, osUser(ops.Web), to)
	if err == nil {
		_, err = fmt.Fprintln(sh.out, strings.TrimSpace(string(base))+link)
	}
	return err
}
