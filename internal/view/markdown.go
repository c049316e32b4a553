package view

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// Markdown renders d as compact Markdown, for agents and other readers of text. Data
// stays data: no value can open a code fence, a table cell, a link or a heading of its
// own.
func Markdown(d Doc) string {
	var b strings.Builder
	b.Grow(2048) // most answers are one or two pages
	if d.Title != "" {
		b.WriteString("# " + inline(d.Title) + "\n")
	}
	for _, s := range d.Sections {
		markdownSection(&b, s)
	}
	if len(d.Next) > 0 {
		b.WriteString("\nNext:\n")
		for _, n := range d.Next {
			b.WriteString("- " + codeSpan(n) + "\n")
		}
	}
	return strings.Trim(b.String(), "\n") + "\n"
}

func markdownSection(b *strings.Builder, s Section) {
	if s.Heading != "" {
		b.WriteString("\n## " + inline(s.Heading) + "\n")
	}
	if s.Text != "" {
		for p := range strings.SplitSeq(s.Text, "\n") {
			b.WriteString(inline(p) + "\n")
		}
	}
	for _, f := range s.Facts {
		value, detail, more := strings.Cut(f.Value, "\n")
		b.WriteString("- " + inline(f.Name) + ": " + inline(value))
		if more {
			b.WriteString(" (" + inline(detail) + ")")
		}
		b.WriteString("\n")
	}
	if t := s.Table; t != nil && len(t.Header) > 0 {
		markdownRow(b, t.Header)
		b.WriteString("|" + strings.Repeat("-|", len(t.Header)) + "\n")
		for _, r := range t.Rows {
			markdownRow(b, r)
		}
	}
	for _, i := range s.Items {
		lead := "- "
		for line := range strings.SplitSeq(i, "\n") {
			if line = inline(line); line != "" {
				b.WriteString(lead + line + "\n")
				lead = "  "
			}
		}
	}
	if s.Code != "" {
		fence := strings.Repeat("`", max(3, longestRun(s.Code, '`')+1))
		b.WriteString(fence + s.Lang + "\n" + strings.TrimRight(printable(s.Code, true), "\n") + "\n" + fence + "\n")
	}
}

func markdownRow(b *strings.Builder, cells []string) {
	b.WriteString("|")
	for _, c := range cells {
		b.WriteString(strings.ReplaceAll(inline(c), "|", `\|`) + "|")
	}
	b.WriteString("\n")
}

// inline turns a value into one line of plain words: it removes control characters and
// line breaks, and escapes whatever would start a heading, a fence, a link or HTML.
func inline(s string) string {
	s = strings.TrimRight(printable(s, false), " ")
	s = strings.ReplaceAll(s, "](", "] (")
	s = strings.ReplaceAll(s, "```", "'''")
	if t := strings.TrimLeft(s, " "); t != "" && (t[0] == '#' || t[0] == '>') {
		s = `\` + t
	}
	return s
}

func codeSpan(s string) string {
	s = printable(s, false)
	tick := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.Contains(s, "`") {
		return tick + " " + s + " " + tick
	}
	return tick + s + tick
}

// printable removes what a reader cannot see: escape sequences, control characters, and
// the invisible or direction-changing ones with which text hides instructions. Line
// breaks stay if lines is set; otherwise they become spaces.
func printable(s string, lines bool) string {
	s = redact.Clean(s)
	if lines {
		return s
	}
	return oneLine.Replace(s)
}

var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

func longestRun(s string, c byte) int {
	best, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		best = max(best, run)
	}
	return best
}
