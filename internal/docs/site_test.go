package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The site is built from docs/: its side bar links to every page, and a broken link
// fails the build.
func TestTheSiteIsWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("the site is made by a program from npm")
	}
	site := filepath.Join("..", "..", "tools", "site")
	config, err := os.ReadFile(filepath.Join(site, ".vitepress", "config.mts"))
	require.NoError(t, err)
	listed := map[string]bool{"index": true}
	for _, m := range regexp.MustCompile(`page\('[^']+', '/([a-z/-]+)'\)`).FindAllStringSubmatch(string(config), -1) {
		listed[m[1]] = true
		require.FileExists(t, filepath.Join("..", "..", "docs", m[1]+".md"))
	}
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	for _, p := range pages {
		require.True(t, listed[strings.TrimSuffix(filepath.Base(p), ".md")], "the site's side bar has no %s", filepath.Base(p))
	}
	out := t.TempDir()
	build := exec.Command("npx", "--no-install", "vitepress", "build", ".", "--outDir", out)
	build.Dir = site
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	for page := range listed {
		require.FileExists(t, filepath.Join(out, page+".html"))
	}
}
