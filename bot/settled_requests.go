package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A request ends when it is decided, when its time is over, or when a larger one replaces it. Then
// its buttons go: a button that does nothing when it is pressed says that somebody still waits.

var (
	textExpiredB  = lang.Text{EN: "Expired", ZH: "已过期"}
	textExpiredAt = lang.Text{EN: "Expired at", ZH: "过期时间"}
	textNobody    = lang.Text{
		EN: "Nobody decided in time, so nothing was done. The requester has a message with a button that asks again; the same command does too.",
		ZH: "期限内无人审批，没有执行任何操作。申请人收到的消息中有重新申请的按钮；再次发送相同命令也可以。",
	}
	textAskAgain   = lang.Text{EN: "Ask again", ZH: "重新申请"}
	textYourEnded  = lang.Text{EN: "Nobody decided your request in time", ZH: "您的申请已过期，无人审批"}
	textYourAgain  = lang.Text{EN: "Nothing was done. If it is still needed, ask again; it may help to tell an operator.", ZH: "没有执行任何操作。如仍需要，请重新申请，并可直接联系管理员。"}
	textAgentEnded = lang.Text{
		EN: "Expired: nobody decided in time, and nothing was done; the agent asks again by the same call",
		ZH: "已过期：期限内无人审批，没有执行任何操作；智能体再次发出同样的调用即可重新申请",
	}
	textElsewhere    = lang.Text{EN: "Decided elsewhere, such as on the page of approvals", ZH: "已在别处审批，例如审批页面"}
	textApprovedOpen = lang.Text{EN: "Approved, but it is not known yet whether it ran", ZH: "已批准，但尚不清楚是否已执行"}
	textNoAnswer     = lang.Text{EN: "there was no answer within %s", ZH: "%s内没有得到答复"}
	textReplaced     = lang.Text{EN: "Replaced: the same call asks for more now", ZH: "已被取代：同一调用现在申请更多"}
	textTooLate      = lang.Text{
		EN: "This question has expired, so this press did nothing. If it is still needed, send the command again.",
		ZH: "该确认已过期，本次点击未执行任何操作。如仍需要，请重新发送命令。",
	}
)

// The times for which a request that is over is remembered, for a server that was off meanwhile,
// and for which its requester can ask again by the button.
const (
	expiredKept = 60 * 24 * time.Hour
	againFor    = 7 * 24 * time.Hour
)

// A waitingRequest is a request that is shown with buttons in Cards. Its decision is stored in it
// when the bot begins to carry a person's request out.
type waitingRequest struct {
	Request ops.Approval  `json:"request"`
	Cards   []requestCard `json:"cards,omitempty"`
	Moved   int           `json:"moved,omitempty"` // how often it was moved
}

// awaits stores that a request's buttons wait for a decision, and returns what is stored: after a
// crash the request may have been moved, or may be being settled.
func (b *Bot) awaits(ctx context.Context, w waitingRequest) (waitingRequest, error) {
	if done, err := b.rewrite(ctx, nil, w); err != nil || done {
		return w, err
	}
	w, _, err := b.shown(ctx, w.Request.ID)
	return w, err
}

// shown reads a request that is shown with buttons, and what the store keeps of it, which is nil
// where it is not shown.
func (b *Bot) shown(ctx context.Context, id string) (w waitingRequest, kept json.RawMessage, err error) {
	ok, err := b.cfg.Store.Get(ctx, record.Waiting, id, b.now(), &kept)
	if err == nil && ok {
		err = json.Unmarshal(kept, &w)
	}
	return w, kept, err
}

// rewrite replaces what the store keeps of a request that is shown with buttons, unless another has
// done so meanwhile. It queues the messages that draw it so.
func (b *Bot) rewrite(ctx context.Context, kept json.RawMessage, w waitingRequest, owed ...store.SlackMessage) (done bool, err error) {
	done, err = b.cfg.Store.Replace(ctx, record.Waiting, w.Request.ID, kept, w, w.Request.Until.Add(expiredKept), owed...)
	b.out.Wake()
	return done, err
}

// waiting returns the requests that are shown with buttons.
func (b *Bot) waiting(ctx context.Context) ([]waitingRequest, error) {
	all, err := ops.ListDocs[waitingRequest](ctx, b.cfg.Store, record.Waiting, b.now())
	return slices.DeleteFunc(all, func(w waitingRequest) bool { return w.Request.ID == "" }), err
}

// decide records an operator's decision, and has it carried out and told.
func (b *Bot) decide(ctx context.Context, a incoming.Ask, yes bool) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	name := a.Team + "/" + a.User
	again, err := c.Begin(ctx, yes, new(bool))
	if err != nil {
		return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	w, kept, err := b.shown(ctx, a.Value)
	if err == nil && kept == nil && again {
		if now, _, e := b.cfg.Service.Outcome(ctx, ops.Approval{ID: a.Value}); e == nil && now.Decided == name {
			return nil // a server was killed after it had told everybody of this decision
		}
	}
	if err == nil && (w.Request.Decided != name || w.Request.Yes != yes) { // else a server was killed while it carried this decision out
		if !yes && a.Callback == "" {
			if _, err = b.cfg.Service.Decidable(ctx, a.Value, c.Who); err == nil && b.askReason(ctx, a, c.Lang) {
				return nil // the form's answer decides
			}
		}
		if err == nil {
			w.Request, err = b.cfg.Service.Decide(ctx, a.Value, c.Who, name, yes, a.Fields[reasonField])
		}
		if err == nil && kept == nil { // version 0.2.0 has posted it
			_, err = b.place(ctx, w.Request)
		}
	}
	if err == nil {
		err = b.settle(ctx, a.Value)
	}
	if err == nil {
		return nil
	}
	if claimed, e := b.cfg.Store.Get(ctx, record.Claim, a.Value, b.now(), new(string)); e == nil && claimed && ops.AsError(err).Code == ops.NotFound {
		return b.reply.Doc(a, view.Doc{Title: textDecided.In(c.Lang), Tone: view.Warn}, false) // a person's request
	}
	return b.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
}

// settlers settle several requests at a time: an approved call may take minutes, and holds up none of
// the others.
type settlers struct {
	sync.WaitGroup
	room chan struct{}
}

// try has one request settled; without room for it, it is settled after the next look at the store.
func (s *settlers) try(settle func()) {
	select {
	case s.room <- struct{}{}:
		s.Go(func() {
			defer func() { <-s.room }()
			settle()
		})
	default:
	}
}

// closeOld has the requests settled that wait no more, because they have expired or were decided or
// replaced outside of this bot. asked are the requests that wait.
func (b *Bot) closeOld(ctx context.Context, asked []ops.Approval, settlers *settlers) error {
	all, err := b.waiting(ctx)
	// Requests that cannot be settled must not take the room of the others for ever.
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, w := range all {
		_, busy := b.settling.Load(w.Request.ID)
		if !busy && !slices.ContainsFunc(asked, func(r ops.Approval) bool { return r.ID == w.Request.ID }) {
			settlers.try(func() { b.warn("request", b.settle(ctx, w.Request.ID), "id", w.Request.ID) })
		}
	}
	return err
}

// settle carries out a person's request if it was approved, and tells what became of a request. It
// may be repeated after a crash: that a request is over is stored with the messages that tell it, and
// an approved call that was made with them. Where the request was moved meanwhile, it is settled after
// the next look at the store.
func (b *Bot) settle(ctx context.Context, id string) error {
	if _, busy := b.settling.LoadOrStore(id, true); busy {
		return nil
	}
	defer b.settling.Delete(id)
	w, kept, err := b.shown(ctx, id)
	if err != nil || kept == nil {
		return err
	}
	r := w.Request
	now, decided := r, !r.Waits() // a server was killed while it carried the decision out
	if !decided {
		if now, decided, err = b.cfg.Service.Outcome(ctx, r); err != nil || decided && now.Waits() {
			return err
		}
	}
	h, person := personsCall(r)
	if person {
		const by = "settled" // and not by a server of an earlier version
		owner, err := b.cfg.Store.Claim(ctx, record.Claim, id, by, b.now().Add(expiredKept))
		if err != nil || owner != by {
			return err
		}
	}
	var owed []store.SlackMessage
	switch over := !b.now().Before(r.Until); {
	case !person:
		owed = b.agentsOutcome(ctx, now, w.Cards, decided, over)
	case decided:
		if w.Request = now; r.Waits() {
			if done, err := b.rewrite(ctx, kept, w); err != nil || !done {
				return err
			}
			if w, kept, err = b.shown(ctx, id); err != nil || kept == nil {
				return err
			}
		}
		if err = b.cfg.Service.Consume(ctx, now); err != nil { // from now on, the same call is another request
			return err
		}
		work, cancel := context.WithTimeout(ctx, requestTimeout)
		owed = b.execute(work, w, h)
		cancel()
		// The outcome is stored unless the server stops, also where ctx ends in the moment in which work ends:
		// what is not stored is made again.
		if !errors.Is(ctx.Err(), context.Canceled) {
			ctx = context.WithoutCancel(ctx)
		}
	case over:
		if owed, err = b.expire(ctx, w, h); err != nil {
			return err
		}
	default:
		owed = b.closeCards(r, w.Cards, textReplaced, view.Plain, nothingMore)
	}
	_, err = b.cfg.Store.Replace(ctx, record.Waiting, id, kept, nil, time.Time{}, owed...)
	b.out.Wake()
	return err
}

// decidedBy names who decided: a person in Slack, or a user of the cluster on the page.
func decidedBy(r ops.Approval, l lang.Lang) slack.Block {
	if _, user, ok := strings.Cut(r.Decided, "/"); ok {
		return personLine(textDecidedBy, user, l)
	}
	return slack.NewSectionBlock(answer.Markup("*"+textDecidedBy.In(l)+"*  "+answer.Escape(r.Decided)), nil, nil)
}

// A knownFact is what a request's card says of its outcome.
type knownFact struct{ name, value lang.Text }

// factsIn returns the facts that have a value.
func factsIn(l lang.Lang, known []knownFact) (facts []view.Fact) {
	for _, k := range known {
		if value := k.value.In(l); value != "" {
			facts = append(facts, view.Fact{Name: k.name.In(l), Value: value})
		}
	}
	return facts
}

// execute runs the call of an approved request as the person who asked for it, with the script
// that was shown, or tells the person that it was declined.
func (b *Bot) execute(ctx context.Context, w waitingRequest, h heldCall) (owed []store.SlackMessage) {
	r, asker := w.Request, h.Ask
	asker.Key = "request/" + r.ID
	_, asker.Approver, _ = strings.Cut(r.Decided, "/")
	close := func(what lang.Text, tone view.Tone, known ...knownFact) []store.SlackMessage {
		return b.closeCards(r, w.Cards, what, tone, func(l lang.Lang) (said view.Section, below []slack.Block) {
			said.Facts = factsIn(l, known)
			return said, []slack.Block{personLine(textRequester, h.Ask.User, l), decidedBy(r, l), timeLine(textDecidedAt, b.now(), l)}
		})
	}
	// The requester is answered in a direct message, since their response_url may have expired.
	requester := incoming.Ask{Kind: incoming.AsButton, Key: asker.Key + "/requester", Team: asker.Team, User: asker.User}
	tell := func(doc view.Doc) []store.SlackMessage { return b.reply.Doc(requester, doc, false) }
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("slack: panic", "request", r.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			owed = append(close(textApprovedFailed, view.Warn), tell(b.internalError(ctx, asker))...)
		}
	}()
	call := b.people.Call(ctx, asker) // rights are checked again: the person may have lost them meanwhile
	if !r.Yes {
		told := view.Doc{Title: textRefused.In(call.Lang), Tone: view.Warn, Sections: []view.Section{{Text: h.Headline.In(call.Lang)}}}
		if r.Reason != "" {
			told.Sections[0].Facts = []view.Fact{{Name: textWhyNot.In(call.Lang), Value: r.Reason}}
		}
		return append(close(textDeclinedB, view.Bad, knownFact{textWhyNot, lang.Same(r.Reason)}), tell(told)...)
	}
	op, ok := operations.Lookup(r.Op)
	if !ok {
		return tell(help.Unknown(r.Op, call.Lang))
	}
	consent.Agree(call, r.Digest)
	call.AgreedBy = r.Decided
	var result any
	in, err := typed.Fill(op, h.Call)
	if err == nil && r.Who.User != call.Who.User {
		err = &ops.Error{Code: ops.NotAllowed, Message: textOtherUser.With(r.Who.User, call.Who.User), Fix: textOtherUserFix}
		if call.Who.User == "" {
			err = &ops.Error{Code: ops.NotAllowed, Message: textUnlinkedNow.With(r.Who.User), Fix: textOtherUserFix}
		}
	}
	if err == nil {
		err = consent.StillWithin(ctx, call, in, r.Most)
	}
	late := false
	if err == nil {
		result, err = op.Run(ctx, call, in)
		// Its time may be over in the middle of a change. What is known then is stored all the same.
		if late = errors.Is(ctx.Err(), context.DeadlineExceeded); late {
			ctx = context.WithoutCancel(ctx)
		}
	}
	if err != nil {
		e := ops.AsError(err)
		why := e.Message
		if late {
			why = textNoAnswer.With(lang.Span(requestTimeout))
		}
		said := append([]knownFact{{textWhyNot, why}}, b.howToFindOut(ctx, call, h.Call, in)...)
		told, open := b.unknownOutcome(ctx, asker, call, h.Call, in)
		switch {
		case open:
		case e.MayBeDone():
			told = b.askFirst(ctx, requester, call, op, h.Call, e, result)
		case late:
			told = tell(view.Doc{Title: textApprovedOpen.In(call.Lang), Tone: view.Warn, Sections: []view.Section{
				{Text: h.Headline.In(call.Lang), Facts: factsIn(call.Lang, said)},
			}})
		default:
			return append(close(textApprovedFailed, view.Warn, knownFact{textWhyNot, e.Message}), tell(b.failed(e, result, call))...)
		}
		return append(close(textApprovedOpen, view.Warn, said...), told...)
	}
	owed = close(textApprovedB, view.Good, knownFact{textMadeJob, lang.Same(ops.TextNamed(result, "job_id"))})
	if v, ok := result.(view.Viewer); ok {
		owed = append(owed, tell(v.View(call.Lang))...)
	}
	owed = append(owed, b.news.Follow(ctx, asker, call, op, in, result)...)
	return append(owed, b.andThen(ctx, asker, call, h.Call, result)...)
}

// expiredAt draws the line that says when a request has expired.
func expiredAt(r ops.Approval) func(lang.Lang) (view.Section, []slack.Block) {
	return func(l lang.Lang) (said view.Section, below []slack.Block) {
		return said, []slack.Block{timeLine(textExpiredAt, r.Until, l)}
	}
}

// expire closes a person's request, and tells the person, with a button that asks again: in the
// thread of the request, or directly where nobody else has seen the request.
func (b *Bot) expire(ctx context.Context, w waitingRequest, h heldCall) ([]store.SlackMessage, error) {
	r := w.Request
	owed := b.closeCards(r, w.Cards, textExpiredB, view.Warn, func(l lang.Lang) (view.Section, []slack.Block) {
		return view.Section{Text: textNobody.In(l)}, []slack.Block{personLine(textRequester, h.Ask.User, l), timeLine(textExpiredAt, r.Until, l)}
	})
	l := b.people.LangOf(ctx, h.Ask)
	again, err := b.hold(ctx, heldCall{Call: h.Call, Ask: h.Ask, Again: true, Until: b.now().Add(againFor)})
	if err != nil {
		return nil, err
	}
	e := slack.NewButtonBlockElement(answer.ActYes, again, answer.Label(textAskAgain.In(l)))
	e.Style = slack.StylePrimary
	doc := view.Doc{
		Title: textYourEnded.In(l), Tone: view.Warn,
		Sections: []view.Section{{Text: h.Headline.In(l)}, {Text: textYourAgain.In(l)}},
	}
	to, row := incoming.Ask{Kind: incoming.AsButton, Key: r.ID, Team: h.Ask.Team, User: h.Ask.User}, slack.NewActionBlock("", e)
	if h.Ask.Kind == incoming.AsMessage && !h.Ask.Direct { // whoever reads the thread has read the request
		to.Kind, to.Channel, to.Thread, to.TS = h.Ask.Kind, h.Ask.Channel, h.Ask.Thread, h.Ask.TS
		return append(owed, b.reply.Doc(to, doc, true, personLine(textRequester, h.Ask.User, l), row)...), nil
	}
	return append(owed, b.reply.Doc(to, doc, false, row)...), nil
}

// answeredLate answers the press of a button of a held call that is gone. A question that only
// expired loses its buttons.
func (b *Bot) answeredLate(ctx context.Context, a incoming.Ask, l lang.Lang) []store.SlackMessage {
	var owner string
	claimed, err := b.cfg.Store.Get(ctx, record.Claim, a.Value, b.now(), &owner)
	if err != nil || claimed {
		return b.reply.Doc(a, view.Doc{Title: textExpired.In(l), Tone: view.Warn}, false)
	}
	return b.reply.Replace(a, view.Doc{Title: textTooLate.In(l), Tone: view.Warn})
}
