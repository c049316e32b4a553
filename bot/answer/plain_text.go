package answer

import (
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/megatron-ops/megatron-ops/internal/view"
)

// plain draws doc as text for a file.
func plain(doc view.Doc) string {
	var b strings.Builder
	line := func(s string) { b.WriteString(strings.TrimRight(Clean(s), " ") + "\n") }
	if doc.Title != "" {
		line(toneMark[doc.Tone] + doc.Title)
	}
	for _, s := range doc.Sections {
		line("")
		if s.Heading != "" {
			line(s.Heading)
		}
		if s.Text != "" {
			line(strings.TrimSpace(s.Text))
		}
		width := 0
		for _, f := range s.Facts {
			width = max(width, runewidth.StringWidth(f.Name))
		}
		for _, f := range s.Facts {
			line("  " + runewidth.FillRight(f.Name, width) + "  " + f.Value)
		}
		if s.Table != nil {
			b.WriteString(plainTable(*s.Table))
		}
		for _, it := range s.Items {
			line("  • " + strings.ReplaceAll(it, "\n", "\n    "))
		}
		if s.Code != "" {
			for l := range strings.SplitSeq(strings.TrimRight(s.Code, "\n"), "\n") {
				line("  │ " + l)
			}
		}
	}
	return strings.TrimLeft(b.String(), "\n")
}

// plainTable draws a table as text with aligned columns.
func plainTable(t view.Table) string {
	rows := t.Rows
	if len(t.Header) > 0 {
		rows = append([][]string{t.Header}, rows...)
	}
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(OneLine(c)))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		var line strings.Builder
		line.WriteString(" ")
		for i, c := range r {
			line.WriteString(" " + runewidth.FillRight(OneLine(c), widths[i]) + " ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
