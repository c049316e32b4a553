package people

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// A LinkProof returns the cluster user who has proven the code that was given out at since. It
// returns fs.ErrNotExist while there is no proof.
type LinkProof func(ctx context.Context, code string, since time.Time) (account.User, error)

// Deciders returns where an agent's request is shown: the approval channel or, without one,
// each operator whom the policy names.
func (d *Directory) Deciders(ctx context.Context) (ps []card.Place) {
	if c := d.cfg.Policy.ApprovalChannel; c != "" {
		return d.places(ctx, []string{c})
	}
	return d.Operators(ctx)
}

// Operators returns each operator whom the policy names, and the channels that it names.
func (d *Directory) Operators(ctx context.Context) []card.Place {
	return d.places(ctx, d.cfg.Policy.Operators)
}

// places returns the places of ids, each alone or behind its workspace: the members of a group,
// and people and channels as they are; ten at most.
func (d *Directory) places(ctx context.Context, list []string) (ps []card.Place) {
	for _, id := range list {
		team, channel, ok := strings.Cut(id, "/")
		if !ok {
			team, channel = "", id
		}
		ids := []string{channel}
		if strings.HasPrefix(channel, "S") {
			ids = d.members(ctx, team, channel)
		}
		for _, x := range ids {
			if len(ps) < 10 && !slices.Contains(ps, card.Place{Team: team, Channel: x}) {
				ps = append(ps, card.Place{Team: team, Channel: x})
			}
		}
	}
	return ps
}

// Decides reports whether there is anybody to whom an agent's request could be shown.
func (d *Directory) Decides() bool {
	return d.cfg.Policy.ApprovalChannel != "" || len(d.cfg.Policy.Operators) > 0
}

// PeopleOf returns the people in Slack who are linked to a cluster user.
func (d *Directory) PeopleOf(ctx context.Context, user string) (ps []card.Place) {
	if user == "" {
		return nil
	}
	add := func(id string) {
		team, who, ok := strings.Cut(id, "/")
		if !ok {
			team, who = "", id
		}
		if !slices.ContainsFunc(ps, func(p card.Place) bool { return p.Channel == who }) {
			ps = append(ps, card.Place{Team: team, Channel: who})
		}
	}
	keys, err := d.cfg.Store.Keys(ctx, record.Link, d.cfg.Now())
	if err != nil {
		d.cfg.Log.Warn("slack: links", "err", err)
	}
	for _, k := range keys {
		var l Link
		if ok, err := d.cfg.Store.Get(ctx, record.Link, k, d.cfg.Now(), &l); err == nil && ok && l.User == user {
			add(k)
		}
	}
	for id, u := range d.cfg.Policy.Links {
		if u == user {
			add(id)
		}
	}
	slices.SortFunc(ps, func(x, y card.Place) int { return strings.Compare(x.Channel, y.Channel) })
	return ps
}

// A Policy says who may do what, by Slack's ids.
type Policy struct {
	// Operators may act on everybody's jobs, and approve. Each is a user id (U…), a user group
	// (S…) or a channel (C…).
	Operators []string
	// Viewers may only read, even where they are linked to a cluster user.
	Viewers []string
	// Channels are the only channels in which jobs may be changed; empty allows all. Direct
	// messages are always allowed.
	Channels []string
	// Read says who may see jobs, logs and nodes: people who are linked to a cluster user
	// ("linked" or empty), or "everyone". ReadIn overrides it for single channels.
	Read   string
	ReadIn map[string]string
	// Links maps a Slack user, as U… or T…/U…, to a cluster user. The operator's mapping
	// replaces the one-time code.
	Links map[string]string
	// LinkProof reads the proof that a code was written on the cluster; nil switches linking by
	// code off.
	LinkProof LinkProof
	// LinkDomain is the host of a site's pages about jobs; it is empty where there are none.
	// Links to https://HOST/…/jobs/ID are unfurled as the job.
	LinkDomain string
	// PerMinute is how many requests one person may make in a minute; zero means 20.
	PerMinute int
	// ApprovalChannel is the channel where operators are asked; where it is empty, they are
	// asked in the channel of the request, or directly.
	ApprovalChannel string
	// Approve says why a call needs an operator's approval; an empty text means that it needs
	// none.
	Approve func(c *ops.Call, op string, in any) lang.Text
}

// MayRead reports whether a person may see what the cluster knows, in the place where they ask.
// Answers and rules, which do not come from the cluster, are open to everybody.
func (d *Directory) MayRead(a incoming.Ask, c *ops.Call) bool {
	if c.Who.User != "" || c.Who.Operator || c.Who.ReadOnly && !a.Foreign || a.Terminal != nil {
		return true
	}
	return cmp.Or(d.cfg.Policy.ReadIn[a.Channel], d.cfg.Policy.Read) == "everyone" && !a.Foreign
}

// NamesGroup reports whether the policy names a user group, whose members must then be read:
// among those who have rights, or as the place where operators are asked.
func (p Policy) NamesGroup() bool {
	return slices.ContainsFunc(slices.Concat(p.Operators, p.Viewers, []string{p.ApprovalChannel}), func(id string) bool {
		return strings.HasPrefix(id[strings.IndexByte(id, '/')+1:], "S") // behind its workspace, where one is named
	})
}
