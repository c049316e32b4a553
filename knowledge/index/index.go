// Package index finds short texts by the meaning of a question. A lexicon maps English
// and Chinese words to shared concepts. Texts are ranked by the share of the question's
// terms that they contain and by the n-gram similarity of their example questions. Build
// encodes an index as bytes; a search works on the bytes themselves, so that opening an
// index costs nothing.
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

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Doc is a text to find.
type Doc struct {
	// Asks are example questions. The most similar ones count.
	Asks []string
	// Title and Body have less weight than the example questions.
	Title, Body string
	// Group is the table that the Doc is a row of; empty for none. The Docs of a group are
	// found one by one, but count as one Doc in the frequencies of words and n-grams. Tables
	// grow by dozens of rows that are worded alike: each of them would otherwise change what
	// the words of all other Docs are worth.
	Group string
}

// A Hit is a Doc found for a question.
type Hit struct {
	Doc int // position of the Doc in the argument of Build
	// Score says how well the Doc fits, from 0 to about 1.
	Score float64
}

// An Index is a built index. It is safe for concurrent use.
type Index struct {
	docs, asks      int
	counted         float64  // Docs, where those of a group are one
	words           wordList // of all parts of the Docs
	texts           wordList // of titles and bodies alone
	gramKeys        []byte
	gramDocs        []byte // by n-gram: the number of Docs
	gramPosts       list   // by n-gram: the example questions
	firstAsks       []byte // by Doc: its first example question
	invLengths      []byte // by example question: 1 / the length of its n-gram vector
	scratch         sync.Pool
	rareWord, rareG float64 // weights of a word and of an n-gram that no Doc has
}

// A list is a sequence of byte strings, encoded as their end offsets and their bytes.
type list struct{ ends, data []byte }

func (l list) len() int { return len(l.ends) / 4 }

func (l list) at(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = binary.LittleEndian.Uint32(l.ends[4*(i-1):])
	}
	return l.data[from:binary.LittleEndian.Uint32(l.ends[4*i:])]
}

// A wordList holds sorted words and, for each word, its postings: the Docs that contain
// it, with the word's weight in each.
type wordList struct{ keys, posts list }

// find returns the postings of a word; ok is false where no Doc contains it.
func (w wordList) find(key string) (posts []byte, ok bool) {
	n := w.keys.len()
	i := sort.Search(n, func(i int) bool { return string(w.keys.at(i)) >= key })
	if i == n || string(w.keys.at(i)) != key {
		return nil, false
	}
	return w.posts.at(i), true
}

// ErrFormat is the error of Open for bytes that Build did not write.
var ErrFormat = errors.New("index: not an index of this release")

// Open returns an Index of the bytes that Build wrote. It keeps b without copying it.
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
		firstAsks: parts[8], invLengths: parts[9],
	}
	if len(x.firstAsks) < 4 || len(parts[14]) != 4 || len(x.gramKeys) != 8*x.gramPosts.len() || x.words.keys.len() != x.words.posts.len() ||
		x.texts.keys.len() != x.texts.posts.len() {
		return nil, ErrFormat
	}
	x.docs, x.asks = len(x.firstAsks)/4-1, len(x.invLengths)/4
	x.counted = float64(binary.LittleEndian.Uint32(parts[14]))
	x.rareWord, x.rareG = math.Log(1+x.counted), math.Log(1+2*x.counted)
	return x, nil
}

// gram returns the postings of an n-gram and the number of Docs that contain it.
func (x *Index) gram(g gram) (posts []byte, docs int) {
	n := len(x.gramKeys) / 8
	i := sort.Search(n, func(i int) bool { return gram(binary.LittleEndian.Uint64(x.gramKeys[8*i:])) >= g })
	if i == n || gram(binary.LittleEndian.Uint64(x.gramKeys[8*i:])) != g {
		return nil, 0
	}
	return x.gramPosts.at(i), int(binary.LittleEndian.Uint32(x.gramDocs[4*i:]))
}

// sums is the working memory of a search. Later searches reuse it.
type sums struct {
	bag, cover, text []float32 // by Doc
	dot              []float32 // by example question
}

func (x *Index) zeroSums() *sums {
	d, _ := x.scratch.Get().(*sums)
	if d == nil {
		return &sums{make([]float32, x.docs), make([]float32, x.docs), make([]float32, x.docs), make([]float32, x.asks)}
	}
	clear(d.bag)
	clear(d.cover)
	clear(d.text)
	clear(d.dot)
	return d
}

// The weights of a score's parts. They were fitted on questions that are not in the
// index.
const (
	bagShare   = 0.160 // all words, as in BM25
	coverShare = 0.228 // the share of the question's weight that the Doc contains

	// The same two parts for title and body alone. They say more about the Doc's
	// subject: many example questions together contain most words.
	textBagShare   = 0.064
	textCoverShare = 0.091

	nearShare  = 0.245 // n-gram similarity of the most similar example question
	nearsShare = 0.211 // mean similarity of the three most similar
	bagK       = 1.2   // saturation of repeated words
)

// manyNames is the number of options and variables in a question above which each of
// them has less weight. More names are usually a pasted command line, which describes
// the situation.
const manyNames = 3

// bare matches what may be an option without its dashes, such as train-iters, or a name of a
// configuration file that stands for an option, such as train_iters.
var bare = lazy.New(`[a-z][a-z0-9]*(?:[-_][a-z0-9]+)+`)

// optionOf returns the option that a bare name stands for: the one of this name, or the only
// one that ends with a name of at least three words, as amax_history_len does.
func (x *Index) optionOf(name string) (option string, ok bool) {
	name = strings.ReplaceAll(name, "_", "-")
	if x.has("--" + name) {
		return "--" + name, true
	}
	if strings.Count(name, "-") < 2 {
		return "", false
	}
	n := x.words.keys.len()
	for i := sort.Search(n, func(i int) bool { return string(x.words.keys.at(i)) >= "--" }); i < n; i++ { // the options stand together
		key := string(x.words.keys.at(i))
		if !strings.HasPrefix(key, "--") {
			break
		}
		if strings.HasSuffix(key, "-"+name) {
			if ok {
				return "", false
			}
			option, ok = key, true
		}
	}
	return option, ok
}

// weighted returns the terms of a question with their weights in the search. A bare name
// counts as the option that it stands for. An adverb that no Doc has is no term.
func (x *Index) weighted(question string) []Term {
	words := slices.DeleteFunc(Terms(question), func(t Term) bool { return isAdverb(t) && !x.has(t.Key) })
	for _, w := range bare.FindAllString(question, -1) {
		option, ok := x.optionOf(w)
		if !ok || slices.ContainsFunc(words, func(t Term) bool { return t.Key == option }) {
			continue
		}
		if !x.has(w) {
			words = slices.DeleteFunc(words, func(t Term) bool { return t.Key == w })
		}
		words = append(words, Term{option, wordWeight})
	}
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

// Search returns the n best Docs for a question, best first.
func (x *Index) Search(question string, n int) []Hit {
	words := x.weighted(question)
	if len(words) == 0 || n < 1 {
		return nil
	}
	d := x.zeroSums()
	defer x.scratch.Put(d)
	total := x.addWords(words, x.words, func(doc uint64, w, often float64) {
		d.cover[doc] += float32(w)
		d.bag[doc] += float32(w * often)
	})
	textTotal := x.addWords(words, x.texts, func(doc uint64, w, often float64) {
		d.text[doc] += float32(w * (textCoverShare + textBagShare*often/(bagK+1)))
	})
	perLength := x.addGrams(grams(question), d)
	top := make([]Hit, 0, n+1)
	for i := range x.docs {
		from, to := x.firstAsk(i), x.firstAsk(i+1)
		if d.cover[i] == 0 && from == to {
			continue
		}
		best, mean := x.nearest(d.dot, from, to)
		score := bagShare*float64(d.bag[i])/(total*(bagK+1)) + coverShare*float64(d.cover[i])/total +
			float64(d.text[i])/textTotal + (nearShare*best+nearsShare*mean)*perLength
		if score > 0 {
			top = insert(top, Hit{i, score}, n)
		}
	}
	return top
}

// addWords calls add for each of a question's words and each Doc of the list that
// contains it, with the word's weight and its saturated frequency in the Doc. It returns
// the weight of all words.
func (x *Index) addWords(words []Term, in wordList, add func(doc uint64, weight, often float64)) (total float64) {
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
			add(doc, w, tf*(bagK+1)/(tf+bagK))
		}
	}
	return total
}

// addGrams adds the dot products of the question's n-gram vector with those of the
// example questions to d. It returns 1 / the length of the question's vector.
func (x *Index) addGrams(question []gram, d *sums) float64 {
	var square float64
	for _, g := range question {
		posts, docs := x.gram(g)
		w := gramWeight(docs, x.counted)
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
		return 0 // the question has common n-grams only
	}
	return 1 / math.Sqrt(square)
}

func (x *Index) firstAsk(doc int) int { return int(binary.LittleEndian.Uint32(x.firstAsks[4*doc:])) }

// nearest returns the best similarity among a Doc's example questions, and the mean of
// the best three.
func (x *Index) nearest(dots []float32, from, to int) (best, mean float64) {
	var b0, b1, b2 float32 // the three greatest, falling
	for a := from; a < to; a++ {
		if dots[a] == 0 {
			continue
		}
		v := dots[a] * math.Float32frombits(binary.LittleEndian.Uint32(x.invLengths[4*a:]))
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

// insert adds a hit to the n best, which are sorted best first.
func insert(top []Hit, h Hit, n int) []Hit {
	if len(top) == n && h.Score <= top[n-1].Score {
		return top
	}
	i, _ := slices.BinarySearchFunc(top, h, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc))
	})
	return slices.Insert(top[:min(len(top), n-1)], i, h)
}

// fieldLeast is the least number of Docs with a word in their questions or titles that
// make it a term of the field.
const fieldLeast = 5

// HasFieldTerm reports whether a question contains a term of the field: a word that the
// lexicon marks, an option or a variable in one of the first docs Docs, or another word
// that several of these Docs have in their questions and no later Doc has at all.
func (x *Index) HasFieldTerm(question string, docs int) bool {
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
		return within >= fieldLeast && behind == 0
	})
}

// ForeignShare returns the share of a question's words, by weight, that later Docs than the
// first docs contain and none of these does. A name has the weight of an everyday word.
func (x *Index) ForeignShare(question string, docs int) float64 {
	var foreign, total float64
	for _, t := range Terms(question) {
		switch t.Weight {
		case numberWeight:
			continue
		case codeWeight:
			t.Weight = plainWeight
		}
		posts, known := x.words.find(t.Key)
		w := x.rareWord * t.Weight
		if known {
			df, _ := readVarint(posts)
			w = x.weight(df) * t.Weight
		}
		total += w
		if known && !x.Holds(t.Key, docs) {
			foreign += w
		}
	}
	return foreign / max(total, x.rareWord*numberWeight)
}

// UnknownShare returns the share of a question's words, by weight, that none of the
// first docs Docs contains. Only everyday words count as unknown, because a name, an
// option or a number may be new in any field.
func (x *Index) UnknownShare(question string, docs int) float64 {
	var unknown, total float64
	for _, t := range Terms(question) {
		posts, ok := x.words.find(t.Key)
		if !ok {
			total += x.rareWord * t.Weight
		} else {
			df, _ := readVarint(posts)
			total += x.weight(df) * t.Weight
		}
		if t.Weight == plainWeight && len(t.Key) > 2 && !isAdverb(t) && !strings.ContainsAny(t.Key, "0123456789") && !x.Holds(t.Key, docs) {
			unknown += x.rareWord * t.Weight
		}
	}
	return unknown / max(total, x.rareWord*numberWeight)
}

// isAdverb reports whether a term looks like an adverb, such as "approximately", which says
// nothing about the subject of a question.
func isAdverb(t Term) bool {
	return t.Weight == plainWeight && len(t.Key) > 5 && strings.HasSuffix(t.Key, "ly")
}

// Knows reports whether a Doc or the lexicon has an English word in lower case, in any of its
// forms.
func (x *Index) Knows(word string) bool {
	key := WordKey(word)
	return key[0] == '=' || lexicon().partOf[word] || x.has(key) || x.has(word)
}

// has reports whether any Doc contains a word.
func (x *Index) has(key string) bool {
	_, ok := x.words.find(key)
	return ok
}

// weight returns the inverse document frequency of a word that docs Docs contain, as in
// BM25.
func (x *Index) weight(docs uint64) float64 {
	return math.Log(1 + (x.counted-float64(docs)+0.5)/(float64(docs)+0.5))
}

// spread returns how many of the first docs Docs have a word in their questions or
// title, and how many of the later Docs contain it at all.
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

// Holds reports whether one of the first docs Docs contains a word, an option such as
// --nodes, or a variable, given in lower case.
func (x *Index) Holds(key string, docs int) bool {
	posts, ok := x.words.find(key)
	if !ok {
		return false
	}
	_, posts = readVarint(posts)
	doc, _ := readVarint(posts)
	return doc < uint64(docs)
}
