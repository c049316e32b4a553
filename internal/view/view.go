// Package view is the neutral form of an answer: what an operation's output
// says, before a surface draws it as terminal text, Slack blocks or Markdown.
package view

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Tone colours a document: how good the news is.
type Tone string

// The tones.
const (
	Plain Tone = ""
	Good  Tone = "good"
	Warn  Tone = "warn"
	Bad   Tone = "bad"
)

// A Doc is one answer. Every string in it is data: a surface escapes it.
type Doc struct {
	Title    string
	Tone     Tone
	Sections []Section
	// Next are commands worth running next, as shell words after the program's name.
	Next []string
}

// A Section is one part of a Doc; only the fields that are set are drawn, in
// this order.
type Section struct {
	Heading string
	Text    string   // prose; blank lines separate paragraphs
	Facts   []Fact   // short name and value pairs
	Table   *Table   // rows of equal length
	Items   []string // a list
	Code    string   // verbatim: a script, log lines
	Lang    string   // of Code: bash, log, yaml; empty for plain
	Fold    bool     // detail that a chat folds away or uploads
}

// A Fact is a name and its value.
type Fact struct{ Name, Value string }

// A Table has a header and rows of the same length.
type Table struct {
	Header []string
	Rows   [][]string
	// Spare are columns that a narrow terminal goes without, in this order, before
	// any cell is broken into lines.
	Spare []int
}

// Columns are the words of a table's header in a language: "job|state", "作业|状态".
func Columns(l lang.Lang, en, zh string) []string {
	return strings.Split(lang.Text{EN: en, ZH: zh}.In(l), "|")
}

// A Viewer is an output that can say itself.
type Viewer interface {
	View(l lang.Lang) Doc
}
