package jobnews

import (
	"context"
	"log/slog"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
)

// A diagnosis may fail for a short time, for example while the database is busy or the log does
// not exist yet. The end is then reported without a cause, and the next looks try the diagnosis
// again, also after a restart of the server.

// looksForCause is how many looks try a failed diagnosis again.
const looksForCause = 5

// lookForCause makes the next looks try the diagnosis of a card's job again, at most that many
// times.
func (nf *Notifier) lookForCause(ctx context.Context, id string, looks int) {
	nf.logError(slog.LevelWarn, "slack: cause", nf.cfg.Store.Put(ctx, record.Unexplained, id, looks, nf.now().AddDate(0, 0, 1)), "job", id)
}

// explainLate tries failed diagnoses again and reports their results. It gives up those of jobs
// that run again.
func (nf *Notifier) explainLate(ctx context.Context) {
	ids, err := nf.cfg.Store.Keys(ctx, record.Unexplained, nf.now())
	nf.logError(slog.LevelWarn, "slack: causes", err)
	for _, id := range ids {
		var left int
		_, err := nf.cfg.Store.Get(ctx, record.Unexplained, id, nf.now(), &left)
		k, _, unread := nf.cardAt(ctx, id)
		if err != nil || unread != nil {
			continue
		}
		n := card.News{Job: k.News.Job}
		waits := n.Job.State.Ended() && k.News.Cause == nil
		if waits {
			found := nf.FindCause(ctx, &n, nf.langOfCard(ctx, &k))
			if waits = found == nil || nf.Tell(ctx, n) != nil; !waits {
				nf.noteFailure(ctx, n.Job, found)
			}
		}
		switch left--; {
		case waits && left > 0:
			nf.lookForCause(ctx, id, left)
			continue
		case waits:
			nf.log.Warn("slack: no cause was found", "job", id)
		}
		nf.logError(slog.LevelWarn, "slack: cause", nf.cfg.Store.Delete(ctx, record.Unexplained, id), "job", id)
	}
}
