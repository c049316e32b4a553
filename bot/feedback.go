package bot

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/answers"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

const actFeedback = "feedback"

var (
	textGood   = lang.Text{EN: "Good answer", ZH: "有帮助"}
	textBad    = lang.Text{EN: "Bad answer", ZH: "没帮助"}
	textThanks = lang.Text{EN: "Thank you, noted.", ZH: "谢谢，已记录。"}
)

// below are the blocks under an answer: for what was found out or said, whether
// it helped.
func (b *Bot) below(c *ops.Call, op ops.Op, t typed.Call) []slack.Block {
	if op.Name != "ask" && op.Name != "diagnose" || t.JSON {
		return nil
	}
	if op.Name == "ask" {
		return []slack.Block{feedback("ask/"+answer.Cut(t.Rest, maxAsked), c.Lang)}
	}
	return []slack.Block{feedback(op.Name, c.Lang)}
}

// maxAsked is how much of a question goes with the thumbs under its answer:
// Slack takes 2,000 characters.
const maxAsked = 500

// feedback are the two thumbs. What they are about goes with them: the
// operation, and for an answer the question behind a slash.
func feedback(about string, l lang.Lang) slack.Block {
	return slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement(actFeedback,
		slack.NewFeedbackButton(answer.Label(textGood.In(l)), "good/"+about),
		slack.NewFeedbackButton(answer.Label(textBad.In(l)), "bad/"+about)))
}

// feedbackGiven notes a thumb where the operator finds it: in the audit trail,
// and that on an answer among the gaps as well.
func (b *Bot) feedbackGiven(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	b.audit(ctx, c, "feedback", map[string]string{"verdict": answer.Cut(a.Value, 40), "channel": a.Channel, "message": a.TS}, nil)
	verdict, about, _ := strings.Cut(a.Value, "/")
	if question, ok := strings.CutPrefix(about, "ask/"); ok {
		b.judge(ctx, c, verdict == "good", question, "")
	}
	return b.reply.Doc(a, view.Doc{Title: textThanks.In(c.Lang)}, false)
}

// judge stores a verdict on an answer.
func (b *Bot) judge(ctx context.Context, c *ops.Call, good bool, question, answer string) {
	verdict := answers.VerdictWrong
	if good {
		verdict = answers.VerdictGood
	}
	b.warn("feedback", answers.NoteVerdict(ctx, c, verdict, question, answer))
}

// verdicts are the words and signs that judge the answer before them in a thread.
var verdicts = map[string]bool{
	"wrong": false, "that's wrong": false, "this is wrong": false, "incorrect": false, ":-1:": false, ":thumbsdown:": false, "👎": false,
	"不对": false, "错了": false, "答错了": false, "回答错误": false, "不正确": false,
	":+1:": true, ":thumbsup:": true, "👍": true, "correct": true, "答对了": true, "正确": true,
}

// judged takes a message that only says whether the thread's last answer was
// right; ok is false for any other.
func (b *Bot) judged(ctx context.Context, a incoming.Ask, c *ops.Call) (owed []store.SlackMessage, ok bool) {
	good, ok := verdicts[strings.ToLower(strings.Trim(a.Text, " \t\n.!。！~～"))]
	if !ok {
		return nil, false
	}
	turns := b.talkOf(ctx, a).Turns
	if len(turns) == 0 {
		return nil, false
	}
	last := turns[len(turns)-1]
	b.judge(ctx, c, good, last.Question, last.Answer)
	return b.reply.Doc(a, view.Doc{Title: textThanks.In(c.Lang)}, true), true
}

// A talk is what a thread has said so far.
type talk struct {
	Turns []knowledge.Turn `json:"turns"`
	// Job is the one that was spoken of last.
	Job jobRef `json:"job,omitzero"`
	// Log is the path of logs that were diagnosed after it, of no job that is known.
	Log string `json:"log,omitempty"`
}

// maxTurns is how far back a conversation is remembered.
const maxTurns = 6

// threadOf names the thread that a message is in; empty: it is no message.
func threadOf(a incoming.Ask) string {
	ts := cmp.Or(a.Thread, a.TS)
	if ts == "" || a.Kind != incoming.AsMessage {
		return ""
	}
	return a.Team + "/" + a.Channel + "/" + ts
}

// talkOf is the conversation before this message, from our own notes: Slack's
// history is never read for it.
func (b *Bot) talkOf(ctx context.Context, a incoming.Ask) (t talk) {
	if id := threadOf(a); id != "" {
		_, err := b.cfg.Store.Get(ctx, record.Thread, id, b.now(), &t)
		b.warn("thread", err)
	}
	return t
}

// remember changes what is noted of a's thread.
func (b *Bot) remember(ctx context.Context, a incoming.Ask, change func(*talk)) {
	id := threadOf(a)
	if id == "" {
		return
	}
	t := b.talkOf(ctx, a)
	change(&t)
	if len(t.Turns) > maxTurns {
		t.Turns = t.Turns[len(t.Turns)-maxTurns:]
	}
	b.warn("thread", b.cfg.Store.Put(ctx, record.Thread, id, t, b.now().Add(30*24*time.Hour)))
}
