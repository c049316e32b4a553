// Package answers answers questions about launching, asked as a sentence or as a single
// word, and questions about this program.
package answers

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// AskIn is a set-up question.
type AskIn struct {
	Question []string `json:"-" arg:"" text:"" name:"question" help:"the question, in English or Chinese; after -- it may begin with a dash" zh:"问题，中英文均可；写在 -- 之后时可以以短横线开头"`
	Q        string   `json:"question" kong:"-" required:"" help:"the question"`
	// Before holds the earlier questions, for a caller that keeps the conversation
	// itself.
	Before []string `json:"before,omitempty" kong:"-" help:"earlier questions"`
	// Thread is what was said earlier in the same conversation.
	Thread []knowledge.Turn `json:"-" kong:"-"`
}

// maxBefore is how many earlier questions are used, the newest ones.
const maxBefore = 8

// AskOut is the answer with its sources.
type AskOut struct {
	knowledge.Answer
	// retracted reports that parts of a model's answer were shown and then rejected.
	retracted bool
}

// Ask returns the operation ask. operations lists the operations that it can answer
// questions about, some of which a model may call.
func Ask(operations func() []ops.Op) ops.Op {
	builtIn := sync.OnceValue(func() *knowledge.Answerer { return knowledge.New(knowledge.Options{Own: About(operations)}) })
	return ops.Define(ops.Op{
		Name: "ask", Effect: ops.Read, Toolset: ops.KnowledgeSet, Core: true, Closed: true,
		Summary: lang.Text{EN: "a set-up question, answered with its sources", ZH: "依据规则与技能文档回答环境与启动问题，并给出来源"},
		Help: lang.Text{
			EN: "Use for questions about launching, layout, flags, containers, errors. Says when it does not know; never acts.",
			ZH: "用于 Megatron-LM 与 Slurm 的问题：启动、并行配置、参数、容器、日志、报错。不知道时会直说，从不执行操作。",
		},
		Example: `ask "how do I set MASTER_ADDR?"`,
		Batch:   ops.OneByOne(func(line []byte) []byte { return builtIn().Batch(context.Background(), line) }),
	}, func(ctx context.Context, c *ops.Call, in AskIn) (AskOut, error) { return ask(ctx, c, in, operations) })
}

func ask(ctx context.Context, c *ops.Call, in AskIn, operations func() []ops.Op) (AskOut, error) {
	q := strings.TrimSpace(strings.Join(append(in.Question, in.Q), " "))
	if q == "" {
		return AskOut{}, ops.InputError("question",
			lang.Text{EN: "there is no question", ZH: "没有给出问题"},
			lang.Text{
				EN: "for example: `megatron-ops ask \"what should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP 4?\"`",
				ZH: "例如：`megatron-ops ask \"H100 上 TP=4 时 CUDA_DEVICE_MAX_CONNECTIONS 应设为多少？\"`",
			})
	}
	// The answer is in the language of the question, whatever the surface's language
	// is. A pasted message without a word of either language gets the surface's.
	for _, earlier := range in.Before[max(0, len(in.Before)-maxBefore):] {
		in.Thread = append(in.Thread, knowledge.Turn{Question: earlier})
	}
	asked := knowledge.Question{Text: q, History: in.Thread, User: c.Who.ID, UserLang: c.Lang, Tools: modelTools(c, operations())}
	overMCP := c.Who.Surface == ops.MCP || c.Who.Surface == ops.MCPHTTP
	if overMCP {
		asked.Text = nameMCP(q)
	}
	shown, pieces := false, 0
	words := view.Flow{Out: c.Stream, Width: c.Width}
	switch {
	case c.Stream != nil:
		asked.Stream = func(piece string) { shown = true; words.Add(piece) }
	case c.Progress != nil && overMCP:
		// The model's text is reported while it arrives; the answer holds all of it.
		asked.Stream = func(piece string) { pieces++; c.Step(pieces, 0, piece) }
	}
	a, err := c.Answerer().Ask(ctx, asked)
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return AskOut{}, err // nobody waits for the answer that needs no model
	}
	if shown {
		words.Add("\n")
	}
	// In Slack the final answer replaces what was shown.
	stays := c.Stream != nil && c.Who.Surface != ops.Slack
	a.Streamed = a.Streamed && stays
	if err == nil && a.Unsure {
		// The note helps whoever writes the site's pages. The answer does not depend on
		// it.
		_ = NoteVerdict(ctx, c, VerdictUnknown, q, "")
	}
	return AskOut{Answer: a, retracted: shown && stays && !a.Streamed}, err
}

// asksAboutServer matches a question about the server that the agent is connected to.
var asksAboutServer = lazy.New(`(?i)\bthis server\b|\btool ?sets?\b|\b(?:more|your|further) tools\b|工具集|[这该此]个?服务器|(?:更多|你的|其他)工具`)

// nameMCP adds "(MCP)" to a question about tools that came over MCP, because the
// tools that it means are this server's. Other questions stay unchanged.
func nameMCP(question string) string {
	if strings.Contains(strings.ToLower(question), "mcp") || !asksAboutServer.MatchString(question) {
		return question
	}
	return question + " (MCP)"
}

// modelRejected introduces the answer where parts of a model's rejected answer were shown.
var modelRejected = lang.Text{EN: "Not supported by the rules; what stands is:", ZH: "以上内容没有依据，以下为准："}

// View is the answer with its sources. Where the answer was shown while a model wrote
// it, only the sources are left to show.
func (o AskOut) View(l lang.Lang) view.Doc {
	d := o.Answer.View(l)
	switch {
	case o.Streamed:
		d.Sections = d.Sections[1:]
	case o.retracted:
		d.Title, d.Tone = modelRejected.In(l), view.Warn
	}
	return d
}
