package redact

import (
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// candidates are the leads, forms and scanner's rules that a text can match, judged by the
// words that it contains, and the places of names that may mean secrets.
type candidates struct {
	lead, form, rule []bool
	names            []int
}

// An index finds the words of all names, leads, forms and rules in one pass.
type index struct {
	words            *lazy.Words
	short            []shortWord
	name             []bool     // of a word: whether names contain it
	lead, form, rule [][]int    // word → leads, forms and rules that need it
	always           candidates // the ones without a word
	everything       candidates
}

// A shortWord is too short for lazy.Words.
type shortWord struct {
	text string
	rule int
}

var loadIndex = sync.OnceValue(func() *index {
	x := &index{always: newCandidates(), everything: newCandidates()}
	number := map[string]int{}
	var words []string
	add := func(list []string, to *[][]int, which int) {
		for _, w := range list {
			n, seen := number[w]
			if !seen {
				n = len(words)
				number[w], words = n, append(words, w)
				x.name = append(x.name, false)
				x.lead, x.form, x.rule = append(x.lead, nil), append(x.form, nil), append(x.rule, nil)
			}
			if to == nil {
				x.name[n] = true
			} else {
				(*to)[n] = append((*to)[n], which)
			}
		}
	}
	add(nameWords, nil, 0)
	for i, l := range leads {
		x.everything.lead[i] = true
		required := lazy.Required(l.expr)
		x.always.lead[i] = required == nil
		add(required, &x.lead, i)
	}
	for i, f := range forms {
		x.everything.form[i] = true
		required := lazy.Required(f.expr)
		x.always.form[i] = required == nil
		add(required, &x.form, i)
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

func newCandidates() candidates {
	return candidates{lead: make([]bool, len(leads)), form: make([]bool, len(forms)), rule: make([]bool, len(scanners()))}
}

// candidatesIn reads a text once. The long s and the Kelvin sign equal ASCII letters if
// case is ignored, so a text with one of them is checked against everything.
func candidatesIn(s string) candidates {
	x := loadIndex()
	if strings.ContainsAny(s, "\u017f\u212a") {
		all := x.everything
		for i := range len(s) {
			all.names = append(all.names, i)
		}
		return all
	}
	w := newCandidates()
	copy(w.lead, x.always.lead)
	copy(w.form, x.always.form)
	x.words.EachAt(s, func(word, at int) {
		if x.name[word] {
			w.names = append(w.names, at)
		}
		for _, i := range x.lead[word] {
			w.lead[i] = true
		}
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
