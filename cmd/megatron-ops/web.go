package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/web"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// webPage returns the page for browsers, or nil if the server listens beyond this
// machine and the configuration does not say how browsers reach it.
func webPage(cfg config.Config, svc *ops.Service, slack *bot.Bot, at net.Addr, log *slog.Logger) (*web.Server, error) {
	local, err := netip.ParseAddrPort(at.String())
	if cfg.Web.URL == "" && (err != nil || !local.Addr().IsLoopback()) {
		return nil, nil //nolint:nilnil // no page is served
	}
	c := web.Config{
		Service: svc, URL: cfg.Web.URL, Operators: cfg.Web.Operators, Log: log,
		Held: func(call *ops.Call, _ string, in any) lang.Text {
			if cfg.Slack.Approval.None() {
				return lang.Text{}
			}
			return needsApproval(call, cfg.Slack.Approval, in)
		},
	}
	if slack != nil {
		c.SlackUser = slack.ClusterUser
	}
	if cfg.Slack.LinkDir != "" {
		c.Proof = linkFolder(cfg.Slack).Owner
	}
	if c.OpenID, err = providers(cfg.Web, slack); err != nil {
		return nil, err
	}
	return web.New(c)
}

// slackIssuer is Slack's issuer as an OpenID provider.
const slackIssuer = "https://slack.com"

// providers returns the OpenID providers with which people sign in to the page.
func providers(c config.Web, slack *bot.Bot) (map[string]web.OpenID, error) {
	all := map[string]web.OpenID{}
	add := func(by string, o web.OpenID, secretFile string) error {
		field := "web." + by
		switch u, err := url.Parse(o.Issuer); {
		case o.ClientID == "":
			return ops.InputError(field+".client_id", lang.Text{EN: "must be given", ZH: "必须给出"}, lang.Text{EN: "the id under which the provider knows this page", ZH: "身份提供方为本网页登记的客户端 ID"})
		case err != nil, u.Host == "", u.Scheme != "https" && u.Hostname() != "127.0.0.1":
			return ops.InputError(field+".issuer", lang.Text{EN: "%q is not an https address", ZH: "%q 不是 https 地址"}.With(o.Issuer), lang.Text{EN: "the provider's issuer, such as https://login.example.org", ZH: "身份提供方的 issuer，例如 https://login.example.org"})
		case c.URL == "":
			return ops.InputError("web.url", lang.Text{EN: "the provider must know where to send browsers back", ZH: "身份提供方须知道浏览器返回的地址"}, lang.Text{EN: "web: {url: https://ops.example.org}, and %s there", ZH: "web: {url: https://ops.example.org}，并在提供方登记 %s"}.With("/web/login/"+by+"/done"))
		}
		if secretFile != "" {
			var err error
			if o.ClientSecret, err = readSecretFile(secretFile, field+".client_secret_file"); err != nil {
				return err
			}
		}
		all[by] = o
		return nil
	}
	if o := c.OIDC; o.Issuer != "" || o.ClientID != "" {
		host := strings.TrimPrefix(o.Issuer, "https://")
		if err := add("oidc", web.Claim(web.OpenID{
			Label: lang.Text{EN: "Sign in with %s", ZH: "使用 %s 登录"}.With(host), Issuer: o.Issuer, ClientID: o.ClientID, Scopes: o.Scopes,
		}, cmp.Or(o.Claim, "sub"), o.Users), o.ClientSecretFile); err != nil {
			return nil, err
		}
	}
	if o := c.Slack; o.ClientID != "" || o.ClientSecretFile != "" {
		if slack == nil {
			return nil, ops.InputError("web.slack", lang.Text{EN: "people are linked in Slack, which this server does not serve", ZH: "账户在 Slack 中绑定，而本服务未连接 Slack"}, lang.Text{EN: "docs/slack.md has the steps; or remove web.slack", ZH: "步骤见 docs/slack.md；或去掉 web.slack"})
		}
		if err := add(web.BySlack, web.OpenID{
			Label: lang.Text{EN: "Sign in with Slack", ZH: "使用 Slack 登录"}, Issuer: slackIssuer, ClientID: o.ClientID, Who: web.SlackClaims(slack.Person),
		}, o.ClientSecretFile); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addressFile holds the page's URL, for the account that serves it.
const addressFile = "web.url"

// A webIn names the job whose page is opened.
type webIn struct {
	Job slurm.JobID `arg:"" optional:"" help:"the job whose page the link opens" zh:"链接所打开的作业"`
}

// webCommand prints a one-time link that signs in the account which serves the page, on
// a job's page if one is named.
func webCommand(ctx context.Context, sh *shell, in webIn) error {
	to := ""
	if in.Job != "" && !slurm.IsJobID(string(in.Job)) {
		return ops.InputError("job", lang.Text{EN: "web takes one job's id, or nothing", ZH: "web 只接受一个作业号，或不带参数"}, lang.Text{EN: "web 4711", ZH: "例如：web 4711"})
	}
	svc, err := sh.service()
	if err != nil {
		return err
	}
	if in.Job != "" {
		to = ops.JobPath(svc.Default, in.Job)
	}
	state, err := config.StateDir(os.Getenv)
	if err != nil {
		return err
	}
	base, err := os.ReadFile(filepath.Join(state, addressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return ops.NotFoundError("", lang.Text{EN: "this account serves no page", ZH: "本账号没有提供网页服务"},
			lang.Text{EN: "run megatron-ops serve first; a site's server gives a link by /megatron web in Slack", ZH: "先运行 megatron-ops serve；站点的服务可在 Slack 中用 /megatron web 获取链接"})
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
