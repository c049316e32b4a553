package view

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// A Flow is text that comes bit by bit, in lines as Prose has them: what follows an item
// of a list stands below its words. No more than the word that may go on is held back.
// Code between ``` keeps its lines.
type Flow struct {
	Out func(text string)
	// Width is how many columns there are now; nil or 0: any number, and nothing is held.
	Width func() int

	held    string // the last word, which may go on
	at, gap int    // columns that are written of this line, and blanks that wait for a word
	in      int    // columns before the words of an item
	begun   bool   // a word of this line is written
	fence   bool   // this line begins or ends code
	inCode  bool   // it stands within code
}

// Add takes the next piece, which may end anywhere.
func (f *Flow) Add(text string) {
	width := 0
	if f.Width != nil {
		width = f.Width()
	}
	text, f.held = f.held+text, ""
	if width == 0 {
		f.Out(text)
		return
	}
	var b strings.Builder
	for {
		line, rest, ended := strings.Cut(text, "\n")
		words := pieces(strings.ReplaceAll(line, " %", "\u00a0%"), "")
		if !ended {
			f.held = strings.ReplaceAll(words[len(words)-1], "\u00a0%", " %")
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
		f.Out(strings.ReplaceAll(b.String(), "\u00a0%", " %"))
	}
}

// put writes a word with the blanks before it, in this line or the next.
func (f *Flow) put(b *strings.Builder, piece string, width int) {
	word := strings.TrimRight(piece, " ")
	blanks := len(piece) - len(word)
	item := !f.begun && !f.inCode && (word == "" || blanks > 0 && isBullet(word))
	if !f.begun && strings.HasPrefix(word, "```") {
		f.fence = true
	}
	code := f.inCode || f.fence
	if f.begun && !code && f.at > f.in && f.at+f.gap+lipgloss.Width(word) > width {
		b.WriteString("\n" + strings.Repeat(" ", f.in))
		f.at, f.gap = f.in, 0
	}
	b.WriteString(strings.Repeat(" ", f.gap) + word)
	f.at += f.gap + lipgloss.Width(word)
	f.gap, f.begun = blanks, f.begun || !item
	if item && width-f.at-f.gap >= narrowest {
		f.in = f.at + f.gap
	}
}

// isBullet reports whether a word at the beginning of a line begins an item of a list.
func isBullet(word string) bool {
	switch word {
	case "-", "*", "•":
		return true
	}
	n, ok := strings.CutSuffix(word, ".")
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}
