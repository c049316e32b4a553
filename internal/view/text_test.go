package view

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func draw(d Doc, s Style) string {
	var b strings.Builder
	_ = Text(&b, d, s)
	return b.String()
}

func TestTextAlignsChinese(t *testing.T) {
	got := draw(Doc{
		Title: "作业 4711",
		Sections: []Section{
			{Facts: []Fact{{"状态", "RUNNING"}, {"time", "1:00"}}},
			{Table: &Table{Header: []string{"节点", "state"}, Rows: [][]string{{"gpu1", "idle"}}}},
		},
		Next: []string{"logs 4711"},
	}, Style{Program: "megatron-ops", Next: "next:"})
	require.Equal(t, `作业 4711
  状态  RUNNING
  time  1:00
  节点  state
  gpu1  idle

next: megatron-ops logs 4711
`, got)
}

func TestTextShowsControlCharactersInsteadOfObeying(t *testing.T) {
	got := draw(Doc{Sections: []Section{{Code: "a\x1b[2Jb\u202ec"}}}, Style{})
	require.NotContains(t, got, "\x1b")
	require.NotContains(t, got, "\u202e")
	require.Contains(t, got, "b")
}

func TestTextFoldsOnlyLists(t *testing.T) {
	d := Doc{Sections: []Section{
		{Heading: "notes", Items: []string{"one", "two"}, Fold: true},
		{Heading: "script", Code: "true", Fold: true},
		{Heading: "errors", Items: []string{"three"}},
	}}
	require.Equal(t, "notes: 2, -v\n\nscript\n  true\n\nerrors\n  - three\n", draw(d, Style{Folded: "%s: %d, -v"}))
	require.Contains(t, draw(d, Style{}), "  - two\n")
}
