package web_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/web"
)

// A user navigates in headless Chromium by the labels on the page, in both languages
// and themes and at a phone's width. axe finds nothing that a screen reader or a
// keyboard could not use.
func TestInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("drives Chromium; not with -short")
	}
	modules, err := filepath.Abs("../../tools/node/node_modules")
	require.NoError(t, err)
	found, err := filepath.Glob(filepath.Join(modules, "node-linux-*", "bin", "node"))
	require.NoError(t, err)
	chromium, missing := exec.LookPath("chromium")
	if (len(found) == 0 || missing != nil) && os.Getenv("CI") != "true" {
		t.Skip("no Node under " + modules + ", or no Chromium: run `make setup`")
	}
	require.NoError(t, missing)
	require.NotEmpty(t, found, "run .ci/setup")
	p := newIdentityProvider(t)
	s := newOpenSite(t, p, newFullSite, func(c *web.Config) { c.Operators = []string{"alice"} })
	s.pipeline()
	link, err := web.Link(t.Context(), s.svc, ops.Caller{ID: "alice", User: "alice"}, "")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), found[0], "testdata/browse.mjs")
	cmd.Env = append(os.Environ(), "MODULES="+modules, "CHROMIUM="+chromium, "URL="+s.url, "LINK="+link, "PICTURES="+os.Getenv("WEB_PICTURES"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "all found")
	require.Empty(t, p.wrong)
}
