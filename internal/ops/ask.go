package ops

import (
	"context"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// AskIn is a set-up question.
type AskIn struct {
	Question []string `json:"-" arg:"" name:"question" help:"the question, in English or Chinese" zh:"问题，中英文均可"`
	Q        string   `json:"question" kong:"-" required:"" help:"the question, in English or Chinese"`
	// Thread is what was said before in the same conversation.
	Thread []knowledge.Turn `json:"-" kong:"-"`
}

// AskOut is the answer with its sources.
type AskOut struct{ knowledge.Answer }

func ask(ctx context.Context, c *Call, in AskIn) (AskOut, error) {
	q := strings.TrimSpace(strings.Join(append(in.Question, in.Q), " "))
	if q == "" {
		return AskOut{}, badInput("question", `for example: megatron-ops ask "what should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP 4?"`, "there is no question")
	}
	// The answer comes in the language of the question, whatever the surface's; a
	// message pasted without a word has none, and gets the surface's.
	a, err := c.Answerer().Ask(ctx, knowledge.Question{Text: q, History: in.Thread, User: c.Who.ID, Usual: c.Lang})
	if err == nil && a.Unsure {
		// What is kept of it helps whoever writes the site's pages; the answer
		// does not depend on it.
		_ = c.Judge(ctx, VerdictUnknown, q, "")
	}
	return AskOut{a}, err
}

// View is the answer with its sources.
func (o AskOut) View(l lang.Lang) view.Doc { return o.Answer.View(l) }
