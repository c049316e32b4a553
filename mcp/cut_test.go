package mcp

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A cut text ends at a line's end, or at least after a whole character, and closes an
// open code block.
func TestWhatIsCutIsStillMarkdown(t *testing.T) {
	for _, c := range []struct {
		text string
		room int
		want string
	}{
		{"12345\n789", 9, "12345\n789"},
		{"12345\n789", 8, "12345\n… shortened; ask\n"},
		{"1\n3456789", 8, "1\n34567\n… shortened; ask\n"},
		{"1234界", 6, "123\n… shortened; ask\n"},
		{"```\none\ntwo\n```\n", 12, "```\none\ntwo\n```\n… shortened; ask\n"},
		{"```\none\n```\ntwo\nthree\n", 18, "```\none\n```\ntwo\n… shortened; ask\n"},
	} {
		require.Equal(t, c.want, clip(c.text, c.room, "ask"), c.text)
	}
	for _, c := range []struct {
		text string
		room int
		want string
	}{
		{"12\n456789", 9, "12\n456789"},
		{"12\n456789", 8, "… shortened; ask\n456789"},
		{"123456789", 8, "… shortened; ask\n23456789"},
		{"界4567", 6, "… shortened; ask\n4567"},
		{"```\none\ntwo\n```\n", 9, "… shortened; ask\n```\ntwo\n```\n"},
		{"```\none\n```\ntwo\n", 5, "… shortened; ask\ntwo\n"},
	} {
		require.Equal(t, c.want, clipHead(c.text, c.room, "ask"), c.text)
	}
}

// The audit holds a client's name as one short line of whole characters.
func TestAClientsNameIsShort(t *testing.T) {
	require.Equal(t, "claude-code", auditName("claude-code"))
	require.Equal(t, "two lines", auditName("two\nlines"))
	require.Equal(t, strings.Repeat("x", 64), auditName(strings.Repeat("x", 65)))
	cut := auditName(strings.Repeat("界", 30))
	require.True(t, utf8.ValidString(cut), "a database may refuse half a character")
	require.Equal(t, strings.Repeat("界", 21), cut)
}
