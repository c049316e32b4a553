// Package reply sends the answer to a request to where the request was made: to one person or
// to everybody, in place of a message, in its thread, as a direct message, or at a terminal.
package reply

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A Writer queues answers.
type Writer struct{ out *outbox.Sender }

// New returns a Writer that queues answers in out.
func New(out *outbox.Sender) *Writer { return &Writer{out} }

// Place decides where the answer to a goes. It returns a template for the answer's messages,
// the lane that keeps them in order, and the channel and thread for its files.
func Place(a incoming.Ask, share bool) (o outbox.Message, lane, files, thread string) {
	o = outbox.Message{Team: a.Team, Channel: a.Channel, User: a.User, Instead: a.User}
	switch {
	case a.InPlace && a.Response != "":
		o.Do, o.URL, o.Replace = outbox.Respond, a.Response, true
		return o, "r/" + a.Key, a.User, ""
	case a.Kind == incoming.AsMessage || a.Kind == incoming.AsAssistant:
		o.Do, o.Thread = outbox.Post, cmp.Or(a.Thread, a.TS)
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

// Replaces reports whether one of owed takes the place of the message whose button a pressed.
func Replaces(a incoming.Ask, owed []store.SlackMessage) bool {
	return a.InPlace && a.Response != "" && slices.ContainsFunc(owed, func(m store.SlackMessage) bool { return m.Key == a.Key+"/0" })
}

// Doc answers a with doc. With share set, everybody in the place of the request sees the
// answer; otherwise the person alone does. The blocks of below are added to the last message.
func (w *Writer) Doc(a incoming.Ask, doc view.Doc, share bool, below ...slack.Block) []store.SlackMessage {
	limits := answer.MessageLimits
	if a.Terminal != nil {
		limits = answer.TerminalLimits
	}
	r := answer.RenderIn(doc, answer.LanguageOfDoc(doc), limits)
	o, lane, files, thread := Place(a, share)
	var owed []store.SlackMessage
	for i, bs := range r.Messages {
		m := o
		m.Text, m.Blocks, m.Replace = r.Text, nil, o.Replace && i == 0
		if i == len(r.Messages)-1 && len(bs)+len(below) <= answer.MaxBlocks {
			bs = JoinRows(bs, below)
		}
		m.Blocks = answer.BlocksJSON(bs)
		owed = append(owed, w.out.Owe(fmt.Sprintf("%s/%d", a.Key, i), lane, m))
	}
	for i, f := range r.Files {
		owed = append(owed, w.out.Owe(fmt.Sprintf("%s/file%d", a.Key, i), lane+outbox.LaneOfFiles,
			outbox.Message{Do: outbox.Upload, Team: a.Team, Channel: files, Thread: thread, Instead: a.User, File: &f}))
	}
	return owed
}

// JoinRows appends below to bs. Where two rows of buttons meet, they become one row.
func JoinRows(bs, below []slack.Block) []slack.Block {
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

// isMenu returns 1 for an overflow menu and 0 for any other element, so that sorting puts menus
// behind the buttons.
func isMenu(e slack.BlockElement) int {
	if _, ok := e.(*slack.OverflowBlockElement); ok {
		return 1
	}
	return 0
}

// Blocks answers a with finished blocks.
func (w *Writer) Blocks(a incoming.Ask, text string, bs []slack.Block, share bool) []store.SlackMessage {
	o, lane, _, _ := Place(a, share)
	o.Text, o.Blocks = answer.Escape(text), answer.BlocksJSON(bs)
	return []store.SlackMessage{w.out.Owe(a.Key+"/0", lane, o)}
}

// Words returns a function that streams a model's words to where the answer to a will be. It
// returns nil where a message cannot be streamed: for one person's eyes, outside a thread, or
// for somebody of another workspace, since Slack wants the id of their own workspace.
func (w *Writer) Words(ctx context.Context, a incoming.Ask, t typed.Call) func(string) {
	o, _, _, _ := Place(a, t.Share)
	if a.Kind != incoming.AsMessage || o.Do != outbox.Post || o.Thread == "" || a.Foreign || t.JSON {
		return nil
	}
	return w.out.Words(ctx, outbox.StreamTarget{Key: a.Key, Team: a.Team, Channel: o.Channel, Thread: o.Thread, User: a.User, Direct: a.Direct})
}

var (
	textNotLinked = lang.Text{EN: "You are not linked to a cluster user yet", ZH: "您尚未绑定集群用户"}
	textLinkFirst = lang.Text{
		EN: "Jobs and logs are shown to people of the cluster, and whatever is done here is done as you: I must know which cluster user you are. It takes a minute, once. Help and questions are open to you.",
		ZH: "作业与日志只向集群用户显示，操作也以您的集群身份执行，因此需要先确认您的集群用户。只需一次，约一分钟。帮助与提问不受限制。",
	}
)

// LinkMe is the label of buttons that start linking an account.
var LinkMe = lang.Text{EN: "Link my account", ZH: "绑定账户"}

// NotLinked asks a person to link their account first.
func (w *Writer) NotLinked(a incoming.Ask, l lang.Lang) []store.SlackMessage {
	doc := view.Doc{Title: textNotLinked.In(l), Tone: view.Warn, Sections: []view.Section{{Text: textLinkFirst.In(l)}}}
	return w.Doc(a, doc, false, linkButton(l))
}

func linkButton(l lang.Lang) slack.Block {
	e := slack.NewButtonBlockElement(answer.ActRun+":link", "link", answer.Label(LinkMe.In(l)))
	e.Style = slack.StylePrimary
	return slack.NewActionBlock("", e)
}

// Replace rewrites the message whose button was pressed, so that the button cannot be pressed
// again.
func (w *Writer) Replace(a incoming.Ask, doc view.Doc) []store.SlackMessage {
	r := answer.Render(doc, answer.LanguageOfDoc(doc))
	o := outbox.Message{Team: a.Team, Channel: a.Channel, User: a.User, Text: r.Text, Blocks: answer.BlocksJSON(r.Messages[0])}
	switch {
	case a.Response != "":
		o.Do, o.URL, o.Replace = outbox.Respond, a.Response, true
	case a.TS != "" && !a.Hidden:
		o.Do, o.TS = outbox.Update, a.TS
	default:
		return w.Doc(a, doc, false)
	}
	return []store.SlackMessage{w.out.Owe(a.Key+"/replace", "r/"+a.Key, o)}
}
