package index

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// magic is the beginning of an index and names its format.
const (
	magic    = "megatron-ops index 3\n"
	sections = 15
)

// Weights of a Doc's parts in its bag of words. Term frequencies are written in units of
// 1/tfUnit.
const (
	askWeight   = 2.0
	titleWeight = 3.0
	bodyWeight  = 0.5
	tfUnit      = 32
)

// Build encodes the index of Docs for Open.
func Build(docs []Doc) []byte {
	words, texts := map[string][]posting{}, map[string][]posting{}
	byGram := map[gram]*occurrences{}
	firstAsks := make([]byte, 0, 4*len(docs)+4)
	asks := 0
	unit, units := countedAs(docs)
	for i, d := range docs {
		firstAsks = binary.LittleEndian.AppendUint32(firstAsks, uint32(asks))
		tf := map[string]float64{}
		for _, a := range d.Asks {
			for _, t := range Terms(a) {
				// A word in many example questions must not count more.
				tf[t.Key] = max(tf[t.Key], askWeight*t.Weight)
			}
			for _, g := range grams(a) {
				o := byGram[g]
				if o == nil {
					o = &occurrences{units: map[int]bool{}}
					byGram[g] = o
				}
				o.asks = append(o.asks, asks)
				o.units[unit[i]] = true
			}
			asks++
		}
		own := map[string]float64{}
		for _, t := range Terms(d.Title) {
			own[t.Key] += titleWeight * t.Weight
		}
		for _, t := range Terms(d.Body) {
			own[t.Key] += bodyWeight * t.Weight
		}
		if len(own) == 0 { // a Doc without title and body: its questions serve as text
			own = maps.Clone(tf)
		} else {
			for k, n := range own {
				tf[k] += n
			}
		}
		for k, n := range tf {
			words[k] = append(words[k], posting{i, n})
		}
		for k, n := range own {
			texts[k] = append(texts[k], posting{i, n})
		}
	}
	firstAsks = binary.LittleEndian.AppendUint32(firstAsks, uint32(asks))
	var out [sections][]byte
	out[0], out[1], out[2], out[3] = encodeWords(words, unit)
	var invLengths []byte
	out[4], out[5], out[6], out[7], invLengths = encodeGrams(byGram, float64(units), asks)
	out[8], out[9] = firstAsks, invLengths
	out[10], out[11], out[12], out[13] = encodeWords(texts, unit)
	out[14] = binary.LittleEndian.AppendUint32(nil, uint32(units))
	b := []byte(magic)
	for _, s := range out {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return b
}

// A posting is a Doc that contains a word, with the word's weighted frequency.
type posting struct {
	doc int
	tf  float64
}

// occurrences lists the example questions with an n-gram and counts their Docs.
type occurrences struct {
	asks  []int
	units map[int]bool
}

func encodeWords(words map[string][]posting, unit []int) (keyEnds, keys, postEnds, posts []byte) {
	for _, k := range slices.Sorted(maps.Keys(words)) {
		keys = append(keys, k...)
		keyEnds = binary.LittleEndian.AppendUint32(keyEnds, uint32(len(keys)))
		seen := map[int]bool{}
		for _, p := range words[k] {
			seen[unit[p.doc]] = true
		}
		posts = binary.AppendUvarint(posts, uint64(len(seen)))
		before := 0
		for _, p := range words[k] {
			posts = binary.AppendUvarint(posts, uint64(p.doc-before))
			posts = binary.AppendUvarint(posts, uint64(math.Round(p.tf*tfUnit)))
			before = p.doc
		}
		postEnds = binary.LittleEndian.AppendUint32(postEnds, uint32(len(posts)))
	}
	return keyEnds, keys, postEnds, posts
}

func encodeGrams(byGram map[gram]*occurrences, docs float64, asks int) (keys, inDocs, ends, posts, invLengths []byte) {
	squares := make([]float64, asks)
	for _, g := range slices.Sorted(maps.Keys(byGram)) {
		o := byGram[g]
		keys = binary.LittleEndian.AppendUint64(keys, uint64(g))
		inDocs = binary.LittleEndian.AppendUint32(inDocs, uint32(len(o.units)))
		if w := gramWeight(len(o.units), docs); w > 0 {
			before := 0
			for _, a := range o.asks {
				posts = binary.AppendUvarint(posts, uint64(a-before))
				before = a
				squares[a] += w * w
			}
		}
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(posts)))
	}
	for _, s := range squares {
		v := 0.0
		if s > 0 {
			v = 1 / math.Sqrt(s)
		}
		invLengths = binary.LittleEndian.AppendUint32(invLengths, math.Float32bits(float32(v)))
	}
	return keys, inDocs, ends, posts, invLengths
}

// An n-gram in more than commonShare of the Docs, and in more than commonLeast Docs, is
// ignored.
const (
	commonShare = 0.15
	commonLeast = 20
)

// gramWeight returns the inverse document frequency of an n-gram that holding of docs
// Docs contain.
func gramWeight(holding int, docs float64) float64 {
	if float64(holding) > max(commonLeast, commonShare*docs) {
		return 0
	}
	return math.Log(1 + docs/(float64(holding)+0.5))
}

func readVarint(b []byte) (n uint64, rest []byte) {
	n, k := binary.Uvarint(b)
	if k <= 0 {
		return 0, nil
	}
	return n, b[k:]
}

// countedAs returns, for each Doc, the unit that it counts as in frequencies, and the number
// of units.
func countedAs(docs []Doc) (unit []int, units int) {
	groups := map[string]int{}
	unit = make([]int, len(docs))
	for i, d := range docs {
		g, known := groups[d.Group]
		if d.Group == "" || !known {
			g = units
			units++
		}
		if d.Group != "" {
			groups[d.Group] = g
		}
		unit[i] = g
	}
	return unit, units
}
