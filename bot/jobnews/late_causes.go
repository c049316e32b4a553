package jobnews

import (
	"context"
	"log/slog"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
)

// A diagnosis can fail for a moment, such as while the database is busy or the log is
// not there yet. The end is told without a cause then, and the next looks try again,
// those of a server that is started meanwhile too.

// looksForCause is how many looks try a diagnosis that failed once more.
const looksForCause = 5

// lookForCause has the next looks try the diagnosis of a card's job, so often.
func (b *Board) lookForCause(ctx context.Context, id string, looks int) {
	b.noted(slog.LevelWarn, "slack: cause", b.cfg.Store.Put(ctx, record.Unexplained, id, looks, b.now().AddDate(0, 0, 1)), "job", id)
}

// explainLate tries the diagnoses again that failed, and tells what they find. A job
// that runs again has none to be told.
func (b *Board) explainLate(ctx context.Context) {
	ids, err := b.cfg.Store.Keys(ctx, record.Unexplained, b.now())
	b.noted(slog.LevelWarn, "slack: causes", err)
	for _, id := range ids {
		var left int
		_, err := b.cfg.Store.Get(ctx, record.Unexplained, id, b.now(), &left)
		k, _, unread := b.cardAt(ctx, id)
		if err != nil || unread != nil {
			continue
		}
		n := card.News{Job: k.News.Job}
		waits := n.Job.State.Ended() && k.News.Cause == nil
		if waits {
			found := b.FindCause(ctx, &n, b.langOfCard(ctx, &k))
			if waits = found == nil || b.Tell(ctx, n) != nil; !waits {
				b.noteFailure(ctx, n.Job, found)
			}
		}
		switch left--; {
		case waits && left > 0:
			b.lookForCause(ctx, id, left)
			continue
		case waits:
			b.log.Warn("slack: no cause was found", "job", id)
		}
		b.noted(slog.LevelWarn, "slack: cause", b.cfg.Store.Delete(ctx, record.Unexplained, id), "job", id)
	}
}
