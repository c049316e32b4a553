package lazy

import "strings"

// Most words that are looked for are not there. Of a short text it is noted
// which pairs of bytes it holds; a word whose pairs are not among them need not
// be looked for.

// maxNoted is the length up to which the pairs of a text are noted.
const maxNoted = 512

// A word is looked for in a text.
type word struct {
	text        string
	first, last uint16 // its first and last pair of bytes, as numbers below 4096
}

// wordsOf prepares a need.
func wordsOf(n need) []word {
	list := make([]word, len(n))
	for i, s := range n {
		list[i].text = s
		if end := len(s); end > 1 {
			list[i].first, list[i].last = pair(s[0], s[1]), pair(s[end-2], s[end-1])
		}
	}
	return list
}

// pair numbers two bytes; a few share a number.
func pair(a, b byte) uint16 { return (uint16(a)<<5 ^ uint16(b)) & 4095 }

// A sought text is one that words are looked for in.
type sought struct {
	text  string
	noted bool
	pairs [64]uint64
}

func (t *sought) read(s string) {
	t.text = s
	if t.noted = len(s) <= maxNoted; !t.noted {
		return
	}
	for i := 1; i < len(s); i++ {
		p := pair(s[i-1], s[i])
		t.pairs[p>>6] |= 1 << (p & 63)
	}
}

func (t *sought) has(pair uint16) bool { return t.pairs[pair>>6]&(1<<(pair&63)) != 0 }

// any reports whether the text holds one of the words.
func (t *sought) any(list []word) bool {
	for i := range list {
		w := &list[i]
		if t.noted && len(w.text) > 1 && (!t.has(w.first) || !t.has(w.last)) {
			continue
		}
		if strings.Contains(t.text, w.text) {
			return true
		}
	}
	return false
}

// all reports whether the text holds a word of each list.
func (t *sought) all(lists [][]word) bool {
	for _, list := range lists {
		if !t.any(list) {
			return false
		}
	}
	return true
}
