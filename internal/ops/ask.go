package ops

import (
	"context"
	"errors"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// AskIn is a set-up question.
type AskIn struct {
	Question []string `json:"-" arg:"" text:"" name:"question" help:"the question, in English or Chinese; after -- it may begin with a dash" zh:"问题，中英文均可；写在 -- 之后时可以以短横线开头"`
	Q        string   `json:"question" kong:"-" required:"" help:"the question, in English or Chinese"`
	// Thread is what was said before in the same conversation.
	Thread []knowledge.Turn `json:"-" kong:"-"`
}

// AskOut is the answer with its sources.
type AskOut struct {
	knowledge.Answer
	// begun reports that a model's words were shown that do not stand.
	begun bool
}

func ask(ctx context.Context, c *Call, in AskIn) (AskOut, error) {
	q := strings.TrimSpace(strings.Join(append(in.Question, in.Q), " "))
	if q == "" {
		return AskOut{}, badInput("question", `for example: megatron-ops ask "what should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP 4?"`, "there is no question")
	}
	// The answer comes in the language of the question, whatever the surface's; a
	// message pasted without a word has none, and gets the surface's.
	asked := knowledge.Question{Text: q, History: in.Thread, User: c.Who.ID, Usual: c.Lang, Tools: modelTools(c)}
	shown, pieces := false, 0
	switch {
	case c.Stream != nil:
		asked.Stream = func(piece string) { shown = true; c.Stream(piece) }
	case c.Progress != nil && (c.Who.Surface == MCP || c.Who.Surface == MCPHTTP):
		// What the model writes is told as it comes; the answer has it whole.
		asked.Stream = func(piece string) { pieces++; c.step(pieces, 0, piece) }
	}
	a, err := c.Answerer().Ask(ctx, asked)
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return AskOut{}, err // nobody waits for what stands without the model
	}
	if shown {
		c.Stream("\n")
	}
	// In Slack the answer takes the place of what was shown.
	stays := c.Stream != nil && c.Who.Surface != Slack
	a.Streamed = a.Streamed && stays
	if err == nil && a.Unsure {
		// What is kept of it helps whoever writes the site's pages; the answer
		// does not depend on it.
		_ = c.Judge(ctx, VerdictUnknown, q, "")
	}
	return AskOut{Answer: a, begun: shown && stays && !a.Streamed}, err
}

// textStands goes before an answer where a model's words had begun to appear.
var textStands = lang.Text{EN: "Not supported by the rules; what stands is:", ZH: "以上内容没有依据，以下为准："}

// View is the answer with its sources; only those where the answer was shown
// while a model wrote it.
func (o AskOut) View(l lang.Lang) view.Doc {
	d := o.Answer.View(l)
	switch {
	case o.Streamed:
		d.Sections = d.Sections[1:]
	case o.begun:
		d.Title, d.Tone = textStands.In(l), view.Warn
	}
	return d
}
