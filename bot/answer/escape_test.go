package answer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Text is cut at line ends where there are any in the second half of a piece, and
// nothing of it is lost.
func TestTextIsCutAtLineEnds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                 nil,
		"12345678":         {"12345678"},
		"123456789":        {"12345678", "9"},
		"1234567\n9":       {"1234567", "9"},
		"12345\n789":       {"12345", "789"},
		"1234\n6789":       {"1234\n678", "9"},
		"12345\n7\n9abcde": {"12345\n7", "9abcde"},
		"一二三四五六七八九":        {"一二三四五六七八", "九"},
	} {
		got := Chunks(text, 8)
		require.Equal(t, want, got, "%q", text)
		for _, piece := range got {
			require.LessOrEqual(t, len([]rune(piece)), 8)
		}
	}
	require.Equal(t, "12345678", Cut("12345678", 8))
	require.Equal(t, "1234567…", Cut("123456789", 8))
	require.Equal(t, "a b c", OneLine(" a\n\tb  c "))
}

// A button says what its command does, and for which job.
func TestButtonsSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"submit --from 77 --yes":        textApplyFix.EN,
		"status 77 --earlier":           textEarlier.EN,
		"status last":                   "status last",
		"status 77_3":                   buttonNames["status"].EN + " 77_3",
		"logs 77 --tail 20":             buttonNames["logs"].EN + " 77",
		"logs 77 --cluster b --tail 20": buttonNames["logs"].EN + " 77",
		"priority 77":                   buttonNames["priority"].EN,
		"nonsense 77":                   "nonsense 77",
		"help":                          buttonNames["help"].EN,
		"help nonsense":                 strings.ReplaceAll(textOptions.EN, "%s", "nonsense"),
	} {
		require.Equal(t, want, buttonWords(words, lang.EN), words)
	}
	for word, is := range map[string]bool{"77": true, "77_3": true, "": false, "7x": false, "last": false} {
		require.Equal(t, is, isID(word), word)
	}
}
