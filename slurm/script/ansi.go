package script

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// controls are the letters that stand for one character behind a backslash in
// $'…' (bash(1), QUOTING).
var controls = map[byte]byte{
	'a': '\a', 'b': '\b', 'e': 0x1b, 'E': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// unescape undoes the escapes of $'…', as bash does; one that bash does not know
// stays as it is.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		c := text[i]
		if r, ok := controls[c]; ok {
			b.WriteByte(r)
			continue
		}
		digits, base := 0, 16
		from := i + 1
		switch {
		case c == 'x':
			digits = 2
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case c >= '0' && c <= '7':
			digits, base, from = 3, 8, i
		case c == 'c' && i+1 < len(text):
			i++
			b.WriteByte(text[i] & 0x1f)
			continue
		}
		end := from
		for end < len(text) && end < from+digits && digit(text[end], base) {
			end++
		}
		n, err := strconv.ParseUint(text[from:end], base, 32)
		switch {
		case digits == 0 || err != nil:
			b.WriteByte('\\')
			b.WriteByte(c)
			continue
		case c == 'u' || c == 'U':
			b.Write(utf8.AppendRune(nil, rune(n))) //nolint:gosec // what is no character becomes the replacement
		default:
			b.WriteByte(byte(n)) //nolint:gosec // bash keeps eight bits
		}
		i = end - 1
	}
	return b.String()
}

func digit(c byte, base int) bool {
	return c >= '0' && c <= '7' || base == 16 && (c == '8' || c == '9' || c|0x20 >= 'a' && c|0x20 <= 'f')
}
