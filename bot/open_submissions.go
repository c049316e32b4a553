package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/jobnews"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Where Slurm's controller does not answer a submission, its outcome is unknown: there may or
// may not be a job. Such a submission is called open. The person gets one message, which is
// edited when the server has found out the outcome.

var (
	textOpen     = lang.Text{EN: "⏳ %s: not known yet whether it was submitted", ZH: "⏳ %s：尚不清楚是否已提交"}
	textOpenHow  = lang.Text{EN: "%s did not answer. I keep checking, and will update this message. There is no need to submit again: the same command joins this request.", ZH: "%s 没有响应。我会继续查询，结果会更新在本消息中。无需重复提交：再次发送相同命令会并入本次请求。"}
	textOpenIs   = lang.Text{EN: "✅ %s was submitted: job %s", ZH: "✅ %s 已提交：作业 %s"}
	textOpenNot  = lang.Text{EN: "⚠️ %s was not submitted", ZH: "⚠️ %s 没有提交成功"}
	textOpenNone = lang.Text{EN: "%s answers again and has no such job.", ZH: "%s 已恢复响应，其中没有该作业。"}
	textOpenNow  = lang.Text{EN: "Submit it now", ZH: "立即提交"}
	textFindOut  = lang.Text{EN: "To find out", ZH: "如何查明"}
	textFindJob  = lang.Text{EN: "`/megatron status %s --cluster %s` shows the job as it is now", ZH: "`/megatron status %s --cluster %s` 显示该作业的当前状态"}
	textFindList = lang.Text{EN: "`/megatron list --all --user %s --cluster %s` shows the jobs that there are", ZH: "`/megatron list --all --user %s --cluster %s` 列出现有的作业"}
	textToken    = lang.Text{EN: "Submission token", ZH: "提交令牌"}
	textCarries  = lang.Text{EN: "%s: if there is a job, its comment or its name in Slurm ends with it", ZH: "%s：若作业存在，其在 Slurm 中的备注（comment）或名称以此结尾"}
	textOpenWait = lang.Text{EN: "The message of the first request will show its outcome as soon as it is known.", ZH: "首次提交的结果一旦确定，会显示在其消息中。"}
)

const (
	// openPace is the time between two looks for open submissions. openSettles is the time
	// after which a job that the cluster does not have will not appear any more.
	openPace    = 5 * time.Second
	openSettles = time.Minute
)

// An openSubmission is a submission whose outcome is unknown.
type openSubmission struct {
	Call typed.Call   `json:"call"`
	Ask  incoming.Ask `json:"ask"`
	// Key is the submission's key in the store of submissions.
	Key     string    `json:"key"`
	Name    string    `json:"name"`
	Cluster string    `json:"cluster"`
	Lang    lang.Lang `json:"lang"`
	// Offered says that a button to submit again was shown.
	Offered bool `json:"offered,omitempty"`
	Edits   int  `json:"edits,omitempty"`
}

func (o openSubmission) message() string { return "open/" + o.Key }

// openID returns the same id for equal requests of one person.
func openID(a incoming.Ask, t typed.Call) string {
	return incoming.KeyOf("open", a.Team, a.User, t.Op, t.Cluster, strings.Join(t.Words, "\x00"), strings.Join(t.Blocks, "\x00"))
}

// joinOpen returns t with the key of an equal request whose outcome is unknown, so that asking
// twice submits one job.
func (b *Bot) joinOpen(ctx context.Context, a incoming.Ask, op ops.Op, t typed.Call) typed.Call {
	var o openSubmission
	if op.Effect == ops.Read || a.Terminal != nil {
		return t
	}
	if ok, err := b.cfg.Store.Get(ctx, record.Open, openID(a, t), b.now(), &o); err == nil && ok {
		t.Key = o.Call.Key
	}
	return t
}

func (b *Bot) submissionOf(ctx context.Context, key string) (store.Submission, bool) {
	if b.cfg.Service.Store == nil {
		return store.Submission{}, false
	}
	st, err := b.cfg.Service.Store()
	if err != nil {
		return store.Submission{}, false
	}
	sub, err := st.Submission(ctx, key)
	return sub, err == nil
}

// howToFindOut says how a person finds out whether a call has changed anything.
func (b *Bot) howToFindOut(ctx context.Context, c *ops.Call, t typed.Call, in any) []knownFact {
	cluster := cmp.Or(t.Cluster, c.Default)
	if job := ops.TextNamed(in, "job"); slurm.IsJobID(job) {
		return []knownFact{{textFindOut, textFindJob.With(job, cluster)}}
	}
	found := []knownFact{{textFindOut, textFindList.With(c.Who.User, cluster)}}
	if sub, ok := b.submissionOf(ctx, submissionKey(c, t, in)); ok {
		found = append(found, knownFact{textToken, textCarries.With(sub.Token)})
	}
	return found
}

// submissionKey returns the key of a call's submission in the store of submissions.
func submissionKey(c *ops.Call, t typed.Call, in any) string {
	return c.Who.User + "/" + cmp.Or(t.Cluster, c.Default) + "/" + ops.TextNamed(in, "idempotency_key")
}

// unknownOutcome answers a call whose outcome is unknown; ok is false where the outcome is
// known.
func (b *Bot) unknownOutcome(ctx context.Context, a incoming.Ask, c *ops.Call, t typed.Call, in any) (owed []store.SlackMessage, ok bool) {
	sub, _ := b.submissionOf(ctx, submissionKey(c, t, in))
	if sub.State != store.Submitting || a.Terminal != nil {
		return nil, false
	}
	o := openSubmission{Call: t, Ask: a, Key: sub.Key, Name: sub.Name, Cluster: sub.Cluster, Lang: c.Lang}
	id := openID(a, t)
	if had, err := b.cfg.Store.Get(ctx, record.Open, id, b.now(), &openSubmission{}); err == nil && had {
		return b.reply.Doc(a, view.Doc{Title: fmt.Sprintf(textOpen.In(c.Lang), o.Name), Sections: []view.Section{{Text: textOpenWait.In(c.Lang)}}}, false), true
	}
	if err := b.cfg.Store.Put(ctx, record.Open, id, o, b.now().Add(7*24*time.Hour)); err != nil {
		b.log.Error("slack: open submission", "key", sub.Key, "err", err)
		return nil, false
	}
	where := cmp.Or(a.Channel, a.User)
	text, blocks := drawOpen(textOpen, textOpenHow, o)
	return []store.SlackMessage{b.out.Owe(o.message(), o.message(), outbox.Message{
		Do: outbox.Post, Team: a.Team, Channel: where, Instead: a.User, Text: text, Blocks: blocks,
	})}, true
}

func drawOpen(what, how lang.Text, o openSubmission, below ...slack.Block) (text string, blocks []byte) {
	title := fmt.Sprintf(what.In(o.Lang), answer.OneLine(o.Name))
	r := answer.Render(view.Doc{Title: title, Sections: []view.Section{{Text: fmt.Sprintf(how.In(o.Lang), o.Cluster)}}}, o.Lang)
	return answer.Escape(title), answer.BlocksJSON(append(r.Messages[0], below...))
}

// openLoop looks for the outcomes of open submissions until ctx ends.
func (b *Bot) openLoop(ctx context.Context) {
	every(ctx, openPace, func() { b.SettleOpen(ctx) })
}

// SettleOpen looks once for the outcome of each open submission, and edits the messages of
// those whose outcome is known now.
func (b *Bot) SettleOpen(ctx context.Context) {
	ids, err := b.cfg.Store.Keys(ctx, record.Open, b.now())
	if err != nil || len(ids) == 0 {
		return
	}
	if err := b.cfg.Service.Recall(ctx); err != nil {
		b.log.Info("slack: open submissions", "err", err)
	}
	for _, id := range ids {
		var o openSubmission
		if ok, err := b.cfg.Store.Get(ctx, record.Open, id, b.now(), &o); err != nil || !ok {
			continue
		}
		b.warn("open submission", b.settleOne(ctx, id, o), "key", o.Key)
	}
}

func (b *Bot) settleOne(ctx context.Context, id string, o openSubmission) error {
	sub, found := b.submissionOf(ctx, o.Key)
	switch {
	case !found:
		return b.cfg.Store.Delete(ctx, record.Open, id)
	case sub.State == store.Submitted:
		return b.nowKnown(ctx, id, o, sub)
	case sub.State == store.Rejected:
		e := ops.AsError(errors.New(sub.Message))
		r := answer.Render(answer.Error(e, o.Lang), o.Lang)
		return errors.Join(b.editOpen(ctx, &o, r.Text, answer.BlocksJSON(r.Messages[0])), b.cfg.Store.Delete(ctx, record.Open, id))
	case o.Offered || b.now().Before(sub.UpdatedAt.Add(openSettles)) || !b.surelyAbsent(ctx, sub):
		return nil
	}
	// The held call has the same key, so that a job that exists after all is found and not
	// submitted again.
	heldID, err := b.hold(ctx, heldCall{Call: o.Call, Ask: o.Ask, Until: b.now().Add(7 * 24 * time.Hour)})
	if err != nil {
		return err
	}
	e := slack.NewButtonBlockElement(answer.ActYes, heldID, answer.Label(textOpenNow.In(o.Lang)))
	e.Style = slack.StylePrimary
	text, blocks := drawOpen(textOpenNot, textOpenNone, o, slack.NewActionBlock("", e))
	if err := b.editOpen(ctx, &o, text, blocks); err != nil {
		return err
	}
	o.Offered = true
	return b.cfg.Store.Put(ctx, record.Open, id, o, b.now().Add(7*24*time.Hour))
}

// surelyAbsent reports whether the cluster answers and does not have the job.
func (b *Bot) surelyAbsent(ctx context.Context, sub store.Submission) bool {
	cl, ok := b.cfg.Service.Clusters[sub.Cluster]
	if !ok {
		return false
	}
	if s := b.cfg.Service; sub.Owner != s.Self && s.As != nil {
		var err error
		if cl, err = s.As(cl, sub.Owner); err != nil {
			return false
		}
	}
	_, found, err := cl.Find(ctx, sub.Token, sub.CreatedAt)
	return err == nil && !found
}

// nowKnown names the job that was submitted, and sends its card.
func (b *Bot) nowKnown(ctx context.Context, id string, o openSubmission, sub store.Submission) error {
	title := fmt.Sprintf(textOpenIs.In(o.Lang), answer.OneLine(o.Name), sub.JobID)
	line := answer.BlocksJSON([]slack.Block{answer.ContextLine(title)})
	if err := b.editOpen(ctx, &o, answer.Escape(title), line); err != nil {
		return err
	}
	where := cmp.Or(o.Ask.Channel, o.Ask.User)
	news := card.News{Job: slurm.Job{ID: sub.JobID, Cluster: sub.Cluster, Name: sub.Name, User: sub.Owner, State: slurm.Pending}}
	if j, ok := jobnews.Queued(ctx, b.cfg.Service, sub.Cluster, sub.JobID); ok {
		news.Job = j
	}
	k := card.Card{
		Team: o.Ask.Team, User: o.Ask.User, Lang: o.Lang, Approver: o.Ask.Approver, News: news, Began: b.now(),
		Places: []card.Place{{Team: o.Ask.Team, Channel: where}},
	}
	return errors.Join(b.news.Begin(ctx, k, answer.Clean(sub.Script)), b.cfg.Store.Delete(ctx, record.Open, id))
}

func (b *Bot) editOpen(ctx context.Context, o *openSubmission, text string, blocks []byte) error {
	o.Edits++
	m := b.out.Owe(fmt.Sprintf("%s/%d", o.message(), o.Edits), o.message(), outbox.Message{
		Do: outbox.Update, Team: o.Ask.Team, Ref: o.message(), Text: text, Blocks: blocks,
	})
	if err := b.cfg.Store.Enqueue(ctx, m); err != nil {
		return err
	}
	b.out.Wake()
	return nil
}
