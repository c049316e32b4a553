package bot

import (
	"context"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A buttonHandler answers the press of a button or the choice in a select.
type buttonHandler func(ctx context.Context, a incoming.Ask) []store.SlackMessage

// buttonHandlers returns the handlers of buttons and selects whose value is not a command, by
// action.
func (b *Bot) buttonHandlers() map[string]buttonHandler {
	all := map[string]buttonHandler{
		actFeedback:    b.feedbackGiven,
		actPage:        b.turnPage,
		actShare:       b.share,
		card.ActAgain:  b.changeAndResubmit,
		card.ActAvoid:  b.resubmitWithoutNodes,
		card.ActMend:   b.applyFix,
		card.ActExtend: b.extendChain,
		card.ActTake:   b.news.Take,
		actApprove:     func(ctx context.Context, a incoming.Ask) []store.SlackMessage { return b.decide(ctx, a, true) },
		actDecline:     func(ctx context.Context, a incoming.Ask) []store.SlackMessage { return b.decide(ctx, a, false) },
	}
	for action, handle := range b.profile.Buttons() {
		all[action] = handle
	}
	return all
}
