package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/reply"
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

// A heldCall is a call that waits for a person's confirmation. A request for approval keeps its
// Call, Ask and Headline.
type heldCall struct {
	Call typed.Call   `json:"call"`
	Ask  incoming.Ask `json:"ask"`
	// Digest is the digest of the script that was shown. Only that script is submitted.
	Digest string `json:"digest,omitempty"`
	// Shown names what else was shown, as ops.Error.Shown does. Nothing else is done.
	Shown string    `json:"shown,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Headline is the first line of a request for approval.
	Headline lang.Text `json:"headline,omitzero"`
	// Again says that the call is only made anew: its button agrees to nothing.
	Again bool `json:"again,omitempty"`
	// The others are a request for approval of an earlier version: As is the cluster user as whom it
	// showed that it acts, Most the most that it showed, Cards the messages that show it, or in
	// version 0.2.0 Asked and Message the only one. Request is the id that it has now.
	Approve bool          `json:"approve,omitempty"`
	As      string        `json:"as,omitempty"`
	Most    *ops.Size     `json:"most,omitempty"`
	Cards   []requestCard `json:"cards,omitempty"`
	Asked   view.Doc      `json:"asked,omitzero"`
	Message string        `json:"message,omitempty"`
	Request string        `json:"request,omitempty"`
}

// adoptAll makes the requests of earlier versions whose places are known requests of this version,
// so that they expire and move like others, and are decided on the page, too. done is false where it
// has to be repeated, such as for a person too many of whose requests wait; told holds those of which
// the log says so.
func (b *Bot) adoptAll(ctx context.Context, told map[string]bool) (done bool) {
	ids, err := b.cfg.Store.Keys(ctx, record.Held, b.now())
	done = err == nil
	for _, id := range ids {
		var h heldCall
		found, e := b.cfg.Store.Get(ctx, record.Held, id, b.now(), &h)
		if e == nil && found && len(h.Cards) > 0 {
			_, e = b.adopt(ctx, id, h, adopted)
		}
		done = done && e == nil
		if !told[id] && ctx.Err() == nil {
			b.warn("request of an earlier version", e, "id", id)
			told[id] = e != nil
		}
	}
	return done
}

// adopted claims a request of an earlier version for this one.
const adopted = "adopted"

// adopt makes a request for approval of an earlier version one of this version, and returns its id,
// which is kept under the old one. The id is empty where the earlier version has settled the
// request, unless it was killed while it carried out the same press.
func (b *Bot) adopt(ctx context.Context, id string, h heldCall, press string) (string, error) {
	r := ops.Approval{
		Op: h.Call.Op, Who: b.people.Call(ctx, h.Ask).Who, Why: textApproval.EN, Most: h.Most, Until: h.Until,
		Digest: consent.Request{Digest: h.Digest, Shown: h.Shown}.Agreement(),
	}
	r.Who.User = cmp.Or(h.As, r.Who.User)
	op, ok := operations.Lookup(h.Call.Op)
	if !ok {
		return "", nil
	}
	in, err := typed.Fill(op, h.Call)
	if err != nil {
		return "", err
	}
	b.requesting.Lock()
	defer b.requesting.Unlock()
	if _, err = b.cfg.Store.Get(ctx, record.Held, id, b.now(), &h); err != nil || h.Request != "" {
		return h.Request, err
	}
	owner, err := b.cfg.Store.Claim(ctx, record.Claim, id, adopted, b.now().Add(expiredKept))
	if err != nil || owner != adopted && owner != press {
		return "", err
	}
	cards := h.Cards
	if len(cards) == 0 {
		cards = []requestCard{{h.Message, card.Place{Team: h.Ask.Team}, answer.LanguageOfDoc(h.Asked), h.Asked}}
	}
	r.Shown = cards[0].Doc.Sections
	r, _, err = b.ask(ctx, r, in, heldCall{Call: h.Call, Ask: h.Ask, Headline: h.Headline})
	if err == nil {
		_, err = b.awaits(ctx, waitingRequest{Request: r, Cards: cards})
	}
	if err != nil {
		return "", err
	}
	return r.ID, errors.Join(
		b.cfg.Store.Put(ctx, record.Held, id, heldCall{Call: h.Call, Approve: true, Request: r.ID}, r.Until), b.cfg.Store.Delete(ctx, record.Waiting, id))
}

// hold stores the call and returns its id, which cannot be guessed. A request that is carried
// out again after a crash holds the same call under a new id.
func (b *Bot) hold(ctx context.Context, h heldCall) (id string, err error) {
	id = rand.Text()
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
	if e.MayBeDone() {
		e = withTypedCommands(e, c)
	}
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
	op, ok := operations.Lookup(h.Call.Op)
	if !ok {
		return b.reply.Replace(a, help.Unknown(h.Call.Op, l))
	}
	if h.Approve {
		request := h.Request
		if request == "" {
			request, err = b.adopt(ctx, a.Value, h, a.Key)
		}
		switch {
		case err != nil:
			return b.reply.Doc(a, answer.Error(ops.AsError(err), l), false)
		case request == "":
			return b.reply.Doc(a, view.Doc{Title: textDecided.In(l), Tone: view.Warn}, false)
		}
		a.Value = request
		return b.decide(ctx, a, yes)
	}
	if h.Ask.Team != a.Team || h.Ask.User != a.User {
		return b.reply.Doc(a, answer.Error(&ops.Error{Code: ops.NotAllowed, Message: textNotYours}, l), false)
	}
	// The claim outlives the held call: a window that was not drawn again keeps its buttons.
	owner, err := b.cfg.Store.Claim(ctx, record.Claim, a.Value, a.Key, h.Until.Add(2*time.Hour))
	if err != nil || owner != a.Key {
		return b.answeredLate(ctx, a, l)
	}
	if !yes {
		return b.reply.Replace(a, view.Doc{Title: textLeft.In(l)})
	}
	c := b.people.Call(ctx, a)
	c.Confirmed, c.Agreed, c.Shown = !h.Again, h.Digest, h.Shown
	if h.Again { // as it was asked first, wherever the button was
		a.Channel, a.Thread, a.Direct = h.Ask.Channel, h.Ask.Thread, h.Ask.Direct
	}
	// The answer takes the place of the question, which the person alone sees.
	a.InPlace = a.Callback == "" && !h.Again && (!h.Call.Share || a.Direct)
	owed := b.run(ctx, a, c, op, h.Call)
	if a.Callback != "" || reply.Replaces(a, owed) { // a form closes by itself
		return owed
	}
	return append(b.reply.Replace(a, view.Doc{Title: textConfirmed.In(l)}), owed...)
}
