package answer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

func TestAFileEndsSomewhere(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 99) + "\n"
	r := Render(view.Doc{Sections: []view.Section{{Code: strings.Repeat(line, 30_000)}}}, lang.EN)
	require.Len(t, r.Files, 1)
	require.Equal(t, (1<<20)/100*100+len("…\n"), len(r.Files[0].Content), "whole lines, and a mark")
	require.True(t, strings.HasSuffix(r.Files[0].Content, "x\n…\n"))
	require.Equal(t, "short", cutFile("short", false))
	whole := strings.Repeat(line, (1<<20)/100) + strings.Repeat("x", (1<<20)%100)
	require.Equal(t, whole, cutFile(whole, false), "as much as fits stays whole")
	require.Equal(t, strings.Repeat(line, (1<<20)/100)+"…\n", cutFile(whole+"x", false))
}

// What a file holds of a text is said below the lines that are shown.
func TestWhatAFileHoldsIsSaid(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 99) + "\n"
	for _, c := range []struct {
		lang   lang.Lang
		lines  int
		kind   string
		says   string
		denies string
	}{
		{lang.EN, 1000, "log", "1000 lines; all of them are in output-1.log", "1 MiB"},
		{lang.EN, 30_000, "log", "30000 lines; output-1.log holds the newest 1 MiB of them", "all of them"},
		{lang.ZH, 30_000, "log", "共 30000 行；最新的 1 MiB 见 output-1.log", "全文"},
		{lang.EN, 30_000, "bash", "30000 lines; script-1.sh holds the first 1 MiB of them", "all of them"},
		{lang.ZH, 30_000, "bash", "30000 行；前 1 MiB 见 script-1.sh", "全文"},
	} {
		r := Render(view.Doc{Sections: []view.Section{{Code: strings.Repeat(line, c.lines), Lang: c.kind}}}, c.lang)
		var shown strings.Builder
		for _, m := range r.Messages {
			shown.Write(BlocksJSON(m))
		}
		require.Contains(t, shown.String(), c.says)
		require.NotContains(t, shown.String(), c.denies)
	}
}

// A file of one very long line keeps the line's beginning, or for a log its end; the cut is
// between lines where that is possible.
func TestALongLineIsCutWithinIt(t *testing.T) {
	t.Parallel()
	file := func(of view.Section) string {
		return Render(view.Doc{Sections: []view.Section{of}}, lang.EN).Files[0].Content
	}
	long := "first" + strings.Repeat("汉", maxContent/2) + "last"
	first := file(view.Section{Code: "#!/bin/bash\n" + long})
	require.True(t, strings.HasPrefix(first, "#!/bin/bash\nfirst汉"))
	require.True(t, strings.HasSuffix(first, "汉…\n"))
	newest := file(view.Section{Code: long + "\nthe end", Lang: "log"})
	require.True(t, strings.HasPrefix(newest, "…汉"))
	require.True(t, strings.HasSuffix(newest, "汉last\nthe end\n"))
	for _, f := range []string{first, newest} {
		require.True(t, utf8.ValidString(f))
		require.Greater(t, len(f), maxContent-10)
		require.Less(t, len(f), maxContent+10)
	}
	require.True(t, strings.HasPrefix(file(view.Section{Code: strings.Repeat("a line of a log\n", maxContent/10), Lang: "log"}), "…\na line of a log\n"))
}
