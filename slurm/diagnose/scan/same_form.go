package scan

import (
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A formMatch is an expression and the form of a line to which it was applied.
type formMatch struct {
	re   *lazy.Pattern
	form uint64
}

// manyForms bounds the answers that are kept of one file.
const manyForms = 1 << 14

// matches reports whether an expression that does not tell one digit from another matches the line of
// entry. Most lines of a log are those of a loop, which differ in digits only, and a map answers sooner
// than an expression that can begin anywhere.
func (s *scanner) matches(re *lazy.Pattern, text string) bool {
	k := formMatch{re, s.form}
	m, known := s.matched[k]
	if !known {
		if m = re.MatchString(text); len(s.matched) < manyForms {
			s.matched[k] = m
		}
	}
	return m
}
