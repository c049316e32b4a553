package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/form"
	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/profile"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/bot/wording"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textMyJobs    = lang.Text{EN: "My jobs", ZH: "我的作业"}
	textNoJobs    = lang.Text{EN: "No job waits or runs.", ZH: "没有排队或运行中的作业。"}
	textGlance    = lang.Text{EN: "The cluster at a glance", ZH: "集群概览"}
	textNoFailure = lang.Text{EN: "No job that is followed here has failed in the last seven days.", ZH: "最近七天，在这里关注的作业没有失败。"}
	textIdentity  = lang.Text{EN: "Identity", ZH: "身份"}
	textUpdated   = lang.Text{EN: "As of %s. Open this tab again for the present state.", ZH: "数据时间：%s。重新打开本页即可刷新。"}
	textCount     = lang.Text{EN: "%s: %d (%s)", ZH: "%s：%d（%s）"}
)

func (b *Bot) home(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	m := b.out.Owe(
		a.Key+"/home",
		"home/"+a.Team+"/"+a.User,
		outbox.Message{Do: outbox.Home, Team: a.Team, User: a.User, Blocks: answer.BlocksJSON(b.homeBlocks(ctx, a, c))},
	)
	m.Collapse = "home/" + a.Team + "/" + a.User
	return []store.SlackMessage{m}
}

func (b *Bot) homeBlocks(ctx context.Context, a incoming.Ask, c *ops.Call) []slack.Block {
	l := c.Lang
	bs := []slack.Block{answer.Header("megatron-ops"), homeActions(l)}
	add := func(heading lang.Text, blocks ...slack.Block) {
		bs = append(append(bs, slack.NewDividerBlock(), answer.Header(heading.In(l))), blocks...)
	}
	if c.Who.User != "" || c.Who.Operator {
		add(textNeedsYou, b.needsYou(ctx, c)...)
	}
	add(textMyJobs, b.myJobs(ctx, a, c)...)
	if b.people.MayRead(a, c) {
		if s := b.clusterSummary(ctx, c, b.people.ClusterOf(ctx, a)); s != nil {
			add(textGlance, s...)
		}
		add(wording.Failures, b.failures(ctx, l)...)
	}
	add(people.YourSettings, b.homeSettings(ctx, a, c)...)
	if len(bs) > 98 {
		bs = bs[:98]
	}
	return append(bs, answer.ContextMarkup(fmt.Sprintf(textUpdated.In(l), card.When(b.now(), "{date_short_pretty} {time}"))))
}

func homeActions(l lang.Lang) slack.Block {
	submit := slack.NewButtonBlockElement(answer.ActRun+":submit", "submit", answer.Label(form.Title.In(l)))
	submit.Style = slack.StylePrimary
	return slack.NewActionBlock("", submit,
		slack.NewButtonBlockElement(answer.ActRun+":list", "list --all", answer.Label(lang.Text{EN: "All my jobs", ZH: "我的全部作业"}.In(l))),
		slack.NewButtonBlockElement(answer.ActRun+":help", "help", answer.Label(lang.Text{EN: "Help", ZH: "帮助"}.In(l))))
}

// myJobs draws the person's running and waiting jobs, each with its menu.
func (b *Bot) myJobs(ctx context.Context, a incoming.Ask, c *ops.Call) []slack.Block {
	if c.Who.User == "" {
		return []slack.Block{docBlocks(view.Section{Text: help.Unlinked.In(c.Lang)})}
	}
	news, err := b.openNews(ctx, c, b.people.ClusterOf(ctx, a))
	if err != nil {
		return []slack.Block{docBlocks(view.Section{Text: ops.AsError(err).Message.In(c.Lang)})}
	}
	if len(news) == 0 {
		return []slack.Block{docBlocks(view.Section{Text: textNoJobs.In(c.Lang)})}
	}
	var bs []slack.Block
	if at := news[0].Job.SeenAt; at != nil {
		bs = append(bs, answer.ContextMarkup(card.LastSeen(*at, c.Lang)))
	}
	for i, n := range news[:min(len(news), pageOfJobs)] {
		bs = append(bs, jobRow(n, i, c.Lang))
	}
	return bs
}

// listJobs runs the operation list. Calls at about the same time share one query to the
// cluster. Where only the accounts fail, the jobs of the queue are returned with that error.
func listJobs(ctx context.Context, c *ops.Call, in jobcontrol.ListIn) ([]slurm.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, err := operations.Run[jobcontrol.ListOut](ctx, c, "list", &in)
	if lacks := found.Lacks(); err == nil && lacks.EN != "" {
		err = &ops.Error{Code: ops.Failed, Message: lacks}
	}
	return found.Jobs, err
}

// failures counts the failed jobs of the last seven days by cause.
func (b *Bot) failures(ctx context.Context, l lang.Lang) []slack.Block {
	by, _ := b.failuresSince(ctx, b.now().AddDate(0, 0, -7))
	if len(by) == 0 {
		return []slack.Block{docBlocks(view.Section{Text: textNoFailure.In(l)})}
	}
	var lines []string
	causes := slices.SortedFunc(maps.Keys(by), func(x, y string) int { return cmp.Or(len(by[y])-len(by[x]), strings.Compare(x, y)) })
	for _, cause := range causes[:min(len(causes), 10)] {
		name := wording.NotKnown.In(l)
		if cause != "" {
			name = lang.Capital(wording.ClassName(cause, l))
		}
		lines = append(lines, fmt.Sprintf(textCount.In(l), name, len(by[cause]), answer.Cut(strings.Join(by[cause], ", "), 100)))
	}
	return []slack.Block{docBlocks(view.Section{Items: lines})}
}

// failuresSince returns the failed jobs that have a card by the class of their cause, and the
// GPU hours that they used.
func (b *Bot) failuresSince(ctx context.Context, t time.Time) (by map[string][]string, gpuHours float64) {
	by = map[string][]string{}
	for _, k := range b.news.CardsEndedSince(ctx, t) {
		j := k.News.Job
		if j.State == slurm.Completed || j.State == slurm.Cancelled {
			continue
		}
		by[k.News.Class] = append(by[k.News.Class], string(j.ID))
		gpuHours += j.Last().GPUHours()
	}
	return by, gpuHours
}

// homeSettings draws who the person is, and the settings with their selects.
func (b *Bot) homeSettings(ctx context.Context, a incoming.Ask, c *ops.Call) []slack.Block {
	l := c.Lang
	bs := []slack.Block{docBlocks(view.Section{Facts: []view.Fact{{Name: textIdentity.In(l), Value: cmp.Or(c.Who.User, profile.Nobody.In(l))}}})}
	if c.Who.User == "" && !c.Who.ReadOnly {
		bs = append(bs, slack.NewActionBlock("", slack.NewButtonBlockElement(answer.ActRun+":identity", "link", answer.Label(reply.LinkMe.In(l)))))
	}
	return append(bs, b.profile.SettingRows(b.people.Settings(ctx, a.Team, a.User), l)...)
}

// docBlocks draws a section as one block; the rest of a longer section is cut off.
func docBlocks(s view.Section) slack.Block {
	ps, _ := answer.SectionBlocks(s, 0, lang.EN, answer.MessageLimits)
	if len(ps) == 0 {
		return answer.ContextLine("–")
	}
	return ps[0].Block
}

// unfurl shows the jobs behind links to our own pages.
func (b *Bot) unfurl(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	shown := map[string]slack.Attachment{}
	for _, raw := range a.Links[:min(len(a.Links), 5)] {
		u, err := url.Parse(raw)
		id, on := "", ""
		if err == nil {
			id = path.Base(u.Path)
			if name := path.Base(path.Dir(u.Path)); c.Clusters[name] != nil { // /web/jobs/CLUSTER/ID
				on = name
			}
		}
		if err != nil || u.Host != b.cfg.Policy.LinkDomain || !slurm.IsJobID(id) || a.Foreign || !b.people.MayRead(a, c) {
			continue
		}
		in := &jobcontrol.StatusIn{Job: slurm.JobID(id), OnCluster: ops.OnCluster{Cluster: on}}
		if r, err := operations.Run[jobcontrol.StatusOut](ctx, c, "status", in); err == nil {
			shown[raw] = slack.Attachment{Blocks: slack.Blocks{BlockSet: b.unfurledCard(ctx, c, r)}}
		}
	}
	if len(shown) == 0 {
		return nil
	}
	extra, err := json.Marshal(shown)
	if err != nil {
		return nil
	}
	return []store.SlackMessage{b.out.Owe(a.Key+"/unfurl", "t/"+a.Channel+"/"+a.TS,
		outbox.Message{Do: outbox.Unfurl, Team: a.Team, Channel: a.Channel, TS: a.TS, Extra: extra})}
}
