package bot

import (
	"context"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var textMovedB = lang.Text{EN: "Asked elsewhere: requests for approval go to another place now", ZH: "已转发：审批申请现在发往其他位置"}

// place shows a request that waits where it is to be decided. A request that is shown elsewhere, such
// as after a change of the configuration, loses its buttons there. done is false where it has to be
// repeated, such as where the request was being settled.
func (b *Bot) place(ctx context.Context, r ops.Approval) (done bool, err error) {
	h, person := personsCall(r)
	// Ask Slack for the members of groups here, and not while requests wait for the lock.
	deciders, instead := b.people.Deciders(ctx), ""
	now := deciders
	if person {
		now, instead = b.operatorsAt(ctx, h.Ask)
	}
	b.requesting.Lock()
	defer b.requesting.Unlock()
	w, kept, err := b.shown(ctx, r.ID)
	if err != nil || kept == nil && person || !w.Request.Waits() { // it is only being asked, or it is being settled
		return false, err
	}
	w.Request = r
	if len(deciders) == 0 { // a group has no members by now, or Slack does not tell
		if kept == nil {
			_, err = b.awaits(ctx, w)
		}
		return false, err
	}
	var before []card.Place
	for _, c := range w.Cards {
		before = append(before, c.Place)
	}
	gone, added := without(before, now), without(now, before)
	if slices.ContainsFunc(append([]string{b.cfg.Policy.ApprovalChannel}, b.cfg.Policy.Operators...), isGroup) {
		// Slack may fail to tell a group's members.
		gone = slices.DeleteFunc(gone, func(p card.Place) bool { return !strings.HasPrefix(p.Channel, "C") })
	}
	if len(gone)+len(added) == 0 {
		return true, nil
	}
	old := w.Cards
	if len(old) > 0 {
		w.Moved++
	}
	isGone := func(c requestCard) bool { return slices.Contains(gone, c.Place) }
	w.Cards = slices.DeleteFunc(slices.Clone(old), isGone)
	for _, p := range added {
		p.Moved = w.Moved
		c := requestCard{Key: requestKey(r.ID, p), Place: p}
		if person {
			c.Lang, c.Doc = old[0].Lang, old[0].Doc
		} else {
			c.Lang = b.langAt(ctx, p)
			c.Doc = agentDoc(r, c.Lang)
		}
		w.Cards = append(w.Cards, c)
	}
	left := slices.DeleteFunc(old, func(c requestCard) bool { return !isGone(c) })
	owed := append(b.closeCards(r, left, textMovedB, view.Plain, nothingMore), b.postRequest(r, w.Cards, instead)...)
	return b.rewrite(ctx, kept, w, owed...)
}

// isGroup reports whether an operator's id is that of a user group.
func isGroup(id string) bool { return strings.HasPrefix(id[strings.Index(id, "/")+1:], "S") }

func without(a, b []card.Place) []card.Place {
	return slices.DeleteFunc(slices.Clone(a), func(p card.Place) bool {
		return slices.ContainsFunc(b, func(q card.Place) bool { return q.Team == p.Team && q.Channel == p.Channel })
	})
}
