// Package lazy makes tables of regular expressions cheap until they are needed: it
// compiles expressions at their first use, and finds in one pass which of many words a
// text contains, so that only the expressions that may match are run. It derives such
// words from an expression.
package lazy

import (
	"regexp"
	"strings"
	"sync"
)

// A Pattern is a regular expression that is compiled on first use. Its methods are
// those of regexp.Regexp.
type Pattern struct {
	re    func() *regexp.Regexp
	words []string // if set, every match contains one of them
}

// New returns the pattern of an expression. A wrong expression panics at first use; the
// tests of the tables use every one.
func New(expr string) *Pattern {
	return &Pattern{re: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// On returns the pattern of an expression whose every match contains one of words,
// which are separated by |. The case of the words matters. A text without any of them
// cannot match, so the expression is not run: to search for ten words takes a hundredth
// of the time of an expression that may begin anywhere.
func On(words, expr string) *Pattern {
	p := New(expr)
	p.words = strings.Split(words, "|")
	return p
}

// regexpFor returns the expression to run on a text, or one that matches nothing if the
// text contains none of the pattern's words.
func (p *Pattern) regexpFor(s string) *regexp.Regexp {
	for _, w := range p.words {
		if strings.Contains(s, w) {
			return p.re()
		}
	}
	if p.words == nil {
		return p.re()
	}
	return matchesNothing
}

var matchesNothing = regexp.MustCompile(`\A[^\s\S]`)

// MatchString reports whether s contains a match.
func (p *Pattern) MatchString(s string) bool { return p.regexpFor(s).MatchString(s) }

// FindString returns the leftmost match in s.
func (p *Pattern) FindString(s string) string { return p.regexpFor(s).FindString(s) }

// FindStringIndex returns the position of the leftmost match in s.
func (p *Pattern) FindStringIndex(s string) []int { return p.regexpFor(s).FindStringIndex(s) }

// FindStringSubmatch returns the leftmost match in s and its groups.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.regexpFor(s).FindStringSubmatch(s) }

// FindStringSubmatchIndex returns the positions of the leftmost match and its groups.
func (p *Pattern) FindStringSubmatchIndex(s string) []int {
	return p.regexpFor(s).FindStringSubmatchIndex(s)
}

// FindAllString returns the first n matches in s, or all if n is negative.
func (p *Pattern) FindAllString(s string, n int) []string { return p.regexpFor(s).FindAllString(s, n) }

// FindAllStringIndex returns the positions of the first n matches in s.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.regexpFor(s).FindAllStringIndex(s, n)
}

// FindAllStringSubmatch returns the first n matches in s with their groups.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.regexpFor(s).FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex returns the positions of the first n matches in s and of
// their groups.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.regexpFor(s).FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString returns s with every match replaced.
func (p *Pattern) ReplaceAllString(s, by string) string {
	return p.regexpFor(s).ReplaceAllString(s, by)
}

// ReplaceAllStringFunc returns s with every match replaced by what by returns for it.
func (p *Pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	return p.regexpFor(s).ReplaceAllStringFunc(s, by)
}
