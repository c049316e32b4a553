// Package shellword quotes a value as one word of a shell, whatever bytes it contains.
// Every script, command line and remote command of the program is quoted here and
// nowhere else.
package shellword

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// POSIX returns value as one word for any shell: bare if it has no special meaning, in
// single quotes otherwise. The value must not contain NUL, which no argument can carry.
func POSIX(value string) string {
	if bare(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// Line returns words as one line that any shell splits into these words again.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = POSIX(w)
	}
	return strings.Join(quoted, " ")
}

// Bash returns value as one word for bash, to be read by a person. It is like POSIX,
// but writes bytes that a terminal would hide as escapes in bash's $'…', byte by byte,
// so that they are visible and do not depend on a locale.
func Bash(value string) string {
	if !strings.ContainsFunc(value, Invisible) && utf8.ValidString(value) {
		return POSIX(value)
	}
	var b strings.Builder
	b.WriteString("$'")
	for len(value) > 0 {
		r, size := utf8.DecodeRuneInString(value)
		switch {
		case r == '\\' || r == '\'':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == utf8.RuneError && size <= 1, Invisible(r):
			for i := range size {
				fmt.Fprintf(&b, `\x%02x`, value[i])
			}
		default:
			b.WriteString(value[:size])
		}
		value = value[size:]
	}
	b.WriteByte('\'')
	return b.String()
}

// Plain are the characters without special meaning to a shell or a reader anywhere in a
// word (= only after the first position).
const Plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:./_-"

// reserved are bash's reserved words, which readers and linters take for syntax.
var reserved = strings.Fields("if then else elif fi for while until do done case esac in select function time coproc")

// bare reports whether value needs no quotes.
func bare(value string) bool {
	return value != "" && strings.Trim(value, Plain) == "" && value[0] != '=' && !slices.Contains(reserved, value)
}

// Invisible reports whether r does not show as itself: control and format characters,
// such as those that change the direction of text, and blanks other than the plain
// space.
func Invisible(r rune) bool {
	return r != ' ' && !unicode.IsPrint(r)
}
