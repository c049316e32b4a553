package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A usage is a usage text within a stream: what a program prints that was called
// wrongly, or was asked for help.
type usage struct {
	lines int  // so far; 0: the stream is in none
	bare  bool // the last line was the word alone: how to call it comes next
	head  Mark
}

// usageSection heads a part of a usage text.
var usageSection = lazy.New(`^[\w -]+:$`)

// has reports whether the stream's next line belongs to a usage text.
func (u *usage) has(text string) bool {
	trimmed := strings.TrimLeft(text, " \t")
	if word := trimmed[:min(len(trimmed), 6)]; strings.EqualFold(word, "usage:") && !strings.Contains(trimmed, "error:") {
		*u = usage{lines: 1, bare: len(trimmed) == len(word)}
		return true
	}
	if u.lines == 0 {
		return false
	}
	if u.bare || len(trimmed) < len(text) || strings.HasPrefix(trimmed, "[-") || strings.HasPrefix(trimmed, "-") || usageSection.MatchString(trimmed) {
		u.lines, u.bare = u.lines+1, false
		return true
	}
	*u = usage{}
	return false
}

// usageAtEnd notes the usage text with which a stream ends.
func (s *scanner) usageAtEnd(u usage) {
	if u.lines >= Enough {
		s.Facts.Usage = &u.head
	}
}
