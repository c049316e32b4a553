package lazy

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// Required returns words, in lower case, of which every match of an expression contains at least one,
// whatever the case of its ASCII letters. It returns nil if there are no such words of at least
// ShortestWord bytes. A search for the words tells of most texts that they do not match, in a small part
// of the time that the expression takes.
func Required(expr string) []string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	return partOf(re).words()
}

// A part is what is known of the matches of a part of an expression.
type part struct {
	all []string // the texts that it can match, if they are few; else nil
	one []string // words of which each match contains one, if all is nil; nil if none are known
}

// manyTexts bounds the texts of a part. Beyond it the part is known by words only.
const manyTexts = 32

func (p part) words() []string {
	if p.all == nil {
		return p.one
	}
	if len(shortest(p.all)) < ShortestWord {
		return nil
	}
	return distinct(p.all)
}

// distinct returns words without those that contain another one.
func distinct(words []string) (kept []string) {
	for _, w := range words {
		if !slices.ContainsFunc(words, func(in string) bool { return in != w && strings.Contains(w, in) }) && !slices.Contains(kept, w) {
			kept = append(kept, w)
		}
	}
	return kept
}

// shortest returns the shortest word, or "" of no words.
func shortest(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return slices.MinFunc(words, func(a, b string) int { return len(a) - len(b) })
}

// partOf returns what is known of the matches of an expression.
func partOf(re *syntax.Regexp) part {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return part{all: []string{""}}
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 || !slices.ContainsFunc(re.Rune, hasOtherCase) {
			return part{all: []string{lower(string(re.Rune))}}
		}
	case syntax.OpCharClass:
		return ofClass(re.Rune)
	case syntax.OpCapture:
		return partOf(re.Sub[0])
	case syntax.OpConcat:
		return ofSequence(re.Sub)
	case syntax.OpAlternate:
		return ofChoice(re.Sub)
	case syntax.OpQuest:
		if p := partOf(re.Sub[0]); p.all != nil && len(p.all) < manyTexts {
			return part{all: append([]string{""}, p.all...)}
		}
	case syntax.OpPlus:
		return part{one: partOf(re.Sub[0]).words()}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return part{one: partOf(re.Sub[0]).words()}
		}
	}
	return part{}
}

// ofClass returns the characters of a class of at most five, such as [ -].
func ofClass(ranges []rune) (p part) {
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if c := lower(string(r)); !slices.Contains(p.all, c) {
				p.all = append(p.all, c)
			}
			if len(p.all) > 5 {
				return part{}
			}
		}
	}
	return p
}

// ofSequence returns the texts of consecutive parts, or the words of the most telling of them.
func ofSequence(parts []*syntax.Regexp) part {
	run, best, whole := []string{""}, []string(nil), true
	end := func(with part) {
		best = better(best, better(part{all: run}.words(), with.words()))
		run, whole = []string{""}, false
	}
	for _, re := range parts {
		p := partOf(re)
		switch {
		case p.all == nil:
			end(p)
		case len(run)*len(p.all) > manyTexts:
			end(part{})
			run = p.all
		default:
			var longer []string
			for _, a := range run {
				for _, b := range p.all {
					longer = append(longer, a+b)
				}
			}
			run = longer
		}
	}
	if whole {
		return part{all: run}
	}
	end(part{})
	return part{one: best}
}

// ofChoice returns the texts or the words of alternatives.
func ofChoice(parts []*syntax.Regexp) part {
	var texts, words []string
	few, told := true, true
	for _, re := range parts {
		p := partOf(re)
		texts, few = append(texts, p.all...), few && p.all != nil
		w := p.words()
		words, told = append(words, w...), told && w != nil
	}
	switch {
	case few && len(texts) <= manyTexts:
		return part{all: texts}
	case told:
		return part{one: distinct(words)}
	}
	return part{}
}

// better returns the list of words that fewer texts contain: the one whose shortest word is longer.
func better(a, b []string) []string {
	if len(shortest(b)) > len(shortest(a)) {
		return b
	}
	return a
}

// hasOtherCase reports whether a letter that is not ASCII has another case, which Words does not know.
func hasOtherCase(r rune) bool { return r > unicode.MaxASCII && unicode.SimpleFold(r) != r }

// lower maps the ASCII letters of s to lower case.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = fold[c]
	}
	return string(b)
}
