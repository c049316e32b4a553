package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A testCase is a script and the rules that it breaks.
type testCase struct {
	name, script string
	want         []string
}

// corpus reads testdata/*.txt: cases that begin with a line
// "=== name | rule rule".
func corpus(t testing.TB) []testCase {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	var out []testCase
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for part := range strings.SplitSeq("\n"+string(b), "\n=== ") {
			head, body, ok := strings.Cut(part, "\n")
			if !ok {
				continue
			}
			name, want, _ := strings.Cut(head, "|")
			body = strings.NewReplacer("␍", "\r", "␈", "\xef\xbb\xbf", "␠", " ").Replace(body)
			out = append(out, testCase{filepath.Base(f) + "/" + strings.TrimSpace(name), body, strings.Fields(want)})
		}
	}
	return out
}

func broken(script string) []string {
	var out []string
	for _, f := range Check("", []byte(script)) {
		if !slices.Contains(out, f.Rule) {
			out = append(out, f.Rule)
		}
	}
	slices.Sort(out)
	return out
}

func TestScriptsBreakExactlyTheirRules(t *testing.T) {
	for _, c := range corpus(t) {
		t.Run(c.name, func(t *testing.T) {
			slices.Sort(c.want)
			got := broken(c.script)
			require.Equal(t, strings.Join(c.want, " "), strings.Join(got, " "), "%s", c.script)
		})
	}
}
