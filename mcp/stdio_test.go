package mcp

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"

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

// The end of the input is seen once each request has its answer, however long that takes.
func TestTheInputEndsWhenAllIsAnswered(t *testing.T) {
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for lines, waits := range map[string]bool{
		list: true,
		list + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`: false,
		`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen"}`:                                    false,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`:                                      false,
		`{"jsonrpc":"2.0","id":2,"result":{}}`:                                                        false,
	} {
		synctest.Test(t, func(t *testing.T) {
			due := &pending{ids: map[string]bool{}, changed: make(chan struct{}, 1)}
			r := &lineReader{in: bufio.NewReader(strings.NewReader(lines + "\n")), due: due}
			ended := false
			go func() { _, _ = io.ReadAll(r); ended = true }()
			synctest.Wait()
			require.Equal(t, !waits, ended, lines)
			due.done("2")
			synctest.Wait()
			require.True(t, ended, lines)
		})
	}
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
