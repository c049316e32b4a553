package bot

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
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
	all, err := b.waiting(ctx)
	for _, w := range all {
		if b.now().Before(w.Request.Until) {
			err = errors.Join(err, b.moveOne(ctx, w))
		}
	}
	return err == nil, err
}

// moveOne moves one request. It may be repeated after a crash: the messages' keys keep them from
// being sent twice.
func (b *Bot) moveOne(ctx context.Context, w waitingRequest) error {
	now, instead := b.people.Deciders(ctx), ""
	h, person := personsCall(w.Request)
	if person {
		now, instead = b.operatorsAt(ctx, h.Ask)
	}
	if ok, err := b.cfg.Store.Get(ctx, record.Waiting, w.Request.ID, b.now(), &waitingRequest{}); err != nil || !ok {
		return err // it was decided meanwhile
	}
	var before []card.Place
	for _, shown := range w.Cards {
		before = append(before, shown.Place)
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
	first, isGone := w.Cards[0], func(c requestCard) bool { return slices.Contains(gone, c.Place) }
	left := slices.DeleteFunc(slices.Clone(w.Cards), func(c requestCard) bool { return !isGone(c) })
	w.Cards = slices.DeleteFunc(w.Cards, isGone)
	for _, p := range added {
		p.Moved = w.Moved
		c := requestCard{requestKey(w.Request.ID, p), p, first.Lang, first.Doc}
		if !person {
			c = b.agentsCard(ctx, w.Request, p)
		}
		w.Cards = append(w.Cards, c)
	}
	owed := b.closeCards(w.Request, left, textMovedB, view.Plain, nothingMore)
	owed = append(owed, b.postRequest(w.Request, w.Cards, instead)...)
	if err := b.cfg.Store.Enqueue(ctx, owed...); err != nil {
		return err
	}
	b.out.Wake()
	return b.awaits(ctx, w)
}

// isGroup reports whether an operator's id is that of a user group.
func isGroup(id string) bool { return strings.HasPrefix(id[strings.Index(id, "/")+1:], "S") }

// without returns the places of a that are not in b.
func without(a, b []card.Place) []card.Place {
	return slices.DeleteFunc(slices.Clone(a), func(p card.Place) bool {
		return slices.ContainsFunc(b, func(q card.Place) bool { return q.Team == p.Team && q.Channel == p.Channel })
	})
}
