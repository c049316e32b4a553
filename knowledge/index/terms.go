package index

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Term is one unit of meaning in a text.
type Term struct {
	Key    string
	Weight float64
}

// Weights by how much a form of a word says.
const (
	codeWeight   = 1.6 // --flag, ENV_VAR, %N: what was written exactly
	wordWeight   = 1.0
	numberWeight = 0.35
	plainWeight  = 0.75 // an English word that the lexicon does not know
	bigramWeight = 0.45 // a pair of Han characters that the lexicon does not know
	partWeight   = 0.5  // a piece of an identifier
)

// token finds, in this order: options, output patterns, identifiers and
// numbers, runs of Han.
var token = lazy.New(`--?[A-Za-z][\w-]*|%[A-Za-z]\b|[A-Za-z_][\w]*(?:[.+][A-Za-z_]\w*)*|\d+(?:\.\d+)?|\p{Han}+`)

// directive tells an #SBATCH line of a script from the command.
var directive = strings.NewReplacer("#SBATCH", " sbatchline ", "#sbatch", " sbatchline ")

// maxAsk is the length up to which a text may be a question, in bytes.
const maxAsk = 400

// hostName finds in lower case the name of one machine, such as node-3, gpu07 or dgx12.
var hostName = lazy.New(`(?:^|[^\w-])(?:node|gpu|dgx|hgx|cn|gn|host|worker|compute|rack|nid|g|n)-?\d+(?:[^\w-]|$)`)

// slots finds how many elements of an array may run at once, as in 1-50%5.
var slots = lazy.On("%", `\d%\d`)

// clock finds in lower case a time of day or a day of the week, at which something is
// to begin.
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

// numbered reports whether a digit stands behind a letter or a dash, as it does in the
// name of a machine and in few other words.
func numbered(low string) bool {
	for i := 1; i < len(low); i++ {
		if c := low[i-1]; '0' <= low[i] && low[i] <= '9' && (c == '-' || 'a' <= c && c <= 'z') {
			return true
		}
	}
	return false
}

// Terms analyses a text. A key occurs once, with the greatest of its weights.
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
	var words []string // the run of plain English words that phrases are looked for in
	flush := func() {
		for i := 0; i < len(words); {
			n, key := lex.phrase(words[i:])
			switch {
			case n > 0:
				put(key, wordWeight)
				i += n
			default:
				key, w := stem(words[i]), wordWeight
				if key[0] != '=' {
					w = plainWeight
				}
				put(key, w)
				i++
			}
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

// isAcronym reports whether a word is written in capitals, such as PD or NCCL.
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

// fold brings full-width forms to ASCII and cuts hyphenated words apart, so
// that "multi-node" reads as two words and "--node-rank" stays one option.
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
		if r == '-' && i > 0 && isAlnum(prev) {
			// Inside an option the hyphen stays.
			if !inOption(rs, i) {
				r = ' '
			}
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

// stem cuts the common endings off an English word.
func stem(w string) string {
	lex := lexicon()
	if key, ok := lex.concept[w]; ok {
		return key
	}
	s := cut(w)
	if key, ok := lex.concept[s]; ok {
		return key
	}
	return s
}

func cut(w string) string {
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

// cutE drops a final e, so that "queue" and "queuing" meet.
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

// A lex is the lexicon: which words and phrases mean the same.
type lex struct {
	concept map[string]string // English word or phrase, or Chinese word → concept
	stop    map[string]bool
	field   map[string]bool // concepts of the field
	longest int             // of a Chinese word, in runes
	// phrases are the first words of English phrases, and how many words the
	// longest that begins so has.
	phrases map[string]int
}

// lexicon reads the table on first use.
//
// A line names one concept and the forms of it: English forms separated by
// commas, a semicolon, Chinese forms. A ~ marks a concept of everyday language,
// which does not tell that a question is about the field. The line "stop"
// lists words that say nothing.
var lexicon = sync.OnceValue(func() *lex {
	l := &lex{concept: map[string]string{}, stop: map[string]bool{}, field: map[string]bool{}, phrases: map[string]int{}}
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
				} else {
					if s := cut(f); l.concept[s] == "" {
						l.concept[s] = key
					}
				}
			} else {
				l.longest = max(l.longest, len([]rune(f)))
			}
		}
	}
	return l
})

// word is the concept of one lower-case word, or its stem.
func (l *lex) word(w string) string { return stem(w) }

// phrase finds the longest phrase of the lexicon at the head of words.
func (l *lex) phrase(words []string) (n int, key string) {
	for n := min(l.phrases[words[0]], len(words)); n > 1; n-- {
		if key, ok := l.concept[strings.Join(words[:n], " ")]; ok {
			return n, key
		}
	}
	return 0, ""
}

// han cuts a run of Han characters into words of the lexicon, longest first;
// what is left over becomes pairs of characters.
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
