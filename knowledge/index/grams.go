package index

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// Words tell what a text means, spelling tells the rest: a typo, an ending, a
// word that the lexicon lacks. So a question is also compared with the example
// questions by pieces of their letters: four at a time in a word, single
// characters and pairs in Chinese.

// A piece that more Docs than this share hold tells nothing, if they are not few.
const (
	commonShare = 0.15
	commonLeast = 20
)

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

// A speller holds the pieces of all example questions.
type speller struct {
	pieces map[gram]*piece
	rare   float64   // the weight of a piece that none holds
	first  []int32   // of each Doc, the number of its first example question; and behind the last Doc, how many there are
	per    []float32 // of an example question: 1 over the length of its pieces as a vector of weights
	mass   float64   // how many pieces all example questions have
}

// A piece of letters and the example questions that hold it.
type piece struct {
	weight float64
	asks   float64 // how many example questions hold it
	last   int32   // the Doc that was counted last, from 1
	post   []int32
}

func newSpeller(docs []material) *speller {
	s := &speller{pieces: map[gram]*piece{}}
	ask := int32(0)
	for i, d := range docs {
		s.first = append(s.first, ask)
		for _, a := range d.asks {
			for _, g := range a.pieces {
				p := s.pieces[g]
				if p == nil {
					p = &piece{}
					s.pieces[g] = p
				}
				p.post = append(p.post, ask)
				p.asks++
				s.mass++
				if p.last != int32(i)+1 {
					p.last = int32(i) + 1
					p.weight++
				}
			}
			ask++
		}
	}
	s.first = append(s.first, ask)
	n := float64(len(docs))
	s.rare = math.Log(1 + 2*n)
	s.per = make([]float32, ask)
	for _, p := range s.pieces {
		if p.weight > max(commonLeast, commonShare*n) {
			p.weight, p.post = 0, nil // it tells nothing, and would be looked at in most texts
			continue
		}
		p.weight = math.Log(1 + n/(p.weight+0.5))
		for _, a := range p.post {
			s.per[a] += float32(p.weight * p.weight)
		}
	}
	for a, sum := range s.per {
		s.per[a] = float32(1 / math.Sqrt(float64(sum)))
	}
	return s
}

func (s *speller) size(list []gram) float64 {
	var sum float64
	for _, g := range list {
		w := s.rare
		if p := s.pieces[g]; p != nil {
			w = p.weight
		}
		sum += w * w
	}
	return math.Sqrt(sum)
}

// like adds up what the pieces of a question have in common with each example
// question.
func (s *speller) like(list []gram, dots []float32) {
	for _, g := range list {
		p := s.pieces[g]
		if p == nil {
			continue
		}
		w := float32(p.weight * p.weight)
		for _, a := range p.post {
			dots[a] += w
		}
	}
}
