package lazy

import "math/bits"

// A Words finds which of many words a text contains, ignoring the case of ASCII
// letters, in one pass. At each position of the text it looks up the three bytes there,
// and compares only the words that are indexed by this trigram. Each word is indexed by
// its rarest trigram.
type Words struct {
	words    []string
	trigrams []uint64           // a bit for each trigram of an indexed word
	shift    uint               // of a trigram's hash, to the number of its bit
	places   map[uint32][]place // trigram → words
}

// A place is a word and the position of the trigram that indexes it.
type place struct{ word, at int32 }

// ShortestWord is the length of a trigram, and thus of the shortest word.
const ShortestWord = 3

// NewWords returns the set of words, which must be in lower case and have at least
// ShortestWord bytes.
func NewWords(words []string) *Words {
	const spread = 256 // bits for each word, so that few other trigrams share them
	size := uint(bits.Len(uint(len(words)*spread) | 1<<10))
	w := &Words{words: words, places: make(map[uint32][]place, len(words)), trigrams: make([]uint64, 1<<size/64), shift: 32 - size}
	count := map[uint32]int{}
	for _, s := range words {
		for i := 0; i+ShortestWord <= len(s); i++ {
			count[trigram(s, i)]++
		}
	}
	for n, s := range words {
		best := 0
		for i := 1; i+ShortestWord <= len(s); i++ {
			if count[trigram(s, i)] < count[trigram(s, best)] {
				best = i
			}
		}
		t := trigram(s, best)
		w.places[t] = append(w.places[t], place{int32(n), int32(best)})
		bit := t * 2654435761 >> w.shift
		w.trigrams[bit>>6] |= 1 << (bit & 63)
	}
	return w
}

// fold maps ASCII letters to lower case.
var fold = func() (f [256]byte) {
	for i := range f {
		f[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			f[i] += 'a' - 'A'
		}
	}
	return f
}()

func trigram(s string, i int) uint32 {
	return uint32(fold[s[i]])<<16 | uint32(fold[s[i+1]])<<8 | uint32(fold[s[i+2]])
}

// Each calls found for every occurrence of a word in the text.
func (w *Words) Each(text string, found func(word int)) {
	w.EachAt(text, func(word, _ int) { found(word) })
}

// EachAt calls found for every occurrence of a word in the text, with its position. Words that
// overlap may come in any order.
func (w *Words) EachAt(text string, found func(word, at int)) {
	if len(text) < ShortestWord {
		return
	}
	t := uint32(fold[text[0]])<<8 | uint32(fold[text[1]])
	for i := ShortestWord - 1; i < len(text); i++ {
		t = (t<<8 | uint32(fold[text[i]])) & 0xffffff
		bit := t * 2654435761 >> w.shift
		if w.trigrams[bit>>6]&(1<<(bit&63)) == 0 {
			continue
		}
		for _, p := range w.places[t] {
			from := i - (ShortestWord - 1) - int(p.at)
			if s := w.words[p.word]; from >= 0 && from+len(s) <= len(text) && equalFold(text[from:from+len(s)], s) {
				found(int(p.word), from)
			}
		}
	}
}

// Empty reports whether the set has no words.
func (w *Words) Empty() bool { return len(w.words) == 0 }

// In reports whether a word occurs in the text.
func (w *Words) In(text string) (in bool) {
	w.Each(text, func(int) { in = true })
	return in
}

// equalFold reports whether a text equals a word in lower case, ignoring case.
func equalFold(text, word string) bool {
	for i := range len(word) {
		if fold[text[i]] != word[i] {
			return false
		}
	}
	return true
}
