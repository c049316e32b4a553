package install

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Check is the result of one check of the doctor.
type Check struct {
	Name   lang.Text
	OK     bool
	Detail lang.Text
	Fix    lang.Text // set where OK is false
}

var (
	checkToken   = lang.Text{EN: "Slack bot token", ZH: "Slack 机器人令牌"}
	checkScopes  = lang.Text{EN: "Slack scopes", ZH: "Slack 权限范围"}
	checkSpaces  = lang.Text{EN: "Slack workspaces", ZH: "Slack 工作区"}
	checkSocket  = lang.Text{EN: "Slack app token", ZH: "Slack 应用令牌"}
	checkOutbox  = lang.Text{EN: "Slack outbox", ZH: "Slack 发件箱"}
	checkReceive = lang.Text{EN: "Slack HTTP", ZH: "Slack HTTP"}
)

// Doctor checks that Slack is reachable, that the tokens are valid, and that the bot token has
// the scopes that the code uses. It posts nothing.
func (p *App) Doctor(ctx context.Context) []Check {
	var out []Check
	if p.cfg.BotToken != "" {
		out = append(out, p.tokenChecks(ctx, "")...)
	} else {
		out = append(out, p.installChecks(ctx)...)
	}
	if p.cfg.AppToken != "" {
		out = append(out, p.socketCheck(ctx))
	} else {
		out = append(out, Check{Name: checkReceive, OK: true, Detail: lang.Text{EN: "requests are verified with the signing secret", ZH: "用签名密钥验证请求"}})
	}
	return append(out, p.outboxCheck(ctx))
}

func (p *App) installChecks(ctx context.Context) []Check {
	teams, err := p.teams(ctx)
	if err != nil {
		return []Check{{Name: checkSpaces, Detail: lang.Said(err)}}
	}
	out := []Check{{Name: checkSpaces, OK: true, Detail: lang.Text{EN: "%d have installed the app at /slack/install", ZH: "%d 个已在 /slack/install 安装应用"}.With(len(teams))}}
	for _, team := range teams[:min(len(teams), 50)] {
		for _, c := range p.tokenChecks(ctx, team) {
			c.Name = lang.Text{EN: "%s of %s", ZH: "%s（%s）"}.With(c.Name, team)
			if !c.OK {
				c.Fix = lang.Text{EN: "have the workspace install the app again at /slack/install", ZH: "请该工作区在 /slack/install 重新安装应用"}
			}
			out = append(out, c)
		}
	}
	return out
}

func (p *App) tokenChecks(ctx context.Context, team string) []Check {
	api, err := p.Client(ctx, team)
	if err != nil {
		return []Check{{Name: checkToken, Detail: lang.Said(err)}}
	}
	began := time.Now()
	who, err := api.AuthTestContext(ctx)
	if err != nil {
		c := Check{Name: checkToken, Detail: lang.Said(err), Fix: lang.Text{EN: "check the network, and SLACK_API_URL if it is set", ZH: "请检查网络，以及 SLACK_API_URL（若已设置）"}}
		if _, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
			c.Fix = lang.Text{EN: "copy the xoxb- token again from the app's page OAuth & Permissions", ZH: "请从应用的 OAuth & Permissions 页面重新复制 xoxb- 令牌"}
		}
		return []Check{c}
	}
	checks := []Check{{
		Name: checkToken, OK: true,
		Detail: lang.Text{EN: "%s in %s (%s), answered in %d ms", ZH: "%s，工作区 %s（%s），%d 毫秒内应答"}.With(who.User, who.Team, who.TeamID, time.Since(began).Milliseconds()),
	}}
	have := strings.FieldsFunc(who.Header.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	c := Check{Name: checkScopes, OK: true}
	want := Scopes(p.cfg.Policy)
	missing, extra := without(want, have), without(have, want)
	switch {
	case len(missing) > 0:
		c.OK, c.Detail = false, lang.Text{EN: "missing: %s", ZH: "缺少：%s"}.With(strings.Join(missing, ", "))
		c.Fix = lang.Text{EN: "update the app with `megatron-ops slack manifest` and install it again", ZH: "请用 `megatron-ops slack manifest` 更新应用并重新安装"}
	case len(extra) > 0:
		c.Detail = lang.Text{EN: "all there; not needed: %s", ZH: "齐全；多余：%s"}.With(strings.Join(extra, ", "))
	default:
		c.Detail = lang.Text{EN: "all %d, and no more", ZH: "共 %d 项，齐全且无多余"}.With(len(want))
	}
	return append(checks, c)
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

func (p *App) socketCheck(ctx context.Context) Check {
	api := slack.New(p.cfg.BotToken, p.Options()...)
	if _, _, err := api.StartSocketModeContext(ctx); err != nil {
		return Check{Name: checkSocket, Detail: lang.Said(err), Fix: lang.Text{EN: "make an app-level token with the scope connections:write, and enable Socket Mode", ZH: "请创建带 connections:write 权限的应用级令牌，并启用 Socket Mode"}}
	}
	return Check{Name: checkSocket, OK: true, Detail: lang.Text{EN: "Socket Mode opens a connection", ZH: "Socket Mode 可以建立连接"}}
}

// outboxCheck reports messages that Slack refused for good.
func (p *App) outboxCheck(ctx context.Context) Check {
	dead, err := p.cfg.Store.Buried(ctx, 20)
	if err != nil {
		return Check{Name: checkOutbox, Detail: lang.Said(err)}
	}
	lost := 0
	last := ""
	for _, m := range dead {
		if strings.HasPrefix(m.Error, "sent another way") {
			continue
		}
		if lost++; last == "" {
			last = m.Error
		}
	}
	if lost == 0 {
		return Check{Name: checkOutbox, OK: true, Detail: lang.Text{EN: "nothing was refused", ZH: "没有消息被拒绝"}}
	}
	return Check{
		Name: checkOutbox, Detail: lang.Text{EN: "%d messages were refused for good, the last one: %s", ZH: "%d 条消息被永久拒绝，最近一条：%s"}.With(lost, last),
		Fix: lang.Text{EN: "invite the bot to the channel, or check the token; the messages are not sent again", ZH: "请把机器人邀请进频道，或检查令牌；这些消息不会重发"},
	}
}
