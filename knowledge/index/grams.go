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

// commonShare is the share of Docs that hold a piece which tells nothing.
const commonShare = 0.25

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
	var list []gram
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
	owner  []int32   // the Doc of an example question
	norm   []float64 // of an example question
	asks   []int     // how many example questions a Doc has
	mass   float64   // how many pieces all example questions have
}

// A piece of letters and the example questions that hold it.
type piece struct {
	weight float64
	asks   float64 // how many example questions hold it
	post   []int32
}

func newSpeller(docs []material) *speller {
	s := &speller{pieces: map[gram]*piece{}}
	held := map[gram]int32{} // the last Doc that was counted for a piece
	for i, d := range docs {
		s.asks = append(s.asks, len(d.asks))
		for _, a := range d.asks {
			ask := int32(len(s.owner))
			s.owner = append(s.owner, int32(i))
			for _, g := range a.pieces {
				p := s.pieces[g]
				if p == nil {
					p = &piece{}
					s.pieces[g] = p
				}
				p.post = append(p.post, ask)
				p.asks++
				s.mass++
				if held[g] != int32(i)+1 {
					held[g] = int32(i) + 1
					p.weight++
				}
			}
		}
	}
	n := float64(len(docs))
	for g, p := range s.pieces {
		if p.weight > commonShare*n {
			s.pieces[g] = &piece{asks: p.asks} // it tells nothing, and would be looked at in most texts
			continue
		}
		p.weight = math.Log(1 + n/(p.weight+0.5))
	}
	s.rare = math.Log(1 + 2*n)
	for _, d := range docs {
		for _, a := range d.asks {
			s.norm = append(s.norm, s.size(a.pieces))
		}
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

// A likeness says how near a Doc's example questions are: the best, and the
// mean of the best three.
type likeness struct{ best, mean float64 }

// like compares the pieces of a question with every example question that shares
// one, and sets the desk's likeness of each Doc.
func (s *speller) like(list []gram, d *desk) {
	for _, g := range list {
		p := s.pieces[g]
		if p == nil {
			continue
		}
		w := p.weight * p.weight
		for _, a := range p.post {
			d.dot[a] += w
		}
	}
	size := s.size(list)
	for a, dot := range d.dot {
		if dot == 0 {
			continue
		}
		v, b := dot/(size*s.norm[a]), &d.three[s.owner[a]]
		switch {
		case v > b[0]:
			b[0], b[1], b[2] = v, b[0], b[1]
		case v > b[1]:
			b[1], b[2] = v, b[1]
		case v > b[2]:
			b[2] = v
		}
	}
	for i, b := range d.three {
		d.near[i] = likeness{best: b[0], mean: (b[0] + b[1] + b[2]) / float64(max(1, min(3, s.asks[i])))}
	}
}
