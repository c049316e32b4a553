package index

import (
	"slices"
	"strings"
	"unicode"
)

// Terms miss typos, endings and words that the lexicon lacks. So a question is also
// compared with the example questions by n-grams: four letters of a word, and one or two
// Han characters.

// gramSize is the number of letters in an n-gram of a word.
const gramSize = 4

// A gram is an n-gram: up to four letters of one byte each, or one or two Han
// characters. The highest bit marks Han characters. A number as a map key takes half
// the time of a string, and an index has half a million n-grams.
type gram uint64

// letters returns the n-gram of at most gramSize letters.
func letters(text string) (g gram) {
	for i := range len(text) {
		g = g<<8 | gram(text[i])
	}
	return g
}

// han returns the n-gram of one or two Han characters; b is 0 for one.
func han(a, b rune) gram { return 1<<63 | gram(a)<<21 | gram(b) }

// grams returns the n-grams of a text, sorted, each once.
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
