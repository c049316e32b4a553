package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// AuditIn selects entries of the audit trail.
type AuditIn struct {
	Limit int `json:"limit,omitempty" default:"50" help:"at most so many, newest first" zh:"最多显示的条数，最新的在前"`
}

// AuditOut holds the entries, newest first.
type AuditOut struct {
	Entries []store.Entry `json:"entries"`
	// Broken is the number of the first entry that was changed after it was written, 0
	// where none was.
	Broken int64 `json:"broken,omitempty"`
	// Cut reports that entries at the end are missing: the signed head beside the
	// database knows later ones.
	Cut bool `json:"cut,omitempty"`
}

// Found reports whether somebody tampered with the trail.
func (o AuditOut) Found() bool { return o.Broken != 0 || o.Cut }

// AuditTrail returns the operation audit.
func AuditTrail() Op {
	return Define(Op{
		Name: "audit", Effect: Read, Toolset: AdminSet,
		Summary: lang.Text{EN: "who changed what, from where, with what result", ZH: "谁在何处做了什么改动，结果如何"},
		Help:    lang.Text{EN: "Use to see who submitted or cancelled. It also tells when the trail itself was changed.", ZH: "查看是谁提交或取消了作业。审计记录被改动时也会指出。"},
		Example: "audit --limit 20",
	}, auditTrail)
}

func auditTrail(ctx context.Context, c *Call, in AuditIn) (AuditOut, error) {
	if in.Limit < 1 {
		return AuditOut{}, InputError("limit",
			lang.Text{EN: "%d is less than 1", ZH: "%d 小于 1"}.With(in.Limit),
			lang.Text{EN: "a number of 1 or more", ZH: "大于等于 1 的数"})
	}
	if !c.Who.Operator && c.Who.Surface != Shell && c.Who.Surface != Chat && c.Who.Surface != MCP {
		return AuditOut{}, &Error{Code: NotAllowed, Message: lang.Text{EN: "the audit trail is for operators", ZH: "审计记录只有管理员可以查看"}, Fix: lang.Text{EN: "ask an operator", ZH: "请联系管理员"}}
	}
	st, err := c.Store()
	if err != nil {
		return AuditOut{}, err
	}
	broken, cut, err := st.VerifyAudit(ctx)
	if err != nil {
		return AuditOut{}, err
	}
	entries, err := st.Audit(ctx, in.Limit)
	return AuditOut{Entries: append([]store.Entry{}, entries...), Broken: broken, Cut: cut}, err
}

// View draws one table row for each entry.
func (o AuditOut) View(l lang.Lang) view.Doc {
	var d view.Doc
	if o.Broken != 0 {
		d.Tone, d.Title = view.Bad, fmt.Sprintf(lang.Text{EN: "entry %d does not follow from the one before: the trail was changed", ZH: "第 %d 条与前一条不衔接：审计记录被改动过"}.In(l), o.Broken)
	}
	if o.Cut {
		d.Tone, d.Title = view.Bad, lang.Text{EN: "entries at the end of the trail are gone: the signed head knows of later ones", ZH: "审计记录的末尾被删去：签名的记录头中有更晚的条目"}.In(l)
	}
	t := &view.Table{Header: view.Columns(l, "when|who|as|where|what|job|agreed|result", "时间|谁|身份|来源|操作|作业|批准|结果"), Spare: []int{3, 2, 6}}
	for _, e := range o.Entries {
		who := e.Who
		if e.Agent != "" { // the person comes first, because the agent asked on the person's behalf
			who += lang.Text{EN: ", by ", ZH: "，通过 "}.In(l) + e.Agent
		}
		t.Rows = append(t.Rows, []string{e.At.Format(time.DateTime), who, e.Owner, e.Surface, e.Op, e.Job, e.Agreed, e.Result})
	}
	d.Sections = []view.Section{{Table: t}}
	return d
}
