package bot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A request ends when it is decided or when its time is over. Either way its buttons go: a
// button that does nothing when it is pressed says that somebody still waits.

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
	textElsewhere = lang.Text{EN: "Decided elsewhere, such as on the page of approvals", ZH: "已在别处审批，例如审批页面"}
	textTooLate   = lang.Text{
		EN: "This question has expired, so this press did nothing. If it is still needed, send the command again.",
		ZH: "该确认已过期，本次点击未执行任何操作。如仍需要，请重新发送命令。",
	}
)

// requestMark begins the ids of calls that wait for an operator, whose messages keep what was
// asked and are never replaced as a whole.
const requestMark = "request-"

// The times for which an expired request is remembered, for a server that was off meanwhile, and
// for which its requester can ask again by the button.
const (
	expiredKept = 60 * 24 * time.Hour
	againFor    = 7 * 24 * time.Hour
)

// A waitingRequest is a request that is shown with buttons: a person's held call or an agent's
// request in Places.
type waitingRequest struct {
	Held   *heldCall     `json:"held,omitempty"`
	Agent  *ops.Approval `json:"agent,omitempty"`
	Places []card.Place  `json:"places,omitempty"`
	Moved  int           `json:"moved,omitempty"` // how often it was moved
	Until  time.Time     `json:"until"`
}

// awaits stores that a request's buttons wait for a decision.
func (b *Bot) awaits(ctx context.Context, id string, w waitingRequest) error {
	return b.cfg.Store.Put(ctx, record.Waiting, id, w, w.Until.Add(expiredKept))
}

// closeOld takes the buttons off the requests that have expired, and off those of agents that
// wait no more because they were decided outside of Slack. asked are the agents' requests that
// wait.
func (b *Bot) closeOld(ctx context.Context, asked []ops.Approval) error {
	ids, err := b.cfg.Store.Keys(ctx, record.Waiting, b.now())
	for _, id := range ids {
		var w waitingRequest
		ok, e := b.cfg.Store.Get(ctx, record.Waiting, id, b.now(), &w)
		over := !b.now().Before(w.Until)
		if e == nil && ok && (over || w.Agent != nil && !slices.ContainsFunc(asked, func(r ops.Approval) bool { return r.ID == id })) {
			e = b.closeOne(ctx, id, w, over)
		}
		err = errors.Join(err, e)
	}
	return err
}

// closeOne takes the buttons off one request. It may be repeated after a crash: the messages'
// keys keep them from being sent twice.
func (b *Bot) closeOne(ctx context.Context, id string, w waitingRequest, over bool) error {
	var owed []store.SlackMessage
	switch {
	case w.Agent != nil && over:
		owed = b.closeAgentCards(ctx, *w.Agent, w.Places, textAgentEnded, view.Warn, b.expiredAt(w))
		owed = append(owed, b.tellAgentsPerson(ctx, *w.Agent, textAgentEnded, view.Warn, incoming.Ask{})...)
	case w.Agent != nil:
		owed = b.closeAgentCards(ctx, *w.Agent, w.Places, textElsewhere, view.Plain, func(lang.Lang) []slack.Block { return nil })
	case w.Held != nil:
		by := "expired/" + id
		owner, err := b.cfg.Store.Claim(ctx, record.Claim, id, by, b.now().Add(2*time.Hour))
		switch {
		case err != nil:
			return err
		case owner == by:
			if owed, err = b.expire(ctx, id, *w.Held); err != nil {
				return err
			}
		}
	}
	if err := b.cfg.Store.Enqueue(ctx, owed...); err != nil {
		return err
	}
	return b.cfg.Store.Delete(ctx, record.Waiting, id)
}

// expiredAt draws the line that says when a request has expired.
func (b *Bot) expiredAt(w waitingRequest) func(lang.Lang) []slack.Block {
	return func(l lang.Lang) []slack.Block { return []slack.Block{timeLine(textExpiredAt, w.Until, l)} }
}

// expire closes a person's request, and tells the person, with a button that asks again: in the
// thread of the request, or directly where nobody else has seen the request.
func (b *Bot) expire(ctx context.Context, id string, h heldCall) ([]store.SlackMessage, error) {
	owed := b.closeCards(h, textExpiredB, view.Warn, func(l lang.Lang) (view.Section, []slack.Block) {
		return view.Section{Text: textNobody.In(l)}, []slack.Block{personLine(textRequester, h.Ask.User, l), timeLine(textExpiredAt, h.Until, l)}
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
	to, row := incoming.Ask{Kind: incoming.AsButton, Key: id, Team: h.Ask.Team, User: h.Ask.User}, slack.NewActionBlock("", e)
	if h.Ask.Kind == incoming.AsMessage && !h.Ask.Direct { // whoever reads the thread has read the request
		to.Kind, to.Channel, to.Thread, to.TS = h.Ask.Kind, h.Ask.Channel, h.Ask.Thread, h.Ask.TS
		return append(owed, b.reply.Doc(to, doc, true, personLine(textRequester, h.Ask.User, l), row)...), nil
	}
	return append(owed, b.reply.Doc(to, doc, false, row)...), nil
}

// answeredLate answers the press of a button of a held call that is gone. A question that only
// expired loses its buttons. A request keeps what was asked and what became of it.
func (b *Bot) answeredLate(ctx context.Context, a incoming.Ask, l lang.Lang) []store.SlackMessage {
	if strings.HasPrefix(a.Value, requestMark) {
		return b.reply.Doc(a, view.Doc{Title: textDecided.In(l), Tone: view.Warn}, false)
	}
	var owner string
	claimed, err := b.cfg.Store.Get(ctx, record.Claim, a.Value, b.now(), &owner)
	if err != nil || claimed {
		return b.reply.Doc(a, view.Doc{Title: textExpired.In(l), Tone: view.Warn}, false)
	}
	return b.reply.Replace(a, view.Doc{Title: textTooLate.In(l), Tone: view.Warn})
}
