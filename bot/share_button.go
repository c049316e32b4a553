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

// actShare is the button below a private answer that shows it to everybody in the
// place where it was asked for; its value is the command as it was typed, which is
// carried out, and judged, once more.
const actShare = "share"

var (
	textShareThread = lang.Text{EN: "Share in thread", ZH: "分享到讨论串"}
	textShareHere   = lang.Text{EN: "Share here", ZH: "分享到频道"}
)

// shareButton is that button; nil where nobody else reads, or must not.
func shareButton(a incoming.Ask, t typed.Call, l lang.Lang) slack.BlockElement {
	if t.Share || t.JSON || a.Direct || a.Open || a.Foreign || a.Terminal != nil || a.Channel == "" || a.Text == "" || len(a.Text) > answer.MaxValue {
		return nil
	}
	label := textShareHere
	if a.Thread != "" || a.Kind == incoming.AsMessage { // a mention is answered in its thread
		label = textShareThread
	}
	return slack.NewButtonBlockElement(actShare, a.Text, answer.Label(label.In(l)))
}

// shareRow is the button in a row, as far as there is one.
func shareRow(a incoming.Ask, t typed.Call, l lang.Lang) []slack.Block {
	if e := shareButton(a, t, l); e != nil {
		return []slack.Block{slack.NewActionBlock("", e)}
	}
	return nil
}

// share carries the command of a private answer out once more, for everybody to
// read.
func (b *Bot) share(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	a.Text, a.Share, a.Response = a.Value, true, ""
	return b.command(ctx, a)
}
