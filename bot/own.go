package bot

import (
	"context"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// own answers the bot's own words.
func (b *Bot) own(ctx context.Context, a ask, c *ops.Call, name string, words []string, f flags) []store.SlackMessage {
	switch name {
	case "help":
		topic := ""
		if len(words) > 0 {
			topic = words[0]
		}
		return b.reply(a, b.helpDoc(ctx, c, topic), f.share)
	}
	return b.reply(a, view.Doc{Title: name}, false)
}

// buttons are the handlers of buttons that are no commands, by action.
var buttons = map[string]func(*Bot, context.Context, ask) []store.SlackMessage{}

func (b *Bot) below(a ask, op ops.Op, in any, share bool) []slack.Block { return nil }

func (b *Bot) follow(ctx context.Context, a ask, c *ops.Call, op ops.Op, in, result any) []store.SlackMessage {
	return nil
}
