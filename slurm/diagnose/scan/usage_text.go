package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A usage is a usage text in a stream, printed by a program that was called wrongly or asked for help.
type usage struct {
	lines int  // lines so far; 0 outside of a usage text
	bare  bool // the last line was only "usage:", so the next one tells the usage
	head  Mark
}

// usageSection matches the heading of a section of a usage text.
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

// usageAtEnd records the usage text at the end of a stream.
func (s *scanner) usageAtEnd(u usage) {
	if u.lines >= Enough {
		s.Facts.Usage = &u.head
	}
}

// ofErrorPanel returns the first line inside the panel in which Typer and rich-click write what is wrong with
// a command line, as Click itself writes it: "Error: …". previous is the panel's top.
func ofErrorPanel(previous, text string) (said string, ok bool) {
	if !strings.HasPrefix(previous, "╭─ Error ─") {
		return "", false
	}
	said, ok = strings.CutPrefix(text, "│ ")
	return "Error: " + strings.TrimRight(said, " │"), ok
}
