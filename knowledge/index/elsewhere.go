package index

import (
	_ "embed"
	"math"
	"strings"
	"sync"
)

// Whether a question is of the field at all shows in its language before its
// subject: those who want a deed, a price, a person, a number of today or
// another program put it in words of their own. So there is a second body of
// questions, asked about something else, and a question is held against both by
// the pieces of its letters (a naive Bayes classifier).

//go:embed elsewhere.txt
var elsewhereText string

// A background counts in how many questions about something else a piece stands.
type background struct {
	pieces map[gram]float64
	size   float64
}

var elsewhere = sync.OnceValue(func() *background {
	b := &background{pieces: map[gram]float64{}}
	for line := range strings.Lines(elsewhereText) {
		if line[0] == '#' {
			continue
		}
		for _, g := range grams(line) {
			if !hasDigit(g) {
				b.pieces[g]++
				b.size++
			}
		}
	}
	return b
})

const (
	unseenCount = 0.5   // how often a piece counts that no question holds
	unseenSize  = 15000 // and all such pieces together
)

// Elsewhere tells how much a question sounds like those about something else:
// above zero it does rather than like those of the Docs.
func (x *Index) Elsewhere(question string) float64 {
	b := elsewhere()
	shift := math.Log((x.spell.mass + unseenSize) / (b.size + unseenSize))
	var sum, n float64
	for _, g := range grams(question) {
		if hasDigit(g) {
			continue
		}
		n++
		var here float64
		if p := x.spell.pieces[g]; p != nil {
			here = p.asks
		}
		sum += math.Log((b.pieces[g]+unseenCount)/(here+unseenCount)) + shift
	}
	if n == 0 {
		return 0
	}
	return sum / math.Sqrt(n)
}

// hasDigit reports whether a piece holds a digit: numbers are of any subject.
func hasDigit(g gram) bool {
	if g>>63 == 1 {
		return false // Han
	}
	for ; g > 0; g >>= 8 {
		if c := byte(g); c >= '0' && c <= '9' {
			return true
		}
	}
	return false
}
