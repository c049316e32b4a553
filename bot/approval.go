package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textFourEyes  = lang.Text{EN: "somebody else than the requester must approve this", ZH: "必须由申请人以外的人审批"}
	textOperators = lang.Text{EN: "only operators may approve", ZH: "只有管理员可以审批"}
	textRefused   = lang.Text{EN: "An operator has declined your request. Nothing was done.", ZH: "管理员已拒绝您的申请，没有执行任何操作。"}
	textAskedHow  = lang.Text{EN: "I have asked the operators and will tell you their answer. Without one, the request ends in %s.", ZH: "已通知管理员，有结果会告知您。若无人审批，申请在 %s后失效。"}
	textAskedOnce = lang.Text{EN: "You have asked for this already", ZH: "您已提交过相同的申请"}
	textOnceWaits = lang.Text{EN: "The operators have not decided yet. They were not asked a second time.", ZH: "管理员尚未审批，没有重复发送申请。"}
	textOtherUser = lang.Text{
		EN: "the request showed that it acts as %s, and its requester is linked to %s now; nothing was done", ZH: "申请中显示的执行身份是 %s，而申请人现在绑定的是 %s；没有执行任何操作",
	}
	textUnlinkedNow = lang.Text{
		EN: "the request showed that it acts as %s, and its requester is linked to no cluster user now; nothing was done", ZH: "申请中显示的执行身份是 %s，而申请人现在没有绑定集群用户；没有执行任何操作",
	}
	textOtherUserFix   = lang.Text{EN: "the requester asks again: what would act has to be approved", ZH: "请申请人重新申请：执行身份需要重新批准"}
	textApproval       = lang.Text{EN: "Approval needed", ZH: "需要审批"}
	textApprove        = lang.Text{EN: "Approve", ZH: "批准"}
	textDecline        = lang.Text{EN: "Decline", ZH: "拒绝"}
	textWhy            = lang.Text{EN: "Why", ZH: "原因"}
	textDeclinedB      = lang.Text{EN: "Declined", ZH: "已拒绝"}
	textWhyNot         = lang.Text{EN: "Reason", ZH: "理由"}
	textEnds           = lang.Text{EN: "The request ends", ZH: "申请失效时间"}
	textDecidedAt      = lang.Text{EN: "Decided at", ZH: "审批时间"}
	textMadeJob        = lang.Text{EN: "Job", ZH: "作业"}
	textApprovedB      = lang.Text{EN: "Approved", ZH: "已批准"}
	textApprovedFailed = lang.Text{EN: "Approved, but it failed", ZH: "已批准，但执行失败"}
)

// needsApproval says why an operator must approve the call; it is empty where none must. An
// operator's own calls need no approval.
func (b *Bot) needsApproval(c *ops.Call, op ops.Op, in any) lang.Text {
	if b.cfg.Policy.Approve == nil || op.Effect == ops.Read || c.Who.Operator || c.Who.User == "" {
		return lang.Text{}
	}
	return b.cfg.Policy.Approve(c, op.Name, in)
}

// A requestCard is the message in which one place shows a request: its outbox key, its language,
// and what was posted, so that the decision can be added to it.
type requestCard struct {
	Key   string     `json:"key"`
	Place card.Place `json:"place"`
	Lang  lang.Lang  `json:"lang"`
	Doc   view.Doc   `json:"doc"`
}

// requestKey returns the key of the first message that shows a request.
func requestKey(a incoming.Ask) string { return "approve/" + a.Key }

// operatorsAt returns where the operators are asked: in the approval channel, or in the channel
// of the request. Nobody else reads a direct message, so a request from there goes to each
// operator directly. instead is the operator who gets the request where the channel refuses it.
func (b *Bot) operatorsAt(ctx context.Context, a incoming.Ask) (places []card.Place, instead string) {
	requester := func(p card.Place) bool { return p.Channel == a.User } // who may not decide
	operators := slices.DeleteFunc(b.people.Operators(ctx), requester)
	if b.cfg.Policy.ApprovalChannel != "" {
		places = slices.DeleteFunc(b.people.Deciders(ctx), requester) // none for a group without members, or whose members Slack does not tell
	}
	if len(places) == 0 && (a.Direct || a.Channel == "") {
		places = slices.Clone(operators)
	}
	if len(places) == 0 {
		places = []card.Place{{Channel: a.Channel}}
	}
	for i := range places {
		places[i].Team = cmp.Or(places[i].Team, a.Team)
	}
	for _, p := range operators {
		person := strings.HasPrefix(p.Channel, "U") || strings.HasPrefix(p.Channel, "W")
		// A workspace knows only its own people.
		if person && cmp.Or(p.Team, a.Team) == places[0].Team {
			return places, p.Channel
		}
	}
	return places, ""
}

// askApproval asks the operators. The message shows all that would be done. Its two buttons
// carry the random id of the held call.
func (b *Bot) askApproval(ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, in any, t typed.Call, why lang.Text) []store.SlackMessage {
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
	headline := lang.Text{EN: redact.Text(r.Headline.EN), ZH: redact.Text(r.Headline.ZH)}
	h := heldCall{Call: t, Ask: a, Approve: true, Digest: r.Digest, Shown: r.Shown, As: c.Who.User, Most: r.Most(), Headline: headline, Until: until}
	places, instead := b.operatorsAt(ctx, a)
	// Under the lock nothing waits for Slack or the cluster.
	b.requesting.Lock() // of equal requests at the same time the second finds the first
	defer b.requesting.Unlock()
	had, before, waiting := b.askedBefore(ctx, h)
	if before {
		told := view.Doc{Title: textAskedOnce.In(c.Lang), Tone: view.Warn}
		told.Sections = []view.Section{{Text: h.Headline.In(c.Lang)}, {Text: textOnceWaits.In(c.Lang)}}
		return b.reply.Doc(a, told, false, timeLine(textEnds, had.Until, c.Lang))
	}
	if err := ops.TooManyWaiting(waiting); err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	for i, p := range places {
		key, l := requestKey(a), b.people.Settings(ctx, p.Team, p.Channel).LangOr(c.Lang)
		if i > 0 {
			key += at(p)
		}
		doc := view.Doc{Title: textApproval.In(l), Tone: view.Warn, Sections: []view.Section{{Facts: []view.Fact{
			{Name: people.ActsAs.In(l), Value: c.Who.User},
			{Name: textWhy.In(l), Value: why.In(l)},
		}, Items: t.Note}}}
		doc.Sections = append(doc.Sections, r.Sections(l)...)
		h.Cards = append(h.Cards, requestCard{key, p, l, doc})
	}
	id, err := b.hold(ctx, h)
	if err == nil {
		err = b.awaits(ctx, id, waitingRequest{Held: &h, Until: until})
	}
	if err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	var owed []store.SlackMessage
	for _, shown := range h.Cards {
		owed = append(owed, b.postRequest(shown, h, id, instead)...)
	}
	how := textAskedHow.With(lang.Span(b.cfg.Service.ApprovalLifetime())).In(c.Lang)
	told := view.Doc{Title: form.TextAsked.In(c.Lang), Tone: view.Warn}
	for _, text := range []string{h.Headline.In(c.Lang), why.In(c.Lang), how} {
		told.Sections = append(told.Sections, view.Section{Text: text})
	}
	return append(owed, b.reply.Doc(a, told, false)...)
}

// askedBefore returns the person's equal request that still waits, and how many of the
// person's requests do.
func (b *Bot) askedBefore(ctx context.Context, h heldCall) (had heldCall, ok bool, waiting int) {
	ids, err := b.cfg.Store.Keys(ctx, record.Waiting, b.now())
	b.warn("requests", err)
	for _, id := range ids {
		var w waitingRequest
		if ok, err := b.cfg.Store.Get(ctx, record.Waiting, id, b.now(), &w); err != nil || !ok || w.Held == nil || !b.now().Before(w.Until) {
			continue
		}
		if w.Held.Ask.Key == h.Ask.Key { // this request, which a crash interrupted before anybody saw it
			b.warn("request", errors.Join(b.cfg.Store.Delete(ctx, record.Waiting, id), b.cfg.Store.Delete(ctx, record.Held, id)), "id", id)
			continue
		}
		if openID(w.Held.Ask, w.Held.Call) == openID(h.Ask, h.Call) && w.Held.Digest == h.Digest && w.Held.Shown == h.Shown {
			return *w.Held, true, waiting
		}
		if w.Held.Ask.Team == h.Ask.Team && w.Held.Ask.User == h.Ask.User {
			waiting++
		}
	}
	return had, false, waiting
}

// postRequest posts a request in one place.
func (b *Bot) postRequest(shown requestCard, h heldCall, id, instead string) []store.SlackMessage {
	key, l, to := shown.Key, shown.Lang, shown.Place
	row := approvalRow(answer.ActYes, answer.ActNo, id, l)
	rendered := answer.Render(shown.Doc, l)
	first := rendered.Messages[0] // about ten blocks; a long request continues in the thread
	// An edit adds the requester's name, since a mention in a new message would notify them
	// about their own request.
	ends := timeLine(textEnds, h.Until, l)
	posted := slices.Concat(first, []slack.Block{ends, row})
	named := slices.Concat(first, []slack.Block{ends, personLine(textRequester, h.Ask.User, l), row})
	owed := []store.SlackMessage{
		b.out.Owe(key, key, outbox.Message{
			Do: outbox.Post, Team: to.Team, Channel: to.Channel, Instead: instead, Text: rendered.Text, Blocks: answer.BlocksJSON(posted),
		}),
		b.out.Owe(key+"/named", key, outbox.Message{
			Do: outbox.Update, Team: to.Team, Channel: to.Channel, Ref: key, Text: rendered.Text, Blocks: answer.BlocksJSON(named),
		}),
	}
	return append(owed, b.inThread(key, to, rendered.Text, rendered.Messages[1:], rendered.Files)...)
}

// inThread returns the messages that continue a request in its thread, and its files.
func (b *Bot) inThread(key string, p card.Place, text string, more [][]slack.Block, files []answer.File) (owed []store.SlackMessage) {
	for i, bs := range more {
		owed = append(owed, b.out.Owe(fmt.Sprintf("%s/more%d", key, i), key+outbox.LaneOfThread,
			outbox.Message{Do: outbox.Post, Team: p.Team, Channel: p.Channel, ThreadOf: key, Text: text, Blocks: answer.BlocksJSON(bs)}))
	}
	for i, f := range files {
		owed = append(owed, b.out.Owe(fmt.Sprintf("%s/file%d", key, i), key+outbox.LaneOfFiles,
			outbox.Message{Do: outbox.Upload, Team: p.Team, ThreadOf: key, File: &f}))
	}
	return owed
}

// decisionEdit replaces the buttons of an approval request by the decision, who made it, when
// and why.
func (b *Bot) decisionEdit(a incoming.Ask, h heldCall, what lang.Text, tone view.Tone, reason lang.Text, job slurm.JobID) []store.SlackMessage {
	return b.closeCards(h, what, tone, func(l lang.Lang) (said view.Section, below []slack.Block) {
		if r := reason.In(l); r != "" {
			said.Facts = append(said.Facts, view.Fact{Name: textWhyNot.In(l), Value: r})
		}
		if job != "" {
			said.Facts = append(said.Facts, view.Fact{Name: textMadeJob.In(l), Value: string(job)})
		}
		return said, []slack.Block{personLine(textRequester, h.Ask.User, l), personLine(textDecidedBy, a.User, l), timeLine(textDecidedAt, b.now(), l)}
	})
}

// closeCards takes the buttons off a request wherever it is shown, and says in their place what
// became of it, in the language of each place.
func (b *Bot) closeCards(h heldCall, what lang.Text, tone view.Tone, result func(lang.Lang) (view.Section, []slack.Block)) (owed []store.SlackMessage) {
	for _, shown := range h.cards() {
		said, below := result(shown.Lang)
		doc := shown.Doc
		doc.Title, doc.Tone = what.In(shown.Lang)+answer.Colon.In(shown.Lang)+h.Call.Op, tone
		if said.Text != "" || len(said.Facts) > 0 { // above the request, which fills a phone's screen
			doc.Sections = slices.Concat([]view.Section{said}, doc.Sections)
		}
		r := answer.Render(doc, shown.Lang)
		owed = append(owed, b.out.Owe(shown.Key+"/decided", shown.Key, outbox.Message{
			Do: outbox.Update, Team: shown.Place.Team, Channel: shown.Place.Channel, Ref: shown.Key,
			Text: r.Text, Blocks: answer.BlocksJSON(slices.Concat(r.Messages[0], below)),
		}))
	}
	return owed
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
	if err == nil && h.As != "" && h.As != call.Who.User {
		err = &ops.Error{Code: ops.NotAllowed, Message: textOtherUser.With(h.As, call.Who.User), Fix: textOtherUserFix}
		if call.Who.User == "" {
			err = &ops.Error{Code: ops.NotAllowed, Message: textUnlinkedNow.With(h.As), Fix: textOtherUserFix}
		}
	}
	if err == nil {
		err = consent.StillWithin(ctx, call, in, h.Most)
	}
	if err == nil {
		result, err = op.Run(ctx, call, in)
	}
	if err != nil {
		told, open := b.unknownOutcome(ctx, asker, call, h.Call, in)
		what := textApprovedFailed
		if open {
			what = textApprovedB
		}
		owed := b.decisionEdit(a, h, what, view.Warn, ops.AsError(err).Message, "")
		if open {
			return append(owed, told...)
		}
		return append(owed, b.tellRequester(a, h, b.failed(ops.AsError(err), result, call))...)
	}
	owed := b.decisionEdit(a, h, textApprovedB, view.Good, lang.Text{}, slurm.JobID(ops.TextNamed(result, "job_id")))
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
