package jobnews

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// requeued reports whether a job runs or waits again after the end that its card shows: it has
// more restarts, or it was submitted or started since. Slurm sets a new submit time when it
// requeues a job.
func requeued(k card.Card, now slurm.Job) bool {
	last := k.News.Job
	if now.State.Ended() || k.EndedAt.IsZero() {
		return false
	}
	ended := k.EndedAt
	if last.EndedAt != nil {
		ended = *last.EndedAt
	}
	since := func(at *time.Time) bool { return at != nil && at.After(ended) }
	return now.Restarts > last.Restarts || since(now.SubmittedAt) || now.State != slurm.Pending && since(now.StartedAt)
}

// followRequeued takes up the cards of jobs that have ended and that somebody has requeued since
// then. A watcher does not follow a job beyond its end.
func (nf *Notifier) followRequeued(ctx context.Context, jobs []slurm.Job) {
	cards, err := nf.cfg.Store.Keys(ctx, record.Card, nf.now())
	alive, err2 := nf.cfg.Store.Keys(ctx, record.Alive, nf.now())
	if err = cmp.Or(err, err2); err != nil {
		nf.logError(slog.LevelWarn, "slack: requeued jobs", err)
		return
	}
	over := map[string]bool{}
	for _, id := range cards {
		over[id] = true
	}
	for _, id := range alive {
		over[id] = false
	}
	for _, j := range jobs {
		id := card.ID(j.Cluster, j.ID)
		if !over[id] {
			continue
		}
		if k, ok, err := nf.cardAt(ctx, id); err == nil && ok && requeued(k, j) {
			nf.watchers.follow(slurm.Job{ID: j.ID, Cluster: j.Cluster, Restarts: max(j.Restarts, k.News.Job.Restarts+1)})
		}
	}
}
