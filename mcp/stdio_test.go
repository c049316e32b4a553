package mcp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// talk pipes whole lines in, closes the input and returns the output.
func talk(t *testing.T, cfg Config, lines ...string) []string {
	t.Helper()
	s, err := NewServer(cfg)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, s.ServeStdio(t.Context(), strings.NewReader(strings.Join(lines, "\n")+"\n"), &out))
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test",` +
	`"version":"1"}}}`

func TestAnswersArriveThoughTheInputEnded(t *testing.T) {
	out := talk(t, Config{Version: "1.2.3"}, hello,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":"three","method":"ping"}`)
	require.Len(t, out, 3)
	all := strings.Join(out, "\n")
	require.Contains(t, all, `"protocolVersion":"2025-11-25"`)
	require.Contains(t, all, `"version":"1.2.3"`)
	require.Contains(t, all, `"id":"three"`)
}

func TestALineThatIsTooLongOrTooDeepIsRefusedAndTheNextIsServed(t *testing.T) {
	out := talk(t, Config{},
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`+strings.Repeat("x", maxMessage)+`"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}}`,
		`not json`,
		`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	require.Len(t, out, 4)
	all := strings.Join(out, "\n")
	require.Contains(t, all, "longer than 4194304 bytes")
	require.Contains(t, all, "nests too deep")
	require.Contains(t, all, "Parse error")
	require.Contains(t, all, `"id":3`)
}
