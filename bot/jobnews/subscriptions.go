package jobnews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textFollow     = lang.Text{EN: "Followed here: %s", ZH: "已在此订阅：%s"}
	textUnfollow   = lang.Text{EN: "Not followed here any more: %s", ZH: "已取消订阅：%s"}
	textFollowBy   = lang.Text{EN: "Set by %s. News of these jobs comes to this channel.", ZH: "由 %s 设置。这些作业的消息会发到本频道。"}
	textNotHere    = lang.Text{EN: "This was not followed here: %s", ZH: "这里原本没有订阅：%s"}
	textUnfollowBy = lang.Text{EN: "Set by %s.", ZH: "由 %s 设置。"}
	textNoPlace    = lang.Text{EN: "a terminal is told of no jobs but those submitted at it", ZH: "终端只会收到在此提交的作业的消息"}
	textNoPlaceTo  = lang.Text{EN: "in Slack: /megatron subscribe; here: wait JOB", ZH: "在 Slack 中使用 /megatron subscribe；在这里使用 wait 作业号"}
	textFollowAll  = lang.Text{EN: "all jobs", ZH: "全部作业"}
	textFollowJob  = lang.Text{EN: "job %s", ZH: "作业 %s"}
	textFollowHere = lang.Text{EN: "What is followed here", ZH: "本处的订阅"}
	textFollowNone = lang.Text{EN: "Nothing is followed here yet.", ZH: "这里还没有订阅。"}
	textFollowHow  = lang.Text{
		EN: "`subscribe` and a job's number, a user, `project=…`, `partition=…` or `name=…`; behind it `failed`, `completed`, `started`, `digest` (every morning) or `expected` (an alarm while none waits or runs)",
		ZH: "`subscribe` 后接作业号、用户、`project=…`、`partition=…` 或 `name=…`；再加 `failed`、`completed`、`started`、`digest`（每天早上）或 `expected`（没有排队或运行时报警）",
	}
	textFollowWhat = lang.Text{EN: "%q cannot be followed", ZH: "%q 不能订阅"}
	textFollowName = lang.Text{EN: "an alarm needs a name: which runs are expected?", ZH: "报警需要名称：应当有哪个作业在运行？"}
	textMyFailures = lang.Text{EN: "My failures", ZH: "我的失败作业"}
	textAllFailing = lang.Text{EN: "All failures", ZH: "全部失败作业"}
	textAllDigest  = lang.Text{EN: "Every morning", ZH: "每天早上"}
	textEndFollow  = lang.Text{EN: "End it", ZH: "取消订阅"}
	textMuted      = lang.Text{EN: "Job %s: you will not be notified about it", ZH: "作业 %s：不再提醒您"}
	textUnmuted    = lang.Text{EN: "Job %s: you will be notified about it again", ZH: "作业 %s：恢复提醒"}
	textNoCard     = lang.Text{EN: "nobody follows job %s in Slack", ZH: "Slack 中没有人订阅作业 %s"}
)

// placeOf returns the place of a subscription: the channel of the request, or the person in a
// direct message.
func placeOf(a incoming.Ask) card.Place {
	if a.Direct || a.Channel == "" {
		return card.Place{Team: a.Team, Channel: a.User}
	}
	return card.Place{Team: a.Team, Channel: a.Channel}
}

// Subscribe starts or ends following jobs in the place of the request. Without words it lists
// what is followed there.
func (nf *Notifier) Subscribe(ctx context.Context, a incoming.Ask, c *ops.Call, cluster string, words []string, on bool) []store.SlackMessage {
	if c.Who.User == "" && !c.Who.Operator {
		return nf.reply.NotLinked(a, c.Lang)
	}
	if a.Terminal != nil && on { // Slack would take the login name for a channel's
		e := &ops.Error{Code: ops.NotAllowed, Message: textNoPlace, Fix: textNoPlaceTo}
		return nf.reply.Doc(a, answer.Error(e, c.Lang), false)
	}
	if len(words) == 0 && on {
		return nf.subscriptionsHere(ctx, a, c)
	}
	s, bad := readSubscription(words, cluster)
	switch {
	case bad != "":
		e := &ops.Error{Code: ops.BadInput, Message: textFollowWhat.With(bad), Fix: textFollowHow}
		return nf.reply.Doc(a, answer.Error(e, c.Lang), false)
	case slices.Contains(s.when, whenExpected) && !strings.HasPrefix(s.subject, "name/"):
		e := &ops.Error{Code: ops.BadInput, Message: textFollowName, Fix: lang.Same("subscribe name=llama-8b expected")}
		return nf.reply.Doc(a, answer.Error(e, c.Lang), false)
	}
	var err error
	if job, ok := strings.CutPrefix(s.subject, "job/"); ok && on {
		where, id, _ := strings.Cut(job, "/")
		if _, _, err = c.Job(ctx, where, slurm.JobID(id)); err != nil && ops.AsError(err).Code == ops.NotFound {
			return nf.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false) // nobody would ever be notified
		}
	}
	s.place = placeOf(a)
	title, said := textFollow, textFollowBy
	if !on {
		if was, err := nf.cfg.Store.Get(ctx, record.Follow, s.key(), nf.now(), new(string)); err == nil && !was {
			doc := view.Doc{Title: fmt.Sprintf(textNotHere.In(c.Lang), s.shown(c.Lang)), Tone: view.Warn, Next: []string{"subscribe"}}
			return nf.reply.Doc(a, doc, false)
		}
	}
	if on {
		err = nf.cfg.Store.Put(ctx, record.Follow, s.key(), a.User+" "+string(c.Lang), time.Time{})
	} else {
		title, said = textUnfollow, textUnfollowBy
		err = errors.Join(nf.cfg.Store.Delete(ctx, record.Follow, s.key()), nf.cfg.Store.Delete(ctx, record.Missing, s.key()))
	}
	if err != nil {
		return nf.reply.Doc(a, answer.Error(ops.AsError(err), c.Lang), false)
	}
	doc := view.Doc{Title: fmt.Sprintf(title.In(c.Lang), s.shown(c.Lang)), Tone: view.Good}
	if s.place.Channel == a.User {
		return nf.reply.Doc(a, doc, false)
	}
	// Everybody in the channel sees who changed what is posted there, and how to undo it.
	doc.Sections = []view.Section{{Text: fmt.Sprintf(said.In(c.Lang), cmp.Or(c.Who.User, c.Who.ID))}}
	r := answer.Render(doc, c.Lang)
	bs := r.Messages[0]
	if on {
		e := slack.NewButtonBlockElement(answer.ActRun+":end", "unsubscribe "+s.words(), answer.Label(textEndFollow.In(c.Lang)))
		bs = append(bs, slack.NewActionBlock("", e))
	}
	return []store.SlackMessage{nf.out.Owe(a.Key+"/told", "t/"+s.place.Channel, outbox.Message{
		Do: outbox.Post, Team: a.Team, Channel: s.place.Channel, Instead: a.User, Text: r.Text, Blocks: answer.BlocksJSON(bs),
	})}
}

// subscriptionsHere lists what is followed in the place of the request, with a button to end
// each, and offers common subscriptions.
func (nf *Notifier) subscriptionsHere(ctx context.Context, a incoming.Ask, c *ops.Call) []store.SlackMessage {
	l, here := c.Lang, placeOf(a)
	bs := []slack.Block{answer.Header(textFollowHere.In(l))}
	all, err := nf.subscriptions(ctx)
	if err != nil {
		return nf.reply.Doc(a, answer.Error(ops.AsError(err), l), false)
	}
	for i, s := range all {
		if s.place.Team != here.Team || s.place.Channel != here.Channel || len(bs) > 40 {
			continue
		}
		e := slack.NewButtonBlockElement(fmt.Sprintf("%s:end%d", answer.ActRun, i), "unsubscribe "+s.words(), answer.Label(textEndFollow.In(l)))
		bs = append(bs, slack.NewSectionBlock(answer.Label(s.shown(l)), nil, slack.NewAccessory(e)))
	}
	if len(bs) == 1 {
		bs = append(bs, slack.NewSectionBlock(answer.Label(textFollowNone.In(l)), nil, nil))
	}
	var es []slack.BlockElement
	for i, x := range []struct {
		label lang.Text
		words string
	}{
		{textMyFailures, "subscribe user=" + c.Who.User + " failed"}, {textAllFailing, "subscribe all failed"}, {textAllDigest, "subscribe all digest"},
	} {
		es = append(es, slack.NewButtonBlockElement(fmt.Sprintf("%s:begin%d", answer.ActRun, i), x.words, answer.Label(x.label.In(l))))
	}
	return nf.reply.Blocks(a, textFollowHere.In(l), append(bs, slack.NewActionBlock("", es...), answer.ContextMarkup(textFollowHow.In(l))), false)
}

func (nf *Notifier) subscriptions(ctx context.Context) (list []subscription, err error) {
	keys, err := nf.cfg.Store.Keys(ctx, record.Follow, nf.now())
	for _, k := range keys {
		if s, ok := parseSubscription(k); ok {
			list = append(list, s)
		}
	}
	return list, err
}

// followers returns the places that follow a job in its present state.
func (nf *Notifier) followers(ctx context.Context, j slurm.Job) (ps []card.Place, err error) {
	all, err := nf.subscriptions(ctx)
	for _, s := range all {
		if s.shows(j) && !slices.Contains(ps, s.place) {
			ps = append(ps, s.place)
		}
	}
	return ps, err
}

// followersLang returns the language of the person who made the first of these places follow
// a job; empty if nobody did, or if the person chose none.
func (nf *Notifier) followersLang(ctx context.Context, j slurm.Job) (lang.Lang, error) {
	all, err := nf.subscriptions(ctx)
	first := slices.IndexFunc(all, func(s subscription) bool { return s.shows(j) })
	if err != nil || first < 0 {
		return "", err
	}
	who, l, err := nf.setBy(ctx, all[first])
	return who.LangOr(l), err
}

// setBy returns the settings of the person who made a subscription, and the language in which they
// made it; subscriptions of earlier versions have none.
func (nf *Notifier) setBy(ctx context.Context, s subscription) (who people.Settings, l lang.Lang, err error) {
	var by string
	_, err = nf.cfg.Store.Get(ctx, record.Follow, s.key(), nf.now(), &by)
	user, in, _ := strings.Cut(by, " ")
	return nf.people.Settings(ctx, s.place.Team, user), lang.Lang(in), err
}

// Mute stops mentioning the person for one job, or starts it again.
func (nf *Notifier) Mute(ctx context.Context, a incoming.Ask, c *ops.Call, cluster string, words []string, on bool) []store.SlackMessage {
	if len(words) == 0 {
		e := &ops.Error{Code: ops.BadInput, Field: "job", Message: lang.Text{EN: "mute needs a job's id", ZH: "mute 需要作业号"}, Fix: lang.Same("mute 4711")}
		return nf.reply.Doc(a, answer.Error(e, c.Lang), false)
	}
	id := slurm.JobID(words[0])
	ok := nf.withCard(ctx, cluster, id, func(k *card.Card) {
		k.Muted = slices.DeleteFunc(k.Muted, func(u string) bool { return u == a.User })
		if on {
			k.Muted = append(k.Muted, a.User)
		}
	})
	if !ok {
		return nf.reply.Doc(a, answer.Error(&ops.Error{Code: ops.NotFound, Message: textNoCard.With(id)}, c.Lang), false)
	}
	title := textMuted
	if !on {
		title = textUnmuted
	}
	return nf.reply.Doc(a, view.Doc{Title: fmt.Sprintf(title.In(c.Lang), id)}, false)
}
