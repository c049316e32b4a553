package bot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textFourEyes  = lang.Text{EN: "somebody else than the requester must approve this", ZH: "必须由申请人以外的人审批"}
	textOperators = lang.Text{EN: "only operators may approve", ZH: "只有管理员可以审批"}
	textRefused   = lang.Text{EN: "An operator has declined your request. Nothing was done.", ZH: "管理员已拒绝您的申请，没有执行任何操作。"}
	textAskedHow  = lang.Text{EN: "I have asked the operators. Their answer will come here. The request ends after %s; if none has come by then, ask again.", ZH: "已通知管理员，结果会在这里告知您。申请在%s后失效；届时仍无结果，请重新申请。"}
	textApproval  = lang.Text{EN: "Approval needed", ZH: "需要审批"}
	textApprove   = lang.Text{EN: "Approve", ZH: "批准"}
	textDecline   = lang.Text{EN: "Decline", ZH: "拒绝"}
	textWhy       = lang.Text{EN: "Why", ZH: "原因"}
	textDeclinedB = lang.Text{EN: "Declined", ZH: "已拒绝"}
	textWhyNot    = lang.Text{EN: "Reason", ZH: "理由"}
	textEnds      = lang.Text{EN: "The request ends", ZH: "申请失效时间"}
	textDecidedAt = lang.Text{EN: "Decided at", ZH: "审批时间"}
	textMadeJob   = lang.Text{EN: "Job", ZH: "作业"}
	textApprovedB = lang.Text{EN: "Approved", ZH: "已批准"}
)

// needsApproval says why an operator must approve the call; it is empty where none must. An
// operator's own calls need no approval.
func (b *Bot) needsApproval(c *ops.Call, op ops.Op, in any) string {
	if b.cfg.Policy.Approve == nil || op.Effect == ops.Read || c.Who.Operator || c.Who.User == "" {
		return ""
	}
	return b.cfg.Policy.Approve(op.Name, in).In(c.Lang)
}

// askApproval asks the operators, in the approval channel or the channel of the request. The
// message shows all that would be done. Its two buttons carry the random id of the held call.
func (b *Bot) askApproval(ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, in any, t typed.Call, why string) []store.SlackMessage {
	asked := *c
	asked.Confirmed = false
	r, result, err := consent.Of(ctx, &asked, op, in)
	switch {
	case err != nil:
		return b.reply.Doc(a, b.failed(withTypedCommands(ops.AsError(err), c), result, c), false)
	case result != nil: // the preview shows that there is nothing to approve
		return b.answerResult(ctx, a, c, op, in, result, t)
	}
	until := b.now().Add(b.cfg.Service.ApprovalLifetime())
	doc := view.Doc{Title: textApproval.In(c.Lang), Tone: view.Warn, Sections: []view.Section{{Facts: []view.Fact{
		{Name: people.ActsAs.In(c.Lang), Value: c.Who.User},
		{Name: textWhy.In(c.Lang), Value: why},
	}, Items: t.Note}}}
	doc.Sections = append(doc.Sections, r.Sections(c.Lang)...)
	key := "approve/" + a.Key
	id, err := b.hold(ctx, heldCall{Call: t, Ask: a, Approve: true, Digest: r.Digest, Shown: r.Shown, Asked: doc, Message: key, Until: until})
	if err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	row := approvalRow(answer.ActYes, answer.ActNo, id, c.Lang)
	rendered := answer.Render(doc, c.Lang)
	first := rendered.Messages[0] // about ten blocks; a long request continues in the thread
	to := cmp.Or(b.cfg.Policy.ApprovalChannel, a.Channel)
	// An edit adds the requester's name, since a mention in a new message would notify them
	// about their own request.
	ends := timeLine(textEnds, until, c.Lang)
	posted := slices.Concat(first, []slack.Block{ends, row})
	named := slices.Concat(first, []slack.Block{ends, personLine(textRequester, a.User, c.Lang), row})
	owed := []store.SlackMessage{
		b.out.Owe(key, key, outbox.Message{Do: outbox.Post, Team: a.Team, Channel: to, Text: rendered.Text, Blocks: answer.BlocksJSON(posted)}),
		b.out.Owe(key+"/named", key, outbox.Message{Do: outbox.Update, Team: a.Team, Ref: key, Text: rendered.Text, Blocks: answer.BlocksJSON(named)}),
	}
	for i, bs := range rendered.Messages[1:] {
		owed = append(owed, b.out.Owe(fmt.Sprintf("%s/more%d", key, i), key+"/thread",
			outbox.Message{Do: outbox.Post, Team: a.Team, Channel: to, ThreadOf: key, Text: rendered.Text, Blocks: answer.BlocksJSON(bs)}))
	}
	for i, f := range rendered.Files {
		owed = append(owed, b.out.Owe(fmt.Sprintf("%s/file%d", key, i), key+"/thread", outbox.Message{Do: outbox.Upload, Team: a.Team, ThreadOf: key, File: &f}))
	}
	how := textAskedHow.With(lang.Span(b.cfg.Service.ApprovalLifetime())).In(c.Lang)
	told := view.Doc{Title: form.TextAsked.In(c.Lang), Tone: view.Warn, Sections: []view.Section{{Text: why}, {Text: how}}}
	return append(owed, b.reply.Doc(a, told, false)...)
}

// decisionEdit replaces the buttons of an approval request by the decision, who made it, when
// and why.
func (b *Bot) decisionEdit(a incoming.Ask, h heldCall, l lang.Lang, what lang.Text, tone view.Tone, reason string, job *slurm.JobID) []store.SlackMessage {
	doc := h.Asked
	doc.Title, doc.Tone = fmt.Sprintf("%s: %s", what.In(l), h.Call.Op), tone
	var facts []view.Fact
	if reason != "" {
		facts = append(facts, view.Fact{Name: textWhyNot.In(l), Value: reason})
	}
	if job != nil {
		facts = append(facts, view.Fact{Name: textMadeJob.In(l), Value: string(*job)})
	}
	doc.Sections = append(slices.Clone(doc.Sections), view.Section{Facts: facts})
	r := answer.Render(doc, l)
	bs := slices.Concat(r.Messages[0], []slack.Block{
		personLine(textRequester, h.Ask.User, l), personLine(textDecidedBy, a.User, l), timeLine(textDecidedAt, b.now(), l),
	})
	return []store.SlackMessage{b.out.Owe(h.Message+"/decided", h.Message,
		outbox.Message{Do: outbox.Update, Team: h.Ask.Team, Ref: h.Message, Text: r.Text, Blocks: answer.BlocksJSON(bs)})}
}

// approvalRow returns the buttons below a request; their value is the request's id.
func approvalRow(approve, decline, id string, l lang.Lang) slack.Block {
	yes := slack.NewButtonBlockElement(approve, id, answer.Label(textApprove.In(l)))
	yes.Style = slack.StylePrimary
	return slack.NewActionBlock("", yes, slack.NewButtonBlockElement(decline, id, answer.Label(textDecline.In(l))))
}

// decision is the audit entry's input for a decision.
func (b *Bot) decision(h heldCall, reason string) map[string]string {
	return map[string]string{"op": h.Call.Op, "requester": h.Ask.Team + "/" + h.Ask.User, "digest": h.Digest, "reason": reason}
}

// The callback ids of the forms that ask for the reason of declining a person's or an agent's
// request, and the form's field.
const (
	viewDecline      = "decline"
	viewAgentDecline = "decline_agent"
	reasonField      = "reason"
)

// askReason opens the form that asks for the reason, and reports whether it could be opened.
func (b *Bot) askReason(ctx context.Context, a incoming.Ask, callback string, l lang.Lang) bool {
	if a.Terminal != nil {
		return false
	}
	e := slack.NewPlainTextInputBlockElement(nil, reasonField)
	e.Multiline = true
	block := slack.NewInputBlock(reasonField, answer.Label(textWhyNot.In(l)), nil, e)
	return b.openView(ctx, a, slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: callback, PrivateMetadata: a.Value,
		Title: answer.Label(textDecline.In(l)), Submit: answer.Label(textDecline.In(l)), Close: answer.Label(form.TextClose.In(l)),
		Blocks: slack.Blocks{BlockSet: []slack.Block{block}},
	})
}

// personLine names a person by a mention, which rich text may contain.
func personLine(label lang.Text, user string, l lang.Lang) slack.Block {
	return slack.NewRichTextBlock("", slack.NewRichTextSection(
		answer.Bold(label.In(l)), slack.NewRichTextSectionTextElement("  ", nil), slack.NewRichTextSectionUserElement(user, nil)))
}

// timeLine shows a time in the reader's own time zone.
func timeLine(label lang.Text, at time.Time, l lang.Lang) slack.Block {
	text := "*" + label.In(l) + "*  " + card.When(at, "{date_short_pretty} {time}")
	return slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, text, false, false), nil, nil)
}

// approved runs the held call as the person who asked for it, with the script that was shown.
func (b *Bot) approved(ctx context.Context, a incoming.Ask, c *ops.Call, h heldCall, op ops.Op) []store.SlackMessage {
	b.audit(ctx, c, "approve", b.decision(h, ""), nil)
	asker := h.Ask
	asker.Key, asker.Approver = a.Key, a.User
	call := b.people.Call(ctx, asker) // rights are checked again: the person may have lost them meanwhile
	call.Confirmed, call.Agreed, call.Shown, call.AgreedBy = true, h.Digest, h.Shown, a.Team+"/"+a.User
	var result any
	in, err := typed.Fill(op, h.Call)
	if err == nil {
		result, err = op.Run(ctx, call, in)
	}
	if err != nil {
		owed := b.decisionEdit(a, h, c.Lang, textApprovedB, view.Warn, ops.AsError(err).Message.In(c.Lang), nil)
		if told, open := b.unknownOutcome(ctx, asker, call, h.Call, in); open {
			return append(owed, told...)
		}
		return append(owed, b.tellRequester(a, h, b.failed(ops.AsError(err), result, call))...)
	}
	var job *slurm.JobID
	if id := typed.StringField(result, "job_id"); id != "" {
		job = (*slurm.JobID)(&id)
	}
	owed := b.decisionEdit(a, h, c.Lang, textApprovedB, view.Good, "", job)
	if v, ok := result.(view.Viewer); ok {
		owed = append(owed, b.tellRequester(a, h, v.View(call.Lang))...)
	}
	owed = append(owed, b.news.Follow(ctx, asker, call, op, in, result)...)
	return append(owed, b.andThen(ctx, asker, call, h.Call, result)...)
}

// tellRequester answers the requester in a direct message, since their response_url may have
// expired.
func (b *Bot) tellRequester(a incoming.Ask, h heldCall, doc view.Doc) []store.SlackMessage {
	to := incoming.Ask{Kind: incoming.AsButton, Key: a.Key + "/requester", Team: h.Ask.Team, User: h.Ask.User}
	return b.reply.Doc(to, doc, false)
}
