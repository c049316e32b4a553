package view

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// narrowest is a column that words can still be read in.
const narrowest = 10

// What a line may be broken after, as in a path or a list, and what it neither begins
// nor ends with.
const (
	breaksAfter = "/,，。；：、"
	inNames     = "-_." // where no line holds a name
	neverFirst  = "/,，。；：、！？）」》”"
	neverLast   = "（「《“"
	// What does not begin one behind Chinese either; elsewhere it may begin a name.
	neverBehindWide = ".:;!?)]"
)

// wrap breaks the lines of s so that each has at most width columns: at blanks, between
// Chinese characters, and elsewhere only what is wider than a line by itself, at its
// hyphens where it has some: no other word, such as a flag, is broken there, and no
// percent sign off its number.
func wrap(s string, width int) string { return fold(s, width, breaksAfter) }

// Prose is text behind lead in lines of at most width columns (0: any number), those that
// follow as far in as what they go on with. A word that no line holds, such as a path,
// stays whole: people copy it.
func Prose(lead, text string, width int) string {
	var all []string
	for line := range strings.SplitSeq(text, "\n") {
		inner := strings.TrimLeft(line, " •")
		begin := lead + line[:len(line)-len(inner)]
		in := lipgloss.Width(begin)
		if room := width - in; width > 0 && room >= narrowest {
			inner = fold(inner, room, "")
		}
		all = append(all, strings.TrimRight(begin+strings.ReplaceAll(inner, "\n", "\n"+strings.Repeat(" ", in)), " "))
		lead = strings.Repeat(" ", lipgloss.Width(lead))
	}
	return strings.Join(all, "\n")
}

// fold breaks lines as wrap and Prose say: within words behind the signs of after, and
// where no line holds a word, if there are any.
func fold(s string, width int, after string) string {
	s = strings.ReplaceAll(s, " %", "\u00a0%")
	var out strings.Builder
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		at, gap := 0, 0 // columns that are written, and blanks that wait for a word
		for _, piece := range fitting(pieces(line, after), width, after) {
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
	return strings.ReplaceAll(out.String(), "\u00a0%", " %")
}

// fitting breaks what is wider than a line behind the signs that names have in them.
func fitting(all []string, width int, after string) (parts []string) {
	for _, piece := range all {
		if after != "" && lipgloss.Width(strings.TrimRight(piece, " ")) > width {
			parts = append(parts, pieces(piece, after+inNames)...)
		} else {
			parts = append(parts, piece)
		}
	}
	return parts
}

// breaksWord reports whether a column of this width holds a word of s in parts only.
func breaksWord(s string, width int) bool {
	return width >= 0 && slices.ContainsFunc(pieces(s, breaksAfter), func(p string) bool { return lipgloss.Width(strings.TrimRight(p, " ")) > width })
}

// pieces are what a line may be broken between, each with the blanks that follow it: at
// blanks, behind the signs of after, and beside Chinese characters.
func pieces(line, after string) (all []string) {
	begin, before := 0, rune(0)
	for at, r := range line {
		signs := strings.ContainsRune(neverFirst, r) || strings.ContainsRune(neverLast, before) || wide(before) && strings.ContainsRune(neverBehindWide, r)
		inside := !signs && (strings.ContainsRune(after, before) || wide(before) || wide(r))
		if at > begin && r != ' ' && (before == ' ' || inside) {
			all = append(all, line[begin:at])
			begin = at
		}
		before = r
	}
	return append(all, line[begin:])
}

// wide reports whether r takes two columns, as Chinese characters do.
func wide(r rune) bool { return r >= 0x2e80 && lipgloss.Width(string(r)) == 2 }
