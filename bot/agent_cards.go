package bot

import (
	"context"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// cardsOfAgents gives the jobs that agents have submitted since then their cards,
// with the people whose agents they are: they did not see the submission.
func (b *Bot) cardsOfAgents(ctx context.Context, since time.Time) error {
	if b.cfg.Service.Store == nil {
		return nil
	}
	st, err := b.cfg.Service.Store()
	if err != nil {
		return err
	}
	subs, err := st.SubmittedSince(ctx, since)
	for _, sub := range subs {
		door, _, _ := strings.Cut(sub.AskedBy, ":")
		if s := ops.Surface(door); s != ops.MCP && s != ops.MCPHTTP {
			continue
		}
		if err := b.cardOfAgent(ctx, sub); err != nil {
			return err
		}
	}
	return err
}

// cardOfAgent begins the card of one; a pipeline's steps have one of their own, and
// whoever wants to be called for nothing is shown it where they look for it.
func (b *Bot) cardOfAgent(ctx context.Context, sub store.Submission) error {
	j := slurm.Job{ID: sub.JobID, Cluster: sub.Cluster, Name: sub.Name, User: sub.Owner, State: slurm.Pending}
	var old card.Card
	if have, err := b.cfg.Store.Get(ctx, docCard, card.ID(j.Cluster, j.ID), b.now(), &old); err != nil || have && old.User != "" {
		return err
	}
	if _, pipeline := jobcontrol.PipelineOf(ctx, b.reader(ctx, j), j.Cluster, j.ID); pipeline != "" {
		return nil
	}
	var places []card.Place
	for _, p := range b.peopleOf(ctx, sub.Owner) {
		if b.settings(ctx, p.Team, p.Channel).Notify != "none" {
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		return nil
	}
	if q, ok := queued(ctx, b.cfg.Service, j.Cluster, j.ID); ok && !q.State.Ended() { // an end is the watcher's to tell
		j = q
	}
	return b.begin(ctx, card.Card{
		Team: places[0].Team, User: places[0].Channel, News: card.News{Job: j}, Began: b.now(), Places: places,
	}, "")
}
