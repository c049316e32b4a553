package answer

import (
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// Job names, log lines and model output are strangers' text. Blocks carry it as
// plain_text or rich_text, which Slack does not parse; what is left for mrkdwn
// is the notification's text. These functions make text inert for both.

// escaper is Slack's own: these three characters, and no others, begin markup.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// mention is the form of everything that could call somebody or lead somewhere:
// <!channel>, <@U1>, <#C1|name>, <https://host|text>.
var mention = lazy.New(`<([!@#][^<>]{1,200}|(?:https?|mailto|slack):[^<>]+)>`)

// inert replaces the angle brackets of anything that reads as a mention or a
// link by other, visible ones. Nothing else is changed, so that a log line stays
// what it was.
func inert(s string) string {
	if !strings.ContainsRune(s, '<') {
		return s
	}
	return mention.ReplaceAllString(s, "‹$1›")
}

// Escape makes s safe where Slack parses mrkdwn: no markup, no mention, no
// code that ends early.
func Escape(s string) string {
	s = strings.ReplaceAll(inert(s), "```", "'''")
	return escaper.Replace(s)
}

// Clean drops what no Slack text may hold: secrets, bytes that are not UTF-8,
// terminal escapes, and the characters that turn the reading direction.
func Clean(s string) string { return Visible(redact.Text(s)) }

// Visible is clean for what a person has filled in and sends back: a masked
// value would be submitted.
func Visible(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	s = terminalEscape.ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return -1
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f:
			return '\uFFFD'
		}
		return r
	}, s)
}

// terminalEscape is a CSI or OSC sequence as terminals know them.
var terminalEscape = lazy.New(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])`)

// Cut shortens s to at most n characters and says so by an ellipsis.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// OneLine folds s into a single line.
func OneLine(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// Chunks cuts s into pieces of at most n characters, at line ends where there
// are any.
func Chunks(s string, n int) []string {
	var out []string
	for utf8.RuneCountInString(s) > n {
		r := []rune(s)[:n]
		at := n
		for i := n - 1; i > n/2; i-- {
			if r[i] == '\n' {
				at = i + 1
				break
			}
		}
		head := string(r[:at])
		out = append(out, strings.TrimSuffix(head, "\n"))
		s = s[len(head):]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}
