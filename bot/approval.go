package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var (
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

func requestKey(id string, p card.Place) string {
	key := "agent/" + id + "@" + p.Team + "/" + p.Channel
	if p.Moved > 0 {
		key += "#" + strconv.Itoa(p.Moved)
	}
	return key
}

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
// carry the request's random id.
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
	h := heldCall{Call: t, Ask: a, Headline: lang.Text{EN: redact.Text(r.Headline.EN), ZH: redact.Text(r.Headline.ZH)}}
	places, instead := b.operatorsAt(ctx, a)
	// Under the lock nothing waits for Slack or the cluster.
	b.requesting.Lock()
	defer b.requesting.Unlock()
	request, first, err := b.ask(ctx, r.Approval(c.Who, why.EN), in, h)
	if err == nil && !first {
		told := view.Doc{Title: textAskedOnce.In(c.Lang), Tone: view.Warn}
		told.Sections = []view.Section{{Text: h.Headline.In(c.Lang)}, {Text: textOnceWaits.In(c.Lang)}}
		return b.reply.Doc(a, told, false, timeLine(textEnds, request.Until, c.Lang))
	}
	w := waitingRequest{Request: request}
	for _, p := range places {
		l := b.people.Settings(ctx, p.Team, p.Channel).LangOr(c.Lang)
		doc := view.Doc{Title: textApproval.In(l), Tone: view.Warn, Sections: []view.Section{{Facts: []view.Fact{
			{Name: people.ActsAs.In(l), Value: c.Who.User},
			{Name: textWhy.In(l), Value: why.In(l)},
		}, Items: t.Note}}}
		doc.Sections = append(doc.Sections, r.Sections(l)...)
		w.Cards = append(w.Cards, requestCard{requestKey(request.ID, p), p, l, doc})
	}
	if err == nil {
		w, err = b.awaits(ctx, w)
	}
	if err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	how := textAskedHow.With(lang.Span(b.cfg.Service.ApprovalLifetime())).In(c.Lang)
	told := view.Doc{Title: form.TextAsked.In(c.Lang), Tone: view.Warn}
	for _, text := range []string{h.Headline.In(c.Lang), why.In(c.Lang), how} {
		told.Sections = append(told.Sections, view.Section{Text: text})
	}
	return append(b.postRequest(request, w.Cards, instead), b.reply.Doc(a, told, false)...)
}

// ask stores a person's request. first is false where an earlier one of theirs, which still waits,
// covers it; it is true again where a crash interrupted this very request.
func (b *Bot) ask(ctx context.Context, r ops.Approval, in any, h heldCall) (request ops.Approval, first bool, err error) {
	if r.Own, err = json.Marshal(h); err != nil {
		return r, false, err
	}
	request, err = b.cfg.Service.Ask(ctx, r, in)
	had, _ := personsCall(request)
	return request, had.Call.Key == h.Call.Key, err
}

// personsCall returns the call of a person's request; ok is false for an agent's request.
func personsCall(r ops.Approval) (h heldCall, ok bool) {
	return h, len(r.Own) > 0 && json.Unmarshal(r.Own, &h) == nil
}

// postRequest posts a request in each place that a card names. A request that is longer than a
// message continues in its thread.
func (b *Bot) postRequest(r ops.Approval, cards []requestCard, instead string) (owed []store.SlackMessage) {
	h, person := personsCall(r)
	for _, shown := range cards {
		key, to := shown.Key, shown.Place
		rendered := answer.Render(shown.Doc, shown.Lang)
		rendered.Text = requestText(r, shown)
		above, more := aboveButtons(rendered)
		below := requestRow(r, shown.Lang)
		owed = append(owed, b.out.Owe(key, key, outbox.Message{
			Do: outbox.Post, Team: to.Team, Channel: to.Channel, Instead: instead, Text: rendered.Text, Blocks: answer.BlocksJSON(slices.Concat(above, below)),
		}))
		if person {
			// An edit adds the requester's name, since a mention in a new message would notify them
			// about their own request.
			named := slices.Concat(above, []slack.Block{below[0], personLine(textRequester, h.Ask.User, shown.Lang), below[1]})
			owed = append(owed, b.out.Owe(key+"/named", key, outbox.Message{
				Do: outbox.Update, Team: to.Team, Channel: to.Channel, Ref: key, Text: rendered.Text, Blocks: answer.BlocksJSON(named),
			}))
		}
		owed = append(owed, b.inThread(key, to, rendered.Text, more, rendered.Files)...)
	}
	return owed
}

// requestText says in a notification who asks for what.
func requestText(r ops.Approval, shown requestCard) string {
	who := r.Who.User
	if r.Who.Agent != "" {
		who = r.Who.Agent + " · " + who
	}
	said := shown.Lang.Named(shown.Doc.Title, shown.Lang.Named(who, askedFor(r, shown.Lang)))
	return answer.Escape(answer.Cut(answer.OneLine(said), 300))
}

// askedFor says in one line what a request is for.
func askedFor(r ops.Approval, l lang.Lang) string {
	if h, person := personsCall(r); person && h.Headline.EN != "" {
		return h.Headline.In(l)
	}
	for _, s := range r.Shown {
		if s.Text != "" {
			return s.Text
		}
	}
	return r.Op
}

// aboveButtons returns the blocks of a request's first message that leave room for what stands
// below them, and the messages that continue it.
func aboveButtons(r answer.Rendered) (above []slack.Block, more [][]slack.Block) {
	first := r.Messages[0]
	fit := min(len(first), answer.MaxBlocks-2)
	if above = first[:fit]; fit < len(first) {
		more = append(more, first[fit:])
	}
	return above, append(more, r.Messages[1:]...)
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

// closeCards takes the buttons off a request wherever cards show it, and says in their place what
// became of it, in the language of each place.
func (b *Bot) closeCards(
	r ops.Approval, cards []requestCard, what lang.Text, tone view.Tone, result func(lang.Lang) (view.Section, []slack.Block),
) (owed []store.SlackMessage) {
	_, person := personsCall(r)
	for _, shown := range cards {
		said, below := result(shown.Lang)
		doc := shown.Doc
		doc.Title, doc.Tone = what.In(shown.Lang), tone
		if person {
			doc.Title += answer.Colon.In(shown.Lang) + r.Op
		}
		if said.Text != "" || len(said.Facts) > 0 { // above the request, which fills a phone's screen
			doc.Sections = slices.Concat([]view.Section{said}, doc.Sections)
		}
		rendered := answer.Render(doc, shown.Lang)
		above, _ := aboveButtons(rendered)
		owed = append(owed, b.out.Owe(shown.Key+"/decided", shown.Key, outbox.Message{
			Do: outbox.Update, Team: shown.Place.Team, Channel: shown.Place.Channel, Ref: shown.Key,
			Text: rendered.Text, Blocks: answer.BlocksJSON(slices.Concat(above, below)),
		}))
	}
	return owed
}

// nothingMore is the result of a request of which its title says everything.
func nothingMore(lang.Lang) (said view.Section, below []slack.Block) { return said, nil }

// requestRow says until when a request can be decided, above its two buttons. Their value is the
// request's id.
func requestRow(r ops.Approval, l lang.Lang) []slack.Block {
	yes := slack.NewButtonBlockElement(actApprove, r.ID, answer.Label(textApprove.In(l)))
	yes.Style = slack.StylePrimary
	row := slack.NewActionBlock("", yes, slack.NewButtonBlockElement(actDecline, r.ID, answer.Label(textDecline.In(l))))
	return []slack.Block{timeLine(textEnds, r.Until, l), row}
}

// The actions of the buttons below a request, the callback id of the form that asks for the reason
// of declining it, and that form's field.
const (
	actApprove  = "agent_yes" // value: the request's id
	actDecline  = "agent_no"
	viewDecline = "decline_agent"
	reasonField = "reason"
)

// askReason opens the form that asks for the reason, and reports whether it could be opened.
func (b *Bot) askReason(ctx context.Context, a incoming.Ask, l lang.Lang) bool {
	if a.Terminal != nil {
		return false
	}
	e := slack.NewPlainTextInputBlockElement(nil, reasonField)
	e.Multiline = true
	block := slack.NewInputBlock(reasonField, answer.Label(textWhyNot.In(l)), nil, e)
	return b.openView(ctx, a, slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: viewDecline, PrivateMetadata: a.Value,
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
