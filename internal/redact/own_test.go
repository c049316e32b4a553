package redact_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// Nothing that this program says about secrets is one: whoever is shown a page, a card or a
// skill reads it whole, each line by itself and all together. The history of changes is left out, because it
// quotes what is masked.
func TestOwnTextsStay(t *testing.T) {
	texts := 0
	for _, place := range []string{"README.md", "README.zh.md", "SECURITY.md", "CONTRIBUTING.md", "docs", "knowledge/cards/data", "skills", "packaging"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("../..", place), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !slices.Contains([]string{".md", ".tsv", ".yaml", ".yml", ".json", ".jsonl", ".txt", ".toml", ".service"}, filepath.Ext(name)) {
				return err
			}
			raw, err := os.ReadFile(name)
			text := string(raw)
			for i, line := range strings.Split(text, "\n") {
				if got := redact.Text(line); got != line {
					t.Errorf("%s:%d is shown as %s", name, i+1, got)
				}
			}
			require.True(t, redact.Text(text) == text, "%s as a whole", name)
			texts++
			return err
		}))
	}
	require.Greater(t, texts, 100)
}
