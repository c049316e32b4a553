package knowledge

import (
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
	"github.com/megatron-ops/megatron-ops/knowledge/library"
)

// plainWord matches what may be a misspelt English word, with the characters around it: a word in
// lower case, or with a capital at its beginning. One that is part of a name, a path or an address
// does not match, or its match ends with another character than a letter in lower case.
var plainWord = lazy.New(`(?:^|[^\w./@:=$%\\-])[A-Za-z][a-z]{4,}[\w'’/@=-]?`)

// Limits of what is taken for a misspelling. A longer text is a pasted message, whose words are
// spelt as their program spells them.
const (
	mostTyped     = 200 // characters of a question
	wellKnown     = 5   // cards with a word that may be meant
	joinedLeast   = 6   // letters of each of two words written as one
	mostMisspelt  = 3   // words of a question; a text with more is in another language
	misspeltShare = 2   // at most every second word is misspelt
)

// commonWords maps the words that several cards have to their keys in the index.
var commonWords = sync.OnceValue(func() map[string]string {
	cards := map[string]int{}
	for _, c := range library.BuiltIn().Cards {
		seen := map[string]bool{}
		for w := range strings.FieldsFuncSeq(strings.ToLower(c.Title.EN+" "+c.Text.EN), func(r rune) bool { return r < 'a' || r > 'z' }) {
			if !seen[w] {
				seen[w] = true
				cards[w]++
			}
		}
	}
	words := map[string]string{}
	for w, n := range cards {
		if n >= wellKnown && len(w) > 3 {
			words[w] = index.WordKey(w)
		}
	}
	return words
})

// wordMeant returns the only common word that an unknown word may be a misspelling of, with one
// letter missing, one too many or two swapped, or the two words that it joins; "" where there is
// none, or several. A letter in place of another makes other words, such as limiter and limited.
func wordMeant(word string) string {
	common := commonWords()
	meant, key := "", ""
	for w, k := range common {
		if more := len(w) - len(word); more < -1 || more > 1 || w[0] != word[0] || more == 0 && !sameLetters(w, word) {
			continue
		}
		switch {
		case near.Distance(w, word) != 1:
		case meant != "" && k != key:
			return ""
		case len(w) > len(meant) || len(w) == len(meant) && w < meant: // the forms of one word
			meant, key = w, k
		}
	}
	for i := joinedLeast; meant == "" && i <= len(word)-joinedLeast; i++ {
		if a, b := common[word[:i]], common[word[i:]]; a != "" && b != "" {
			return word[:i] + " " + word[i:]
		}
	}
	return meant
}

// sameLetters reports whether two words of the same length have the same letters in the sum, as
// words with two letters swapped have.
func sameLetters(a, b string) bool {
	sum := 0
	for i := range len(a) {
		sum += int(a[i]) - int(b[i])
	}
	return sum == 0
}

// respeltWords returns the words of a question that no text has and that are read as another
// word, and the question with them replaced.
func (a *Answerer) respeltWords(text string) (read []misspelling, corrected string) {
	if len([]rune(text)) > mostTyped {
		return nil, text
	}
	corrected = text
	for _, w := range plainWord.FindAllString(text, -1) {
		w = strings.TrimLeftFunc(w, func(r rune) bool { return !('a' <= r|0x20 && r|0x20 <= 'z') })
		low := strings.ToLower(w)
		if last := w[len(w)-1]; last < 'a' || last > 'z' || a.knows(low) {
			continue
		}
		if meant := wordMeant(low); meant != "" {
			read = append(read, misspelling{w, []string{meant}})
			corrected = strings.Replace(corrected, w, meant, 1)
		}
	}
	if len(read) > mostMisspelt || misspeltShare*len(read) > len(strings.Fields(text)) {
		return nil, text
	}
	return read, corrected
}

// knows reports whether any text has an English word, in any of its forms.
func (a *Answerer) knows(word string) bool {
	for _, lib := range []*library.Library{library.BuiltIn(), a.added.current(), a.site.current()} {
		if lib != nil && lib.Index.Knows(word) {
			return true
		}
	}
	return false
}
