package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// escapes are terminal control sequences: CSI, OSC (titles, links, clipboard), other
// string sequences, and the two-byte ones.
var escapes = lazy.New("(?s)\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_].*?(?:\x07|\x1b\\\\|\\z)|\x1b[ -/]*[0-~]|\x1b")

// invisible are the characters that nobody sees and a program reads: marks of direction,
// separators of lines, fillers, and variation selectors and tags, which can carry whole
// sentences.
var invisible = []*unicode.RangeTable{unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point}

// Clean returns s as text that is safe to print. It removes terminal sequences, control
// characters, and bidirectional and invisible marks. Of a line with carriage returns it
// keeps what a terminal would show last. Bytes that are not UTF-8 become U+FFFD.
// Newlines and tabs stay.
func Clean(s string) string {
	if isPlain(s) {
		return s
	}
	s = escapes.ReplaceAllString(s, "")
	if strings.Contains(s, "\r") {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			lines[i] = lastOverwrite(l)
		}
		s = strings.Join(lines, "\n")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
			return -1
		case r >= 0xa0 && unicode.In(r, invisible...):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// lastOverwrite returns what a terminal would show last of a line that carriage returns
// overwrite, as progress bars do.
func lastOverwrite(line string) string {
	line = strings.TrimRight(line, "\r")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		return line[i+1:]
	}
	return line
}

func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
