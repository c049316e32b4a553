package docs

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
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

const begin, end = "<!-- session:begin -->\n", "<!-- session:end -->"

func TestTheReadmesSessionIsReal(t *testing.T) {
	want, err := Session("testdata")
	require.NoError(t, err)
	file := filepath.Join("..", "..", "README.md")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(b), begin)
	require.True(t, ok, "README.md has no %q", begin)
	got, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "README.md has no %q", end)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644))
		return
	}
	require.True(t, got == want, "the session in README.md has drifted: run `make generate`")
}
