package redact

import (
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A worth says which forms and which of the scanner's rules a text can match,
// by the words that it holds.
type worth struct{ form, rule []bool }

// An index finds the words of all forms and rules in one pass.
type index struct {
	words      *lazy.Words
	short      []shortWord
	form, rule [][]int // word → forms and rules that need it
	always     worth   // those without a word
	everything worth
}

// A shortWord is too short for lazy.Words.
type shortWord struct {
	text string
	rule int
}

var loadIndex = sync.OnceValue(func() *index {
	x := &index{always: newWorth(), everything: newWorth()}
	number := map[string]int{}
	var words []string
	add := func(list []string, to *[][]int, which int) {
		for _, w := range list {
			n, seen := number[w]
			if !seen {
				n = len(words)
				number[w], words = n, append(words, w)
				x.form, x.rule = append(x.form, nil), append(x.rule, nil)
			}
			(*to)[n] = append((*to)[n], which)
		}
	}
	for i, f := range forms {
		x.everything.form[i] = true
		if x.always.form[i] = f.hints == ""; !x.always.form[i] {
			add(strings.Split(f.hints, "|"), &x.form, i)
		}
	}
	for i, r := range scanners() {
		x.everything.rule[i] = true
		for _, w := range r.Words {
			if len(w) < lazy.ShortestWord {
				x.short = append(x.short, shortWord{w, i})
			} else {
				add([]string{w}, &x.rule, i)
			}
		}
	}
	x.words = lazy.NewWords(words)
	return x
})

func newWorth() worth { return worth{make([]bool, len(forms)), make([]bool, len(scanners()))} }

// wordsIn passes over a text once. The long s and the Kelvin sign equal letters
// of ASCII where case is ignored: a text with one is held against everything.
func wordsIn(s string) worth {
	x := loadIndex()
	if strings.ContainsAny(s, "\u017f\u212a") {
		return x.everything
	}
	w := newWorth()
	copy(w.form, x.always.form)
	x.words.Each(s, func(word int) {
		for _, i := range x.form[word] {
			w.form[i] = true
		}
		for _, i := range x.rule[word] {
			w.rule[i] = true
		}
	})
	small := strings.ToLower(s)
	for _, short := range x.short {
		w.rule[short.rule] = w.rule[short.rule] || strings.Contains(small, short.text)
	}
	return w
}
