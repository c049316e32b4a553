package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// A Check is one thing that doctor looked at.
type Check struct {
	Name   string
	OK     bool
	Detail string
	Fix    string // where not OK
}

// Doctor checks that Slack is reachable, that the tokens are good, and that the
// bot token has the scopes that the code uses. It posts nothing.
func (b *Bot) Doctor(ctx context.Context) []Check {
	var out []Check
	if b.cfg.BotToken != "" {
		out = append(out, b.checkToken(ctx, "")...)
	} else {
		out = append(out, b.checkInstalls(ctx)...)
	}
	if b.cfg.AppToken != "" {
		out = append(out, b.checkSocket(ctx))
	} else {
		out = append(out, Check{Name: "Slack HTTP", OK: true, Detail: "requests are verified with the signing secret"})
	}
	return append(out, b.checkOutbox(ctx))
}

// checkInstalls checks the token of every workspace.
func (b *Bot) checkInstalls(ctx context.Context) []Check {
	teams, err := b.teams(ctx)
	if err != nil {
		return []Check{{Name: "Slack workspaces", Detail: err.Error()}}
	}
	out := []Check{{Name: "Slack workspaces", OK: true, Detail: fmt.Sprintf("%d have installed the app at /slack/install", len(teams))}}
	for _, team := range teams[:min(len(teams), 50)] {
		for _, c := range b.checkToken(ctx, team) {
			c.Name += " of " + team
			if !c.OK {
				c.Fix = "have the workspace install the app again at /slack/install"
			}
			out = append(out, c)
		}
	}
	return out
}

func (b *Bot) checkToken(ctx context.Context, team string) []Check {
	api, err := b.client(ctx, team)
	if err != nil {
		return []Check{{Name: "Slack bot token", Detail: err.Error()}}
	}
	began := time.Now()
	who, err := api.AuthTestContext(ctx)
	if err != nil {
		c := Check{Name: "Slack bot token", Detail: err.Error(), Fix: "check the network, and SLACK_API_URL if it is set"}
		if _, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
			c.Fix = "copy the xoxb- token again from the app's page OAuth & Permissions"
		}
		return []Check{c}
	}
	checks := []Check{{
		Name: "Slack bot token", OK: true,
		Detail: fmt.Sprintf("%s in %s (%s), answered in %d ms", who.User, who.Team, who.TeamID, time.Since(began).Milliseconds()),
	}}
	have := strings.FieldsFunc(who.Header.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	c := Check{Name: "Slack scopes", OK: true}
	var missing, extra []string
	want := Scopes(b.cfg.Policy)
	for _, s := range want {
		if !slices.Contains(have, s) {
			missing = append(missing, s)
		}
	}
	for _, s := range have {
		if !slices.Contains(want, s) {
			extra = append(extra, s)
		}
	}
	switch {
	case len(missing) > 0:
		c.OK, c.Detail = false, "missing: "+strings.Join(missing, ", ")
		c.Fix = "update the app with `megatron-ops slack manifest` and install it again"
	case len(extra) > 0:
		c.Detail = "all there; not needed: " + strings.Join(extra, ", ")
	default:
		c.Detail = fmt.Sprintf("all %d, and no more", len(want))
	}
	return append(checks, c)
}

func (b *Bot) checkSocket(ctx context.Context) Check {
	api := slack.New(b.cfg.BotToken, b.options()...)
	if _, _, err := api.StartSocketModeContext(ctx); err != nil {
		return Check{Name: "Slack app token", Detail: err.Error(), Fix: "make an app-level token with the scope connections:write, and enable Socket Mode"}
	}
	return Check{Name: "Slack app token", OK: true, Detail: "Socket Mode opens a connection"}
}

// checkOutbox tells of messages that Slack refused for good.
func (b *Bot) checkOutbox(ctx context.Context) Check {
	dead, err := b.cfg.Store.Buried(ctx, 20)
	if err != nil {
		return Check{Name: "Slack outbox", Detail: err.Error()}
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
		return Check{Name: "Slack outbox", OK: true, Detail: "nothing was refused"}
	}
	return Check{
		Name: "Slack outbox", Detail: fmt.Sprintf("%d messages were refused for good, the last one: %s", lost, last),
		Fix: "invite the bot to the channel, or check the token; the messages are not sent again",
	}
}
