// Package typed reads what people type to the bot. It undoes Slack's markup and the
// substitutions of keyboards, finds the command that a word means in either language, and fills
// the command's input.
package typed

import (
	"html"
	"strings"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Text is a parsed message.
type Text struct {
	// Words are the words of the command, with quotes and Slack's markup undone.
	Words []string
	// Blocks are code blocks of several lines, such as a YAML specification, a script or a log.
	// Words does not contain them.
	Blocks []string
	// Rest is the text after the first word as it was typed, for questions.
	Rest string
}

// Slack and the keyboards of phones and Macs change what is typed: links get angle brackets,
// quotes become curly, and two dashes become one long dash.
var (
	codeBlock  = lazy.New("(?s)```(?:[a-zA-Z]*\n)?(.*?)```")
	slackLink  = lazy.New(`<((?:https?|mailto|tel|slack):[^|>]+)(?:\|([^>]*))?>`)
	slackRef   = lazy.New(`<([@#!])([^|>]+)(?:\|([^>]*))?>`)
	lineJoin   = lazy.New(`\\[ \t]*\n`)
	longDash   = lazy.New(`(^|[\s])(?:[—―]|–(\p{L}[\p{L}\p{N}-]))`)
	softSpaces = strings.NewReplacer("\u00a0", " ", "\u3000", " ", "\u2007", " ", "\u202f", " ", "\u200b", "", "\ufeff", "", "\r\n", "\n", "\r", "\n")
	curly      = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "＂", `"`, "‘", "'", "’", "'", "‚", "'", "＇", "'", "－", "-", "＝", "=")
)

// Narrow replaces the wide digits and letters of East Asian keyboards, as in ４７１１. Wide punctuation
// stays, since a sentence may contain it.
func Narrow(s string) string {
	return strings.Map(func(r rune) rune {
		if narrow := r - '\uff01' + '!'; r > '\uff00' && r < '\uff5f' && (unicode.IsDigit(r) || unicode.IsLetter(r)) {
			return narrow
		}
		return r
	}, s)
}

// NarrowValue replaces wide punctuation too, as in 1：00：00, in a value that is no sentence.
func NarrowValue(s string) string {
	return strings.Map(func(r rune) rune {
		if r > '\uff00' && r < '\uff5f' {
			return r - '\uff01' + '!'
		}
		return r
	}, s)
}

// Read parses text from Slack. It never fails: an unclosed quote extends to the end.
func Read(text string) Text {
	var t Text
	text = softSpaces.Replace(text)
	text = codeBlock.ReplaceAllStringFunc(text, func(m string) string {
		body := Unescaped(codeBlock.FindStringSubmatch(m)[1])
		body = strings.Trim(body, "\n")
		if strings.Contains(lineJoin.ReplaceAllString(body, " "), "\n") {
			t.Blocks = append(t.Blocks, body)
			return " "
		}
		return " " + body + " "
	})
	text = lineJoin.ReplaceAllString(text, " ")
	text = strings.TrimSpace(Unescaped(text))
	text = dropTicks(text)
	if _, rest, ok := cutWord(text); ok {
		t.Rest = rest
	}
	t.Words = split(longFlags(Narrow(curly.Replace(text))))
	return t
}

// Unescaped undoes Slack's markup: <http://x|x> becomes x, and &lt; becomes <.
func Unescaped(s string) string {
	s = slackLink.ReplaceAllStringFunc(s, func(m string) string {
		sub := slackLink.FindStringSubmatch(m)
		if sub[2] != "" {
			return sub[2]
		}
		return strings.TrimPrefix(strings.TrimPrefix(sub[1], "mailto:"), "tel:")
	})
	s = slackRef.ReplaceAllStringFunc(s, func(m string) string {
		sub := slackRef.FindStringSubmatch(m)
		if sub[1] == "!" {
			return "" // broadcasts such as @here are no part of a command
		}
		return sub[1] + sub[2]
	})
	return html.UnescapeString(s)
}

// dropTicks removes the backticks around a command or its words.
func dropTicks(s string) string {
	if strings.Count(s, "`")%2 != 0 {
		return s
	}
	return strings.ReplaceAll(s, "`", "")
}

// longFlags turns a long dash before a flag's name back into two dashes. A dash inside of a
// word stays.
func longFlags(s string) string { return longDash.ReplaceAllString(s, "${1}--${2}") }

func cutWord(s string) (word, rest string, ok bool) {
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, "", s != ""
	}
	return s[:i], strings.TrimSpace(s[i:]), true
}

// split splits text into words at spaces and newlines. A quote opens only at the start of a
// word or of a flag's value, so that don't is one word.
func split(s string) []string {
	var words []string
	var w strings.Builder
	in, open := false, rune(0)
	prev := ' '
	for _, r := range s {
		switch {
		case open != 0 && r == open:
			open = 0
		case open != 0:
			w.WriteRune(r)
		case (r == '"' || r == '\'') && (!in || prev == '='):
			open, in = r, true
		case unicode.IsSpace(r):
			if in {
				words = append(words, w.String())
			}
			w.Reset()
			in = false
		default:
			w.WriteRune(r)
			in = true
		}
		prev = r
	}
	if in {
		words = append(words, w.String())
	}
	return words
}

// Words splits a command line into words. It joins continued lines and undoes the dashes and
// quotes that keyboards make.
func Words(text string) []string {
	return split(longFlags(Narrow(curly.Replace(lineJoin.ReplaceAllString(text, " ")))))
}

// Whole returns all words, for a question without a command word.
func (t Text) Whole() string { return strings.Join(t.Words, " ") }

// Line returns a command as one would type it, with quotes around words that contain spaces.
func Line(op string, words []string) string {
	line := op
	for _, w := range words {
		if w == "" || strings.ContainsFunc(w, unicode.IsSpace) {
			w = `"` + strings.ReplaceAll(w, `"`, "'") + `"`
		}
		line += " " + w
	}
	return line
}
