package pages_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/pages"
)

var update = flag.Bool("update", false, "write the pages")

const root = "../../skills"

// The skills must say what the rules, the flag table and the cards say.
func TestSkillsSayWhatTheRulesSay(t *testing.T) {
	files, err := pages.Write(os.DirFS(root))
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
}
