package jobnews

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A diagnosis can fail for a moment, such as while the database is busy or the log is
// not there yet. The end is told without a cause then, and the next looks try again.

// looksForCause is how many looks try a diagnosis that failed once more.
const looksForCause = 5

// unexplained are the jobs whose failure was told without a cause.
type unexplained struct {
	mu   sync.Mutex
	jobs map[string]lateCause // by the card's id
}

// A lateCause is a job that failed, and how many looks are left for its diagnosis.
type lateCause struct {
	job  slurm.Job
	left int
}

// add keeps a job for a look, while any is left.
func (u *unexplained) add(x lateCause) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.jobs == nil {
		u.jobs = map[string]lateCause{}
	}
	u.jobs[card.ID(x.job.Cluster, x.job.ID)] = x
}

// take hands out what waits for a look.
func (u *unexplained) take() []lateCause {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.Collect(maps.Values(u.jobs))
	clear(u.jobs)
	return all
}

// explainLate tries the diagnoses again that failed, and tells what they find. A job
// that runs again has none to be told.
func (b *Board) explainLate(ctx context.Context) {
	for _, x := range b.unexplained.take() {
		var k card.Card
		ok, err := b.cfg.Store.Get(ctx, record.Card, card.ID(x.job.Cluster, x.job.ID), b.now(), &k)
		now := k.News.Job
		if err == nil && (!ok || now.State != x.job.State || now.Restarts != x.job.Restarts) {
			continue
		}
		n := card.News{Job: x.job}
		if found := b.FindCause(ctx, &n, b.langOfCard(ctx, &k)); found != nil && b.Tell(ctx, n) == nil {
			b.noteFailure(ctx, n.Job, found)
			continue
		}
		if x.left--; x.left > 0 {
			b.unexplained.add(x)
		} else {
			b.log.Warn("slack: no cause was found", "job", x.job.ID)
		}
	}
}
