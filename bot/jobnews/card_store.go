package jobnews

import (
	"context"
	"log/slog"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Queued returns a job as the queue shows it, where it is in the queue. Calls at about the same
// time share one query to the cluster.
func Queued(ctx context.Context, s *ops.Service, cluster string, id slurm.JobID) (slurm.Job, bool) {
	if s.Clusters[cluster] == nil {
		return slurm.Job{}, false
	}
	rows, err := s.Reader(cluster).Jobs(ctx, slurm.Filter{IDs: []slurm.JobID{id}, All: true})
	if err != nil {
		return slurm.Job{}, false
	}
	j, ok := slurm.Fold(id, rows)
	j.Cluster = cluster
	return j, ok
}

// Card returns the card of a job; ok is false where it has none.
func (nf *Notifier) Card(ctx context.Context, cluster string, id slurm.JobID) (k card.Card, ok bool, err error) {
	return nf.cardAt(ctx, card.ID(cluster, id))
}

func (nf *Notifier) cardAt(ctx context.Context, key string) (k card.Card, ok bool, err error) {
	ok, err = nf.cfg.Store.Get(ctx, record.Card, key, nf.now(), &k)
	return k, ok, err
}

// Cards returns the cards for which wanted is true.
func (nf *Notifier) Cards(ctx context.Context, wanted func(card.Card) bool) (list []card.Card) {
	keys, err := nf.cfg.Store.Keys(ctx, record.Card, nf.now())
	nf.logError(slog.LevelWarn, "slack: cards", err)
	for _, key := range keys {
		if k, ok, err := nf.cardAt(ctx, key); err == nil && ok && wanted(k) {
			list = append(list, k)
		}
	}
	return list
}

// CardsEndedSince returns the cards of jobs that have ended since t.
func (nf *Notifier) CardsEndedSince(ctx context.Context, t time.Time) []card.Card {
	return nf.Cards(ctx, func(k card.Card) bool { return k.EndedAt.After(t) })
}
