package ops

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only a caller in a shell may name files here. The error names what is not a small
// file.
func TestFilesAreTheShells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte("nodes: 2\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long"), make([]byte, maxSpec+1), 0o600))
	for _, c := range []struct {
		surface           Surface
		path, text, fails string
	}{
		{Shell, "spec.yaml", "nodes: 2\n", ""},
		{Chat, filepath.Join(dir, "spec.yaml"), "nodes: 2\n", ""},
		{MCP, filepath.Join(dir, "spec.yaml"), "", "files are read in the shell only"},
		{Slack, "spec.yaml", "", `"spec.yaml" names a file, and files are read in the shell only`},
		{Shell, "-", "typed", ""},
		{Shell, "gone", "", "there is no such file"},
		{Shell, ".", "", "is not a regular file"},
		{Shell, "long", "", "has 1048577 bytes, more than 1048576"},
	} {
		call := &Call{Who: Caller{Surface: c.surface}, Dir: dir, Stdin: strings.NewReader("typed")}
		b, err := call.ReadFile("file", c.path)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, "%s %s", c.surface, c.path)
			require.Equal(t, BadInput, AsError(err).Code)
			require.Equal(t, "file", AsError(err).Field)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.text, string(b))
	}
	for path, fix := range map[string]string{"spec.yml": "did you mean spec.yaml?", "gone": "check the path", "none/spec.yaml": "check the path"} {
		_, err := (&Call{Who: Caller{Surface: Shell}, Dir: dir}).ReadFile("file", path)
		require.Equal(t, fix, AsError(err).Fix.EN)
	}
	for n, fails := range map[int]bool{maxSpec: false, maxSpec + 1: true} {
		_, err := (&Call{Who: Caller{Surface: Shell}, Stdin: strings.NewReader(strings.Repeat("x", n))}).ReadFile("file", "-")
		require.Equal(t, fails, err != nil, "%d bytes from standard input", n)
	}

	draw := func(w io.Writer) error { _, err := io.WriteString(w, "drawn"); return err }
	call := &Call{Who: Caller{Surface: Shell}, Dir: dir}
	require.NoError(t, call.WriteFile("svg", "", draw))
	require.NoError(t, call.WriteFile("svg", "a.svg", draw))
	drawn, err := os.ReadFile(filepath.Join(dir, "a.svg"))
	require.NoError(t, err)
	require.Equal(t, "drawn", string(drawn))
	require.ErrorContains(t, call.WriteFile("svg", "b.svg", func(io.Writer) error { return io.ErrShortWrite }), "short write")
	require.Equal(t, "svg", AsError(call.WriteFile("svg", "none/a.svg", draw)).Field)
	call.Who.Surface = Web
	require.ErrorContains(t, call.WriteFile("svg", "c.svg", draw), "files are written in the shell only")
	require.NoFileExists(t, filepath.Join(dir, "c.svg"))
}
