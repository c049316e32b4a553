package bot

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/jobnews"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A job's state and numbers look the same everywhere: the answer to status is the job's card,
// and the answer to metrics is the job's curve with its numbers.

// specialAnswer answers with a result that has a form of its own; ok is false for any other
// result.
func (b *Bot) specialAnswer(ctx context.Context, a incoming.Ask, c *ops.Call, t typed.Call, in, result any) (owed []store.SlackMessage, ok bool) {
	if a.Terminal != nil {
		return nil, false
	}
	switch r := result.(type) {
	case jobcontrol.ListOut:
		return b.listed(a, c, t, r)
	case jobcontrol.StatusOut:
		if !slurm.IsJobID(string(r.ID)) {
			return nil, false // the id is a step's
		}
		return b.statusCard(ctx, a, c, t, r), true
	case joblogs.MetricsOut:
		if m, isOne := in.(*joblogs.MetricsIn); isOne && len(r.Runs) == 1 && len(m.Runs) == 1 && len(r.GPUs) == 0 {
			return b.metricsCard(ctx, a, c, t, m.Runs[0], r), true
		}
	}
	return nil, false
}

// statusCard answers with a job's card, below which the details are folded.
func (b *Bot) statusCard(ctx context.Context, a incoming.Ask, c *ops.Call, t typed.Call, r jobcontrol.StatusOut) []store.SlackMessage {
	l := c.Lang
	k := b.cardNow(ctx, c, r.Job)
	k.Page = r.Page
	o, _, _, _ := reply.Place(a, t.Share)
	alone := o.Do == outbox.Ephemeral || o.Do == outbox.Respond && !t.Share
	bs := append(card.Body(k, l, alone), answer.Blocks(cardDetails(r, l), l)...)
	var row []slack.Block
	if buttons := card.Buttons(k, l); buttons != nil {
		row = append(row, buttons)
	}
	if r.State == slurm.Pending && r.Earlier == nil {
		if earlier := answer.NextButtons(r.View(l).Next, l); earlier != nil {
			row = reply.JoinRows(row, []slack.Block{earlier})
		}
	}
	bs = append(bs, reply.JoinRows(row, shareRow(a, t, l))...)
	return b.reply.Blocks(a, card.Headline(k.News, l), bs, t.Share)
}

// unfurledCard draws a job's card for a link to its page, without the chart and the buttons,
// which the page has.
func (b *Bot) unfurledCard(ctx context.Context, c *ops.Call, r jobcontrol.StatusOut) []slack.Block {
	k := b.cardNow(ctx, c, r.Job)
	k.News.Curve = nil
	return card.Body(k, c.Lang, false)
}

// cardDetails draws what a job's card leaves out: what can be done while it waits, a warning
// that it may hang, its checkpoints and steps and, folded, the rest.
func cardDetails(r jobcontrol.StatusOut, l lang.Lang) (doc view.Doc) {
	sections := r.View(l).Sections
	if r.State == slurm.Pending && r.Do != "" {
		doc.Sections = append(doc.Sections, view.Section{Text: lang.Capital(r.Do)})
	}
	for i, s := range sections[1:] {
		if i == 0 && r.Pulse != nil && !r.Pulse.MayHang {
			continue // the card shows how old the last line is
		}
		doc.Sections = append(doc.Sections, s)
	}
	doc.Sections = append(doc.Sections, view.Section{Facts: detailFacts(r, l), Fold: true})
	return doc
}

var (
	textOnNodes = lang.Text{EN: "Nodes", ZH: "节点"}
	textTracked = lang.Text{EN: "Tracked at", ZH: "实验记录"}
	textOutput  = lang.Text{EN: "Output", ZH: "标准输出"}
	textErrors  = lang.Text{EN: "Errors", ZH: "标准错误"}
	textCode    = lang.Text{EN: "Code", ZH: "代码"}
	textAgain   = lang.Text{EN: "Restarts", ZH: "重启次数"}
	textTasks   = lang.Text{EN: "Tasks", ZH: "任务"}
	textAtATime = lang.Text{EN: "Tasks at a time", ZH: "任务同时运行上限"}
	textCalled  = lang.Text{EN: "Slurm's state", ZH: "Slurm 状态"}
)

// detailFacts lists what is known about a job and is not on its card.
func detailFacts(r jobcontrol.StatusOut, l lang.Lang) (facts []view.Fact) {
	add := func(name lang.Text, value string) {
		if value != "" {
			facts = append(facts, view.Fact{Name: name.In(l), Value: value})
		}
	}
	var tasks []string
	for _, state := range slices.Sorted(maps.Keys(r.Tasks)) {
		tasks = append(tasks, fmt.Sprintf("%d %s", r.Tasks[state], card.State(state, l)))
	}
	add(textTasks, strings.Join(tasks, " · "))
	if r.ArrayLimit > 0 {
		add(textAtATime, strconv.Itoa(r.ArrayLimit))
	}
	add(textOnNodes, hostlist.Compress(r.Nodes))
	add(textCalled, strings.TrimSpace(string(r.State)+" "+strings.TrimPrefix(r.Reason, "None")))
	if r.Restarts > 0 {
		add(textAgain, strconv.Itoa(r.Restarts))
	}
	if r.Source != nil {
		add(textCode, launch.SourceLine(r.Source).In(l))
	}
	add(textTracked, r.Tracked)
	add(textOutput, r.Stdout)
	if r.Stderr != r.Stdout {
		add(textErrors, r.Stderr)
	}
	return facts
}

// cardNow returns a job's card with the numbers that the watcher knows, or else with those of
// its log.
func (b *Bot) cardNow(ctx context.Context, c *ops.Call, j slurm.Job) card.Card {
	k, _, err := b.news.Card(ctx, j.Cluster, j.ID)
	b.warn("card", err, "job", j.ID)
	known := k.News.Job.State == j.State && k.News.Iteration > 0
	if k.News.Job.State.Ended() && !j.State.Ended() {
		k.News = card.News{} // the job was requeued, and earlier news does not apply any more
	}
	k.News = card.News{Job: j}.Keep(k.News)
	k.News.Job.Reason, k.News.Job.SeenAt = j.Reason, j.SeenAt
	if known || j.State == slurm.Pending || j.SeenAt != nil {
		return k
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	m, err := operations.Run[joblogs.MetricsOut](ctx, c, "metrics", &joblogs.MetricsIn{Runs: []string{string(j.ID)}, OnCluster: ops.OnCluster{Cluster: j.Cluster}})
	if err == nil {
		jobnews.TakeNumbers(&k.News, m)
	}
	return k
}

// metricsCard answers with a run's numbers, its loss as Slack's chart, and warnings about the
// numbers. Where the workspace draws no charts, a picture follows.
func (b *Bot) metricsCard(ctx context.Context, a incoming.Ask, c *ops.Call, t typed.Call, run string, m joblogs.MetricsOut) []store.SlackMessage {
	l := c.Lang
	n := card.News{Job: slurm.Job{Name: m.Runs[0].Name}}
	next := []string{}
	if slurm.IsJobID(run) {
		n.Job = slurm.Job{ID: slurm.JobID(run)}
		if cl, j, err := c.Job(ctx, t.Cluster, n.Job.ID); err == nil {
			n.Job = j
			n.Job.Cluster = cl.Name()
		}
		next = append(next, "status "+run+" --cluster "+n.Job.Cluster, "logs "+run+" --tail 20 --cluster "+n.Job.Cluster)
	}
	jobnews.TakeNumbers(&n, m)
	bs := card.Numbers(n, m.Runs[0], l)
	doc := view.Doc{Next: next}
	for _, s := range m.View(l).Sections {
		calm := len(m.Pulses) == 1 && m.Pulses[0] != nil && !m.Pulses[0].MayHang && s.Text == m.Pulses[0].Says().In(l)
		if s.Table == nil && s.Code == "" && !calm {
			doc.Sections = append(doc.Sections, s)
		}
	}
	bs = append(bs, answer.Blocks(doc, l)...)
	owed := b.reply.Blocks(a, card.CurveTitle(n, l), reply.JoinRows(bs, shareRow(a, t, l)), t.Share)
	return b.withPicture(a, owed, t.Share, n, m, l)
}

// withPicture attaches to an answer with a chart the picture that replaces it in workspaces that
// draw no charts.
func (b *Bot) withPicture(a incoming.Ask, owed []store.SlackMessage, share bool, n card.News, m joblogs.MetricsOut, l lang.Lang) []store.SlackMessage {
	var png bytes.Buffer
	if len(n.Curve) < card.FewestPoints || len(owed) != 1 {
		return owed
	}
	if err := m.WriteLossPNG(&png); err != nil {
		b.log.Warn("slack: curve", "job", n.Job.ID, "err", err)
		return owed
	}
	_, _, files, thread := reply.Place(a, share)
	return []store.SlackMessage{b.out.WithPicture(owed[0], outbox.Message{
		Do: outbox.Upload, Team: a.Team, Channel: files, Thread: thread, Instead: a.User,
		Bytes: png.Bytes(), File: &answer.File{Name: fmt.Sprintf("loss-%s.png", n.Job.ID), Title: card.CurveTitle(n, l)},
	})}
}
