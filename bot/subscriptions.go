package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A follow is a subscription: a job's, a cluster user's, or everything's.
// Its key in the store is "job/CLUSTER/ID@TEAM/CHANNEL", "user/NAME@…" or
// "all@…".
var (
	textFollow    = lang.Text{EN: "Followed here: %s", ZH: "已在此订阅：%s"}
	textUnfollow  = lang.Text{EN: "Not followed here any more: %s", ZH: "已取消订阅：%s"}
	textFollowBy  = lang.Text{EN: "Set by %s. News of these jobs comes to this channel.", ZH: "由 %s 设置。这些作业的消息会发到本频道。"}
	textFollowAll = lang.Text{EN: "all jobs", ZH: "全部作业"}
	textMuted     = lang.Text{EN: "Job %s: you will not be called for it", ZH: "作业 %s：不再提醒您"}
	textUnmuted   = lang.Text{EN: "Job %s: you will be called for it again", ZH: "作业 %s：恢复提醒"}
	textNoCard    = lang.Text{EN: "nobody follows job %s in Slack", ZH: "Slack 中没有人订阅作业 %s"}
)

// subscribe follows a job, a person or everything, in the channel where it is
// asked for; in a direct message, for the person alone.
func (b *Bot) subscribe(ctx context.Context, a ask, c *ops.Call, cluster string, words []string, on bool) []store.SlackMessage {
	subject, shown := "all", textFollowAll.In(c.Lang)
	if len(words) > 0 && words[0] != "all" && words[0] != "全部" {
		w := strings.TrimPrefix(words[0], "@")
		subject, shown = "user/"+w, w
		if slurm.IsJobID(w) {
			subject = "job/" + cluster + "/" + w
		}
	}
	where := a.Channel
	if a.Direct || where == "" {
		where = a.User
	}
	if c.Who.User == "" && !c.Who.Operator {
		return b.notLinked(a, c.Lang)
	}
	key := subject + "@" + a.Team + "/" + where
	var err error
	title := textFollow
	if on {
		err = b.cfg.Store.Put(ctx, docFollow, key, a.User, time.Time{})
	} else {
		title = textUnfollow
		err = b.cfg.Store.Delete(ctx, docFollow, key)
	}
	if err != nil {
		return b.reply(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	doc := view.Doc{Title: fmt.Sprintf(title.In(c.Lang), shown), Tone: view.Good}
	if where == a.User {
		return b.reply(a, doc, false)
	}
	// Whoever reads the channel sees who has changed what comes there, and how to undo it.
	doc.Sections = []view.Section{{Text: fmt.Sprintf(textFollowBy.In(c.Lang), c.Who.User)}}
	if on {
		doc.Next = []string{"unsubscribe " + strings.TrimPrefix(shown, "@")}
		if subject == "all" {
			doc.Next = []string{"unsubscribe all"}
		}
	}
	r := answer.Render(doc, c.Lang)
	return []store.SlackMessage{b.out.Owe(a.Key+"/told", "t/"+where, outbox.Message{
		Do: outbox.Post, Team: a.Team, Channel: where, Instead: a.User, Text: r.Text, Blocks: answer.BlocksJSON(r.Messages[0]),
	})}
}

// followers are the places that follow a job.
func (b *Bot) followers(ctx context.Context, j slurm.Job) ([]card.Place, error) {
	keys, err := b.cfg.Store.Keys(ctx, docFollow, b.now())
	if err != nil {
		return nil, err
	}
	var ps []card.Place
	for _, k := range keys {
		subject, where, ok := strings.Cut(k, "@")
		team, channel, ok2 := strings.Cut(where, "/")
		if !ok || !ok2 {
			continue
		}
		if subject == "all" || subject == "user/"+j.User || subject == "job/"+card.ID(j.Cluster, j.ID) {
			ps = append(ps, card.Place{Team: team, Channel: channel})
		}
	}
	return ps, nil
}

// mute ends or renews the calling of one person for one job.
func (b *Bot) mute(ctx context.Context, a ask, c *ops.Call, cluster string, words []string, on bool) []store.SlackMessage {
	if len(words) == 0 {
		e := &ops.Error{Code: ops.BadInput, Field: "job", Message: lang.Text{EN: "mute needs a job's id", ZH: "mute 需要作业号"}, Fix: lang.Same("mute 4711")}
		return b.reply(a, answer.Error(e, c.Lang), false)
	}
	id := slurm.JobID(words[0])
	ok := b.withCard(ctx, cluster, id, func(k *card.Card) {
		k.Muted = slices.DeleteFunc(k.Muted, func(u string) bool { return u == a.User })
		if on {
			k.Muted = append(k.Muted, a.User)
		}
	})
	if !ok {
		return b.reply(a, answer.Error(&ops.Error{Code: ops.NotFound, Message: textNoCard.With(id)}, c.Lang), false)
	}
	title := textMuted
	if !on {
		title = textUnmuted
	}
	return b.reply(a, view.Doc{Title: fmt.Sprintf(title.In(c.Lang), id)}, false)
}
