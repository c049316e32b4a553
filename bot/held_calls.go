package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A heldCall is a call that waits for a person's confirmation or approval.
type heldCall struct {
	Call typed.Call   `json:"call"`
	Ask  incoming.Ask `json:"ask"`
	// Approve says that an operator must answer instead of the person who asked.
	Approve bool `json:"approve,omitempty"`
	// Digest is the digest of the script that was shown. Only that script is submitted.
	Digest string `json:"digest,omitempty"`
	// Shown names what else was shown, as ops.Error.Shown does. Nothing else is done.
	Shown string `json:"shown,omitempty"`
	// As is the cluster user as whom an approval request would act. It acts as nobody else; empty
	// in the requests of earlier versions.
	As string `json:"as,omitempty"`
	// Most is the most that an approval request could use as it was shown. Nothing larger is done.
	Most *ops.Size `json:"most,omitempty"`
	// Cards are the messages that show an approval request, Headline is its first line, and
	// Until is when it expires.
	Cards    []requestCard `json:"cards,omitempty"`
	Headline lang.Text     `json:"headline,omitzero"`
	Until    time.Time     `json:"until,omitzero"`
	// Again says that the call is only made anew: its button agrees to nothing.
	Again bool `json:"again,omitempty"`
	// Asked and Message are the one card of a request that an earlier version posted.
	Asked   view.Doc `json:"asked,omitzero"`
	Message string   `json:"message,omitempty"`
}

// cards returns the messages that show an approval request.
func (h heldCall) cards() []requestCard {
	if len(h.Cards) == 0 && h.Message != "" {
		return []requestCard{{h.Message, card.Place{Team: h.Ask.Team}, answer.LanguageOfDoc(h.Asked), h.Asked}}
	}
	return h.Cards
}

// hold stores the call and returns its id, which cannot be guessed. A request that is carried
// out again after a crash holds the same call under a new id.
func (b *Bot) hold(ctx context.Context, h heldCall) (id string, err error) {
	id = rand.Text()
	if h.Approve {
		id = requestMark + id
	}
	if h.Until.IsZero() {
		h.Until = b.now().Add(time.Hour)
	}
	return id, b.cfg.Store.Put(ctx, record.Held, id, h, h.Until)
}

// askFirst asks the person to confirm a call, and shows what it would do.
func (b *Bot) askFirst(ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, t typed.Call, e *ops.Error, result any) []store.SlackMessage {
	h := heldCall{Call: t, Ask: a, Shown: e.Shown}
	if s, ok := result.(launch.SubmitOut); ok {
		h.Digest = consent.Digest(s.Script)
	}
	id, err := b.hold(ctx, h)
	if err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	doc := view.Doc{Title: textConfirm.In(c.Lang), Tone: view.Warn, Sections: []view.Section{{Text: lang.Capital(e.Message.In(c.Lang)), Items: t.Note}}}
	for _, d := range e.Details {
		doc.Sections[0].Items = append(doc.Sections[0].Items, d.In(c.Lang))
	}
	if e.Fix.EN != "" && !strings.Contains(e.Fix.EN, "--yes") {
		doc.Sections = append(doc.Sections, view.Section{Text: e.Fix.In(c.Lang)})
	}
	if s, ok := result.(launch.SubmitOut); ok {
		doc.Sections = append(doc.Sections, view.Section{Heading: answer.Script.In(c.Lang), Code: redact.Lines(s.Script), Lang: "bash", Fold: true})
	}
	return b.reply.Doc(a, doc, false, yesNo(id, c.Lang, op.Effect == ops.Destructive))
}

// yesNo returns the two buttons below a question.
func yesNo(id string, l lang.Lang, danger bool) slack.Block {
	yes := slack.NewButtonBlockElement(answer.ActYes, id, answer.Label(answer.Yes.In(l)))
	yes.Style = slack.StylePrimary
	if danger {
		yes.Style = slack.StyleDanger
	}
	return slack.NewActionBlock("", yes, slack.NewButtonBlockElement(answer.ActNo, id, answer.Label(answer.No.In(l))))
}

// answered runs a held call, or drops it. Of two presses only the first has an effect, and the
// message keeps what the first made of it.
func (b *Bot) answered(ctx context.Context, a incoming.Ask, yes bool) []store.SlackMessage {
	l := b.people.LangOf(ctx, a)
	var h heldCall
	found, err := b.cfg.Store.Get(ctx, record.Held, a.Value, b.now(), &h)
	if err != nil || !found {
		return b.answeredLate(ctx, a, l)
	}
	c := b.people.Call(ctx, a)
	if refusal := b.mayAnswer(ctx, a, c, h); refusal != nil {
		return b.reply.Doc(a, answer.Error(refusal, l), false)
	}
	if !yes && h.Approve && a.Callback == "" && b.askReason(ctx, a, viewDecline, l) {
		return nil // the form's answer decides
	}
	// The claim outlives the held call: a window that was not drawn again keeps its buttons.
	owner, err := b.cfg.Store.Claim(ctx, record.Claim, a.Value, a.Key, h.Until.Add(2*time.Hour))
	if err != nil || owner != a.Key {
		return b.answeredLate(ctx, a, l)
	}
	if h.Approve {
		b.warn("request", b.cfg.Store.Delete(ctx, record.Waiting, a.Value), "id", a.Value)
	}
	if !yes {
		return b.declined(ctx, a, c, h)
	}
	op, ok := operations.Lookup(h.Call.Op)
	if !ok {
		return b.reply.Replace(a, help.Unknown(h.Call.Op, l))
	}
	if h.Approve {
		return b.approved(ctx, a, c, h, op)
	}
	c.Confirmed, c.Agreed, c.Shown = !h.Again, h.Digest, h.Shown
	if h.Again { // as it was asked first, wherever the button was
		a.Channel, a.Thread, a.Direct = h.Ask.Channel, h.Ask.Thread, h.Ask.Direct
	}
	owed := b.reply.Replace(a, view.Doc{Title: textConfirmed.In(l)})
	return append(owed, b.run(ctx, a, c, op, h.Call)...)
}

// mayAnswer refuses the answer of a person who may not give it.
func (b *Bot) mayAnswer(ctx context.Context, a incoming.Ask, c *ops.Call, h heldCall) *ops.Error {
	same := h.Ask.Team == a.Team && h.Ask.User == a.User
	switch {
	case h.Approve && same:
		return &ops.Error{Code: ops.NotAllowed, Message: textFourEyes}
	case h.Approve && (!c.Who.Operator || c.Who.ReadOnly):
		return &ops.Error{Code: ops.NotAllowed, Message: textOperators}
	case h.Approve:
		asker := b.people.Call(ctx, h.Ask).Who
		asker.User = cmp.Or(h.As, asker.User)
		if err := ops.FourEyes(asker, c.Who); err != nil {
			return ops.AsError(err)
		}
	case !same:
		return &ops.Error{Code: ops.NotAllowed, Message: textNotYours}
	}
	return nil
}

// declined says that nothing was done.
func (b *Bot) declined(ctx context.Context, a incoming.Ask, c *ops.Call, h heldCall) []store.SlackMessage {
	if !h.Approve {
		return b.reply.Replace(a, view.Doc{Title: textLeft.In(c.Lang)})
	}
	reason := a.Fields[reasonField]
	b.audit(ctx, c, "decline", b.decision(h, reason), nil)
	l := b.people.LangOf(ctx, h.Ask) // the requester's, who reads it
	told := view.Doc{Title: textRefused.In(l), Tone: view.Warn, Sections: []view.Section{{Text: h.Headline.In(l)}}}
	if reason != "" {
		told.Sections[0].Facts = []view.Fact{{Name: textWhyNot.In(l), Value: reason}}
	}
	return append(b.decisionEdit(a, h, textDeclinedB, view.Bad, lang.Same(reason), ""), b.tellRequester(a, h, told)...)
}
