package index

import (
	"slices"
	"strings"
	"unicode"
)

// Words tell what a text means, spelling tells the rest: a typo, an ending, a
// word that the lexicon lacks. So a question is also compared with the example
// questions by pieces of their letters: four at a time in a word, single
// characters and pairs in Chinese.

// gramSize is how many letters of a word make up a piece.
const gramSize = 4

// A gram is a piece: up to four letters of one byte each, or one or two Han
// characters, told apart by the highest bit. A number is half the work of a text
// in a map, and an index is made of half a million.
type gram uint64

// letters is the piece of at most gramSize letters.
func letters(text string) (g gram) {
	for i := range len(text) {
		g = g<<8 | gram(text[i])
	}
	return g
}

// han is the piece of one or two Han characters; there is no second if b is 0.
func han(a, b rune) gram { return 1<<63 | gram(a)<<21 | gram(b) }

// grams are the pieces of a text, each once.
func grams(text string) []gram {
	list := make([]gram, 0, len(text))
	words := strings.FieldsFunc(strings.ToLower(fold(text)), func(r rune) bool {
		return !isAlnum(r) && r != '_' && r != '-' && !unicode.Is(unicode.Han, r)
	})
	for _, w := range words {
		for len(w) > 0 {
			n := strings.IndexFunc(w, func(r rune) bool { return r >= 0x80 })
			if n < 0 {
				n = len(w)
			}
			if n > 0 {
				edged := "^" + w[:n] + "$"
				for i := 0; i+gramSize <= max(len(edged), gramSize); i++ {
					list = append(list, letters(edged[i:min(i+gramSize, len(edged))]))
				}
				w = w[n:]
				continue
			}
			n = strings.IndexFunc(w, func(r rune) bool { return r < 0x80 })
			if n < 0 {
				n = len(w)
			}
			rs := []rune(w[:n])
			for i, r := range rs {
				list = append(list, han(r, 0))
				if i+1 < len(rs) {
					list = append(list, han(r, rs[i+1]))
				}
			}
			w = w[n:]
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
