package answer

import (
	"strings"
	"testing"

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
	require.Equal(t, "short", bounded("short"))
	whole := strings.Repeat(line, (1<<20)/100) + strings.Repeat("x", (1<<20)%100)
	require.Equal(t, whole, bounded(whole), "as much as fits stays whole")
	require.Equal(t, strings.Repeat(line, (1<<20)/100)+"…\n", bounded(whole+"x"))
}
