package view_test

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/view"
)

// TestTextThatComesBitByBitHasWholeWords lists the text that is shown after each piece.
func TestTextThatComesBitByBitHasWholeWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width int
		come  []string
		shown []string
	}{
		"a word that goes on":             {21, []string{"the ran", "ks wait ", "for", " it\n"}, []string{"the", "the ranks", "the ranks wait", "the ranks wait for it\n"}},
		"a word that no longer fits":      {16, []string{"the ranks wait f", "or it\n"}, []string{"the ranks wait", "the ranks wait\nfor it\n"}},
		"a word that just fits":           {17, []string{"the ranks wait f", "or ", "it\n"}, []string{"the ranks wait", "the ranks wait", "the ranks wait\nfor it\n"}},
		"blanks at the end of a line":     {9, []string{"the ranks  ", "\n", "x\n"}, []string{"the", "the ranks\n", "the ranks\nx\n"}},
		"an empty line":                   {9, []string{"a\n\nb", "\n"}, []string{"a\n\n", "a\n\nb\n"}},
		"a path stays whole":              {12, []string{"see /lustre/logs/gpt-4711.out for it\n"}, []string{"see\n/lustre/logs/gpt-4711.out\nfor it\n"}},
		"a percent sign stays":            {12, []string{"memory at 85 ", "% now\n"}, []string{"memory at", "memory at\n85 % now\n"}},
		"an item of a list":               {14, []string{"- the ranks", " wait for it\n", "x\n"}, []string{"- the", "- the ranks\n  wait for it\n", "- the ranks\n  wait for it\nx\n"}},
		"an item that is counted":         {16, []string{"  12. the ranks wait\n"}, []string{"  12. the ranks\n      wait\n"}},
		"a number is no item":             {10, []string{"12 ranks wait\n"}, []string{"12 ranks\nwait\n"}},
		"too narrow for what stands in":   {11, []string{"  - the ranks wait\n"}, []string{"  - the\nranks wait\n"}},
		"code keeps its lines":            {12, []string{"``", "`\nsrun --nodes=2 --mpi=pmix a.py\n  x\n", "```\nthe ranks wait\n"}, []string{"", "```\nsrun --nodes=2 --mpi=pmix a.py\n  x\n", "```\nsrun --nodes=2 --mpi=pmix a.py\n  x\n```\nthe ranks\nwait\n"}},
		"Chinese breaks anywhere":         {10, []string{"每个进程", "都在等待\n"}, []string{"每个进", "每个进程都\n在等待\n"}},
		"no sign of Chinese begins one":   {10, []string{"每个进程都", "，在等待。", "\n"}, []string{"每个进程", "每个进程\n都，在等", "每个进程\n都，在等\n待。\n"}},
		"nor ends one that opens":         {10, []string{"每个进程（见文档）\n"}, []string{"每个进程\n（见文档）\n"}},
		"a flag amid Chinese":             {12, []string{"每个进程用--tp 8\n"}, []string{"每个进程用\n--tp 8\n"}},
		"its signs as ASCII writes them":  {10, []string{"每个进程都: 在等待.\n"}, []string{"每个进程\n都: 在等\n待.\n"}},
		"no terminal holds nothing back":  {0, []string{"the ran", "ks  ", "\nwait"}, []string{"the ran", "the ranks  ", "the ranks  \nwait"}},
		"a letter of two columns at once": {10, []string{"a中\n"}, []string{"a中\n"}},
	} {
		var out strings.Builder
		f := view.Flow{Out: func(s string) { out.WriteString(s) }, Width: func() int { return c.width }}
		for i, piece := range c.come {
			f.Add(piece)
			assert.Equal(t, c.shown[i], out.String(), "%s: after %q", name, piece)
		}
	}
}

// TestPiecesDoNotChangeTheLines cuts a text at every position, at every width.
func TestPiecesDoNotChangeTheLines(t *testing.T) {
	t.Parallel()
	const text = "Set it before the job starts: 85 % of it [1].\n\n- 在容器中需要按名称传入，因为运行时只保留被明确指定的变量；\n- the ranks (all) wait。\n"
	for width := 12; width < 90; width++ {
		lines := func(come ...string) string {
			var out strings.Builder
			f := view.Flow{Out: func(s string) { out.WriteString(s) }, Width: func() int { return width }}
			for _, piece := range come {
				f.Add(piece)
			}
			return out.String()
		}
		whole := lines(text)
		for line := range strings.SplitSeq(whole, "\n") {
			require.LessOrEqual(t, lipgloss.Width(line), width, "%q", line)
			require.NotRegexp(t, `^ *[，；。]`, line)
		}
		for at := range text {
			require.Equal(t, whole, lines(text[:at], text[at:]), "%d columns, cut at %d", width, at)
		}
	}
	var none view.Flow
	none.Out = func(s string) { require.Equal(t, "as it is", s) }
	none.Add("as it is")
}
