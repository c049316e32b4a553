package bot

import (
	"context"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// actShare is the action of the button below a private answer that shows the answer to
// everybody in the same place. Its value is the command as it was typed. The command is run
// again, and rights are checked again.
const actShare = "share"

var (
	textShareThread = lang.Text{EN: "Share in thread", ZH: "分享到讨论串"}
	textShareHere   = lang.Text{EN: "Share here", ZH: "分享到频道"}
)

// shareButton returns that button, or nil where nobody else reads the place or may see the
// answer.
func shareButton(a incoming.Ask, t typed.Call, l lang.Lang) slack.BlockElement {
	if t.Share || t.JSON || a.Direct || a.Open || a.Foreign || a.Terminal != nil || a.Channel == "" || a.Text == "" || len(a.Text) > answer.MaxValue {
		return nil
	}
	label := textShareHere
	if a.Thread != "" || a.Kind == incoming.AsMessage { // the answer to a mention goes into its thread
		label = textShareThread
	}
	return slack.NewButtonBlockElement(actShare, a.Text, answer.Label(label.In(l)))
}

// shareRow returns the button in a row of its own, or no block where there is no button.
func shareRow(a incoming.Ask, t typed.Call, l lang.Lang) []slack.Block {
	if e := shareButton(a, t, l); e != nil {
		return []slack.Block{slack.NewActionBlock("", e)}
	}
	return nil
}

// share runs the command of a private answer again, so that everybody can read the answer.
func (b *Bot) share(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	a.Text, a.Share, a.Response = a.Value, true, ""
	return b.command(ctx, a)
}
