package diagnose_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/stretchr/testify/require"
)

// collectors are texts that commands put before every line of a log when they fetch or show it.
var collectors = map[string]func(line int) string{
	"cat -n":                func(n int) string { return fmt.Sprintf("%6d\t", n) },
	"grep -n":               func(n int) string { return fmt.Sprintf("%d:", n) },
	"a quotation":           func(int) string { return "> " },
	"an indentation":        func(int) string { return "    " },
	"kubectl logs --prefix": func(int) string { return "[pod/llm-worker-0/pytorch] " },
	"docker compose":        func(int) string { return "trainer-1  | " },
}

// shortest is the number of lines from which a job's longest log can show a frame.
const shortest = 8

// TestWhatACollectorAddsChangesNoVerdict reads every labelled case again as a collector shows it.
func TestWhatACollectorAddsChangesNoVerdict(t *testing.T) {
	cases, reports := diagnosetest.Cases(t), diagnosetest.Reports(t)
	k := 0
	for name, before := range collectors {
		k++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i, l := range cases {
				if testing.Short() && (i+k)%len(collectors) != 0 {
					continue // each case is tested with one collector
				}
				path := filepath.Join(dir, filepath.Base(l.Path()))
				longest := 0
				copyLogs(t, l.Path(), path, func(log []byte) []byte {
					out, lines := eachBehind(log, before)
					longest = max(longest, lines)
					return out
				})
				if longest < shortest {
					continue
				}
				r, err := diagnose.Path(context.Background(), path, l.Context)
				require.NoError(t, err)
				if was, now := diagnosetest.Verdict("", reports[l.ID]), diagnosetest.Verdict("", r); was != now {
					t.Errorf("%s\nwas %s\nnow %s", l.ID, was, now)
				}
				require.NoError(t, os.RemoveAll(path))
			}
		})
	}
}

// The numbers of cat -n are known by their column, whatever the lines behind them are; other numbers
// belong to the log.
func TestAShortLogNumberedByCat(t *testing.T) {
	for form, root := range map[string]string{"%6d\t%s\n": "Terminated", "%d\t%s\n": "4\tTerminated"} {
		var log strings.Builder
		for i, line := range []string{"fetching", "a table", "of words", "Terminated"} {
			fmt.Fprintf(&log, form, i+1, line)
		}
		require.Equal(t, root, diagnosetest.Text(t, log.String()).RootLine)
	}
}

// copyLogs copies a log, or every log of a folder, after applying change, and keeps its modification
// time.
func copyLogs(t *testing.T, from, to string, change func(log []byte) []byte) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(from, p)
		require.NoError(t, err)
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		b, err := os.ReadFile(p)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(target, change(b), 0o644))
		info, err := d.Info()
		require.NoError(t, err)
		return os.Chtimes(target, time.Time{}, info.ModTime())
	}))
}

// eachBehind returns a log with a text before each line, and its number of lines.
func eachBehind(log []byte, before func(int) string) (out []byte, lines int) {
	for line := range bytes.Lines(log) {
		lines++
		out = append(append(out, before(lines)...), line...)
	}
	return out, lines
}
