package mcp_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nodeTools is the folder of the pinned npm packages, relative to this package.
const nodeTools = "../tools/node/node_modules"

// A nodeKit is the installed packages and the Node that they need.
type nodeKit struct{ modules, node, path string }

// needsNode finds the kit, or skips the test; with CI set it fails instead.
func needsNode(t *testing.T) nodeKit {
	t.Helper()
	if testing.Short() {
		t.Skip("drives programs of Node's; not with -short")
	}
	modules, err := filepath.Abs(nodeTools)
	require.NoError(t, err)
	found, err := filepath.Glob(filepath.Join(modules, "node-linux-*", "bin", "node"))
	require.NoError(t, err)
	if len(found) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("no Node under " + modules + ": run .ci/setup")
		}
		t.Skip("no Node under " + modules + ": run `make setup`")
	}
	path := filepath.Dir(found[0]) + ":" + filepath.Join(modules, ".bin") + ":" + os.Getenv("PATH")
	return nodeKit{modules, found[0], path}
}

// run runs a program with an environment of its own and returns its standard output. If
// it fails, the error shows stderr.
func run(t *testing.T, limit time.Duration, dir string, env []string, name string, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"HOME=" + dir, "NO_COLOR=1", "CI=true", "LANG=C.UTF-8"}, env...)
	cmd.WaitDelay = 2 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if err != nil {
		t.Logf("%s %v: %v\n%s\n%s", name, args, err, tail(out.String()), tail(errs.String()))
	}
	return out.String(), err
}

func tail(s string) string {
	if len(s) > 4000 {
		return "…" + s[len(s)-4000:]
	}
	return s
}

// hello is a client's first message.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test",` +
	`"version":"1"}}}`
