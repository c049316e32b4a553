package pattern

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// TestGoldenRows pins the class of one line for each row. A row that was changed, or that another row
// hides, shows as one changed line.
func TestGoldenRows(t *testing.T) {
	file := filepath.Join("testdata", "rows.golden")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	table := LoadTable()
	shown := map[*Compiled]bool{}
	var got strings.Builder
	for _, row := range strings.SplitAfter(string(b), "\n") {
		words := strings.SplitN(strings.TrimSuffix(row, "\n"), " ", 3)
		if strings.HasPrefix(row, "#") || len(words) < 3 {
			got.WriteString(row)
			continue
		}
		best := table.Match(words[2])
		require.NotNil(t, best, "no row reads %q", words[2])
		shown[best] = true
		fmt.Fprintf(&got, "%d %s %s\n", best.Weight, best.Class, words[2])
	}
	for i := range table.rows {
		c := &table.rows[i]
		require.True(t, shown[c], "a row without a line of its own: %s %d %v", c.Class, c.Weight, c.on)
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644))
		return
	}
	require.Equal(t, string(b), got.String())
}
