package bot

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// While an operation runs, its thread shows that: Slack shows a status behind the bot's name
// and, where the answer will be a message in the thread, the steps of a long operation are
// streamed as a plan, which the answer replaces.

var statusWords = map[string]lang.Text{
	"ask":      {EN: "is looking it up…", ZH: "正在查找…"},
	"diagnose": {EN: "is reading the logs…", ZH: "正在读取日志…"},
	"logs":     {EN: "is reading the logs…", ZH: "正在读取日志…"},
	"metrics":  {EN: "is reading the numbers…", ZH: "正在读取指标…"},
	"compare":  {EN: "is comparing the runs…", ZH: "正在对比训练…"},
	"plan":     {EN: "is checking the plan…", ZH: "正在检查计划…"},
	"submit":   {EN: "is checking and submitting…", ZH: "正在检查并提交…"},
	"lint":     {EN: "is reading the script…", ZH: "正在检查脚本…"},
}

// stepsOf are the steps that operations report (ops.Call.Step), in their order.
var stepsOf = map[string]struct {
	title lang.Text
	steps []lang.Text
}{
	"diagnose": {lang.Text{EN: "Diagnosing", ZH: "诊断日志"}, []lang.Text{
		{EN: "Find the logs of all ranks", ZH: "查找所有 rank 的日志"},
		{EN: "Read them, and separate the cause from its consequences", ZH: "读取日志，区分原因与连锁反应"},
		{EN: "Try a fix against the plan", ZH: "用计划检查可用的修复"},
	}},
	"submit": {lang.Text{EN: "Submitting", ZH: "提交作业"}, []lang.Text{
		{EN: "Read the specification", ZH: "读取规格"},
		{EN: "Check the plan and the cluster", ZH: "检查计划与集群"},
		{EN: "Hand it to Slurm, once", ZH: "交给 Slurm（仅一次）"},
	}},
}

var textWorking = lang.Text{EN: "is working on it…", ZH: "正在处理…"}

const (
	// statusAfter is how long an operation that is usually short runs before it gets a status.
	statusAfter = 400 * time.Millisecond
	// stepsAfter is how long an operation runs before its steps are shown.
	stepsAfter = 300 * time.Millisecond
	// statusLife is the time after which a status is set again: Slack removes it after two
	// minutes without a message (docs.slack.dev/reference/methods/assistant.threads.setStatus).
	statusLife = 100 * time.Second
)

// A step is the progress that an operation reports: how many steps are done, and what the last
// one found.
type step struct {
	done int
	what string
}

// atWork shows in the thread that an operation is running, until ended is called. A failure to
// show it has no effect on the operation.
func (b *Bot) atWork(ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, t typed.Call) (ended func()) {
	asked := a.Kind == incoming.AsMessage || a.Kind == incoming.AsButton
	if !asked || a.Terminal != nil || a.Channel == "" || cmp.Or(a.Thread, a.TS) == "" {
		return func() {}
	}
	status := textWorking.In(c.Lang)
	words, atOnce := statusWords[op.Name]
	if atOnce {
		status = words.In(c.Lang)
	}
	plan := b.steps(ctx, a, c, op, t)
	steps := make(chan step, 8)
	c.Progress = func(done, _ int, what string) {
		select {
		case steps <- step{done, what}:
		default: // dropped: a later report says more
		}
	}
	ctx, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		var now step
		shown, begun := false, false
		say, begin := time.NewTimer(statusAfter), time.NewTimer(stepsAfter)
		defer say.Stop()
		defer begin.Stop()
		if atOnce {
			b.setStatus(ctx, a, status)
			shown = true
			say.Reset(statusLife)
		}
		for {
			select {
			case <-ctx.Done():
				if shown && !t.Share && !a.Direct {
					b.setStatus(ctx, a, "") // a message removes the status, but an answer for one person only does not
				}
				return
			case <-say.C:
				b.setStatus(ctx, a, status)
				shown = true
				say.Reset(statusLife)
			case <-begin.C:
				begun = true
				plan(now.done, now.what)
			case now = <-steps:
				if op.Name == "diagnose" && now.done == 1 && now.what != "" {
					status = fmt.Sprintf(textReading.In(c.Lang), now.what)
					say.Reset(0)
				}
				if begun {
					plan(now.done, now.what)
				}
			}
		}
	}()
	return func() { stop(); <-over; c.Progress = nil }
}

// steps returns a function that shows the steps of an operation. It does nothing where no
// message can be streamed.
func (b *Bot) steps(ctx context.Context, a incoming.Ask, c *ops.Call, op ops.Op, t typed.Call) func(done int, about string) {
	o, _, _, _ := reply.Place(a, t.Share)
	known, ok := stepsOf[op.Name]
	if !ok || a.Kind != incoming.AsMessage || o.Do != outbox.Post || o.Thread == "" || a.Foreign || t.JSON {
		return func(int, string) {}
	}
	title := known.title.In(c.Lang)
	if op.Name == "diagnose" && len(t.Words) > 0 { // otherwise a log is pasted or attached
		title = lang.Text{EN: "Diagnosing job %s", ZH: "诊断作业 %s"}.With(t.Words[0]).In(c.Lang)
	}
	var list []string
	for _, s := range known.steps {
		list = append(list, s.In(c.Lang))
	}
	show := b.out.Steps(ctx, outbox.StreamTarget{Key: a.Key, Team: a.Team, Channel: o.Channel, Thread: o.Thread, User: a.User, Direct: a.Direct}, title, list)
	return func(done int, about string) {
		if op.Name != "diagnose" {
			about = "" // the words of other operations are meant for a terminal
		}
		show(done, about)
	}
}

var textReading = lang.Text{EN: "is reading %s…", ZH: "正在读取 %s…"}

func (b *Bot) setStatus(ctx context.Context, a incoming.Ask, status string) {
	api, err := b.app.Client(ctx, a.Team)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	err = api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
		ChannelID: a.Channel, ThreadTS: cmp.Or(a.Thread, a.TS), Status: status,
	})
	if err != nil {
		b.log.Debug("slack: status", "err", err)
	}
}
