package report

import (
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A Pulse tells how a running job progresses, by its output. Unknown values are nil.
type Pulse struct {
	LastIter *int     `json:"last_iteration,omitempty"`
	StepS    *float64 `json:"seconds_per_iteration,omitempty"`
	AgeS     *int64   `json:"last_line_age_s,omitempty"` // age of the newest line
	// MayHang says that AgeS is longer than a few iterations take.
	MayHang bool `json:"may_hang,omitempty"`
}

// Pulse returns the progress of the job; ok is false if the job does not run.
func (r Report) Pulse() (p Pulse, ok bool) {
	hangs := r.Class == outcome.Hang && r.RootLine == "" // else it was ended because it hung
	return Pulse{r.LastIter, r.StepS, r.AgeS, r.MayHang || hangs}, r.Class == outcome.Running && r.Why == "progress" || hangs
}

// Says describes the progress.
func (p Pulse) Says() lang.Text {
	var t lang.Text
	also := func(en, zh string, v any) {
		if t.EN != "" {
			en, zh = ", "+en, "，"+zh
		}
		said := lang.Text{EN: en, ZH: zh}.With(v)
		t.EN += said.EN
		t.ZH += said.ZH
	}
	if p.LastIter != nil {
		also("iteration %d", "第 %d 次迭代", *p.LastIter)
	}
	if p.StepS != nil {
		also("%.3g s an iteration", "每次迭代 %.3g 秒", *p.StepS)
	}
	if p.AgeS == nil {
		return t
	}
	age := lang.Span(time.Duration(*p.AgeS) * time.Second)
	if !p.MayHang {
		also("last line %s ago", "最后一行在 %s前", age)
		return t
	}
	if t.EN != "" {
		t.EN, t.ZH = t.EN+". ", t.ZH+"。"
	}
	silent := lang.Text{EN: "No line for %s: perhaps a hang", ZH: "已有 %s没有新的输出：可能已挂起"}.With(age)
	t.EN, t.ZH = t.EN+silent.EN, t.ZH+silent.ZH
	return t
}

// asClause is Says as the continuation of a sentence.
func (p Pulse) asClause() lang.Text {
	t := p.Says()
	switch {
	case t.EN == "":
	case p.MayHang && p.LastIter == nil && p.StepS == nil:
		t.EN, t.ZH = ". "+t.EN, "。"+t.ZH
	default:
		t.EN, t.ZH = ", "+t.EN, "，"+t.ZH
	}
	return t
}
