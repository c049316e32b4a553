package shellword_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/shellword"
)

// echo is the word as a shell prints it.
func echo(t *testing.T, shell, word string) string {
	t.Helper()
	cmd := exec.Command(shell, "-c", "printf %s. "+word)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", word, out)
	return strings.TrimSuffix(string(out), ".")
}

var values = []string{
	"", "a", "it's", `"`, `\`, `a\'b`, "$HOME", "$(id)", "`id`", "a b", "\n", "a\n", "\t\r\x01\x7f", "-n", "~", "*", "{a,b}", "!x", "#", "=x", "a=b",
	"é中", "\u202e\u00a0\u2028", "\xff\xfe", "\xc3", "if", "done", "'", "''", "$'\\n'", "\\", "a;b&c|d<e>f(g)h",
}

func TestAWordComesBackWhole(t *testing.T) {
	for _, v := range values {
		require.Equal(t, v, echo(t, "bash", shellword.Bash(v)))
		require.Equal(t, v, echo(t, "sh", shellword.POSIX(v)))
		require.Equal(t, v, echo(t, "bash", shellword.POSIX(v)))
		require.NotContains(t, shellword.Bash(v), "\n", "a value takes one line of a script")
	}
}

func TestWhatNeedsNoQuotesHasNone(t *testing.T) {
	for value, word := range map[string]string{
		"/a/b-c_d.py": "/a/b-c_d.py", "--lr=3e-4": "--lr=3e-4", "in": "'in'", "=x": "'=x'", "a b": "'a b'", "~/x": "'~/x'", "": "''", "a\tb": `$'a\tb'`,
	} {
		require.Equal(t, word, shellword.Bash(value))
	}
}

func FuzzAWordComesBackWhole(f *testing.F) {
	for _, v := range values {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		if strings.ContainsRune(v, 0) || len(v) > 10_000 {
			t.Skip("no argument can carry it")
		}
		require.Equal(t, v, echo(t, "bash", shellword.Bash(v)))
		require.Equal(t, v, echo(t, "sh", shellword.POSIX(v)))
	})
}

// A second implementation of quoting would be a second place for mistakes.
func TestNobodyElseQuotes(t *testing.T) {
	root := filepath.Join("..", "..")
	escape := "`'\\" + "''`" // as a Go string; alone it is also a rune
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join(root, "internal", "shellword") {
			return err
		}
		text, err := os.ReadFile(path)
		require.False(t, strings.Contains(string(text), escape), "%s quotes for a shell: use shellword", path)
		return err
	}))
}
