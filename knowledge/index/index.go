// Package index finds short texts by what a question means: words in English
// and Chinese are brought to shared concepts, and texts are ranked by how much
// of the question they hold and by how near the letters of their example
// questions are. An index is built once into bytes and searched where it lies,
// so that opening one costs nothing.
package index

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
)

// A Doc is a text to be found.
type Doc struct {
	// Asks are example questions; the nearest ones count.
	Asks []string
	// Title and Body are weighed less than the example questions.
	Title, Body string
}

// A Hit is a Doc found for a question.
type Hit struct {
	Doc int // its number, in the order given to Build
	// Score tells how well the Doc fits, from 0 to about 1.
	Score float64
}

// An Index is a built index. It is safe for concurrent use.
type Index struct {
	docs, asks      int
	words           wordList // of all parts of the Docs
	texts           wordList // of their titles and bodies alone
	gramKeys        []byte
	gramDocs        []byte
	gramPosts       list // by piece of letters: example questions
	first           []byte
	per             []byte // of an example question: 1 over its length as a vector of weights
	numbers         sync.Pool
	rareWord, rareG float64
}

// A list is a sequence of byte strings: their ends and their bytes.
type list struct{ ends, data []byte }

func (l list) len() int { return len(l.ends) / 4 }

func (l list) at(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = binary.LittleEndian.Uint32(l.ends[4*(i-1):])
	}
	return l.data[from:binary.LittleEndian.Uint32(l.ends[4*i:])]
}

// A wordList is words, in order, and by word the Docs and how much of it they
// hold.
type wordList struct{ keys, posts list }

// find is the postings of a word; ok is false where no Doc holds it.
func (w wordList) find(key string) (posts []byte, ok bool) {
	n := w.keys.len()
	i := sort.Search(n, func(i int) bool { return string(w.keys.at(i)) >= key })
	if i == n || string(w.keys.at(i)) != key {
		return nil, false
	}
	return w.posts.at(i), true
}

// ErrFormat is what Open returns for bytes that Build did not write.
var ErrFormat = errors.New("index: not an index of this release")

// Open makes an Index of what Build wrote. It keeps the bytes and copies none.
func Open(b []byte) (*Index, error) {
	var parts [sections][]byte
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil, ErrFormat
	}
	b = b[len(magic):]
	for i := range parts {
		if len(b) < 4 {
			return nil, ErrFormat
		}
		n := int(binary.LittleEndian.Uint32(b))
		if b = b[4:]; len(b) < n {
			return nil, ErrFormat
		}
		parts[i], b = b[:n], b[n:]
	}
	x := &Index{
		words:    wordList{list{parts[0], parts[1]}, list{parts[2], parts[3]}},
		texts:    wordList{list{parts[10], parts[11]}, list{parts[12], parts[13]}},
		gramKeys: parts[4], gramDocs: parts[5], gramPosts: list{parts[6], parts[7]},
		first: parts[8], per: parts[9],
	}
	if len(x.first) < 4 || len(x.gramKeys) != 8*x.gramPosts.len() || x.words.keys.len() != x.words.posts.len() ||
		x.texts.keys.len() != x.texts.posts.len() {
		return nil, ErrFormat
	}
	x.docs, x.asks = len(x.first)/4-1, len(x.per)/4
	x.rareWord, x.rareG = math.Log(1+float64(x.docs)), math.Log(1+2*float64(x.docs))
	return x, nil
}

// gram finds the postings of a piece of letters and how many Docs hold it.
func (x *Index) gram(g gram) (posts []byte, docs int) {
	n := len(x.gramKeys) / 8
	i := sort.Search(n, func(i int) bool { return gram(binary.LittleEndian.Uint64(x.gramKeys[8*i:])) >= g })
	if i == n || gram(binary.LittleEndian.Uint64(x.gramKeys[8*i:])) != g {
		return nil, 0
	}
	return x.gramPosts.at(i), int(binary.LittleEndian.Uint32(x.gramDocs[4*i:]))
}

// Numbers that a search works with. They are used again: most stay zero.
type numbers struct {
	bag, cover, text []float32 // by Doc
	dot              []float32 // by example question
}

func (x *Index) take() *numbers {
	d, _ := x.numbers.Get().(*numbers)
	if d == nil {
		return &numbers{make([]float32, x.docs), make([]float32, x.docs), make([]float32, x.docs), make([]float32, x.asks)}
	}
	clear(d.bag)
	clear(d.cover)
	clear(d.text)
	clear(d.dot)
	return d
}

// How the parts of a score are mixed. The shares were fitted on questions that
// were not in the index.
const (
	bagShare       = 0.160 // all words, as in BM25
	coverShare     = 0.228 // the share of the question's weight that the Doc holds at all
	textBagShare   = 0.064 // the same two of its title and body alone: many example
	textCoverShare = 0.091 // questions hold most words, what the text says tells more
	nearShare      = 0.245 // the letters of the nearest example question
	nearsShare     = 0.211 // the letters of the three nearest
	bagK           = 1.2   // saturation of repeated words
)

// manyNames is up to how many options and variables each tells as much as one
// alone: of a whole command line each tells less, for it is the setting.
const manyNames = 3

// wanted are the terms of a question by what they tell of what it wants.
func wanted(question string) []Term {
	words := Terms(question)
	names := 0
	for _, t := range words {
		if t.Weight == codeWeight {
			names++
		}
	}
	for i := range words {
		if names > manyNames && words[i].Weight == codeWeight {
			words[i].Weight = max(plainWeight, codeWeight*manyNames/float64(names))
		}
	}
	return words
}

// Search returns the best n Docs for a question, best first.
func (x *Index) Search(question string, n int) []Hit {
	words := wanted(question)
	if len(words) == 0 || n < 1 {
		return nil
	}
	d := x.take()
	defer x.numbers.Put(d)
	total := x.addWords(words, x.words, func(doc uint64, w, often float64) {
		d.cover[doc] += float32(w)
		d.bag[doc] += float32(w * often)
	})
	whole := x.addWords(words, x.texts, func(doc uint64, w, often float64) {
		d.text[doc] += float32(w * (textCoverShare + textBagShare*often/(bagK+1)))
	})
	perPiece := x.addPieces(grams(question), d)
	top := make([]Hit, 0, n+1)
	for i := range x.docs {
		from, to := x.firstAsk(i), x.firstAsk(i+1)
		if d.cover[i] == 0 && from == to {
			continue
		}
		best, mean := x.nearest(d.dot, from, to)
		score := bagShare*float64(d.bag[i])/(total*(bagK+1)) + coverShare*float64(d.cover[i])/total +
			float64(d.text[i])/whole + (nearShare*best+nearsShare*mean)*perPiece
		if score > 0 {
			top = put(top, Hit{i, score}, n)
		}
	}
	return top
}

// addWords hands on which Docs of a list hold a question's words, with the word's
// weight and how often they do, saturated, and returns the weight of all words.
func (x *Index) addWords(words []Term, in wordList, put func(doc uint64, weight, often float64)) (total float64) {
	for _, t := range words {
		posts, ok := in.find(t.Key)
		if !ok {
			total += x.rareWord * t.Weight
			continue
		}
		df, posts := readVarint(posts)
		w := x.weight(df) * t.Weight
		total += w
		for doc := uint64(0); len(posts) > 0; {
			var step, many uint64
			step, posts = readVarint(posts)
			many, posts = readVarint(posts)
			doc += step
			tf := float64(many) / tfUnit
			put(doc, w, tf*(bagK+1)/(tf+bagK))
		}
	}
	return total
}

// addPieces adds what each example question has in common with a question's
// letters, and returns 1 over the question's length as a vector of weights.
func (x *Index) addPieces(pieces []gram, d *numbers) float64 {
	var square float64
	for _, g := range pieces {
		posts, docs := x.gram(g)
		w := gramWeight(docs, x.docs)
		if docs == 0 {
			w = x.rareG
		}
		square += w * w
		for ask := uint64(0); len(posts) > 0; {
			var step uint64
			step, posts = readVarint(posts)
			ask += step
			d.dot[ask] += float32(w * w)
		}
	}
	if square == 0 {
		return 0 // not one but common pieces
	}
	return 1 / math.Sqrt(square)
}

func (x *Index) firstAsk(doc int) int { return int(binary.LittleEndian.Uint32(x.first[4*doc:])) }

// nearest finds the best of a Doc's example questions, and the mean of the best
// three.
func (x *Index) nearest(dots []float32, from, to int) (best, mean float64) {
	var b0, b1, b2 float32 // falling
	for a := from; a < to; a++ {
		if dots[a] == 0 {
			continue
		}
		v := dots[a] * math.Float32frombits(binary.LittleEndian.Uint32(x.per[4*a:]))
		switch {
		case v > b0:
			b0, b1, b2 = v, b0, b1
		case v > b1:
			b1, b2 = v, b1
		case v > b2:
			b2 = v
		}
	}
	return float64(b0), float64(b0+b1+b2) / float64(max(1, min(3, to-from)))
}

// put adds a hit to the n best, best first.
func put(top []Hit, h Hit, n int) []Hit {
	if len(top) == n && h.Score <= top[n-1].Score {
		return top
	}
	i, _ := slices.BinarySearchFunc(top, h, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc))
	})
	return slices.Insert(top[:min(len(top), n-1)], i, h)
}

// ownLeast is how many Docs hold, in their questions, a word that is their own.
const ownLeast = 5

// Field reports whether a question holds a word of the field: one that the
// lexicon marks, an option or a variable that one of the first docs Docs holds,
// or another word that the questions of several of them hold and none of the Docs
// behind them.
func (x *Index) Field(question string, docs int) bool {
	return slices.ContainsFunc(Terms(question), func(t Term) bool {
		switch {
		case lexicon().field[t.Key]:
			return true
		case t.Weight == codeWeight:
			return x.Holds(t.Key, docs)
		case t.Weight < plainWeight:
			return false
		}
		within, behind := x.spread(t.Key, docs)
		return within >= ownLeast && behind == 0
	})
}

// Strange is how much of a question, by weight, are words that none of the first
// docs Docs holds: everyday words alone, for a name, an option or a number may be
// new to whatever field it is of.
func (x *Index) Strange(question string, docs int) float64 {
	var strange, whole float64
	for _, t := range Terms(question) {
		posts, ok := x.words.find(t.Key)
		if !ok {
			whole += x.rareWord * t.Weight
		} else {
			df, _ := readVarint(posts)
			whole += x.weight(df) * t.Weight
		}
		if t.Weight == plainWeight && len(t.Key) > 2 && !strings.ContainsAny(t.Key, "0123456789") && !x.Holds(t.Key, docs) {
			strange += x.rareWord * t.Weight
		}
	}
	return strange / max(whole, x.rareWord*numberWeight)
}

// weight is what a word tells that so many Docs hold.
func (x *Index) weight(docs uint64) float64 {
	return math.Log(1 + (float64(x.docs)-float64(docs)+0.5)/(float64(docs)+0.5))
}

// spread counts how many of the first docs Docs hold a word in their questions or
// title, and how many of those behind them hold it at all.
func (x *Index) spread(key string, docs int) (within, behind int) {
	posts, ok := x.words.find(key)
	if !ok {
		return 0, 0
	}
	_, posts = readVarint(posts)
	for doc := uint64(0); len(posts) > 0; {
		var step, many uint64
		step, posts = readVarint(posts)
		many, posts = readVarint(posts)
		switch doc += step; {
		case doc >= uint64(docs):
			behind++
		case float64(many) >= askWeight*plainWeight*tfUnit:
			within++
		}
	}
	return within, behind
}

// Holds reports whether one of the first docs Docs holds a word, an option such
// as --nodes, or a variable, in lower case.
func (x *Index) Holds(key string, docs int) bool {
	posts, ok := x.words.find(key)
	if !ok {
		return false
	}
	_, posts = readVarint(posts)
	doc, _ := readVarint(posts)
	return doc < uint64(docs)
}
