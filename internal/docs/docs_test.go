package docs

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the pages")

func TestPagesAreWhatTheCodeSays(t *testing.T) {
	for _, p := range Pages() {
		file := filepath.Join("..", "..", "docs", p.Name)
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(p.Text()), 0o644))
			continue
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err, "make generate")
		require.True(t, p.Text() == string(got), "docs/%s has drifted from the code: run `make generate`", p.Name)
	}
}
