package answers

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// SearchIn is the query and the number of passages to return.
type SearchIn struct {
	Words []string `json:"-" arg:"" text:"" name:"query" help:"what to look for, in English or Chinese" zh:"要查找的内容，中英文均可"`
	Query string   `json:"query" kong:"-" required:"" help:"what to look for, in English or Chinese: a question, an error message, a flag"`
	Top   int      `json:"top,omitempty" default:"5" help:"at most so many passages" zh:"最多返回的条数"`
}

// SearchOut holds the nearest passages, best first.
type SearchOut struct {
	Passages []knowledge.Passage `json:"passages"`
}

// maxPassages is the most passages that a search returns.
const maxPassages = 20

// Search returns the operation search.
func Search() ops.Op {
	return ops.Define(ops.Op{
		Name: "search", Effect: ops.Read, Toolset: ops.KnowledgeSet, Closed: true,
		Summary: lang.Text{EN: "passages of the knowledge base nearest to a query, each with its address and score", ZH: "知识库中与查询最接近的段落，附来源地址与得分"},
		Help: lang.Text{
			EN: "Use to read for yourself: it returns the nearest passages whatever their scores; below 0.3 they may be about something else. For " +
				"an answer to a person use ask.",
			ZH: "想自己阅读 Megatron-LM 与 Slurm 的资料时使用：无论得分高低都返回最接近的段落，低于约 0.3 的可能无关。直接回答人的问题用 ask。",
		},
		Example: `search "NCCL WARN Call to ibv_modify_qp failed" --top 3`,
	}, search)
}

func search(ctx context.Context, c *ops.Call, in SearchIn) (SearchOut, error) {
	out := SearchOut{Passages: []knowledge.Passage{}}
	query := strings.TrimSpace(strings.Join(append(in.Words, in.Query), " "))
	if query == "" {
		return out, ops.InputError("query",
			lang.Text{EN: "there is nothing to look for", ZH: "没有给出要查找的内容"},
			lang.Text{EN: "for example: `megatron-ops search \"context parallel NaN\"`", ZH: "例如：`megatron-ops search \"context parallel NaN\"`"})
	}
	if in.Top < 0 || in.Top > maxPassages {
		return out, ops.InputError("top",
			lang.Text{EN: "%d is not between 1 and %d", ZH: "%d 不在 1 到 %d 之间"}.With(in.Top, maxPassages),
			lang.Text{EN: "a number from 1 to %d", ZH: "1 到 %d 之间的数"}.With(maxPassages))
	}
	top := cmp.Or(in.Top, 5)
	if near := c.Answerer().Search(ctx, query, "", top); near != nil {
		out.Passages = near
	}
	return out, ctx.Err()
}

// View shows one section for each passage.
func (o SearchOut) View(l lang.Lang) view.Doc {
	if len(o.Passages) == 0 {
		return view.Doc{Tone: view.Warn, Title: lang.Text{EN: "Nothing is near.", ZH: "没有接近的内容。"}.In(l)}
	}
	var d view.Doc
	for _, p := range o.Passages {
		d.Sections = append(d.Sections, view.Section{Heading: fmt.Sprintf("%.2f  %s", p.Score, p.Title), Text: strings.TrimSpace(p.Text + "\n" + p.URL)})
	}
	return d
}
