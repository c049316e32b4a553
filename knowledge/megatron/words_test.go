package megatron

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplitWords(t *testing.T) {
	for text, want := range map[string][]string{
		`--a 1  --b=2`:                          {"--a", "1", "--b=2"},
		"--a \\\n  1 # why\n--b":                {"--a", "1", "--b"},
		`--schedule "0:32 1B:64" --x ''`:        {"--schedule", "0:32 1B:64", "--x", ""},
		`--p 'a "b" $c' --q "it's \"q\" \\ \n"`: {"--p", `a "b" $c`, "--q", `it's "q" \ \n`},
		`--w a\ b#c`:                            {"--w", "a b#c"},
		"":                                      nil,
	} {
		got, err := SplitWords(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{`--a "b`, `--a 'b`, `--a $B`, "--a `b`", `--a "$(c)"`, `--a \`} {
		_, err := SplitWords(text)
		require.Error(t, err, text)
	}
}

// FuzzSplitWords checks that words quoted for a shell are split into the same words.
func FuzzSplitWords(f *testing.F) {
	f.Add("--num-layers", "1 2", "it's")
	f.Add("", "\\\n", "#a $b `c`")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var quoted []string
		words := []string{a, b, c}
		for _, w := range words {
			w = strings.ToValidUTF8(w, "")
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		got, err := SplitWords(strings.Join(quoted, " "))
		require.NoError(t, err)
		require.Len(t, got, 3)
		for i, w := range words {
			require.Equal(t, strings.ToValidUTF8(w, ""), got[i])
		}
	})
}
