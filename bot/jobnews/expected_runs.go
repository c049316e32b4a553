package jobnews

import (
	"context"
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
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// missingFor is how long an expected run may be missing before there is an alarm. A chain or a
// schedule may need some minutes between two jobs.
const missingFor = 10 * time.Minute

var (
	textMissing    = lang.Text{EN: "No run named %s waits or runs", ZH: "没有名为 %s 的作业在排队或运行"}
	textMissingFor = lang.Text{EN: "It is expected here, and has been missing since %s.", ZH: "此处订阅要求它保持运行，自 %s 起已不存在。"}
	textStuck      = lang.Text{EN: "Job %s waits for a job that did not end well, and will never start.", ZH: "作业 %s 依赖的作业没有成功结束，它永远不会开始。"}
	textBack       = lang.Text{EN: "A run named %s is there again: job %s", ZH: "名为 %s 的作业已恢复：作业 %s"}
)

// A missingRun is an expected run that neither waits nor runs.
type missingRun struct {
	Since time.Time `json:"since"`
	// Told says that the alarm was sent.
	Told bool `json:"told,omitempty"`
}

// checkExpected sends one alarm for each subscription that expects a run where none has
// waited or run for missingFor, and a message when a run is there again.
func (nf *Notifier) checkExpected(ctx context.Context, all []subscription, jobs []slurm.Job) {
	for _, s := range all {
		if !slices.Contains(s.when, whenExpected) {
			continue
		}
		var missing missingRun
		known, err := nf.cfg.Store.Get(ctx, record.Missing, s.key(), nf.now(), &missing)
		if err != nil {
			nf.log.Warn("slack: expected runs", "err", err)
			continue
		}
		there := slices.IndexFunc(jobs, func(j slurm.Job) bool { return s.selects(j) && !j.State.Ended() && !j.NeverStarts() })
		_, name, _ := strings.Cut(s.subject, "/")
		who, l, err := nf.setBy(ctx, s)
		if err != nil {
			nf.log.Warn("slack: expected runs", "err", err)
			continue
		}
		l = nf.people.Settings(ctx, s.place.Team, s.place.Channel).LangOr(who.LangOr(l))
		switch {
		case there >= 0 && !known:
		case there >= 0:
			if missing.Told {
				title := fmt.Sprintf(textBack.In(l), name, jobs[there].ID)
				nf.announce(ctx, s.place, fmt.Sprintf("back/%s/%d", s.key(), missing.Since.Unix()), view.Doc{Title: title, Tone: view.Good})
			}
			_ = nf.cfg.Store.Delete(ctx, record.Missing, s.key()) // otherwise the next look deletes it
		case !known:
			_ = nf.cfg.Store.Put(ctx, record.Missing, s.key(), missingRun{Since: nf.now()}, time.Time{}) // otherwise the next look notes it
		case !missing.Told && nf.now().Sub(missing.Since) >= missingFor:
			doc := view.Doc{Title: fmt.Sprintf(textMissing.In(l), name), Tone: view.Bad, Next: []string{"list --all --user all", "submit"}}
			since := slack.NewSectionBlock(answer.Markup(fmt.Sprintf(textMissingFor.In(l), card.When(missing.Since, "{date_short_pretty} {time}"))), nil, nil)
			for _, j := range jobs {
				if s.selects(j) && j.NeverStarts() {
					doc.Sections = append(doc.Sections, view.Section{Text: fmt.Sprintf(textStuck.In(l), j.ID)})
					doc.Next = []string{"status " + string(j.ID), "cancel " + string(j.ID)}
				}
			}
			nf.announce(ctx, s.place, fmt.Sprintf("missing/%s/%d", s.key(), missing.Since.Unix()), doc, since)
			missing.Told = true
			_ = nf.cfg.Store.Put(ctx, record.Missing, s.key(), missing, time.Time{}) // the message's key keeps it from being sent twice
		}
	}
}

// expectSchedule subscribes the place where a run with a schedule was submitted to the alarm
// that no such run waits or runs. Otherwise nobody would notice that the schedule has stopped.
func (nf *Notifier) expectSchedule(ctx context.Context, a incoming.Ask, c *ops.Call, in any) {
	sent, ok := in.(*launch.SubmitIn)
	if !ok {
		return
	}
	spec, err := launch.Resolve(c, sent.SpecIn)
	if err != nil || spec.Every == "" {
		return
	}
	s, bad := readSubscription([]string{"name=" + spec.Name, whenExpected}, "")
	if s.place = placeOf(a); bad != "" {
		return
	}
	nf.logError(slog.LevelWarn, "slack: expected runs", nf.cfg.Store.Put(ctx, record.Follow, s.key(), a.User+" "+string(c.Lang), time.Time{}))
}

// announce posts a message that nobody asked for to a place. key keeps it from being posted
// twice.
func (nf *Notifier) announce(ctx context.Context, p card.Place, key string, doc view.Doc, after ...slack.Block) {
	r := answer.Render(doc, answer.LanguageOfDoc(doc))
	bs := slices.Insert(slices.Clone(r.Messages[0]), 1, after...)
	m := nf.out.Owe(key, "t/"+p.Channel, outbox.Message{Do: outbox.Post, Team: p.Team, Channel: p.Channel, Text: r.Text, Blocks: answer.BlocksJSON(bs)})
	m.NotBefore = nf.notBefore(ctx, p, p.Channel)
	nf.logError(slog.LevelWarn, "slack: announcement", nf.cfg.Store.Enqueue(ctx, m))
}
