package view

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// A Flow wraps text that arrives piece by piece, as Prose does: the continuation of a
// list item is indented below the item's words. It holds back only the last word, which
// may continue. Code between ``` keeps its lines.
type Flow struct {
	Out func(text string)
	// Width returns the present number of columns. nil or 0: unlimited; then nothing is
	// held back.
	Width func() int

	pending        string // the last word, which may continue
	column, blanks int    // columns written of this line, and blanks before the next word
	indent         int    // columns before the words of an item
	wordWritten    bool   // a word of this line is written
	fence          bool   // this line begins or ends code
	inCode         bool   // the line is within code
}

// Add takes the next piece, which may end anywhere.
func (f *Flow) Add(text string) {
	width := 0
	if f.Width != nil {
		width = f.Width()
	}
	text, f.pending = f.pending+text, ""
	if width == 0 {
		f.Out(text)
		return
	}
	var b strings.Builder
	for {
		line, rest, ended := strings.Cut(text, "\n")
		words := pieces(line, "")
		if !ended {
			f.pending = words[len(words)-1]
			words = words[:len(words)-1]
		}
		for _, w := range words {
			f.put(&b, w, width)
		}
		if !ended {
			break
		}
		b.WriteByte('\n')
		*f = Flow{Out: f.Out, Width: f.Width, inCode: f.inCode != f.fence}
		text = rest
	}
	if b.Len() > 0 {
		f.Out(b.String())
	}
}

// put writes a word with the blanks before it, on this line or the next.
func (f *Flow) put(b *strings.Builder, piece string, width int) {
	word := strings.TrimRight(piece, " ")
	blanks := len(piece) - len(word)
	item := !f.wordWritten && !f.inCode && (word == "" || blanks > 0 && isBullet(word))
	if !f.wordWritten && strings.HasPrefix(word, "```") {
		f.fence = true
	}
	code := f.inCode || f.fence
	if f.wordWritten && !code && f.column > f.indent && f.column+f.blanks+lipgloss.Width(word) > width {
		b.WriteString("\n" + strings.Repeat(" ", f.indent))
		f.column, f.blanks = f.indent, 0
	}
	b.WriteString(strings.Repeat(" ", f.blanks) + word)
	f.column += f.blanks + lipgloss.Width(word)
	f.blanks, f.wordWritten = blanks, f.wordWritten || !item
	if item && width-f.column-f.blanks >= narrowest {
		f.indent = f.column + f.blanks
	}
}

// isBullet reports whether a word at the beginning of a line starts a list item.
func isBullet(word string) bool {
	switch word {
	case "-", "*", "•":
		return true
	}
	n, ok := strings.CutSuffix(word, ".")
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}
