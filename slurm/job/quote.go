package job

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quote writes one value as one word of bash, whatever bytes it holds. Every
// value in a rendered script passes through here; nothing is quoted anywhere
// else. Bytes that a terminal would hide are written as escapes of bash's
// $'…', byte by byte, so that they show and do not depend on a locale. A value
// must not hold NUL, which no argument can carry.
func quote(value string) string {
	if value != "" && strings.Trim(value, plainWord) == "" && value[0] != '=' && !slices.Contains(reserved, value) {
		return value
	}
	hidden := strings.ContainsFunc(value, invisible) || !utf8.ValidString(value)
	if !hidden {
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
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
		case r == utf8.RuneError && size <= 1, invisible(r):
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

// plainWord are the characters that mean nothing to bash, and raise no
// reader's eyebrow, wherever they stand in a word (= but at its start).
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:./_-"

// reserved are bash's own words; a reader, and a linter, takes them for syntax.
var reserved = strings.Fields("if then else elif fi for while until do done case esac in select function time coproc")

// invisible reports whether r would not show as itself: control and format
// characters, such as those that turn the direction of text, and blanks that
// are not a plain space.
func invisible(r rune) bool {
	return r != ' ' && !unicode.IsPrint(r)
}

// directive writes one #SBATCH line. The value is quoted only where it must
// be, with the double quotes and backslashes that sbatch reads alike in every
// version; a grammar has already refused what no quoting saves.
func directive(option, value string) string {
	if strings.Trim(value, plainWord+",[]&|*()?!^") != "" || value == "" {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	return "#SBATCH --" + option + "=" + value
}
