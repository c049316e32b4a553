package lang

import (
	"strings"
	"unicode"
)

var fullWidthMarks = map[rune]rune{',': '，', ';': '；', ':': '：', '!': '！', '?': '？'}

// FullWidth applies Chinese typography to the punctuation of Chinese sentences in text:
// marks and brackets that touch a Chinese character become full-width. Code between
// backticks, fenced blocks, addresses and lines without a Chinese character stay
// unchanged.
func FullWidth(text string) string {
	if Of(text) != ZH {
		return text
	}
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced && Of(line) == ZH {
			// A mark that became full-width counts as Chinese text for its neighbours.
			for before := ""; before != line; {
				before, line = line, fullWidth(line)
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

func fullWidth(line string) string {
	rs := []rune(line)
	kept := literalRunes(rs)
	widenBrackets(rs, kept)
	out := make([]rune, 0, len(rs))
	for i, r := range rs {
		w, mark := fullWidthMarks[r]
		switch {
		case r == ' ' && !kept[i] && i > 0 && i+1 < len(rs) && (isFullWidthMark(rs[i-1]) || rs[i+1] == '（'):
			continue // a full-width mark includes its own space
		case !mark || kept[i]:
			out = append(out, r)
			continue
		}
		before, after := neighbour(rs, i, -1), neighbour(rs, i, 1)
		if after == ' ' {
			after = neighbour(rs, i+1, 1)
		}
		if isChinese(before) || isChinese(after) || before == '`' && after == '`' || r == ';' {
			r = w
			rs[i] = w
		}
		out = append(out, r)
	}
	return string(out)
}

// literalRunes marks what is between backticks, and addresses.
func literalRunes(rs []rune) []bool {
	kept := make([]bool, len(rs))
	code := false
	for i, r := range rs {
		if r == '`' {
			code = !code
		} else {
			kept[i] = code
		}
	}
	const scheme = "://"
	for i := range rs {
		if string(rs[i:min(i+len(scheme), len(rs))]) != scheme {
			continue
		}
		end := i
		for end < len(rs) && !strings.ContainsRune(" \t\r\n`<>\"()（），。；、", rs[end]) {
			end++
		}
		for fullWidthMarks[rs[end-1]] != 0 { // the sentence's mark, not the address's
			end--
		}
		for j := i; j < end; j++ {
			kept[j] = true
		}
	}
	return kept
}

// widenBrackets widens each pair of brackets that contains or touches a Chinese
// character, except the target of a Markdown link.
func widenBrackets(rs []rune, kept []bool) {
	var open []int
	for i, r := range rs {
		switch {
		case kept[i]:
		case r == '(':
			open = append(open, i)
		case r == ')' && len(open) > 0:
			from := open[len(open)-1]
			open = open[:len(open)-1]
			if before := neighbour(rs, from, -1); before == ']' || i == from+1 && before < 0x80 {
				continue // a link, or the call of a function without arguments
			}
			if Of(string(rs[from:i])) == ZH || isChinese(neighbour(rs, from, -1)) || isChinese(neighbour(rs, i, 1)) {
				rs[from], rs[i] = '（', '）'
			}
		}
	}
}

// neighbour returns the character next to i, or 0.
func neighbour(rs []rune, i, step int) rune {
	if i += step; i >= 0 && i < len(rs) {
		return rs[i]
	}
	return 0
}

// isChinese reports whether r belongs to Chinese text: a character, or a punctuation
// mark.
func isChinese(r rune) bool {
	return unicode.Is(unicode.Han, r) || isFullWidthMark(r) || r == '”' || r == '」'
}

func isFullWidthMark(r rune) bool { return strings.ContainsRune("，；：！？。（）、", r) }
