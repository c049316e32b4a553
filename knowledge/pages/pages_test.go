package pages

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the pages")

const root = "../../skills"

// The skills must agree with the rules, the flag table and the cards.
func TestSkillsAgreeWithTheRules(t *testing.T) {
	files, err := Write(os.DirFS(root))
	require.NoError(t, err)
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			continue
		}
		have, err := os.ReadFile(file)
		if err != nil || string(have) != text {
			t.Errorf("%s differs from the rules and cards: run go test ./knowledge/pages -update", name)
		}
	}
	for name, text := range files {
		require.Less(t, len(text), 22<<10, "%s is too long to read at once", name)
	}
	// A page that is no longer generated must be deleted.
	kept, err := filepath.Glob(filepath.Join(root, "*", "references", "*.md"))
	require.NoError(t, err)
	for _, file := range kept {
		have, err := os.ReadFile(file)
		require.NoError(t, err)
		name, err := filepath.Rel(root, file)
		require.NoError(t, err)
		if _, written := files[filepath.ToSlash(name)]; written || !strings.HasPrefix(string(have), "<!-- Written from") {
			continue
		}
		if *update {
			require.NoError(t, os.Remove(file))
			continue
		}
		t.Errorf("%s is no longer generated: run go test ./knowledge/pages -update", name)
	}
}
