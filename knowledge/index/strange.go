package index

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// What a question is about is often its one word that nothing here holds: a
// product, a trade, a matter of everyday life. Such a word is told from a
// colloquial way of saying something, from a slip of the keyboard and from a
// value: a machine, a user, a file.

//go:embed everyday.txt
var everydayText string

//go:embed foreign.txt
var foreignText string

// A wordSet holds words, English ones by their stem, and how long its longest
// Chinese word is.
type wordSet struct {
	words   map[string]bool
	longest int
}

func (s *wordSet) has(w string) bool { return s.words[w] || s.words[cut(w)] }

func readWords(text string) *wordSet {
	s := &wordSet{words: map[string]bool{}}
	for line := range strings.Lines(text) {
		if line[0] == '#' {
			continue
		}
		for _, w := range strings.Fields(line) {
			s.words[w] = true
			if w[0] < 0x80 {
				if c := cut(w); len(c) > 3 {
					s.words[c] = true
				}
			} else {
				s.longest = max(s.longest, len([]rune(w)))
			}
		}
	}
	return s
}

var (
	everyday = sync.OnceValue(func() *wordSet { return readWords(everydayText) })
	foreign  = sync.OnceValue(func() *wordSet { return readWords(foreignText) })
)

var (
	// spoken finds words with what stands before and behind them.
	spoken = lazy.New(`[A-Za-z][\w'+-]*|\p{Han}+`)
	// doer is what a verb stands behind.
	doer = lazy.New(`(?i)^(?:i|we|you|they|it|to|can|could|should|must|will|would|may|might|do|does|did|don't|not|please|cannot|can't|won't|let's|help|me)$`)
	// naming is what the name of something stands behind.
	naming = lazy.New(`(?i)^(?:partition|account|user|username|named|called|qos|reservation|host|hostname|queue|label|branch|directory|folder|file|variable|flag|option|field|column|state|status|stage|target|extra|group)$`)
)

// A Stranger is a word of a question that nothing here holds.
type Stranger struct {
	Word string
	// Name says that it is written like a name; Foreign that it is known to name
	// something else.
	Name, Foreign bool
}

// Strangers are the words of a question which neither the lexicon nor any Doc
// nor everyday language holds, and those which name a foreign subject that the
// given Doc does not speak of.
func (x *Index) Strangers(text string, doc int) []Stranger {
	var list []Stranger
	lex, plain, other := lexicon(), everyday(), foreign()
	held := func(key string) bool { return doc >= 0 && x.docs[doc].tf[key] > 0 }
	text = strings.ReplaceAll(text, "’", "'")
	prev := ""
	for _, at := range spoken.FindAllStringIndex(text, -1) {
		w := text[at[0]:at[1]]
		if w[0] >= 0x80 {
			list = append(list, x.hanStrangers(w, held)...)
			prev = ""
			continue
		}
		before := prev
		prev = w
		if isValue(text, at[0], at[1], w) {
			continue
		}
		for _, part := range strings.FieldsFunc(w, func(r rune) bool { return r == '-' || r == '+' }) {
			part = strings.TrimSuffix(strings.TrimSuffix(part, "'s"), "'")
			low := strings.ToLower(part)
			key := stem(low)
			switch {
			case len(low) < 3 || strings.Contains(low, "'"):
			case other.has(low) && !lex.field[key] && !held(key):
				list = append(list, Stranger{Word: low, Foreign: true})
			case key[0] == '=' || x.idf[key] > 0 || x.idf[low] > 0 || plain.has(low):
			case naming.MatchString(before):
			case x.misspelt(low):
			case isName(part, before):
				list = append(list, Stranger{Word: low, Name: true})
			case strings.HasSuffix(low, "ly") || strings.HasSuffix(low, "ing") || strings.HasSuffix(low, "ed"):
			case doer.MatchString(before):
			default:
				list = append(list, Stranger{Word: low})
			}
		}
	}
	return list
}

// isValue reports whether a word is a value: part of a path or an address, in
// quotes, with digits or underscores.
func isValue(text string, from, to int, w string) bool {
	if strings.ContainsAny(w, "_0123456789") {
		return true
	}
	if from > 0 && strings.ContainsRune("/~$@.-_:=\"'`“", rune(text[from-1])) {
		return true
	}
	if to < len(text) && strings.ContainsRune("/@_=\"'`", rune(text[to])) {
		return true
	}
	return to+1 < len(text) && (text[to] == '.' || text[to] == ':') && text[to+1] > ' ' && text[to+1] < 0x80
}

// isName reports whether a word is written like a name: a capital inside, or
// at its head behind another word.
func isName(w, before string) bool {
	inside := strings.IndexFunc(w[1:], unicode.IsUpper) >= 0
	return inside || before != "" && unicode.IsUpper(rune(w[0]))
}

// spellings are the English words of the lexicon and the Docs, by their first
// letter.
func spellings(held map[string]float64) map[byte][]string {
	list := map[byte][]string{}
	put := func(w string) {
		if len(w) > 3 && w[0] >= 'a' && w[0] <= 'z' && !strings.Contains(w, " ") {
			list[w[0]] = append(list[w[0]], w)
		}
	}
	for w := range held {
		put(w)
	}
	for w := range lexicon().concept {
		put(w)
	}
	return list
}

// misspelt reports whether a word is nearly one that is known.
func (x *Index) misspelt(w string) bool {
	if len(w) < 5 {
		return false
	}
	allowed := 1
	if len(w) > 8 {
		allowed = 2
	}
	for _, k := range x.byHead[w[0]] {
		for _, form := range []string{w, cut(w)} {
			if d := len(k) - len(form); d >= -allowed && d <= allowed && distance(form, k) <= allowed {
				return true
			}
		}
	}
	return false
}

// distance is how many letters have to be put, taken, changed or swapped.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}

// hanStrangers are the pieces of a run of Han that are no word of the lexicon
// or of everyday language and of which no Doc holds a pair of characters.
func (x *Index) hanStrangers(run string, held func(string) bool) []Stranger {
	lex, plain, other := lexicon(), everyday(), foreign()
	rs := []rune(run)
	longest := max(lex.longest, plain.longest, other.longest)
	var list []Stranger
	var rest []rune
	flush := func() {
		if len(rest) < 2 {
			rest = rest[:0]
			return
		}
		unknown := 0
		for i := 0; i+1 < len(rest); i++ {
			if x.idf[string(rest[i:i+2])] == 0 {
				unknown++
			}
		}
		if 2*unknown > len(rest)-1 {
			list = append(list, Stranger{Word: string(rest)})
		}
		rest = rest[:0]
	}
next:
	for i := 0; i < len(rs); {
		for n := min(longest, len(rs)-i); n > 0; n-- {
			w := string(rs[i : i+n])
			key, known := lex.concept[w]
			switch {
			case other.words[w] && !(known && lex.field[key]):
				flush()
				if !held(key) {
					list = append(list, Stranger{Word: w, Foreign: true})
				}
			case known || plain.words[w]:
				flush()
			default:
				continue
			}
			i += n
			continue next
		}
		rest = append(rest, rs[i])
		i++
	}
	flush()
	return list
}
