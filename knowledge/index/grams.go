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
	post   map[string][]int32 // the example questions that hold a piece
	weight map[string]float64
	rare   float64   // the weight of a piece that none holds
	owner  []int32   // the Doc of an example question
	norm   []float64 // of an example question
	asks   []int     // how many example questions a Doc has
}

func newSpeller(docs []Doc) *speller {
	s := &speller{post: map[string][]int32{}, weight: map[string]float64{}}
	held := map[string]int32{} // the last Doc that was counted for a piece
	var all [][]string
	for i, d := range docs {
		s.asks = append(s.asks, len(d.Asks))
		for _, a := range d.Asks {
			ask := int32(len(s.owner))
			s.owner = append(s.owner, int32(i))
			list := grams(a)
			all = append(all, list)
			for _, g := range list {
				s.post[g] = append(s.post[g], ask)
				if held[g] != int32(i)+1 {
					held[g] = int32(i) + 1
					s.weight[g]++
				}
			}
		}
	}
	n := float64(len(docs))
	for g, df := range s.weight {
		s.weight[g] = math.Log(1 + n/(df+0.5))
	}
	s.rare = math.Log(1 + 2*n)
	for _, list := range all {
		s.norm = append(s.norm, s.size(list))
	}
	return s
}

func (s *speller) size(list []string) float64 {
	var sum float64
	for _, g := range list {
		w, ok := s.weight[g]
		if !ok {
			w = s.rare
		}
		sum += w * w
	}
	return math.Sqrt(sum)
}

// A likeness says how near a Doc's example questions are: the best, and the
// mean of the best three.
type likeness struct{ best, mean float64 }

// like compares a question with every example question that shares a piece, and
// returns the likeness of each Doc.
func (s *speller) like(question string, docs int) []likeness {
	list := grams(question)
	dot := make([]float64, len(s.owner))
	for _, g := range list {
		w := s.weight[g]
		for _, a := range s.post[g] {
			dot[a] += w * w
		}
	}
	size := s.size(list)
	best := make([][3]float64, docs) // of each Doc, falling
	for a, d := range dot {
		if d == 0 {
			continue
		}
		v, b := d/(size*s.norm[a]), &best[s.owner[a]]
		switch {
		case v > b[0]:
			b[0], b[1], b[2] = v, b[0], b[1]
		case v > b[1]:
			b[1], b[2] = v, b[1]
		case v > b[2]:
			b[2] = v
		}
	}
	out := make([]likeness, docs)
	for i, b := range best {
		out[i] = likeness{best: b[0], mean: (b[0] + b[1] + b[2]) / float64(max(1, min(3, s.asks[i])))}
	}
	return out
}
