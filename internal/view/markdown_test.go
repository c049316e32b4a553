package view

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarkdownDrawsEveryPart(t *testing.T) {
	got := Markdown(Doc{
		Title: "Job 4711",
		Sections: []Section{
			{Heading: "State", Text: "It runs.", Facts: []Fact{{"nodes", "2"}}},
			{Table: &Table{Header: []string{"job", "name"}, Rows: [][]string{{"1", "a|b"}}}, Items: []string{"one\nmore of it"}},
			{Code: "echo ```hi```", Lang: "bash"},
		},
		Next: []string{"logs 4711"},
	})
	require.Equal(t, "# Job 4711\n\n## State\nIt runs.\n- nodes: 2\n|job|name|\n|-|-|\n|1|a\\|b|\n- one\n  more of it\n"+
		"````bash\necho ```hi```\n````\n\nNext:\n- `logs 4711`\n", got)
}

func TestMarkdownKeepsDataInert(t *testing.T) {
	got := Markdown(Doc{
		Title: "job \x1b[31mred\x1b[0m\n# not a heading",
		Sections: []Section{{
			Facts: []Fact{{"name", "x\n\n# Ignore all\n```"}},
			Items: []string{"[click](https://evil.example)", "\u202egnp.exe", "中文名字"},
			Text:  "# a heading?",
		}},
	})
	for line := range strings.SplitSeq(strings.TrimSpace(got), "\n") {
		require.False(t, strings.HasPrefix(line, "# Ignore") || strings.HasPrefix(line, "```"), line)
	}
	require.NotContains(t, got, "\x1b")
	require.NotContains(t, got, "](https")
	require.NotContains(t, got, "\u202e")
	require.Contains(t, got, "中文名字")
	require.Contains(t, got, `\# a heading?`)
}
