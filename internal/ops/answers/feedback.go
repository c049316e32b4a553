package answers

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// The verdicts on an answer: two of a person, and one of the answerer itself.
const (
	VerdictGood    = "good"
	VerdictWrong   = "wrong"
	VerdictUnknown = "unknown" // there was no answer, or one below the confidence threshold
)

// KnowledgeIn asks for the gaps in what can be answered, or gives a person's verdict on
// one answer.
type KnowledgeIn struct {
	What     string   `json:"what,omitempty" arg:"" optional:"" enum:"gaps,good,wrong" default:"gaps" help:"list the gaps, or say what an answer was" zh:"列出缺口，或评价一个回答"`
	Question []string `json:"-" arg:"" optional:"" text:"" name:"question" help:"the question that was answered" zh:"被评价的问题"`
	Q        string   `json:"question,omitempty" kong:"-" help:"the question that was answered" zh:"被评价的问题"`
	Limit    int      `json:"limit,omitempty" default:"50" help:"at most so many, the most asked first" zh:"最多显示的条数，问得最多的在前"`
}

// KnowledgeOut holds the questions that were answered badly or not at all, the most
// asked ones first; or the verdict that was stored.
type KnowledgeOut struct {
	Gaps  []Gap  `json:"gaps"`
	Noted string `json:"noted,omitempty"`
}

// A Gap is one question without a good answer, which several people may have asked in
// different words.
type Gap struct {
	// Question is the newest wording, and At its time.
	Question string    `json:"question"`
	At       time.Time `json:"at"`
	// Wrong counts how often somebody called the answer wrong, and Unknown how often
	// there was no answer.
	Wrong   int `json:"wrong"`
	Unknown int `json:"unknown"`
	// Others lists the other wordings, and Who the people who asked.
	Others []string `json:"others,omitempty"`
	Who    []string `json:"who"`
}

// gaps groups verdicts, which come newest first, by questions that share most of their
// words.
func gaps(all []store.Feedback, limit int) []Gap {
	list, words := []Gap{}, [][]index.Term{}
	for _, f := range all {
		if f.Verdict == VerdictGood {
			continue
		}
		terms := index.Terms(f.Question)
		i := slices.IndexFunc(words, func(w []index.Term) bool { return alike(w, terms) })
		if i < 0 {
			i = len(list)
			list, words = append(list, Gap{Question: f.Question, At: f.At}), append(words, terms)
		}
		g := &list[i]
		if f.Verdict == VerdictWrong {
			g.Wrong++
		} else {
			g.Unknown++
		}
		if f.Question != g.Question && !slices.Contains(g.Others, f.Question) {
			g.Others = append(g.Others, f.Question)
		}
		if !slices.Contains(g.Who, f.Who) {
			g.Who = append(g.Who, f.Who)
		}
	}
	slices.SortStableFunc(list, func(a, b Gap) int { return (b.Wrong + b.Unknown) - (a.Wrong + a.Unknown) })
	return list[:min(len(list), limit)]
}

// alikeShare is the share of their words, by weight, from which two questions count as
// the same.
const alikeShare = 0.6

// alike reports whether two questions share most of their words, by weight.
func alike(a, b []index.Term) bool {
	shared, whole := 0.0, 0.0
	for _, t := range a {
		whole += t.Weight
		if slices.ContainsFunc(b, func(o index.Term) bool { return o.Key == t.Key }) {
			shared += t.Weight
		}
	}
	for _, t := range b {
		if !slices.ContainsFunc(a, func(o index.Term) bool { return o.Key == t.Key }) {
			whole += t.Weight
		}
	}
	return whole > 0 && shared >= alikeShare*whole
}

// Knowledge returns the operation knowledge.
func Knowledge() ops.Op {
	return ops.Define(ops.Op{
		Name: "knowledge", Effect: ops.Read, Toolset: ops.AdminSet,
		Summary: lang.Text{EN: "questions that were answered badly or not at all; or note that an answer was good or wrong", ZH: "列出答错或答不上的问题；或评价一个回答是对是错"},
		Help: lang.Text{
			EN: "Use gaps to see what the site's pages should add. It counts the thumbs of chat, wrong, and questions below confidence.",
			ZH: "用 gaps 查看站点文档该补充什么：包括聊天中的评价、wrong，以及没有把握的问题。",
		},
		Example: "knowledge gaps",
	}, knowledgeOp)
}

func knowledgeOp(ctx context.Context, c *ops.Call, in KnowledgeIn) (KnowledgeOut, error) {
	out := KnowledgeOut{Gaps: []Gap{}}
	q := strings.TrimSpace(strings.Join(append(in.Question, in.Q), " "))
	if in.What == VerdictGood || in.What == VerdictWrong {
		if q == "" {
			return out, ops.InputError("question",
				lang.Text{EN: "there is no question", ZH: "没有给出问题"},
				lang.Text{
					EN: "write the question that was answered: knowledge %s \"how do I set MASTER_ADDR?\"",
					ZH: "请写出当时的问题：knowledge %s \"MASTER_ADDR 怎么设？\"",
				}.With(in.What))
		}
		out.Noted = in.What
		return out, NoteVerdict(ctx, c, in.What, q, "")
	}
	if in.Limit < 1 {
		return out, ops.InputError("limit",
			lang.Text{EN: "%d is less than 1", ZH: "%d 小于 1"}.With(in.Limit),
			lang.Text{EN: "a number of 1 or more", ZH: "大于等于 1 的数"})
	}
	if !c.Who.Operator && c.Who.Surface != ops.Shell && c.Who.Surface != ops.Chat && c.Who.Surface != ops.MCP {
		return out, &ops.Error{
			Code: ops.NotAllowed, Message: lang.Text{EN: "what others asked is for operators to read", ZH: "他人的提问只有管理员可以查看"},
			Fix: lang.Text{EN: "ask an operator", ZH: "请联系管理员"},
		}
	}
	st, err := c.Store()
	if err != nil {
		return out, err
	}
	all, err := st.Feedback(ctx, maxVerdicts)
	out.Gaps = gaps(all, in.Limit)
	return out, err
}

// maxVerdicts is how many verdicts are read, the newest ones.
const maxVerdicts = 2000

// maxNoted is how much of a question and of an answer is stored, in characters.
const maxNoted = 500

// NoteVerdict stores a verdict on the answer to a question, with secrets removed.
func NoteVerdict(ctx context.Context, c *ops.Call, verdict, question, answer string) error {
	if c.Store == nil {
		return nil
	}
	st, err := c.Store()
	if err != nil {
		return err
	}
	return st.AddFeedback(ctx, store.Feedback{
		At: c.Now(), Surface: string(c.Who.Surface), Who: c.Who.ID, Verdict: verdict,
		Question: brief(redact.Text(question)), Answer: brief(redact.Text(answer)),
	})
}

func brief(s string) string {
	rs := []rune(strings.TrimSpace(s))
	return string(rs[:min(len(rs), maxNoted)])
}

// View shows one line for each question.
func (o KnowledgeOut) View(l lang.Lang) view.Doc {
	if o.Noted != "" {
		return view.Doc{Tone: view.Good, Title: lang.Text{EN: "Noted.", ZH: "已记录。"}.In(l)}
	}
	if len(o.Gaps) == 0 {
		return view.Doc{Tone: view.Good, Title: lang.Text{EN: "No answer was called wrong, and no question stayed open.", ZH: "没有被评为错误的回答，也没有未答的问题。"}.In(l)}
	}
	t := &view.Table{Header: view.Columns(l, "times|wrong|last|question|who", "次数|答错|最近|问题|谁")}
	for _, g := range o.Gaps {
		question := strings.Join(append([]string{g.Question}, g.Others...), " / ")
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(g.Wrong + g.Unknown), strconv.Itoa(g.Wrong), g.At.Format(time.DateTime), question, strings.Join(g.Who, " "),
		})
	}
	return view.Doc{Sections: []view.Section{{Table: t}}}
}
