package lazy

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Running an expression over a text costs far more than looking for words in
// it. So from every expression the words are derived of which a match must hold
// some, and the expression runs only over texts that hold them.

// A need is a set of words: a match holds at least one of them.
type need []string

// Sets do not grow beyond these: a long list of rare combinations says no more
// than the shorter lists it is made of.
const (
	maxProduct = 64 // words of a set made by joining two
	maxClass   = 16 // characters of a class that is written out
)

// A reading is what is known of the texts that an expression matches.
type reading struct {
	// exact lists all of them, without what assertions (^, \b) ask; nil where
	// there are too many.
	exact need
	// plain says that every text of exact is a match wherever it stands.
	plain bool
	// needs hold, all of them, for each.
	needs []need
}

// all is the reading's needs, exact being one of them.
func (r reading) all() []need {
	if r.exact == nil {
		return r.needs
	}
	return withNeed(r.needs, r.exact)
}

// withNeed adds a need to a list, unless it says nothing.
func withNeed(list []need, n need) []need {
	if len(n) == 0 || slices.Contains(n, "") {
		return list
	}
	return append(list, n)
}

// read derives the reading of an expression. Words are in lower case where fold.
func read(re *syntax.Regexp, fold bool) reading {
	switch re.Op {
	case syntax.OpLiteral:
		return readLiteral(re, fold)
	case syntax.OpCharClass:
		return readClass(re.Rune, fold)
	case syntax.OpEmptyMatch:
		return reading{exact: need{""}, plain: true}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return reading{exact: need{""}}
	case syntax.OpCapture:
		return read(re.Sub[0], fold)
	case syntax.OpQuest:
		if r := read(re.Sub[0], fold); r.exact != nil {
			return reading{exact: append(need{""}, r.exact...), plain: r.plain}
		}
	case syntax.OpPlus:
		return reading{needs: read(re.Sub[0], fold).all()}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return reading{needs: read(re.Sub[0], fold).all()}
		}
	case syntax.OpConcat:
		return readConcat(re.Sub, fold)
	case syntax.OpAlternate:
		return readAlternate(re.Sub, fold)
	}
	return reading{}
}

func readLiteral(re *syntax.Regexp, fold bool) reading {
	for _, r := range re.Rune {
		// Beyond ASCII a letter may have other cases than two.
		if r == utf8.RuneError || re.Flags&syntax.FoldCase != 0 && r >= utf8.RuneSelf && unicode.SimpleFold(r) != r {
			return reading{}
		}
	}
	s := string(re.Rune)
	if fold {
		s = lower(s)
	}
	return reading{exact: need{s}, plain: !fold}
}

func readClass(pairs []rune, fold bool) reading {
	var list need
	for i := 0; i+1 < len(pairs); i += 2 {
		if int(pairs[i+1]-pairs[i]) >= maxClass {
			return reading{}
		}
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			s := string(r)
			if fold {
				s = lower(s)
			}
			if r == utf8.RuneError || len(list) > maxClass {
				return reading{}
			}
			if !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return reading{exact: list, plain: !fold}
}

func readConcat(subs []*syntax.Regexp, fold bool) reading {
	out := reading{plain: true}
	run, whole := need{""}, true // the texts since the last gap; whether there was none
	for _, sub := range subs {
		r := read(sub, fold)
		out.plain = out.plain && r.plain
		switch {
		case r.exact == nil:
			out.needs = append(withNeed(out.needs, run), r.needs...)
			run, whole = need{""}, false
		case len(run)*len(r.exact) > maxProduct:
			out.needs = withNeed(out.needs, run)
			run, whole = r.exact, false
		default:
			run = product(run, r.exact)
		}
	}
	if whole {
		out.exact = run
		return out
	}
	out.needs, out.plain = withNeed(out.needs, run), false
	return out
}

func product(a, b need) need {
	list := make(need, 0, len(a)*len(b))
	for _, s := range a {
		for _, t := range b {
			list = append(list, s+t)
		}
	}
	return list
}

func readAlternate(subs []*syntax.Regexp, fold bool) reading {
	out := reading{exact: need{}, plain: true}
	var any need
	open := false // whether some branch needs nothing
	for _, sub := range subs {
		r := read(sub, fold)
		if r.exact == nil {
			out.exact = nil
		} else if out.exact != nil {
			out.exact = append(out.exact, r.exact...)
		}
		out.plain = out.plain && r.plain
		best := strongest(r.all())
		open = open || best == nil
		any = append(any, best...)
	}
	switch {
	case out.exact != nil:
	case open:
		return reading{}
	default:
		out.needs, out.plain = []need{any}, false
	}
	return out
}

// strongest is the need with the longest words, which holds for the fewest texts.
func strongest(list []need) need {
	var best need
	length := 0
	for _, n := range list {
		short := len(slices.MinFunc(n, func(a, b string) int { return len(a) - len(b) }))
		if short > length || short == length && len(n) < len(best) {
			best, length = n, short
		}
	}
	return best
}

// folds reports whether an expression ignores case anywhere.
func folds(re *syntax.Regexp) bool {
	return re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase != 0 || slices.ContainsFunc(re.Sub, folds)
}

// lower brings the letters of ASCII to lower case.
func lower(s string) string {
	for i := range len(s) {
		if c := s[i]; 'A' <= c && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if c := b[i]; 'A' <= c && c <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// strange reports whether a text holds one of the two characters beyond ASCII
// that equal a letter of ASCII where case is ignored.
func strange(s string) bool { return strings.Contains(s, "ſ") || strings.Contains(s, "\u212a") }

// split takes an expression apart into its alternatives.
func split(expr string) *parts {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	all := &parts{fold: folds(tree)}
	for _, sub := range branches(tree) {
		r := read(sub, all.fold)
		p := part{}
		for _, n := range r.all() {
			p.needs = append(p.needs, wordsOf(n))
		}
		if r.plain {
			p.words = wordsOf(r.exact)
		} else {
			p.re = compiled(sub.String())
		}
		all.open = all.open || p.needs == nil
		all.list = append(all.list, p)
	}
	return all
}

// branches are expressions of which one matches where the whole does. What
// stands between assertions is taken apart too: \b(?:x|y)\b is \bx\b or \by\b.
func branches(re *syntax.Regexp) []*syntax.Regexp {
	var list []*syntax.Regexp
	switch re.Op {
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			list = append(list, branches(sub)...)
		}
		return list
	case syntax.OpConcat:
		at := slices.IndexFunc(re.Sub, matters)
		if at < 0 || re.Sub[at].Op != syntax.OpAlternate || slices.ContainsFunc(re.Sub[at+1:], matters) {
			break
		}
		for _, sub := range branches(re.Sub[at]) {
			one := *re
			one.Sub = slices.Clone(re.Sub)
			one.Sub[at] = sub
			list = append(list, &one)
		}
		return list
	}
	return []*syntax.Regexp{re}
}

// matters reports whether an expression is more than an assertion.
func matters(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return false
	}
	return true
}
