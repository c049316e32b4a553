// Package rules is the rules core: the answer-first constants, the
// CUDA_DEVICE_MAX_CONNECTIONS matrix and every launch rule as a row of one
// table, with its reason in two languages, its fix and its source. It is pure.
package rules

import "slices"

// A Severity says what a broken rule does to a job.
type Severity string

// The severities. An error stops submit; a warning is told and does not.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// A Problem is one rule that a configuration breaks.
type Problem struct {
	// Rule is the id of the row, stable and readable, such as "heads-divisible-by-tp".
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Field names what to change: a Megatron flag, a field of the job
	// specification, or an environment variable.
	Field   string `json:"field"`
	Message string `json:"message"`
	// Fix is the smallest change that would work for this configuration.
	Fix string `json:"fix,omitempty"`
	// Source is the check in Megatron's code ("megatron/training/arguments.py:432")
	// or the document that states the rule.
	Source string `json:"source,omitempty"`
	// Follows is the rule that this problem is only a consequence of.
	Follows string `json:"follows,omitempty"`
	// Effect says what the fix does: "performance only" or "changes the experiment".
	Effect string `json:"effect,omitempty"`
}

// A Verdict is what the rules say of one launch. OK is false exactly where
// Megatron itself would refuse to start; rules that only the documents state
// leave it true.
type Verdict struct {
	OK       bool           `json:"ok"`
	Problems []Problem      `json:"problems"`
	Derived  map[string]any `json:"derived"`
}

// Blocking reports whether a problem of severity error is among ps.
func Blocking(ps []Problem) bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Severity == Error })
}
