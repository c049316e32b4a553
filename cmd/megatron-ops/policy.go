package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/linkproof"
	"github.com/megatron-ops/megatron-ops/internal/munge"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/secretfile"
	"github.com/megatron-ops/megatron-ops/mcp"
)

// slackPolicy converts the configuration of Slack into the bot's policy.
func slackPolicy(svc *ops.Service, cfg config.Config) bot.Policy {
	c := cfg.Slack
	p := bot.Policy{
		Operators: c.Operators, Viewers: c.Viewers, Channels: c.Channels, Read: c.Read, ReadIn: c.ReadIn, Links: c.Links,
		LinkDomain: c.LinkDomain, PerMinute: c.PerMinute, ApprovalChannel: c.Approval.Channel,
	}
	if page, err := url.Parse(cfg.Web.URL); p.LinkDomain == "" && err == nil {
		p.LinkDomain = page.Hostname()
	}
	if c.LinkDir != "" {
		p.LinkProof = linkFolder(c).Owner
	}
	if !c.Approval.Limits.None() {
		p.Approve = func(call *ops.Call, _ string, in any) lang.Text { return needsApproval(call, c.Approval, in) }
	}
	return p
}

// linkFolder is the folder in which people prove who they are, and the kind of proof.
func linkFolder(c config.Slack) linkproof.Folder {
	f := linkproof.Folder{Dir: c.LinkDir}
	if c.LinkProof == "munge" || c.LinkProof == "" && munge.Here() {
		f.Munge = &munge.Service{Socket: c.MungeSocket}
	}
	return f
}

// slackInstall returns how workspaces install the app, or nil if one token serves one
// workspace.
func slackInstall(c config.Slack) (*install.OAuth, error) {
	id, secret := os.Getenv("SLACK_CLIENT_ID"), os.Getenv("SLACK_CLIENT_SECRET")
	switch {
	case id == "" && secret == "":
		return nil, nil
	case id == "" || secret == "":
		return nil, ops.InputError("SLACK_CLIENT_ID",
			lang.Text{EN: "SLACK_CLIENT_ID and SLACK_CLIENT_SECRET belong together", ZH: "SLACK_CLIENT_ID 与 SLACK_CLIENT_SECRET 须同时设置"},
			lang.Text{EN: "both are on the app's page Basic Information", ZH: "两者都在应用的 Basic Information 页面"})
	case os.Getenv("SLACK_BOT_TOKEN") != "":
		return nil, ops.InputError("SLACK_CLIENT_ID",
			lang.Text{EN: "SLACK_BOT_TOKEN serves one workspace, SLACK_CLIENT_ID lets several install the app", ZH: "SLACK_BOT_TOKEN 只服务一个工作区，SLACK_CLIENT_ID 则供多个工作区安装应用"},
			lang.Text{EN: "unset one of the two", ZH: "请取消其中之一"})
	case !strings.HasPrefix(c.Install.URL, "https://") && !strings.HasPrefix(c.Install.URL, "http://127.0.0.1"):
		return nil, ops.InputError("slack.install.url",
			lang.Text{EN: "%q is not an https address: Slack sends browsers back there", ZH: "%q 不是 https 地址：Slack 会把浏览器带回该地址"}.With(c.Install.URL),
			lang.Same("slack: {install: {url: https://ops.example.org, key_file: /etc/megatron-ops/slack.key}}"))
	}
	text, field := os.Getenv("MEGATRON_OPS_SLACK_KEY"), "MEGATRON_OPS_SLACK_KEY"
	if text == "" {
		field = "slack.install.key_file"
		if c.Install.KeyFile == "" {
			return nil, ops.InputError(field,
				lang.Text{EN: "there is no key to encrypt the workspaces' tokens with", ZH: "没有用于加密各工作区令牌的密钥"},
				lang.Same("openssl rand -base64 32 > FILE; chmod 600 FILE"))
		}
		var err error
		if text, err = readSecretFile(c.Install.KeyFile, field); err != nil {
			return nil, err
		}
	}
	key, err := install.ParseKey(text)
	if err != nil {
		return nil, ops.InputError(field, lang.Said(err), lang.Same("openssl rand -base64 32"))
	}
	return &install.OAuth{ClientID: id, ClientSecret: secret, Key: key, RedirectURL: strings.TrimSuffix(c.Install.URL, "/") + "/slack/oauth"}, nil
}

// readSecretFile reads a secret from a file. field names the setting in errors.
func readSecretFile(file, field string) (string, error) {
	text, err := secretfile.Read(file)
	if err != nil {
		return "", ops.InputError(field,
			lang.Said(err),
			lang.Text{EN: "a file with mode 600 that this account may read", ZH: "本账号可读、权限为 600 的文件"})
	}
	return text, nil
}

// agentPolicy says how what agents change is confirmed. Where operators can be asked, in
// Slack or on the page, they decide about what an agent may not do by itself; without
// them, the agent's own person has to.
func agentPolicy(cfg config.Config, operators bool) mcp.Policy {
	a := cfg.Slack.Approval
	p := mcp.Policy{Tokens: cfg.MCP.Confirm == config.FallbackToken, Beyond: func(call *ops.Call, _ string, in any) string {
		why := needsApproval(call, a, in).EN
		if why == "" && a.Agents {
			why = "approvals are required for agents here"
		}
		return why
	}}
	if !operators {
		return p
	}
	p.ApproveAll, p.Where = a.Agents, approvalPlace(cfg)
	p.Approve = func(ctx context.Context, call *ops.Call, in any, r consent.Request) (bool, error) {
		return r.Approved(ctx, call, in, needsApproval(call, a, in).EN)
	}
	return p
}

// approvalPlace says where operators decide about requests.
func approvalPlace(cfg config.Config) lang.Text {
	var places []lang.Text
	switch s := cfg.Slack; {
	case s.Approval.Channel != "":
		places = append(places, lang.Text{EN: "in the Slack channel %s", ZH: " Slack 频道 %s "}.With(s.Approval.Channel))
	case len(s.Operators) > 0:
		places = append(places, lang.Text{EN: "in Slack", ZH: " Slack "})
	}
	if len(cfg.Web.Operators) > 0 {
		places = append(places, lang.Text{EN: "on the page %s", ZH: "网页 %s "}.With(strings.TrimSuffix(cfg.Web.URL, "/")+ops.ApprovalsPath))
	}
	if len(places) == 2 {
		return lang.Text{EN: "%s or %s", ZH: "%s或%s"}.With(places[0], places[1])
	}
	return append(places, lang.Text{})[0]
}

// ownAgentPolicy is the policy for an agent that a person runs on standard input. The
// limits are the same, and if a server shares the store, its operators decide there.
func ownAgentPolicy(cfg config.Config) mcp.Policy {
	operators := cfg.Slack.Approval.Channel != "" || len(cfg.Slack.Operators) > 0 || len(cfg.Web.Operators) > 0
	return agentPolicy(cfg, cfg.Store != "" && operators)
}

// mcpAccess returns who may use /mcp. If neither tokens nor an issuer are configured,
// it creates one token for reading in the state folder: a file that only this account
// can read proves more than a loopback address.
func mcpAccess(c config.MCP, state string) (mcp.HTTP, error) {
	h := mcp.HTTP{Hosts: c.Hosts, Origins: c.Origins, Tokens: map[string]ops.Caller{}}
	for i, t := range c.Tokens {
		token, err := readToken(t.File, fmt.Sprintf("mcp.tokens[%d].file", i))
		if err != nil {
			return h, err
		}
		if first, twice := h.Tokens[token]; twice {
			return h, ops.InputError(fmt.Sprintf("mcp.tokens[%d].file", i),
				lang.Text{EN: "%s holds the token of %s too", ZH: "%s 与 %s 的令牌相同"}.With(t.File, first.ID),
				lang.Text{EN: "give each caller a token of its own", ZH: "请为每个调用者使用不同的令牌"})
		}
		h.Tokens[token] = ops.Caller{Surface: ops.MCPHTTP, ID: t.ID, User: t.User, Operator: t.Operator}
	}
	if c.OAuth.Issuer != "" {
		h.OAuth = &mcp.OAuth{
			Issuer: c.OAuth.Issuer, Resource: c.OAuth.Resource, JWKS: c.OAuth.JWKS,
			User: func(subject string) string { return c.OAuth.Users[subject] },
		}
	}
	if len(h.Tokens) > 0 || h.OAuth != nil {
		return h, nil
	}
	file := ownTokenFile(state)
	if err := makeToken(file); err != nil {
		return h, &ops.Error{Code: ops.Failed, Field: "mcp.tokens", Message: lang.Said(err), Fix: lang.Text{EN: "MEGATRON_OPS_STATE_DIR names a directory that you may write", ZH: "MEGATRON_OPS_STATE_DIR 指定一个可写的目录"}}
	}
	token, err := readToken(file, "mcp.tokens")
	if err != nil {
		return h, err
	}
	h.Tokens[token] = ops.Caller{Surface: ops.MCPHTTP, ID: "reader", ReadOnly: true}
	return h, nil
}

// ownTokenFile is the file of the token that serve creates.
func ownTokenFile(state string) string { return filepath.Join(state, "mcp.token") }

// makeToken writes a new token to a file of mode 600, unless the file exists.
func makeToken(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(rand.Text() + "\n")
	return errors.Join(err, f.Close())
}

// readToken reads a bearer token from a file that nobody else may read.
func readToken(file, field string) (string, error) {
	token, err := readSecretFile(file, field)
	if err != nil {
		return "", err
	}
	if len(token) < 16 {
		return "", &ops.Error{Code: ops.BadInput, Field: field, Message: lang.Text{EN: "%s holds no token of 16 characters or more", ZH: "%s 中没有至少 16 个字符的令牌"}.With(file), Fix: lang.Text{EN: "openssl rand -hex 32 > %s", ZH: "openssl rand -hex 32 > %s"}.With(file)}
	}
	return token, nil
}
