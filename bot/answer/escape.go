package answer

import (
	"strings"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// Job names, log lines and model output come from strangers. Blocks carry such text as
// plain_text or rich_text, in which Slack parses no markup. Only a notification's text is
// mrkdwn. The functions of this file make text harmless for both.

// escaper escapes the three characters that Slack's documentation names; no others start
// markup.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// mention matches everything that could notify somebody or become a link: <!channel>, <@U1>,
// <#C1|name>, <https://host|text>.
var mention = lazy.New(`<([!@#][^<>]{1,200}|(?:https?|mailto|slack):[^<>]+)>`)

// inert replaces the angle brackets of anything that looks like a mention or a link by similar
// visible characters. It changes nothing else, so that a log line stays as it was.
func inert(s string) string {
	if !strings.ContainsRune(s, '<') {
		return s
	}
	return mention.ReplaceAllString(s, "‹$1›")
}

// Escape makes s safe where Slack parses mrkdwn: it leaves no markup, no mention, and nothing
// that ends a code block early.
func Escape(s string) string {
	s = strings.ReplaceAll(inert(s), "```", "'''")
	return escaper.Replace(s)
}

// Clean removes what no Slack text may contain: secrets, bytes that are not UTF-8, terminal
// escapes, and characters that change the reading direction.
func Clean(s string) string { return Visible(redact.Text(s)) }

// Visible is Clean without the masking of secrets, for values that a person filled in and sends
// back: a masked value would be submitted as it is shown.
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

// terminalEscape matches a terminal's CSI or OSC sequence.
var terminalEscape = lazy.New(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])`)

// Cut shortens s to at most n characters, the last of which is then an ellipsis.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// OneLine cleans s and joins its words by single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// Chunks splits s into pieces of at most n characters, after a newline where the second half of
// a piece has one.
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
