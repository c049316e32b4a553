package index

import "math"

// A question may hold the words of several Docs. Which one it is meant for shows
// in how often those who ask for a Doc use its words: "pending" occurs in many
// example questions on why a job waits, and in few on how to change one. So each
// Doc has a model of the language in which it is asked for: the words, and the
// pieces of letters, of its example questions and title, smoothed with those of
// all Docs (a unigram model with a Dirichlet prior).

const (
	priorSize   = 30.0 // how much text the prior stands for
	likelyPiece = 0.3  // the weight of a piece of letters, where a word's is 1
	likelyShare = 0.1  // of the order of hits
	// unlikely is below what a Doc among many is not looked at closer: two in three
	// are, and of 4,000 Docs that were found none was. Among few all gains are small.
	unlikely = 0.3
	many     = 500
)

// A likelihood tells how likely a question is of each Doc.
type likelihood struct {
	words  map[string][]heard
	pieces map[gram][]heard
	cost   []float64 // by Doc: what a unit of the question costs a wordy one
}

// heard is how much more likely a word is of a Doc than of all.
type heard struct {
	doc  int32
	gain float64
}

// A tally counts a word: by Doc, and over all.
type tally struct {
	docs []heard // the gain holds the count
	all  float64
}

// counted adds what one text of a Doc holds.
func counted[K comparable](in map[K]*tally, key K, doc int32, n float64) {
	t := in[key]
	if t == nil {
		t = &tally{}
		in[key] = t
	}
	if k := len(t.docs); k == 0 || t.docs[k-1].doc != doc {
		t.docs = append(t.docs, heard{doc: doc})
	}
	t.docs[len(t.docs)-1].gain += n
	t.all += n
}

func newLikelihood(docs []material) *likelihood {
	l := &likelihood{cost: make([]float64, len(docs))}
	words, pieces := map[string]*tally{}, map[gram]*tally{}
	var all float64
	for i, d := range docs {
		var size float64
		put := func(a analysed) {
			for _, t := range a.terms {
				counted(words, t.Key, int32(i), t.Weight)
				size += t.Weight
			}
			for _, g := range a.pieces {
				counted(pieces, g, int32(i), likelyPiece)
				size += likelyPiece
			}
		}
		put(d.title)
		for _, a := range d.asks {
			put(a)
		}
		l.cost[i] = math.Log(1 + size/priorSize)
		all += size
	}
	l.words, l.pieces = gains(words, all), gains(pieces, all)
	return l
}

// gains turns counts into what a word is worth to a Doc.
func gains[K comparable](counts map[K]*tally, all float64) map[K][]heard {
	m := make(map[K][]heard, len(counts))
	for k, t := range counts {
		for i, h := range t.docs {
			t.docs[i].gain = math.Log(1 + h.gain*all/(priorSize*t.all))
		}
		m[k] = t.docs
	}
	return m
}

// of sets what a unit of the question gains of each Doc; the Doc's cost is still to
// be taken off.
func (l *likelihood) of(q []Term, pieces []gram, d *desk) {
	var size float64
	add := func(list []heard, w float64) {
		size += w
		for _, h := range list {
			d.likely[h.doc] += w * h.gain
		}
	}
	for _, t := range q {
		add(l.words[t.Key], t.Weight)
	}
	for _, g := range pieces {
		add(l.pieces[g], likelyPiece)
	}
	if size == 0 {
		return
	}
	for i := range d.likely {
		d.likely[i] /= size
	}
}
