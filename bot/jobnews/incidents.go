package jobnews

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/wording"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// Several jobs that fail for one cause are one incident. A place that has the cards of at least
// two of them gets one message about the incident, and its thread names each job that joins.

var (
	textIncident   = lang.Text{EN: "🔥 %d jobs, one cause: %s", ZH: "🔥 %d 个作业，同一原因：%s"}
	textIncidentOn = lang.Text{EN: "%s, %s", ZH: "%[2]s %[1]s"}
	textIncidentAt = lang.Text{EN: "from %s to %s · jobs of %s", ZH: "%s 至 %s · 用户 %s"}
	textAndMore    = lang.Text{EN: "and %d more", ZH: "另有 %d 个"}
	textLookAfter  = lang.Text{EN: "I look after it", ZH: "我来处理"}
	textNodesNow   = lang.Text{EN: "Nodes now", ZH: "节点状态"}
)

// An incident is one cause that made several jobs fail, and the places that were told.
type incident struct {
	Key     string              `json:"key"`
	Cluster string              `json:"cluster"`
	Found   report.Incident     `json:"found"`
	Lang    lang.Lang           `json:"lang,omitempty"`
	Taken   string              `json:"taken,omitempty"`
	TakenAt time.Time           `json:"taken_at,omitzero"`
	Told    map[string][]string `json:"told"` // team/channel → the jobs that the thread has named
	Edits   int                 `json:"edits"`
}

// noteFailure stores why a job failed, and reports the incident that the failure is part of.
func (nf *Notifier) noteFailure(ctx context.Context, j slurm.Job, r *report.Report) {
	if r == nil {
		return
	}
	nf.failing.Lock()
	defer nf.failing.Unlock()
	incidents, err := jobcontrol.IncidentsOf(ctx, nf.cfg.Store, nf.cfg.Service.Clusters[j.Cluster], j, *r, nf.now())
	nf.logError(slog.LevelWarn, "slack: failure", err, "job", j.ID)
	for _, found := range incidents {
		nf.logError(slog.LevelError, "slack: incident", nf.tellIncident(ctx, j.Cluster, found))
	}
}

// tellIncident posts or edits an incident's message, and names new jobs in its thread.
func (nf *Notifier) tellIncident(ctx context.Context, cluster string, found report.Incident) error {
	nf.cards.Lock()
	defer nf.cards.Unlock()
	sum := sha256.Sum256([]byte(cluster + "/" + found.Class + "/" + found.Where))
	x := incident{Key: hex.EncodeToString(sum[:8]), Cluster: cluster, Told: map[string][]string{}}
	had, err := nf.cfg.Store.Get(ctx, record.Incident, x.Key, nf.now(), &x)
	if err != nil {
		return err
	}
	if !had {
		x.Key += fmt.Sprintf("-%d", found.From.Unix())
	}
	x.Found = found
	return nf.drawIncident(ctx, x, hex.EncodeToString(sum[:8]))
}

// drawIncident queues an incident's messages and stores the incident under id for as long as a
// further failure would join it.
func (nf *Notifier) drawIncident(ctx context.Context, x incident, id string) error {
	cards := nf.cardsOf(ctx, x)
	in := map[card.Place][]card.Card{}
	for _, k := range cards {
		x.Lang = nf.langOfCard(ctx, &k)
		for _, p := range k.Places {
			p = card.Place{Team: p.Team, Channel: p.Channel}
			in[p] = append(in[p], k)
		}
	}
	var owed []store.SlackMessage
	x.Edits++
	for p, here := range in {
		told := x.Told[p.Team+"/"+p.Channel]
		if len(here) < 2 {
			continue
		}
		key := "incident/" + x.Key + "@" + p.Team + "/" + p.Channel
		text, blocks := incidentBlocks(x, here, id)
		o := outbox.Message{Do: outbox.Post, Team: p.Team, Channel: p.Channel, Text: text, Blocks: answer.BlocksJSON(blocks)}
		m := nf.out.Owe(key, key, o)
		if told != nil {
			o.Do, o.Ref = outbox.Update, key
			m = nf.out.Owe(fmt.Sprintf("%s/%d", key, x.Edits), key, o)
			m.Collapse = key
		}
		m.NotBefore = nf.notBefore(ctx, p, p.Channel)
		owed = append(owed, m)
		for _, k := range here {
			job := string(k.News.Job.ID)
			if slices.Contains(told, job) {
				continue
			}
			told = append(told, job)
			line := card.Headline(k.News, x.Lang)
			owed = append(owed, nf.out.Owe(key+"/"+job, key+outbox.LaneOfThread, outbox.Message{
				Do: outbox.Post, Team: p.Team, ThreadOf: key, Text: answer.Escape(line), Blocks: answer.BlocksJSON([]slack.Block{answer.ContextLine(line)}),
			}))
		}
		x.Told[p.Team+"/"+p.Channel] = told
	}
	if err := nf.cfg.Store.Enqueue(ctx, owed...); err != nil {
		return err
	}
	return nf.cfg.Store.Put(ctx, record.Incident, id, x, nf.now().Add(jobcontrol.IncidentWindow))
}

func (nf *Notifier) cardsOf(ctx context.Context, x incident) (cards []card.Card) {
	for _, job := range x.Found.Jobs {
		if k, ok, err := nf.Card(ctx, x.Cluster, slurm.JobID(job)); err == nil && ok {
			cards = append(cards, k)
		}
	}
	return cards
}

// mostInIncident is how many jobs an incident's message names.
const mostInIncident = 10

// incidentBlocks draws an incident for a place that has those cards.
func incidentBlocks(x incident, here []card.Card, id string) (text string, bs []slack.Block) {
	l := x.Lang
	what := wording.ClassName(x.Found.Class, l)
	if x.Found.Where != x.Found.Class {
		what = fmt.Sprintf(textIncidentOn.In(l), what, x.Found.Place().In(l))
	}
	text = fmt.Sprintf(textIncident.In(l), len(here), what)
	var who, lines []string
	for i, k := range here {
		if !slices.Contains(who, k.News.Job.User) {
			who = append(who, k.News.Job.User)
		}
		if i < mostInIncident {
			lines = append(lines, card.Row(k.News, l))
		}
	}
	slices.Sort(who) // the order of the diagnoses is random
	if over := len(here) - mostInIncident; over > 0 {
		lines = append(lines, fmt.Sprintf(textAndMore.In(l), over))
	}
	at := fmt.Sprintf(textIncidentAt.In(l), card.When(x.Found.From, "{time}"), card.When(x.Found.To, "{time}"), answer.Escape(strings.Join(who, ", ")))
	bs = []slack.Block{answer.Header(text), answer.ContextMarkup(at)}
	for _, line := range lines {
		bs = append(bs, slack.NewSectionBlock(answer.Markup(line), nil, nil))
	}
	if x.Taken != "" {
		return answer.Escape(text), append(bs, answer.ContextMarkup(card.TakenBy(x.Taken, x.TakenAt, l)))
	}
	take := slack.NewButtonBlockElement(card.ActTake, ofIncident+id, answer.Label(textLookAfter.In(l)))
	take.Style = slack.StylePrimary
	nodes := slack.NewButtonBlockElement(answer.ActRun+":nodes", "nodes --drained --cluster "+x.Cluster, answer.Label(textNodesNow.In(l)))
	return answer.Escape(text), append(bs, slack.NewActionBlock("", take, nodes))
}

// ofIncident is the prefix of a button's value that names an incident.
const ofIncident = "incident:"

// takeIncident records who takes care of an incident and of its jobs.
func (nf *Notifier) takeIncident(ctx context.Context, a incoming.Ask, id string) {
	nf.cards.Lock()
	var x incident
	ok, err := nf.cfg.Store.Get(ctx, record.Incident, id, nf.now(), &x)
	first := ok && err == nil && x.Taken == ""
	if first {
		x.Taken, x.TakenAt = a.User, nf.now()
		nf.logError(slog.LevelError, "slack: incident", nf.drawIncident(ctx, x, id))
	}
	nf.cards.Unlock()
	if !first {
		return // somebody was faster, and the message names them
	}
	for _, job := range x.Found.Jobs {
		nf.withCard(ctx, x.Cluster, slurm.JobID(job), func(k *card.Card) {
			if k.Taken != "" {
				return
			}
			k.Taken, k.TakenAt = a.User, nf.now()
			nf.logError(slog.LevelError, "slack: card", nf.cfg.Store.Enqueue(ctx, nf.draw(ctx, k)...))
		})
	}
}
