package index

import (
	"math"
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

// grams are the pieces of a text, each once.
func grams(text string) []string {
	var list []string
	seen := map[string]bool{}
	put := func(g string) {
		if !seen[g] {
			seen[g] = true
			list = append(list, g)
		}
	}
	words := strings.FieldsFunc(strings.ToLower(fold(text)), func(r rune) bool {
		return !isAlnum(r) && r != '_' && r != '-' && !unicode.Is(unicode.Han, r)
	})
	for _, w := range words {
		// The letters of a long name that means one thing must not outweigh the rest.
		if key := lexicon().concept[w]; key != "" && strings.Contains(w, "_") {
			w = strings.TrimPrefix(key, "=")
		}
		for len(w) > 0 {
			n := strings.IndexFunc(w, func(r rune) bool { return r >= 0x80 })
			if n < 0 {
				n = len(w)
			}
			if n > 0 {
				edged := "^" + w[:n] + "$"
				for i := 0; i+gramSize <= max(len(edged), gramSize); i++ {
					put(edged[i:min(i+gramSize, len(edged))])
				}
				w = w[n:]
				continue
			}
			n = strings.IndexFunc(w, func(r rune) bool { return r < 0x80 })
			if n < 0 {
				n = len(w)
			}
			rs := []rune(w[:n])
			for i := range rs {
				put(string(rs[i : i+1]))
				if i+1 < len(rs) {
					put(string(rs[i : i+2]))
				}
			}
			w = w[n:]
		}
	}
	return list
}

// A speller holds the pieces of all example questions.
type speller struct {
	pieces map[string]*piece
	rare   float64   // the weight of a piece that none holds
	owner  []int32   // the Doc of an example question
	norm   []float64 // of an example question
	asks   []int     // how many example questions a Doc has
}

// A piece of letters and the example questions that hold it.
type piece struct {
	weight float64
	post   []int32
}

func newSpeller(docs []material) *speller {
	s := &speller{pieces: map[string]*piece{}}
	held := map[string]int32{} // the last Doc that was counted for a piece
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
			s.pieces[g] = &piece{} // it tells nothing, and would be looked at in most texts
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

func (s *speller) size(list []string) float64 {
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
func (s *speller) like(list []string, d *desk) {
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
