// Package shellword writes a value as one word of a shell's text, whatever
// bytes it holds. Every script, command line and remote command of the program
// quotes here and nowhere else.
package shellword

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// POSIX writes value as one word that any shell reads: bare where it means
// nothing but itself, in single quotes otherwise. The value must not hold NUL,
// which no argument can carry.
func POSIX(value string) string {
	if bare(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// Line writes words as one line that any shell reads back as them.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = POSIX(w)
	}
	return strings.Join(quoted, " ")
}

// Bash writes value as one word of bash, for a person to read: like POSIX, but
// bytes that a terminal would hide are escapes of bash's $'…', byte by byte, so
// that they show and do not depend on a locale.
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

// Plain are the characters that mean nothing to a shell, and raise no reader's
// eyebrow, wherever they stand in a word (= but at its start).
const Plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:./_-"

// reserved are bash's own words; a reader, and a linter, takes them for syntax.
var reserved = strings.Fields("if then else elif fi for while until do done case esac in select function time coproc")

// bare reports whether value needs no quotes.
func bare(value string) bool {
	return value != "" && strings.Trim(value, Plain) == "" && value[0] != '=' && !slices.Contains(reserved, value)
}

// Invisible reports whether r would not show as itself: control and format
// characters, such as those that turn the direction of text, and blanks that
// are not a plain space.
func Invisible(r rune) bool {
	return r != ' ' && !unicode.IsPrint(r)
}
