package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
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

// Each attack that docs/security.md promises to withstand names a test that exists.
func TestThePromisedTestsExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`([a-z/-]+)` ((?:Test[A-Za-z0-9]+(?:, )?)+)").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(named), 30)
	for _, m := range named {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(m[1]), "*_test.go"))
		require.NoError(t, err)
		var all strings.Builder
		for _, f := range files {
			b, err := os.ReadFile(f)
			require.NoError(t, err)
			all.Write(b)
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(m[2], ", "), ", ") {
			require.Contains(t, all.String(), "func "+name+"(", "docs/security.md names a test that %s has not", m[1])
		}
	}
}
