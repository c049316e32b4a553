// Package index finds short texts by what a question means: words in English
// and Chinese are brought to shared concepts, and texts are ranked by how well
// one of their example questions, and the text as a whole, cover the question.
package index

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// A Doc is a text to be found.
type Doc struct {
	// Asks are example questions; the best one counts.
	Asks []string
	// Title and Body are weighed less than the example questions.
	Title, Body string
}

// A Hit is a Doc found for a question.
type Hit struct {
	Doc int // its number, in the order given to New
	// Score tells how well the Doc fits; it is roughly between 0 and 1.
	Score float64
	// Cover is the share of the question's weight that the Doc's words hold.
	Cover float64
	// Like is how near the letters of its best example question are, from 0 to 1.
	Like float64
	// order puts the hits of one question in order: the Score, and how likely the
	// question is of the Doc.
	order float64
}

// An Index holds analysed Docs. It is safe for concurrent use.
type Index struct {
	docs   []doc
	per    []float32        // of an example question: 1 over the length of its words as a vector of weights
	words  map[string][]use // where example questions hold a word
	idf    map[string]float64
	rare   float64 // the weight of a word that no Doc holds
	post   map[string][]posting
	spell  *speller
	likely *likelihood
	// byHead are the English words of the lexicon and the Docs, by their first letter.
	byHead map[byte][]string
	desks  sync.Pool // of *desk
}

// A desk holds the numbers that a search works with; it is used again, for they
// are many and all but a few are zero.
type desk struct {
	held   []share   // by Doc
	words  []float32 // by example question, what its words have in common with the question
	dot    []float32 // the same of its letters
	likely []float64 // by Doc, what its language model gains by the question
}

// desk is a clean one.
func (x *Index) desk() *desk {
	d, _ := x.desks.Get().(*desk)
	if d == nil {
		n := len(x.docs)
		return &desk{
			held: make([]share, n), words: make([]float32, len(x.per)), dot: make([]float32, len(x.per)),
			likely: make([]float64, n),
		}
	}
	clear(d.held)
	clear(d.words)
	clear(d.dot)
	clear(d.likely)
	return d
}

// A use is an example question that holds a word, and the word's weight in it.
type use struct {
	ask    int32
	weight float32
}

type doc struct {
	held map[string]bool // the words of the asks
	tf   map[string]float64
}

// A posting is a Doc that holds a word.
type posting struct {
	doc  int32
	tf   float64
	held bool // by an example question
}

// A share is how much of a question a Doc holds.
type share struct{ bag, cover, held float64 }

// Weights of a Doc's parts in its bag of words.
const (
	askWeight   = 2.0
	titleWeight = 3.0
	bodyWeight  = 0.5
)

// New analyses the Docs.
func New(docs []Doc) *Index {
	x := &Index{docs: make([]doc, len(docs)), words: map[string][]use{}, idf: map[string]float64{}, post: map[string][]posting{}}
	all := read(docs)
	var wg sync.WaitGroup
	wg.Go(func() { x.spell = newSpeller(all) })
	wg.Go(func() { x.likely = newLikelihood(all) })
	x.weigh(all)
	x.byHead = spellings(x.idf)
	wg.Wait()
	return x
}

// weigh sets what the Docs hold of each word, and the words' weights.
func (x *Index) weigh(all []material) {
	for i, d := range all {
		e := doc{tf: map[string]float64{}, held: map[string]bool{}}
		add := func(ts []Term, w float64) {
			for _, t := range ts {
				e.tf[t.Key] += w * t.Weight
			}
		}
		for _, a := range d.asks {
			for _, t := range a.terms {
				e.held[t.Key] = true
				// Many example questions must not make a word count for more.
				e.tf[t.Key] = max(e.tf[t.Key], askWeight*t.Weight)
			}
		}
		add(d.title.terms, titleWeight)
		add(d.body, bodyWeight)
		for k := range e.tf {
			x.idf[k]++
			x.post[k] = append(x.post[k], posting{int32(i), e.tf[k], e.held[k]})
		}
		x.docs[i] = e
	}
	n := float64(len(all))
	for k, df := range x.idf {
		x.idf[k] = math.Log(1 + (n-df+0.5)/(df+0.5))
	}
	x.rare = math.Log(1 + n)
	for _, d := range all {
		for _, a := range d.asks {
			for _, t := range a.terms {
				x.words[t.Key] = append(x.words[t.Key], use{int32(len(x.per)), float32(x.weight(t))})
			}
			x.per = append(x.per, float32(1/x.norm(a.terms)))
		}
	}
}

func (x *Index) weight(t Term) float64 {
	w, ok := x.idf[t.Key]
	if !ok {
		w = x.rare
	}
	return w * t.Weight
}

// norm is the length of a text as a vector of weights.
func (x *Index) norm(ts []Term) float64 {
	var sum float64
	for _, t := range ts {
		w := x.weight(t)
		sum += w * w
	}
	return math.Sqrt(sum)
}

// How the parts of a score are mixed. The shares were fitted on questions that
// were not in the index.
const (
	phraseShare = 0.16 // the best example question, as a cosine of its words
	bagShare    = 0.13 // all words, as in BM25
	coverShare  = 0.18 // the share of the question that the Doc holds at all
	askShare    = 0.16 // the share of the question that its example questions hold
	spellShare  = 0.20 // the best example question, by its letters
	spellsShare = 0.17 // the best three of them
	bagK        = 1.2  // saturation of repeated words
)

// Search returns the best n Docs for a question, best first.
func (x *Index) Search(question string, n int) []Hit {
	q := Terms(question)
	if len(q) == 0 {
		return nil
	}
	qw := make([]float64, len(q))
	var total float64
	d := x.desk()
	defer x.desks.Put(d)
	for i, t := range q {
		qw[i] = x.weight(t)
		total += qw[i]
	}
	for j, t := range q {
		for _, p := range x.post[t.Key] {
			h := &d.held[p.doc]
			h.cover += qw[j]
			h.bag += qw[j] * p.tf * (bagK + 1) / (p.tf + bagK)
			if p.held {
				h.held += qw[j]
			}
		}
		for _, u := range x.words[t.Key] {
			d.words[u.ask] += float32(qw[j]) * u.weight
		}
	}
	pieces := grams(question)
	x.spell.like(pieces, d.dot)
	x.likely.of(q, pieces, d)
	perWord, perPiece := 1/x.norm(q), 0.0
	if size := x.spell.size(pieces); size > 0 { // not only of common ones
		perPiece = 1 / size
	}
	top := make([]Hit, 0, n+1)
	for i := range x.docs {
		if d.likely[i] < unlikely && len(x.docs) > many {
			continue
		}
		from, to := x.spell.first[i], x.spell.first[i+1]
		best, mean := nearest(d.dot[from:to], x.spell.per[from:to])
		likely := likelyShare * (d.likely[i] - x.likely.cost[i])
		h := score(d.held[i], total, 1, best*perPiece, mean*perPiece)
		// Most Docs would not be among the best even if a question's words were all theirs.
		if len(top) == n && h.Score+likely <= top[n-1].order {
			continue
		}
		phrase, _ := nearest(d.words[from:to], x.per[from:to])
		h = score(d.held[i], total, phrase*perWord, best*perPiece, mean*perPiece)
		h.Doc, h.order = i, h.Score+likely
		if h.Score > 0 {
			top = put(top, h, n)
		}
	}
	return top
}

// put adds a hit to the n best, best first.
func put(top []Hit, h Hit, n int) []Hit {
	if len(top) == n && h.order <= top[n-1].order {
		return top
	}
	i, _ := slices.BinarySearchFunc(top, h, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.order, a.order), cmp.Compare(a.Doc, b.Doc))
	})
	return slices.Insert(top[:min(len(top), n-1)], i, h)
}

// score mixes what a Doc holds of a question, total being the weight of all of it,
// with how near its example questions are: by their words, and by their letters
// the nearest and the mean of the nearest three.
func score(held share, total, phrase, near, nears float64) Hit {
	cover := held.cover / total
	score := phraseShare*phrase + bagShare*held.bag/(total*(bagK+1)) + coverShare*cover + askShare*held.held/total + spellShare*near + spellsShare*nears
	return Hit{Score: score, Cover: cover, Like: near}
}

// nearest finds the example questions that have most in common with a question:
// dots is what each has, per 1 over its length. It returns the best, and the mean
// of the best three.
func nearest(dots, per []float32) (best, mean float64) {
	var b0, b1, b2 float32 // falling
	for i, dot := range dots {
		v := dot * per[i]
		if v <= b2 {
			continue
		}
		switch {
		case v > b0:
			b0, b1, b2 = v, b0, b1
		case v > b1:
			b1, b2 = v, b1
		default:
			b2 = v
		}
	}
	return float64(b0), float64(b0+b1+b2) / float64(max(1, min(3, len(dots))))
}

// Field reports whether the words of a question hold one of the field, as the
// lexicon marks them, or name an option or variable that a Doc holds.
func (x *Index) Field(question []Term) bool {
	for _, t := range question {
		if lexicon().field[t.Key] {
			return true
		}
		if _, ok := x.idf[t.Key]; ok && t.Weight == codeWeight {
			return true
		}
	}
	return false
}

// Concepts counts the words that are of the lexicon, everyday ones included.
func Concepts(words []Term) int {
	n := 0
	for _, t := range words {
		if t.Key[0] == '=' && t.Key != "=confirm" {
			n++
		}
	}
	return n
}

// OnlyNumbers reports whether the words are nothing but numbers.
func OnlyNumbers(words []Term) bool {
	for _, t := range words {
		if t.Key[0] < '0' || t.Key[0] > '9' {
			return false
		}
	}
	return true
}
