package jobnews

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Notify posts a notice in the thread of the job's card, or directly to its owner where the job
// has no card, and then removes the notice from the store. Where there is neither, the notice
// stays.
func (nf *Notifier) Notify(ctx context.Context, n ops.Notice) error {
	owed := nf.noticeMessages(ctx, n)
	if len(owed) == 0 {
		return nil
	}
	if err := nf.cfg.Store.Enqueue(ctx, owed...); err != nil {
		return err
	}
	return nf.cfg.Service.ForgetNotice(ctx, n)
}

func (nf *Notifier) noticeMessages(ctx context.Context, n ops.Notice) (owed []store.SlackMessage) {
	sum := sha256.Sum256([]byte(n.Key))
	key := "notice/" + hex.EncodeToString(sum[:8])
	job := slurm.Job{ID: n.Job}
	add := func(p card.Place, l lang.Lang, thread, call string) {
		doc := view.Doc{Title: n.Title.In(l), Tone: view.Warn}
		// Below its card the job needs no name, and a notification has no card.
		named := n.Job == "" || strings.Contains(n.Title.In(l)+n.Text.In(l), string(n.Job))
		if !named && thread == "" {
			doc.Title, named = l.Named(card.Called(job, l), doc.Title), true
		}
		if n.Text != (lang.Text{}) {
			doc.Sections = []view.Section{{Text: n.Text.In(l)}}
		}
		r := answer.Render(doc, l)
		if !named {
			r.Text = answer.Escape(l.Named(card.Called(job, l), "")) + r.Text
		}
		bs := r.Messages[0]
		if call != "" {
			bs = append([]slack.Block{mentionLine(call)}, bs...)
		}
		o, lane := outbox.Message{Do: outbox.Post, Team: p.Team, Channel: p.Channel, Text: r.Text, Blocks: answer.BlocksJSON(bs)}, "t/"+p.Channel
		if thread != "" {
			o.Channel, o.ThreadOf, lane = "", thread, thread+outbox.LaneOfThread
		}
		owed = append(owed, nf.out.Owe(key+"@"+p.Team+"/"+p.Channel, lane, o))
	}
	if n.Operators {
		for _, p := range nf.people.Deciders(ctx) {
			add(p, nf.people.Settings(ctx, p.Team, p.Channel).Lang, "", "")
		}
		return owed
	}
	id := card.ID(n.Cluster, n.Job)
	if k, ok, err := nf.cardAt(ctx, id); err == nil && ok && len(k.Places) > 0 {
		job = k.News.Job
		call := ""
		if n.Alarm && k.User != "" && n.By != k.Team+"/"+k.User && nf.mayMention(nf.people.Settings(ctx, k.Team, k.User), &k) {
			call = k.User
		}
		has := nf.placesOfOthers(ctx, n)
		for _, p := range k.Places {
			if slices.Contains(has, card.Place{Team: p.Team, Channel: p.Channel}) {
				continue
			}
			add(p, nf.langOfCard(ctx, &k), p.Key(id), call)
		}
		return owed
	}
	for _, p := range nf.people.PeopleOf(ctx, n.Owner) {
		if n.By == p.Team+"/"+p.Channel || p.Team == "" && strings.HasSuffix(n.By, "/"+p.Channel) {
			continue // they caused it themselves
		}
		add(p, nf.people.Settings(ctx, p.Team, p.Channel).Lang, "", "")
	}
	return owed
}

// placesOfOthers returns the places that show the card of another job of a notice's incident.
func (nf *Notifier) placesOfOthers(ctx context.Context, n ops.Notice) (all []card.Place) {
	for _, id := range n.Incident {
		k, _, err := nf.Card(ctx, n.Cluster, slurm.JobID(id))
		if err != nil || id == string(n.Job) {
			continue
		}
		for _, p := range k.Places {
			all = append(all, card.Place{Team: p.Team, Channel: p.Channel})
		}
	}
	return all
}

func mentionLine(user string) slack.Block {
	return slack.NewRichTextBlock("", slack.NewRichTextSection(slack.NewRichTextSectionUserElement(user, nil)))
}

// Note posts a notice of this process about a job.
func (nf *Notifier) Note(ctx context.Context, j slurm.Job, what string, said lang.Text) error {
	return nf.Notify(ctx, ops.Notice{
		Key: fmt.Sprintf("%s/%s%d/%s", card.ID(j.Cluster, j.ID), j.State, j.Restarts, what), Cluster: j.Cluster, Job: j.ID, Owner: j.User, Title: said,
	})
}
