package index

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Term is one unit of meaning in a text. Key is a concept of the lexicon, which begins
// with "=", or a word.
type Term struct {
	Key    string
	Weight float64
}

// The weights of terms by their kind.
const (
	codeWeight   = 1.6 // exact names: --flag, ENV_VAR, %N
	wordWeight   = 1.0 // a concept of the lexicon
	numberWeight = 0.35
	plainWeight  = 0.75 // an English word that the lexicon does not know
	bigramWeight = 0.45 // a pair of Han characters that the lexicon does not know
	partWeight   = 0.5  // a part of an identifier
)

// token matches, in this order: options, output patterns, identifiers, numbers, runs of
// Han characters.
var token = lazy.New(`--?[A-Za-z][\w-]*|%[A-Za-z]\b|[A-Za-z_][\w]*(?:[.+][A-Za-z_]\w*)*|\d+(?:\.\d+)?|\p{Han}+`)

// directive replaces #SBATCH, so that the word differs from the command sbatch.
var directive = strings.NewReplacer("#SBATCH", " sbatchline ", "#sbatch", " sbatchline ")

// maxAsk is the maximal length of a question, in bytes. Longer texts are not searched for
// host names, array slots and times.
const maxAsk = 400

// hostName matches a host name in lower case, such as node-3, gpu07 or dgx12.
var hostName = lazy.New(`(?:^|[^\w-])(?:node|gpu|dgx|hgx|cn|gn|host|worker|compute|rack|nid|g|n)-?\d+(?:[^\w-]|$)`)

// slots matches the limit of simultaneous array tasks, as in 1-50%5.
var slots = lazy.On("%", `\d%\d`)

// clock matches, in lower case, a time of day or a day of the week: when a job should
// begin.
var clock = []*lazy.Pattern{
	lazy.On("am|pm|a.m|p.m", `\b\d{1,2}(?::\d\d)? ?[ap]\.?m\b`), // 4 pm
	lazy.On("at 0|at 1|at 2|at 3|at 4|at 5|at 6|at 7|at 8|at 9", `\bat \d{1,2}:\d\d\b`),
	lazy.On("o'clock|midnight", `\bo'clock\b|\bmidnight\b`),
	lazy.On("nday|sday|iday|rday", `\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b`),
	lazy.On("in the m|in the e|in the a", `\bin the (?:morning|evening|afternoon)\b`),
	lazy.On("点", `(?:[\d零〇一二三四五六七八九十]|十[一二])点(?:半|钟|整|再|就|才|开|跑|启|提|$)`+
		`|两点(?:半|钟|整|再|就|才|开|跑|启|提|$)`),
	lazy.On("周|星期|礼拜", `(?:周|星期|礼拜)[一二三四五六日天]`),
}

// numbered reports whether a digit follows a letter or a dash, as in a host name and in
// few other words. It is a fast filter before hostName.
func numbered(low string) bool {
	for i := 1; i < len(low); i++ {
		if c := low[i-1]; '0' <= low[i] && low[i] <= '9' && (c == '-' || 'a' <= c && c <= 'z') {
			return true
		}
	}
	return false
}

// Terms returns the terms of a text. Each key occurs once, with its greatest weight.
func Terms(text string) []Term {
	lex := lexicon()
	var list []Term
	at := map[string]int{}
	put := func(key string, w float64) {
		if key == "" || lex.stop[key] {
			return
		}
		if i, ok := at[key]; ok {
			list[i].Weight = max(list[i].Weight, w)
			return
		}
		at[key] = len(list)
		list = append(list, Term{key, w})
	}
	var words []string // the current run of plain English words, in which phrases are searched
	flush := func() {
		for i := 0; i < len(words); {
			if n, key := lex.phrase(words[i:]); n > 0 {
				put(key, wordWeight)
				i += n
				continue
			}
			key, w := lex.word(words[i]), wordWeight
			if key[0] != '=' {
				w = plainWeight
			}
			put(key, w)
			i++
		}
		words = words[:0]
	}
	if len(text) < maxAsk {
		low := strings.ToLower(text)
		if numbered(low) && hostName.MatchString(low) {
			put("=nodelist", partWeight)
		}
		if slots.MatchString(text) {
			put("%slots", codeWeight)
		}
		if slices.ContainsFunc(clock, func(p *lazy.Pattern) bool { return p.MatchString(low) }) {
			put("=begin", wordWeight)
		}
	}
	for _, w := range token.FindAllString(directive.Replace(fold(text)), -1) {
		switch c := w[0]; {
		case c >= 0x80:
			flush()
			lex.han(w, put)
		case c == '-' && len(w) > 1:
			flush()
			put(strings.ReplaceAll(strings.ToLower(w), "_", "-"), codeWeight)
			for _, p := range strings.FieldsFunc(strings.ToLower(w), func(r rune) bool { return r == '-' || r == '_' }) {
				if len(p) > 1 {
					put(lex.word(p), partWeight)
				}
			}
		case c == '%':
			flush()
			put(w, codeWeight)
		case c >= '0' && c <= '9':
			flush()
			put(w, numberWeight)
		case strings.ContainsAny(w, "_.+") || isAcronym(w):
			flush()
			low := strings.ToLower(w)
			if key, ok := lex.concept[low]; ok {
				put(key, wordWeight)
				break
			}
			put(low, codeWeight)
			for _, p := range strings.FieldsFunc(low, func(r rune) bool { return r == '_' || r == '.' }) {
				if len(p) > 1 && p != low {
					put(lex.word(p), partWeight)
				}
			}
		default:
			words = append(words, strings.ToLower(strings.TrimLeft(w, "-")))
		}
	}
	flush()
	return list
}

// isAcronym reports whether a word has no lower-case letters, such as PD or NCCL.
func isAcronym(w string) bool {
	if len(w) < 2 {
		return false
	}
	for _, r := range w {
		if r >= 'a' && r <= 'z' {
			return false
		}
	}
	return true
}

// fold converts full-width forms to ASCII and splits hyphenated words: "multi-node"
// becomes two words, but "--node-rank" stays one option.
func fold(s string) string {
	var b strings.Builder
	prev := ' '
	rs := []rune(s)
	for i, r := range rs {
		switch {
		case r >= '！' && r <= '～':
			r -= '！' - '!'
		case r == '　':
			r = ' '
		case r == '’':
			r = '\''
		}
		if r == '-' && i > 0 && isAlnum(prev) && !inOption(rs, i) {
			r = ' '
		}
		b.WriteRune(r)
		prev = r
	}
	return b.String()
}

func inOption(rs []rune, i int) bool {
	for j := i - 1; j >= 0; j-- {
		r := rs[j]
		if isAlnum(r) || r == '_' {
			continue
		}
		if r == '-' {
			if j == 0 || !isAlnum(rs[j-1]) && rs[j-1] != '-' {
				return true
			}
			if j > 0 && rs[j-1] == '-' && (j == 1 || !isAlnum(rs[j-2])) {
				return true
			}
			continue
		}
		return false
	}
	return false
}

func isAlnum(r rune) bool { return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// british replaces British endings by American ones, which the cards have.
var british = strings.NewReplacer("isation", "ization", "ising", "izing", "ised", "ized", "ise", "ize", "viour", "vior", "colour", "color")

// stem removes the common endings of an English word.
func stem(w string) string {
	if len(w) > 6 {
		w = british.Replace(w)
	}
	n := len(w)
	switch {
	case n > 5 && strings.HasSuffix(w, "ies"):
		return w[:n-3] + "y"
	case n > 5 && strings.HasSuffix(w, "ing"):
		return undouble(w[:n-3])
	case n > 4 && strings.HasSuffix(w, "ed"):
		return undouble(w[:n-2])
	case n > 4 && (strings.HasSuffix(w, "sses") || strings.HasSuffix(w, "xes") || strings.HasSuffix(w, "ches")):
		return w[:n-2]
	case n > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		return cutE(w[:n-1])
	}
	return cutE(w)
}

// cutE removes a final e, so that "queue" and "queuing" have the same stem.
func cutE(w string) string {
	if len(w) > 4 && strings.HasSuffix(w, "e") {
		return w[:len(w)-1]
	}
	return w
}

func undouble(w string) string {
	n := len(w)
	if n > 3 && w[n-1] == w[n-2] && w[n-1] != 'l' && w[n-1] != 's' {
		return w[:n-1]
	}
	return cutE(w)
}

//go:embed lexicon.txt
var lexiconText string

// A lex is the lexicon: it maps words and phrases with the same meaning to one concept.
type lex struct {
	concept map[string]string // by English word or phrase, or Chinese word
	stop    map[string]bool   // concepts to ignore
	field   map[string]bool   // concepts of the field
	longest int               // length of the longest Chinese word, in runes
	// phrases maps the first word of English phrases to the number of words of the
	// longest phrase with this beginning.
	phrases map[string]int
	partOf  map[string]bool // the words of English phrases
}

// lexicon parses the table on first use.
//
// A line has a concept and its forms: "concept: English forms; Chinese forms", with
// commas between forms. A ~ before the concept marks everyday language, which does not
// show that a question is about the field. The line "stop" lists words without meaning
// for a search.
var lexicon = sync.OnceValue(func() *lex {
	l := &lex{concept: map[string]string{}, stop: map[string]bool{}, field: map[string]bool{}, phrases: map[string]int{}, partOf: map[string]bool{}}
	for line := range strings.Lines(lexiconText) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, forms, _ := strings.Cut(line, ":")
		name, general := strings.CutPrefix(name, "~")
		key := "=" + name
		if !general {
			l.field[key] = true
		}
		if name == "stop" {
			key = "=stop"
			l.stop[key] = true
		}
		for _, f := range strings.FieldsFunc(forms, func(r rune) bool { return r == ',' || r == ';' || r == '，' }) {
			f = strings.ToLower(strings.TrimSpace(f))
			if f == "" {
				continue
			}
			l.concept[f] = key
			if f[0] < 0x80 {
				if first, _, several := strings.Cut(f, " "); several {
					l.phrases[first] = max(l.phrases[first], strings.Count(f, " ")+1)
					for w := range strings.FieldsSeq(f) {
						l.partOf[w] = true
					}
				} else if s := stem(f); l.concept[s] == "" {
					l.concept[s] = key
				}
			} else {
				l.longest = max(l.longest, len([]rune(f)))
			}
		}
	}
	return l
})

// word returns the concept of a lower-case word, or its stem where the lexicon knows
// neither.
func (l *lex) word(w string) string {
	s := stem(w)
	return cmp.Or(l.concept[w], l.concept[s], s)
}

// WordKey returns the key of the term that an English word in lower case is.
func WordKey(word string) string { return lexicon().word(word) }

// phrase finds the longest phrase of the lexicon at the beginning of words.
func (l *lex) phrase(words []string) (n int, key string) {
	for n := min(l.phrases[words[0]], len(words)); n > 1; n-- {
		if key, ok := l.concept[strings.Join(words[:n], " ")]; ok {
			return n, key
		}
	}
	return 0, ""
}

// han splits a run of Han characters into words of the lexicon, the longest possible
// first. The remaining characters become pairs.
func (l *lex) han(run string, put func(string, float64)) {
	rs := []rune(run)
	var rest []rune
	flush := func() {
		for i := 0; i+1 < len(rest); i++ {
			put(string(rest[i:i+2]), bigramWeight)
		}
		if len(rest) == 1 {
			put(string(rest), bigramWeight/2)
		}
		rest = rest[:0]
	}
next:
	for i := 0; i < len(rs); {
		for n := min(l.longest, len(rs)-i); n > 0; n-- {
			if key, ok := l.concept[string(rs[i:i+n])]; ok {
				flush()
				put(key, wordWeight)
				i += n
				continue next
			}
		}
		rest = append(rest, rs[i])
		i++
	}
	flush()
}

// Keys returns the keys of terms.
func Keys(terms []Term) map[string]bool {
	keys := map[string]bool{}
	for _, t := range terms {
		keys[t.Key] = true
	}
	return keys
}

// Words returns the terms that are words: no options, variables or parts of them. It returns
// all terms where none is a word.
func Words(terms []Term) []Term {
	words := slices.DeleteFunc(slices.Clone(terms), func(t Term) bool { return t.Weight == codeWeight || t.Weight == partWeight })
	if len(words) == 0 {
		return terms
	}
	return words
}

// Shared returns the share of terms, by weight, whose keys are among keys.
func Shared(terms []Term, keys map[string]bool) float64 {
	var shared, total float64
	for _, t := range terms {
		total += t.Weight
		if keys[t.Key] {
			shared += t.Weight
		}
	}
	return shared / max(total, numberWeight)
}
