package bot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

const pageOfJobs = 10

// actPage is the action of a button that replaces its message by another page. Its value is a
// command.
const actPage = "page"

var (
	textJobsFound = lang.Text{EN: "%s jobs · %s", ZH: "%s 个作业 · %s"}
	textOneFound  = lang.Text{EN: "1 job · %s", ZH: "1 个作业 · %s"}
	textInState   = lang.Text{EN: "%s %s", ZH: "%s 个%s"}
	textPage      = lang.Text{EN: "%s to %s of %s, newest first", ZH: "第 %s–%s 个，共 %s 个，最新的在前"}
	textNewer     = lang.Text{EN: "◀ Newer", ZH: "◀ 较新"}
	textOlder     = lang.Text{EN: "More ▶", ZH: "更多 ▶"}
)

// jobMenu holds the entries of the menu beside a job, and in which states they are offered.
var jobMenu = []struct {
	label lang.Text
	words string
	when  func(slurm.State) bool
}{
	{textState, "status %s", func(slurm.State) bool { return true }},
	{lang.Text{EN: "Why does it wait?", ZH: "为什么在排队？"}, "priority %s", func(s slurm.State) bool { return s == slurm.Pending }},
	{lang.Text{EN: "Logs", ZH: "日志"}, "logs %s --tail 20", func(s slurm.State) bool { return s != slurm.Pending }},
	{lang.Text{EN: "Diagnose", ZH: "诊断"}, "diagnose %s", func(s slurm.State) bool { return s != slurm.Pending && s != slurm.Completed }},
	{lang.Text{EN: "Numbers", ZH: "指标"}, "metrics %s", func(s slurm.State) bool { return s != slurm.Pending }},
	{lang.Text{EN: "Cancel", ZH: "取消作业"}, "cancel %s", func(s slurm.State) bool { return !s.Ended() }},
}

// jobRow draws one job of a list: its headline, what it takes and where, and its menu.
func jobRow(n card.News, i int, l lang.Lang) slack.Block {
	j := n.Job
	var menu []*slack.OptionBlockObject
	for _, m := range jobMenu {
		words := fmt.Sprintf(m.words, j.ID)
		if verb, _, _ := strings.Cut(words, " "); !m.when(j.State) || !typed.Known(verb) {
			continue
		}
		if j.Cluster != "" {
			words += " --cluster " + j.Cluster
		}
		menu = append(menu, slack.NewOptionBlockObject(answer.ActRun+" "+words, answer.Label(m.label.In(l)), nil))
	}
	return slack.NewSectionBlock(answer.Markup(card.Row(n, l)), nil,
		slack.NewAccessory(slack.NewOverflowBlockElement(fmt.Sprintf("%s:row%d", card.ActMenu, i), menu[:min(len(menu), 5)]...)))
}

// stateCounts says how many of the jobs are in which state, the largest count first.
func stateCounts(jobs []slurm.Job, l lang.Lang) string {
	count := map[slurm.State]int{}
	var states []slurm.State
	for _, j := range jobs {
		if count[j.State]++; count[j.State] == 1 {
			states = append(states, j.State)
		}
	}
	slices.SortStableFunc(states, func(x, y slurm.State) int { return count[y] - count[x] })
	var parts []string
	for _, s := range states[:min(len(states), 4)] {
		parts = append(parts, fmt.Sprintf(textInState.In(l), card.WithCommas(count[s]), card.State(s, l)))
	}
	return strings.Join(parts, " · ")
}

func (b *Bot) listBlocks(jobs []slurm.Job, t typed.Call, l lang.Lang) (text string, bs []slack.Block) {
	page := min(max(t.Page, 1), (len(jobs)-1)/pageOfJobs+1)
	from := (page - 1) * pageOfJobs
	shown := jobs[from:min(from+pageOfJobs, len(jobs))]
	text = fmt.Sprintf(textJobsFound.In(l), card.WithCommas(len(jobs)), stateCounts(jobs, l))
	if len(jobs) == 1 {
		text = fmt.Sprintf(textOneFound.In(l), stateCounts(jobs, l))
	}
	bs = append(bs, answer.Header(text))
	if at := jobs[0].SeenAt; at != nil {
		bs = append(bs, answer.ContextMarkup(card.LastSeen(*at, l)))
	}
	for i, j := range shown {
		bs = append(bs, jobRow(card.News{Job: j}, i, l))
	}
	var es []slack.BlockElement
	turn := func(label lang.Text, page int) {
		words := typed.Line(t.Op, t.Words) + fmt.Sprintf(" --page %d", page)
		if t.Cluster != "" {
			words += " --cluster " + t.Cluster
		}
		es = append(es, slack.NewButtonBlockElement(fmt.Sprintf("%s:%d", actPage, page), words, answer.Label(label.In(l))))
	}
	if page > 1 {
		turn(textNewer, page-1)
	}
	if from+pageOfJobs < len(jobs) {
		turn(textOlder, page+1)
	}
	if len(es) > 0 {
		bs = append(bs, answer.ContextLine(fmt.Sprintf(textPage.In(l), card.WithCommas(from+1), card.WithCommas(from+len(shown)), card.WithCommas(len(jobs)))),
			slack.NewActionBlock("", es...))
	}
	return text, bs
}

// listed answers with a page of a list of jobs; ok is false for a list that is not paged.
func (b *Bot) listed(a incoming.Ask, c *ops.Call, t typed.Call, found jobcontrol.ListOut) (owed []store.SlackMessage, ok bool) {
	if len(found.Jobs) == 0 || len(found.Idle) > 0 {
		return nil, false
	}
	text, bs := b.listBlocks(found.Jobs, t, c.Lang)
	return b.reply.Blocks(a, text, reply.JoinRows(bs, shareRow(a, t, c.Lang)), t.Share), true
}

func (b *Bot) turnPage(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	a.Text, a.InPlace = a.Value, true
	return b.command(ctx, a)
}

var textNow = lang.Text{EN: "Your jobs now", ZH: "您当前的作业"}

// start answers /megatron without words: with the help for a person without a cluster user,
// with their jobs for a person who has some, and with the form for anybody else.
func (b *Bot) start(ctx context.Context, a incoming.Ask, c *ops.Call) []store.SlackMessage {
	if c.Who.User == "" || c.Who.ReadOnly || a.Terminal != nil {
		return b.help(a, c, "", false)
	}
	news := b.newsFor(ctx, c, b.people.ClusterOf(ctx, a))
	if len(news) == 0 {
		return b.openForm(ctx, a, c)
	}
	bs := []slack.Block{answer.Header(textNow.In(c.Lang))}
	for i, n := range news[:min(len(news), pageOfJobs)] {
		bs = append(bs, jobRow(n, i, c.Lang))
	}
	bs = append(bs, homeActions(c.Lang))
	return b.reply.Blocks(a, textNow.In(c.Lang), bs, false)
}

// newsFor returns the person's jobs that may need them: those that failed in the last day and
// that nobody takes care of, then the running ones, then the waiting ones.
func (b *Bot) newsFor(ctx context.Context, c *ops.Call, cluster string) (news []card.News) {
	for _, k := range b.news.CardsEndedSince(ctx, b.now().Add(-24*time.Hour)) {
		if s := k.News.Job.State; k.News.Job.User == c.Who.User && k.Taken == "" && card.ToneOf(s) == "bad" {
			news = append(news, k.News)
		}
	}
	slices.SortFunc(news, func(x, y card.News) int { return slurm.NewestFirst(x.Job, y.Job) })
	open, err := b.openNews(ctx, c, cluster)
	if err != nil {
		b.log.Info("slack: jobs", "err", err)
	}
	return append(news, open...)
}

// openNews returns the person's running jobs, followed by the waiting ones.
func (b *Bot) openNews(ctx context.Context, c *ops.Call, cluster string) (news []card.News, err error) {
	jobs, err := listJobs(ctx, c, jobcontrol.ListIn{OnCluster: ops.OnCluster{Cluster: cluster}})
	rank := func(s slurm.State) int { return map[slurm.State]int{slurm.Running: 0, slurm.Pending: 2}[s] }
	slices.SortStableFunc(jobs, func(x, y slurm.Job) int { return cmp.Or(rank(x.State)-rank(y.State), slurm.NewestFirst(x, y)) })
	for _, j := range jobs {
		n := card.News{Job: j}
		if k, ok, err := b.news.Card(ctx, j.Cluster, j.ID); err == nil && ok {
			n = n.Keep(k.News)
		}
		news = append(news, n)
	}
	return news, err
}
