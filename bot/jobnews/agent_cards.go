package jobnews

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// cardsOfAgents sends cards for the jobs that agents have submitted since a time. They go to
// the people for whom the agents act, who did not see the submission.
func (nf *Notifier) cardsOfAgents(ctx context.Context, since time.Time) error {
	if nf.cfg.Service.Store == nil {
		return nil
	}
	st, err := nf.cfg.Service.Store()
	if err != nil {
		return err
	}
	subs, err := st.SubmittedSince(ctx, since)
	if err != nil {
		return err
	}
	owners := map[string][]card.Place{}
	for _, sub := range subs {
		door, _, _ := strings.Cut(sub.AskedBy, ":")
		if s := ops.Surface(door); s != ops.MCP && s != ops.MCPHTTP {
			continue
		}
		people, asked := owners[sub.Owner]
		if !asked {
			people = nf.ownersOf(ctx, sub.Owner)
			owners[sub.Owner] = people
		}
		if len(people) == 0 {
			continue
		}
		if err := nf.cardOfAgent(ctx, sub, people); err != nil {
			return err
		}
	}
	return nil
}

// mostOwners is how many people may share a cluster user. With more people, a job of the
// account belongs to nobody in particular.
const mostOwners = 3

// ownersOf returns the people who get the cards of a cluster user's agents: nobody for an
// account that many people share, and nobody who has switched notifications off.
func (nf *Notifier) ownersOf(ctx context.Context, user string) []card.Place {
	people := nf.people.PeopleOf(ctx, user)
	if len(people) > mostOwners {
		return nil
	}
	return slices.DeleteFunc(people, func(p card.Place) bool { return nf.people.Settings(ctx, p.Team, p.Channel).Notify == "none" })
}

// cardOfAgent sends people the card of a job that an agent submitted. Steps of a pipeline have
// the pipeline's card instead.
func (nf *Notifier) cardOfAgent(ctx context.Context, sub store.Submission, people []card.Place) error {
	j := slurm.Job{ID: sub.JobID, Cluster: sub.Cluster, Name: sub.Name, User: sub.Owner, State: slurm.Pending}
	if old, have, err := nf.Card(ctx, j.Cluster, j.ID); err != nil || have && old.User != "" {
		return err
	}
	if _, pipeline := pipeline.Of(ctx, nf.Reader(ctx, j), j.Cluster, j); pipeline != "" {
		return nil
	}
	if q, ok := Queued(ctx, nf.cfg.Service, j.Cluster, j.ID); ok && !q.State.Ended() { // the watcher reports an end, with its cause
		j = q
	}
	return nf.Begin(ctx, card.Card{Team: people[0].Team, User: people[0].Channel, News: card.News{Job: j}, Began: nf.now(), Places: people}, "")
}
