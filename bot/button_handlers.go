package bot

import (
	"context"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A buttonHandler answers a press.
type buttonHandler func(ctx context.Context, a incoming.Ask) []store.SlackMessage

// buttonHandlers are the buttons and selects that are no commands, by action.
func (b *Bot) buttonHandlers() map[string]buttonHandler {
	all := map[string]buttonHandler{
		actFeedback:    b.feedbackGiven,
		actPage:        b.turnPage,
		actShare:       b.share,
		card.ActAgain:  b.again,
		card.ActAvoid:  b.avoid,
		card.ActMend:   b.mend,
		card.ActExtend: b.extend,
		card.ActTake:   b.news.Take,
		actAgentYes:    func(ctx context.Context, a incoming.Ask) []store.SlackMessage { return b.decide(ctx, a, true) },
		actAgentNo:     b.declinePressed,
	}
	for action, handle := range b.profile.Buttons() {
		all[action] = handle
	}
	return all
}
