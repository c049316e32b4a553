package bot

import (
	"context"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// placeOfAnswer says where an answer to a goes: a template for its messages, the lane
// that keeps them in order, and the channel that its files go to.
func placeOfAnswer(a incoming.Ask, share bool) (o outbox.Message, lane, files, thread string) {
	o = outbox.Message{Team: a.Team, Channel: a.Channel, User: a.User, Instead: a.User}
	switch {
	case a.InPlace && a.Response != "":
		o.Do, o.URL, o.Replace = outbox.Respond, a.Response, true
		return o, "r/" + a.Key, a.User, ""
	case a.Kind == incoming.AsMessage || a.Kind == incoming.AsAssistant:
		o.Do, o.Thread = outbox.Post, a.Thread
		if o.Thread == "" {
			o.Thread = a.TS
		}
		if !share && !a.Direct {
			o.Do = outbox.Ephemeral
			return o, "t/" + a.Channel + "/" + o.Thread, a.User, ""
		}
		return o, "t/" + a.Channel + "/" + o.Thread, a.Channel, o.Thread
	case a.Response != "":
		o.Do, o.URL, o.Share = outbox.Respond, a.Response, share
		if share {
			return o, "r/" + a.Key, a.Channel, ""
		}
		return o, "r/" + a.Key, a.User, ""
	case a.Channel != "" && share:
		o.Do, o.Thread = outbox.Post, a.Thread
		return o, "t/" + a.Channel + "/" + a.Thread, a.Channel, a.Thread
	case a.Channel != "" && !a.Direct:
		o.Do, o.Thread = outbox.Ephemeral, a.Thread
		return o, "t/" + a.Channel + "/" + a.Thread, a.User, ""
	}
	o.Do, o.Channel = outbox.Post, a.User
	return o, "t/" + a.User, a.User, ""
}

// reply answers a with doc: to the person alone, or to the place where they
// asked when share is set.
func (b *Bot) reply(a incoming.Ask, doc view.Doc, share bool) []store.SlackMessage {
	return b.replyWith(a, doc, share)
}

// replyWith is reply with further blocks below the last message.
func (b *Bot) replyWith(a incoming.Ask, doc view.Doc, share bool, below ...slack.Block) []store.SlackMessage {
	has := answer.MessageRoom
	if a.Terminal != nil {
		has = answer.TerminalRoom
	}
	r := answer.RenderIn(doc, answer.LanguageOfDoc(doc), has)
	o, lane, files, thread := placeOfAnswer(a, share)
	var owed []store.SlackMessage
	for i, bs := range r.Messages {
		m := o
		m.Text, m.Blocks = r.Text, nil
		if i == len(r.Messages)-1 && len(bs)+len(below) <= answer.MaxBlocks {
			bs = joinRows(bs, below)
		}
		m.Blocks = answer.BlocksJSON(bs)
		owed = append(owed, b.out.Owe(fmt.Sprintf("%s/%d", a.Key, i), lane, m))
	}
	for i, f := range r.Files {
		owed = append(owed, b.out.Owe(fmt.Sprintf("%s/file%d", a.Key, i), lane+laneOfFiles,
			outbox.Message{Do: outbox.Upload, Team: a.Team, Channel: files, Thread: thread, Instead: a.User, File: &f}))
	}
	return owed
}

// joinRows is bs and below; two rows of buttons that meet are one.
func joinRows(bs, below []slack.Block) []slack.Block {
	if len(bs) > 0 && len(below) > 0 {
		row, ok := bs[len(bs)-1].(*slack.ActionBlock)
		if more, ok2 := below[0].(*slack.ActionBlock); ok && ok2 {
			both := slices.Concat(row.Elements.ElementSet, more.Elements.ElementSet)
			slices.SortStableFunc(both, func(x, y slack.BlockElement) int { return isMenu(x) - isMenu(y) })
			return slices.Concat(bs[:len(bs)-1], []slack.Block{slack.NewActionBlock("", both...)}, below[1:])
		}
	}
	return append(bs, below...)
}

// isMenu is 1 for a menu of what is wanted less: it stands behind the buttons.
func isMenu(e slack.BlockElement) int {
	if _, ok := e.(*slack.OverflowBlockElement); ok {
		return 1
	}
	return 0
}

// replyBlocks answers a with blocks that were drawn already.
func (b *Bot) replyBlocks(a incoming.Ask, text string, bs []slack.Block, share bool) []store.SlackMessage {
	o, lane, _, _ := placeOfAnswer(a, share)
	o.Text, o.Blocks = answer.Escape(text), answer.BlocksJSON(bs)
	return []store.SlackMessage{b.out.Owe(a.Key+"/0", lane, o)}
}

// words takes what a model says to where the answer to a will stand; nil where a
// message cannot grow: for one person's eyes, outside a thread, or for somebody of
// another workspace, whom Slack wants named by theirs.
func (b *Bot) words(ctx context.Context, a incoming.Ask, t typed.Call) func(string) {
	o, _, _, _ := placeOfAnswer(a, t.Share)
	if a.Kind != incoming.AsMessage || o.Do != outbox.Post || o.Thread == "" || a.Foreign || t.JSON {
		return nil
	}
	return b.out.Words(ctx, outbox.Talk{Key: a.Key, Team: a.Team, Channel: o.Channel, Thread: o.Thread, User: a.User, Direct: a.Direct})
}
