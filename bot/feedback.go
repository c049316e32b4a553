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

// ratingRow returns the block under the answers of ask and diagnose, in which people rate them.
func (b *Bot) ratingRow(c *ops.Call, op ops.Op, t typed.Call) []slack.Block {
	if op.Name != "ask" && op.Name != "diagnose" || t.JSON {
		return nil
	}
	if op.Name == "ask" {
		return []slack.Block{feedback("ask/"+answer.Cut(t.Rest, maxAsked), c.Lang)}
	}
	return []slack.Block{feedback(op.Name, c.Lang)}
}

// maxAsked is how many characters of a question the buttons under its answer carry: Slack
// accepts 2,000 in a value.
const maxAsked = 500

// feedback returns the two rating buttons. Their values carry what is rated: the operation and,
// for ask, the question after a slash.
func feedback(about string, l lang.Lang) slack.Block {
	return slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement(actFeedback,
		slack.NewFeedbackButton(answer.Label(textGood.In(l)), "good/"+about),
		slack.NewFeedbackButton(answer.Label(textBad.In(l)), "bad/"+about)))
}

// feedbackGiven records a rating in the audit trail, and a rating of an answer among the
// knowledge's gaps too.
func (b *Bot) feedbackGiven(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	c := b.people.Call(ctx, a)
	b.audit(ctx, c, "feedback", map[string]string{"verdict": answer.Cut(a.Value, 40), "channel": a.Channel, "message": a.TS}, nil)
	verdict, about, _ := strings.Cut(a.Value, "/")
	if question, ok := strings.CutPrefix(about, "ask/"); ok {
		b.noteRating(ctx, c, verdict == "good", question, "")
	}
	return b.reply.Doc(a, view.Doc{Title: textThanks.In(c.Lang)}, false)
}

func (b *Bot) noteRating(ctx context.Context, c *ops.Call, good bool, question, answer string) {
	verdict := answers.VerdictWrong
	if good {
		verdict = answers.VerdictGood
	}
	b.warn("feedback", answers.NoteVerdict(ctx, c, verdict, question, answer))
}

// ratingWords are the words and emoji that rate the last answer in a thread.
var ratingWords = map[string]bool{
	"wrong": false, "that's wrong": false, "this is wrong": false, "incorrect": false, ":-1:": false, ":thumbsdown:": false, "👎": false,
	"不对": false, "错了": false, "答错了": false, "回答错误": false, "不正确": false,
	":+1:": true, ":thumbsup:": true, "👍": true, "correct": true, "答对了": true, "正确": true,
}

// rated handles a message that only rates the thread's last answer; ok is false for any other
// message.
func (b *Bot) rated(ctx context.Context, a incoming.Ask, c *ops.Call) (owed []store.SlackMessage, ok bool) {
	good, ok := ratingWords[strings.ToLower(strings.Trim(a.Text, " \t\n.!。！~～"))]
	if !ok {
		return nil, false
	}
	turns := b.conversationOf(ctx, a).Turns
	if len(turns) == 0 {
		return nil, false
	}
	last := turns[len(turns)-1]
	b.noteRating(ctx, c, good, last.Question, last.Answer)
	return b.reply.Doc(a, view.Doc{Title: textThanks.In(c.Lang)}, true), true
}

// A conversation is what the bot remembers of a thread.
type conversation struct {
	Turns []knowledge.Turn `json:"turns"`
	// Job is the job that was last spoken about.
	Job jobRef `json:"job,omitzero"`
	// Log is the path of logs that were diagnosed after that job and belong to no known job.
	Log string `json:"log,omitempty"`
}

// maxTurns is how many questions and answers of a thread are remembered.
const maxTurns = 6

// threadOf names the thread that a message is in; it is empty for an ask that is no message.
func threadOf(a incoming.Ask) string {
	ts := cmp.Or(a.Thread, a.TS)
	if ts == "" || a.Kind != incoming.AsMessage {
		return ""
	}
	return a.Team + "/" + a.Channel + "/" + ts
}

// conversationOf returns what is remembered of the thread. It comes from our own store: Slack's
// history is never read for it.
func (b *Bot) conversationOf(ctx context.Context, a incoming.Ask) (t conversation) {
	if id := threadOf(a); id != "" {
		_, err := b.cfg.Store.Get(ctx, record.Thread, id, b.now(), &t)
		b.warn("thread", err)
	}
	return t
}

// remember changes what is remembered of the thread of a.
func (b *Bot) remember(ctx context.Context, a incoming.Ask, change func(*conversation)) {
	id := threadOf(a)
	if id == "" {
		return
	}
	t := b.conversationOf(ctx, a)
	change(&t)
	if len(t.Turns) > maxTurns {
		t.Turns = t.Turns[len(t.Turns)-maxTurns:]
	}
	b.warn("thread", b.cfg.Store.Put(ctx, record.Thread, id, t, b.now().Add(30*24*time.Hour)))
}
