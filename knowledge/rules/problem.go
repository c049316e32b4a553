// Package rules is the rules core: the constants of a launch, the
// CUDA_DEVICE_MAX_CONNECTIONS matrix, every launch rule as a row of one table, and
// the recommendation of layouts. A row has its reason in two languages, its fix and
// its source. The package is pure.
package rules

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Severity is the effect of a broken rule on a job.
type Severity string

// The severities. An error stops submit. A warning and a note are only shown.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Says returns the word for s that a person reads.
func (s Severity) Says() lang.Text {
	return lang.Text{EN: string(s), ZH: map[Severity]string{Error: "错误", Warning: "警告", Note: "说明"}[s]}
}

// A Problem is one rule that a configuration breaks.
type Problem struct {
	// Rule is the rule's id, stable and readable, such as "heads-divisible-by-tp".
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Field is the Megatron flag, the field of the job specification or the
	// environment variable to change.
	Field   string `json:"field"`
	Message string `json:"message"`
	// Fix is the smallest change that works for this configuration.
	Fix string `json:"fix,omitempty"`
	// Source is the check in Megatron's code ("megatron/training/arguments.py:432")
	// or the document that states the rule.
	Source string `json:"source,omitempty"`
	// Follows is the rule whose consequence this problem is; empty for none.
	Follows string `json:"follows,omitempty"`
	// Effect is the fix's effect: "performance only" or "changes the experiment"; empty where it
	// depends on what was meant.
	Effect string `json:"effect,omitempty"`
}

// A Verdict is the result of the rules for one launch. OK is false exactly where
// Megatron itself would refuse to start. Broken rules that only documents state
// leave OK true.
type Verdict struct {
	OK       bool           `json:"ok"`
	Problems []Problem      `json:"problems"`
	Derived  map[string]any `json:"derived"`
}

// Blocking reports whether any problem has the severity error.
func Blocking(ps []Problem) bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Severity == Error })
}
