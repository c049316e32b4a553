// Package view is the neutral form of an answer: what an operation's output says,
// before a surface renders it as terminal text, Slack blocks or Markdown.
package view

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Tone says how good a document's news is; surfaces show it as a colour.
type Tone string

// The tones.
const (
	Plain Tone = ""
	Good  Tone = "good"
	Warn  Tone = "warn"
	Bad   Tone = "bad"
)

// A Doc is one answer. Every string in it is data: a surface must escape it.
type Doc struct {
	Title    string
	Tone     Tone
	Sections []Section
	// Next are commands worth running next, as shell words after the program's name.
	Next []string
}

// WithoutCharts returns d without the sections whose code is a chart drawn in Braille
// dots, for readers that get the numbers in another form.
func (d Doc) WithoutCharts() Doc {
	d.Sections = slices.DeleteFunc(slices.Clone(d.Sections), func(s Section) bool {
		return strings.ContainsFunc(s.Code, func(r rune) bool { return r >= 0x2800 && r <= 0x28ff })
	})
	return d
}

// A Section is one part of a Doc. Only the fields that are set are shown, in this
// order.
type Section struct {
	Heading string
	Text    string   // prose; blank lines separate paragraphs
	Facts   Facts    // short name and value pairs
	Table   *Table   // rows of equal length
	Items   []string // a list
	Code    string   // verbatim: a script, log lines
	Narrow  string   // in place of Code where a terminal is too narrow for it
	Lang    string   // of Code: bash, log, yaml; empty for plain text
	Fold    bool     // detail that a chat folds away or uploads
}

// Add appends the sections that have something to show: a heading alone is nothing.
func (d *Doc) Add(sections ...Section) {
	for _, s := range sections {
		if s.Text != "" || len(s.Facts) > 0 || s.Table != nil && len(s.Table.Rows) > 0 || len(s.Items) > 0 || s.Code != "" {
			d.Sections = append(d.Sections, s)
		}
	}
}

// A Fact is a name and its value.
type Fact struct{ Name, Value string }

// Facts are facts in their order.
type Facts []Fact

// Add appends a fact whose name is given in both languages, unless its value is empty.
func (fs *Facts) Add(l lang.Lang, en, zh, value string) {
	if value != "" {
		*fs = append(*fs, Fact{lang.Text{EN: en, ZH: zh}.In(l), value})
	}
}

// A Table has a header and rows of the same length.
type Table struct {
	Header []string
	Rows   [][]string
	// Spare are the columns that a narrow terminal leaves out, in this order, before
	// any cell is wrapped.
	Spare []int
}

// Columns returns the words of a table's header in a language: "job|state", "作业|状态".
func Columns(l lang.Lang, en, zh string) []string {
	return strings.Split(lang.Text{EN: en, ZH: zh}.In(l), "|")
}

// A Viewer is an output that has a View.
type Viewer interface {
	View(l lang.Lang) Doc
}
