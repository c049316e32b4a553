package view

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// narrowest is the narrowest column in which words are still readable.
const narrowest = 10

// After which characters a line may be broken, as in a path or a list, and which
// characters a line must not begin or end with.
const (
	breaksAfter = "/,，。；：、"
	inNames     = "-_." // only in names that are longer than a line
	neverFirst  = "/,，。；：、！？）」》”"
	neverLast   = "（「《“"
	// A line must not begin with these after a Chinese character either; elsewhere they
	// may begin a name.
	neverBehindWide = ".:;!?)]"
)

// wrap breaks the lines of s so that each has at most width columns. It breaks at blanks,
// after the characters of breaksAfter and between Chinese characters, but never between
// a number and its percent sign. A word longer than a line is also broken at its hyphens
// if it has any, else anywhere; other words, such as flags, stay whole.
func wrap(s string, width int) string { return wrapLines(s, width, breaksAfter) }

// Prose returns text after lead, wrapped to at most width columns (0: unlimited), with
// continuation lines indented like the text that they continue. A word longer than a
// line, such as a path, stays whole: people copy it.
func Prose(lead, text string, width int) string {
	var all []string
	for line := range strings.SplitSeq(text, "\n") {
		inner := strings.TrimLeft(line, " •")
		begin := lead + line[:len(line)-len(inner)]
		in := lipgloss.Width(begin)
		if room := width - in; width > 0 && room >= narrowest {
			inner = wrapLines(inner, room, "")
		}
		all = append(all, strings.TrimRight(begin+strings.ReplaceAll(inner, "\n", "\n"+strings.Repeat(" ", in)), " "))
		lead = strings.Repeat(" ", lipgloss.Width(lead))
	}
	return strings.Join(all, "\n")
}

// wrapLines implements wrap and Prose. It breaks words after the characters of after,
// and words longer than a line wherever needed; with an empty after it breaks no words.
func wrapLines(s string, width int, after string) string {
	var out strings.Builder
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		at, gap := 0, 0 // columns that are written, and blanks that wait for a word
		for _, piece := range splitLong(pieces(line, after), width, after) {
			word := strings.TrimRight(piece, " ")
			if at > 0 && at+gap+lipgloss.Width(word) > width {
				out.WriteByte('\n')
				at, gap = 0, 0
			}
			out.WriteString(strings.Repeat(" ", gap))
			at += gap
			signs := []rune(word)
			for i, r := range signs {
				with := string(r)
				if i+1 < len(signs) && strings.ContainsRune(neverFirst, signs[i+1]) {
					with += string(signs[i+1])
				}
				if after != "" && at > 0 && at+lipgloss.Width(with) > width {
					out.WriteByte('\n')
					at = 0
				}
				out.WriteRune(r)
				at += lipgloss.Width(string(r))
			}
			gap = len(piece) - len(word)
		}
	}
	return out.String()
}

// splitLong splits pieces that are longer than a line, after the characters that names
// contain.
func splitLong(all []string, width int, after string) (parts []string) {
	for _, piece := range all {
		if after != "" && lipgloss.Width(strings.TrimRight(piece, " ")) > width {
			parts = append(parts, pieces(piece, after+inNames)...)
		} else {
			parts = append(parts, piece)
		}
	}
	return parts
}

func breaksWord(s string, width int) bool {
	return width >= 0 && slices.ContainsFunc(pieces(s, breaksAfter), func(p string) bool { return lipgloss.Width(strings.TrimRight(p, " ")) > width })
}

// pieces splits a line where it may be broken: at blanks, which belong to the piece
// before, after the characters of after, and beside Chinese characters. A percent sign
// stays with the number before it.
func pieces(line, after string) (all []string) {
	begin, before := 0, rune(0)
	for at, r := range line {
		signs := strings.ContainsRune(neverFirst, r) || strings.ContainsRune(neverLast, before) || wide(before) && strings.ContainsRune(neverBehindWide, r)
		inside := !signs && (strings.ContainsRune(after, before) || wide(before) || wide(r))
		if at > begin && r != ' ' && (before == ' ' && r != '%' || inside) {
			all = append(all, line[begin:at])
			begin = at
		}
		before = r
	}
	return append(all, line[begin:])
}

// wide reports whether r takes two columns, as Chinese characters do.
func wide(r rune) bool { return r >= 0x2e80 && lipgloss.Width(string(r)) == 2 }
