package bot

import (
	"context"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var (
	textFourEyes  = lang.Text{EN: "somebody else than the requester must approve this", ZH: "必须由申请人以外的人审批"}
	textOperators = lang.Text{EN: "only operators may approve", ZH: "只有管理员可以审批"}
	textRefused   = lang.Text{EN: "An operator has declined your request. Nothing was done.", ZH: "管理员已拒绝您的申请，没有执行任何操作。"}
	textAskedHow  = lang.Text{EN: "I have asked the operators. You will hear here.", ZH: "已通知管理员，结果会在这里告知您。"}
	textApproval  = lang.Text{EN: "Approval needed", ZH: "需要审批"}
	textApprove   = lang.Text{EN: "Approve", ZH: "批准"}
	textDecline   = lang.Text{EN: "Decline", ZH: "拒绝"}
	textWhy       = lang.Text{EN: "Why", ZH: "原因"}
	textCommand   = lang.Text{EN: "Command", ZH: "命令"}
	textApprovedB = lang.Text{EN: "Approved", ZH: "已批准"}
)

// needsApproval says why an operator must approve the call; empty: none must.
// What an operator asks for needs nobody else.
func (b *Bot) needsApproval(c *ops.Call, op ops.Op, in any) string {
	if b.cfg.Policy.Approve == nil || op.Effect == ops.Read || c.Who.Operator || c.Who.User == "" {
		return ""
	}
	return b.cfg.Policy.Approve(op.Name, in).In(c.Lang)
}

// askApproval asks the operators, in the channel where the request was made: a
// message with two buttons, whose value is an id that means nothing elsewhere.
func (b *Bot) askApproval(ctx context.Context, a ask, c *ops.Call, t typed.Call, why string) []store.SlackMessage {
	id, err := b.hold(ctx, a, t, true)
	if err != nil {
		return b.reply(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	doc := view.Doc{Title: textApproval.In(c.Lang), Tone: view.Warn, Sections: []view.Section{{Facts: []view.Fact{
		{Name: textCommand.In(c.Lang), Value: t.Op},
		{Name: card.TextActsAs.In(c.Lang), Value: c.Who.User},
		{Name: textWhy.In(c.Lang), Value: why},
	}, Items: t.Note}}}
	for _, s := range t.Blocks {
		doc.Sections = append(doc.Sections, view.Section{Code: s, Lang: "yaml", Fold: true})
	}
	r := answer.Render(doc, c.Lang)
	yes := slack.NewButtonBlockElement(answer.ActYes, id, answer.Label(textApprove.In(c.Lang)))
	yes.Style = slack.StylePrimary
	row := slack.NewActionBlock("", yes, slack.NewButtonBlockElement(answer.ActNo, id, answer.Label(textDecline.In(c.Lang))))
	bs := slices.Concat(r.Messages[0], []slack.Block{row})
	to := a.Channel
	if b.cfg.Policy.ApprovalChannel != "" {
		to = b.cfg.Policy.ApprovalChannel
	}
	// The requester is named by an edit: a mention in a new message would call them
	// for what they have just done.
	key := "approve/" + id
	named := slices.Concat(r.Messages[0], []slack.Block{requester(a.User, c.Lang), row})
	owed := []store.SlackMessage{
		b.out.Owe(key, key, outbox.Message{Do: outbox.Post, Team: a.Team, Channel: to, Text: r.Text, Blocks: answer.BlocksJSON(bs)}),
		b.out.Owe(key+"/named", key, outbox.Message{Do: outbox.Update, Team: a.Team, Ref: key, Text: r.Text, Blocks: answer.BlocksJSON(named)}),
	}
	asked := view.Doc{Title: form.TextAsked.In(c.Lang), Tone: view.Warn, Sections: []view.Section{{Text: why}, {Text: textAskedHow.In(c.Lang)}}}
	return append(owed, b.reply(a, asked, false)...)
}

// requester names a person by a mention, which rich text draws.
func requester(user string, l lang.Lang) slack.Block {
	return slack.NewRichTextBlock("", slack.NewRichTextSection(
		answer.Bold(card.TextRequester.In(l)), slack.NewRichTextSectionTextElement("  ", nil), slack.NewRichTextSectionUserElement(user, nil)))
}

// approved carries the held call out as the person who asked for it.
func (b *Bot) approved(ctx context.Context, a ask, c *ops.Call, h held, op ops.Op) []store.SlackMessage {
	b.audit(ctx, c, "approve", map[string]string{"op": op.Name, "requester": h.Ask.Team + "/" + h.Ask.User}, nil)
	done := view.Doc{Title: fmt.Sprintf("%s: %s", textApprovedB.In(c.Lang), op.Name), Tone: view.Good}
	owed := b.replace(a, done)
	asker := h.Ask
	asker.Key, asker.Approver = a.Key, a.User
	call := b.call(ctx, asker) // judged anew: they may have lost their rights meanwhile
	call.Confirmed = true
	in, err := typed.Fill(op, h.Call)
	if err != nil {
		return append(owed, b.tellRequester(a, h, answer.Error(ops.AsError(err), call.Lang))...)
	}
	result, err := op.Run(ctx, call, in)
	if err != nil {
		return append(owed, b.tellRequester(a, h, b.failed(ops.AsError(err), result, call))...)
	}
	if v, ok := result.(view.Viewer); ok {
		owed = append(owed, b.tellRequester(a, h, v.View(call.Lang))...)
	}
	owed = append(owed, b.follow(ctx, asker, call, op, in, result)...)
	return append(owed, b.andThen(ctx, asker, call, h.Call, result)...)
}

// tellRequester writes to who asked, directly: their response_url may be over.
func (b *Bot) tellRequester(a ask, h held, doc view.Doc) []store.SlackMessage {
	to := ask{Kind: asButton, Key: a.Key + "/requester", Team: h.Ask.Team, User: h.Ask.User}
	return b.reply(to, doc, false)
}
