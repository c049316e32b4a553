package bot

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// events is what the bot reads of a watcher.
type events interface {
	Next(ctx context.Context) (watch.Event, error)
}

// Watch brings what a watcher tells to the cards until ctx ends. A job that
// failed is diagnosed first, so that the news begins with the cause.
func (b *Bot) Watch(ctx context.Context, from events) error {
	for {
		e, err := from.Next(ctx)
		if err != nil {
			return err
		}
		if e.Kind != watch.Changed && e.Kind != watch.Ended {
			continue
		}
		n := News{Job: e.Job}
		if n.Job.Cluster == "" {
			n.Job.Cluster = e.Cluster
		}
		if e.Kind == watch.Ended && e.Job.State != slurm.Completed && e.Job.State != slurm.Cancelled && b.followed(ctx, n.Job) {
			b.findCause(ctx, &n)
		}
		if err := b.Tell(ctx, n); err != nil {
			b.log.Error("slack: news", "job", n.Job.ID, "err", err)
		}
	}
}

// followed reports whether anybody looks on: a diagnosis reads many logs.
func (b *Bot) followed(ctx context.Context, j slurm.Job) bool {
	var k card
	if ok, err := b.cfg.Store.Get(ctx, docCard, cardID(j.Cluster, j.ID), b.now(), &k); err == nil && ok {
		return true
	}
	places, err := b.followers(ctx, j)
	return err == nil && len(places) > 0
}

// findCause adds the diagnosis to the news. Without one the news goes all the
// same.
func (b *Bot) findCause(ctx context.Context, n *News) {
	op, ok := ops.Lookup("diagnose")
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	l := b.cardLang(ctx, n.Job)
	c := &ops.Call{Service: b.cfg.Service, Who: ops.Caller{Surface: ops.Watcher, ID: "watcher", User: n.Job.User, ReadOnly: true}, Lang: l}
	in, err := fill(op, typedCall{Words: []string{string(n.Job.ID)}, Cluster: n.Job.Cluster})
	if err != nil {
		return
	}
	result, err := op.Run(ctx, c, in)
	if err != nil {
		b.log.Warn("slack: no diagnosis", "job", n.Job.ID, "err", err)
		return
	}
	if d, ok := result.(ops.DiagnoseOut); ok {
		doc := d.View(l)
		n.Cause, n.Class, n.Exclude = &doc, d.Class, d.ExcludeNodes
	}
}

// Unfinished lists the jobs whose cards still wait for an end, for a watcher
// that begins.
func (b *Bot) Unfinished(ctx context.Context) (jobs []slurm.Job, err error) {
	keys, err := b.cfg.Store.Keys(ctx, docCard, b.now())
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		var k card
		if ok, err := b.cfg.Store.Get(ctx, docCard, key, b.now(), &k); err == nil && ok && k.EndedAt.IsZero() {
			jobs = append(jobs, k.News.Job)
		}
	}
	return jobs, nil
}
