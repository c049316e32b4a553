package bot

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var textMovedB = lang.Text{EN: "Asked elsewhere: requests for approval go to another place now", ZH: "已转发：审批申请现在发往其他位置"}

// moveRequests makes the requests that wait follow a changed configuration: each is asked where a
// new one would be, and loses its buttons where it would not. It is called after a start until it
// is done.
func (b *Bot) moveRequests(ctx context.Context) (done bool, err error) {
	// Ask Slack for the members of groups here, and not while requests wait for the lock.
	if len(b.people.Deciders(ctx)) == 0 {
		return false, nil // a group has no members by now, or Slack does not tell
	}
	b.people.Operators(ctx)
	b.requesting.Lock()
	defer b.requesting.Unlock()
	ids, err := b.cfg.Store.Keys(ctx, record.Waiting, b.now())
	for _, id := range ids {
		var w waitingRequest
		ok, e := b.cfg.Store.Get(ctx, record.Waiting, id, b.now(), &w)
		if e == nil && ok && b.now().Before(w.Until) {
			e = b.moveOne(ctx, id, w)
		}
		err = errors.Join(err, e)
	}
	return err == nil, err
}

// moveOne moves one request. It may be repeated after a crash: the messages' keys keep them from
// being sent twice.
func (b *Bot) moveOne(ctx context.Context, id string, w waitingRequest) error {
	var owed []store.SlackMessage
	var instead string
	before, now := w.Places, b.people.Deciders(ctx)
	if w.Held != nil {
		before = nil
		for _, shown := range w.Held.Cards {
			before = append(before, shown.Place)
		}
		now, instead = b.operatorsAt(ctx, w.Held.Ask)
	}
	if ok, err := b.cfg.Store.Get(ctx, record.Waiting, id, b.now(), &waitingRequest{}); err != nil || !ok {
		return err // it was decided meanwhile
	}
	gone, added := without(before, now), without(now, before)
	if slices.ContainsFunc(append([]string{b.cfg.Policy.ApprovalChannel}, b.cfg.Policy.Operators...), isGroup) {
		// Slack may fail to tell a group's members.
		gone = slices.DeleteFunc(gone, func(p card.Place) bool { return !strings.HasPrefix(p.Channel, "C") })
	}
	if len(now) == 0 || len(before) == 0 || len(gone)+len(added) == 0 {
		return nil
	}
	w.Moved++
	for i := range added {
		added[i].Moved = w.Moved
	}
	switch {
	case w.Agent != nil: // poll shows it in the new places
		owed = b.closeAgentCards(ctx, *w.Agent, gone, textMovedB, view.Plain, func(lang.Lang) []slack.Block { return nil })
		w.Places = append(without(before, gone), added...)
	case w.Held != nil:
		h := *w.Held
		left := h
		left.Cards = slices.DeleteFunc(slices.Clone(h.Cards), func(c requestCard) bool { return !slices.Contains(gone, c.Place) })
		owed = b.closeCards(left, textMovedB, view.Plain, func(lang.Lang) (said view.Section, below []slack.Block) { return said, nil })
		first := h.Cards[0]
		h.Cards = slices.DeleteFunc(slices.Clone(h.Cards), func(c requestCard) bool { return slices.Contains(gone, c.Place) })
		for _, p := range added {
			c := requestCard{requestKey(h.Ask) + at(p), p, first.Lang, first.Doc}
			h.Cards = append(h.Cards, c)
			owed = append(owed, b.postRequest(c, h, id, instead)...)
		}
		w.Held = &h
		if err := b.cfg.Store.Put(ctx, record.Held, id, h, h.Until); err != nil {
			return err
		}
	}
	if err := b.cfg.Store.Enqueue(ctx, owed...); err != nil {
		return err
	}
	b.out.Wake()
	return b.awaits(ctx, id, w)
}

// isGroup reports whether an operator's id is that of a user group.
func isGroup(id string) bool { return strings.HasPrefix(id[strings.Index(id, "/")+1:], "S") }

// without returns the places of a that are not in b.
func without(a, b []card.Place) []card.Place {
	return slices.DeleteFunc(slices.Clone(a), func(p card.Place) bool {
		return slices.ContainsFunc(b, func(q card.Place) bool { return q.Team == p.Team && q.Channel == p.Channel })
	})
}
