package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Unfold is the shell's Style.Folded: -v shows folded items.
var Unfold = lang.Text{EN: "%s: %d (-v shows them)", ZH: "%s：%d 条（用 -v 显示）"}

// Style says how Text renders. The zero Style is for a pipe: no colour.
type Style struct {
	Color bool
	// Program is the name before a suggested command, such as "megatron-ops" or
	// "/megatron".
	Program string
	// Next is the word before those commands, in the reader's language.
	Next string
	// Folded is the format for a folded section, with its heading and its number of
	// items; "" shows the items.
	Folded string
	// Width is the number of columns; 0, as in a pipe: unlimited. Prose is wrapped,
	// also in the cells of a table; code is not.
	Width int
}

var (
	bold   = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	colour = map[Tone]lipgloss.Style{
		Plain: bold,
		Good:  bold.Foreground(lipgloss.Green),
		Warn:  bold.Foreground(lipgloss.Yellow),
		Bad:   bold.Foreground(lipgloss.Red),
	}
)

// Text renders d for a terminal or a pipe. Control characters in d's strings become
// visible and have no effect.
func Text(w io.Writer, d Doc, s Style) error {
	t := textWriter{s: s}
	if d.Title != "" {
		title := Plainly(d.Title)
		if t.s.Width > narrowest {
			title = strings.ReplaceAll(wrap(title, t.s.Width-2), "\n", "\n  ")
		}
		for l := range strings.SplitSeq(title, "\n") {
			t.line(t.paint(colour[d.Tone], l))
		}
	}
	for _, sec := range d.Sections {
		t.section(sec)
	}
	if len(d.Next) > 0 {
		t.blank()
		lead := strings.TrimSpace(s.Next)
		if !strings.HasSuffix(lead, "：") { // a full-width mark includes its own space
			lead += " "
		}
		for _, n := range d.Next {
			t.line(t.paint(faint, lead+s.Program+" ") + Plainly(n))
		}
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

type textWriter struct {
	b strings.Builder
	s Style
}

func (t *textWriter) paint(st lipgloss.Style, text string) string {
	if !t.s.Color {
		return text
	}
	return st.Render(text)
}

func (t *textWriter) line(s string) { t.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// wrapped writes a line after lead. Continuation lines are indented to lead's width.
func (t *textWriter) wrapped(lead, s string) {
	indent := lipgloss.Width(lead)
	if room := t.s.Width - indent; t.s.Width > 0 && room >= narrowest {
		s = wrap(s, room)
	}
	for l := range strings.SplitSeq(s, "\n") {
		t.line(lead + l)
		lead = strings.Repeat(" ", indent)
	}
}

// Behind returns s after lead, wrapped to at most width columns, with continuation
// lines indented to lead's width. Width 0: one line.
func Behind(lead, s string, width int) string {
	t := textWriter{s: Style{Width: width}}
	t.wrapped(lead, Plainly(s))
	return t.b.String()
}

func (t *textWriter) blank() {
	if t.b.Len() > 0 && !strings.HasSuffix(t.b.String(), "\n\n") {
		t.b.WriteByte('\n')
	}
}

func (t *textWriter) section(s Section) {
	if s.Fold && len(s.Items) > 0 && t.s.Folded != "" {
		t.blank()
		said := Plainly(fmt.Sprintf(t.s.Folded, s.Heading, len(s.Items)))
		if t.s.Width > narrowest {
			said = wrap(said, t.s.Width)
		}
		for l := range strings.SplitSeq(said, "\n") {
			t.line(t.paint(faint, l))
		}
		return
	}
	if s.Heading != "" {
		t.blank()
		t.line(t.paint(bold, Plainly(s.Heading)))
	}
	if s.Text != "" {
		for l := range strings.SplitSeq(s.Text, "\n") {
			t.wrapped("", Plainly(l))
		}
	}
	t.facts(s.Facts)
	if s.Table != nil {
		t.table(*s.Table)
	}
	for _, item := range s.Items {
		lines := strings.Split(item, "\n")
		t.wrapped("  - ", Plainly(lines[0]))
		for _, l := range lines[1:] {
			inner := strings.TrimLeft(l, " ") // the indentation also applies to continuation lines
			t.wrapped("    "+l[:len(l)-len(inner)], Plainly(inner))
		}
	}
	if s.Narrow != "" && t.s.Width > 0 && lipgloss.Width(s.Code)+2 > t.s.Width {
		s.Code = s.Narrow
	}
	if s.Code != "" {
		for l := range strings.SplitSeq(strings.TrimSuffix(s.Code, "\n"), "\n") {
			t.b.WriteString("  " + Plainly(l) + "\n")
		}
	}
}

// facts writes each value behind its name, or below it where the longest name would take
// two thirds of the terminal.
func (t *textWriter) facts(fs Facts) {
	width := 0
	for _, f := range fs {
		width = max(width, lipgloss.Width(Plainly(f.Name)))
	}
	below := t.s.Width > 0 && 3*(width+4) > 2*t.s.Width
	for _, f := range fs {
		lead := "  " + t.paint(faint, pad(Plainly(f.Name), width)) + "  "
		if below {
			t.line("  " + t.paint(faint, Plainly(f.Name)))
			lead = "    "
		}
		for l := range strings.SplitSeq(f.Value, "\n") {
			t.wrapped(lead, Plainly(l))
			lead = strings.Repeat(" ", lipgloss.Width(lead))
		}
	}
}

func (t *textWriter) table(tab Table) {
	rows := append([][]string{tab.Header}, tab.Rows...)
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], lipgloss.Width(Plainly(c)))
		}
	}
	if !t.fitColumns(width, tab) {
		t.records(tab)
		return
	}
	for n, r := range rows {
		cells, height := make([][]string, len(r)), 0
		for i, c := range r {
			if i == 0 && n > 0 && breaksWord(Plainly(c), width[i]) { // a name stays whole, on a line above its row
				t.line("  " + Plainly(c))
				if c = ""; strings.Join(r[1:], "") == "" {
					break
				}
			}
			if width[i] >= 0 {
				cells[i] = strings.Split(wrap(Plainly(c), width[i]), "\n")
				height = max(height, len(cells[i]))
			}
		}
		for y := range height {
			var b strings.Builder
			for i, c := range cells {
				if width[i] < 0 {
					continue
				}
				text := ""
				if y < len(c) {
					text = c[y]
				}
				b.WriteString("  " + pad(text, width[i]))
			}
			line := strings.TrimRight(b.String(), " ")
			if n == 0 {
				line = t.paint(faint, line)
			}
			t.line(line)
		}
	}
}

func emptyColumns(rows [][]string, columns int) (all []int) {
	for i := range columns {
		if len(rows) > 0 && !slices.ContainsFunc(rows, func(r []string) bool { return i < len(r) && r[i] != "" }) {
			all = append(all, i)
		}
	}
	return all
}

func longestWords(columns int, rows ...[]string) []int {
	longest := make([]int, columns)
	for _, r := range rows {
		for i, c := range r {
			for word := range strings.FieldsSeq(Plainly(c)) {
				longest[i] = max(longest[i], lipgloss.Width(word))
			}
		}
	}
	return longest
}

// fitColumns fits the columns into the terminal. It leaves out the empty and the spare
// ones (their width becomes -1), and then narrows the widest until a row fits. It
// breaks no word of a heading as long as another column can be narrowed, and breaks a
// cell's word only in columns as narrow as narrowest. The first column is different:
// its names get a line of their own. It reports whether a row fits.
func (t *textWriter) fitColumns(width []int, tab Table) bool {
	total := 0
	for _, w := range width {
		total += w + 2
	}
	heads, cells := longestWords(len(width), tab.Header), longestWords(len(width), append([][]string{tab.Header}, tab.Rows...)...)
	least := func(i int) int {
		if i == 0 {
			return max(narrowest, heads[i])
		}
		return max(min(narrowest, cells[i]), heads[i])
	}
	for _, i := range slices.Concat(emptyColumns(tab.Rows, len(width)), tab.Spare) {
		if t.s.Width > 0 && total > t.s.Width && i < len(width) && width[i] >= 0 {
			total -= width[i] + 2
			width[i] = -1
		}
	}
	for t.s.Width > 0 && total > t.s.Width {
		widest := -1
		for i, w := range width {
			if w > least(i) && (widest < 0 || w > width[widest]) {
				widest = i
			}
		}
		switch {
		case widest >= 0:
			width[widest]--
			total--
		case slices.Max(heads) > narrowest:
			clear(heads)
		default:
			return false
		}
	}
	return true
}

// records writes each row of a table that is too wide as a list of its cells with their
// headings; the first column, which holds names, needs none.
func (t *textWriter) records(tab Table) {
	for _, r := range tab.Rows {
		lead := "  - "
		for i, c := range r {
			if c == "" {
				continue
			}
			if i > 0 {
				c = tab.Header[i] + "  " + c
			}
			t.wrapped(lead, Plainly(c))
			lead = "    "
		}
	}
}

// pad appends blanks to s up to width columns; a Chinese character takes two.
func pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-lipgloss.Width(s))) }

// Bars draws values as a row of bars, the smallest as the lowest one.
func Bars(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	low, high := slices.Min(values), slices.Max(values)
	var row strings.Builder
	for _, v := range values {
		at := 0
		if high > low {
			at = int((v - low) / (high - low) * float64(len(bars)-1))
		}
		row.WriteRune(bars[at])
	}
	return row.String()
}

// Plainly replaces control and direction characters of s by a visible sign, so that
// text from outside cannot affect a terminal. Tabs become blanks.
func Plainly(s string) string {
	if !strings.ContainsFunc(s, hostile) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t':
			b.WriteString("    ")
		case hostile(r):
			b.WriteString("\uFFFD")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hostile reports whether r controls a terminal or reorders text instead of showing
// something: control characters, bidirectional and zero-width marks.
func hostile(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x2028, r == 0x2029, r == 0xfeff:
		return true
	}
	return false
}
