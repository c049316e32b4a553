package report

import (
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// A Fit is the smallest change of a run's flags that would have avoided an out-of-memory error, by the
// memory estimate.
type Fit struct {
	Flags       []string `json:"flags"`
	EstimateGiB float64  `json:"estimate_gib"`
	TotalGiB    float64  `json:"total_gib"`
}

// ruleAdvice returns a rule's requirement, its remedy, and the place where Megatron checks it.
func ruleAdvice(id string) (lang.Text, bool) {
	r, ok := rules.Explain(id)
	if !ok {
		return lang.Text{}, false
	}
	return said(fmt.Sprintf("Rule %s: %s. %s (%s)", r.ID, r.Requirement.EN, sentence(r.Remedy.EN), r.Source),
		fmt.Sprintf("规则 %s：%s。%s。（%s）", r.ID, r.Requirement.In(lang.ZH), r.Remedy.In(lang.ZH), r.Source)), true
}

func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}
