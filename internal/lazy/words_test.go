package lazy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A word is looked up by the part that is rarest among the words, wherever that part
// is, so that a text full of "error" is not compared with every word that contains it.
func TestAWordIsFoundByItsRarestPiece(t *testing.T) {
	for _, words := range [][]string{
		{"error a1", "error b2", "error c3"},
		{"a1 error", "b2 error", "c3 error"},
		{"errorx", "errory", "errorz"},
		{"an a1 error", "an b2 error", "an c3 error"},
	} {
		for _, places := range NewWords(words).places {
			require.Len(t, places, 1, words)
		}
		for _, w := range words {
			require.False(t, NewWords(words).In(w[1:]), w)
			require.False(t, NewWords(words).In(w[:len(w)-1]), w)
		}
	}
}
