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
	require.Equal(t, "short", bounded("short", false))
	whole := strings.Repeat(line, (1<<20)/100) + strings.Repeat("x", (1<<20)%100)
	require.Equal(t, whole, bounded(whole, false), "as much as fits stays whole")
	require.Equal(t, strings.Repeat(line, (1<<20)/100)+"…\n", bounded(whole+"x", false))
}

// A file of one very long line keeps its beginning, of a log its end: whole lines where
// there are some.
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
