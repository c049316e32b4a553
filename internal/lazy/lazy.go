// Package lazy holds what tables of regular expressions cost nothing by until
// they are needed: expressions that are compiled at their first use, and a set
// of words by which it is decided which of many expressions are worth asking.
package lazy

import (
	"regexp"
	"strings"
	"sync"
)

// A Pattern is a regular expression that is compiled when first needed. The
// methods are those of regexp.Regexp.
type Pattern struct {
	re func() *regexp.Regexp
	on []string // where given, a match holds one of them
}

// New returns the pattern of an expression. A wrong one panics at first use;
// tests of the tables use every one.
func New(expr string) *Pattern {
	return &Pattern{re: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// On returns the pattern of an expression every match of which holds one of
// some words, written with | between them, in the case that they have there. A
// text without any of them is not asked further: to look for ten words takes a
// hundredth of the time of an expression that may begin anywhere.
func On(words, expr string) *Pattern {
	p := New(expr)
	p.on = strings.Split(words, "|")
	return p
}

// in is the expression to ask of a text: nothing where the text holds none of
// the pattern's words.
func (p *Pattern) in(s string) *regexp.Regexp {
	for _, w := range p.on {
		if strings.Contains(s, w) {
			return p.re()
		}
	}
	if p.on == nil {
		return p.re()
	}
	return nothing
}

var nothing = regexp.MustCompile(`\A[^\s\S]`)

// MatchString reports whether s holds a match.
func (p *Pattern) MatchString(s string) bool { return p.in(s).MatchString(s) }

// FindString returns the leftmost match in s.
func (p *Pattern) FindString(s string) string { return p.in(s).FindString(s) }

// FindStringIndex returns where the leftmost match in s is.
func (p *Pattern) FindStringIndex(s string) []int { return p.in(s).FindStringIndex(s) }

// FindStringSubmatch returns the leftmost match in s and its groups.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.in(s).FindStringSubmatch(s) }

// FindStringSubmatchIndex returns where the leftmost match and its groups are.
func (p *Pattern) FindStringSubmatchIndex(s string) []int { return p.in(s).FindStringSubmatchIndex(s) }

// FindAllString returns the first n matches in s, all where n is negative.
func (p *Pattern) FindAllString(s string, n int) []string { return p.in(s).FindAllString(s, n) }

// FindAllStringIndex returns where the first n matches in s are.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.in(s).FindAllStringIndex(s, n)
}

// FindAllStringSubmatch returns the first n matches in s with their groups.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.in(s).FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex returns where the first n matches in s and their
// groups are.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.in(s).FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString returns s with every match replaced.
func (p *Pattern) ReplaceAllString(s, by string) string { return p.in(s).ReplaceAllString(s, by) }

// ReplaceAllStringFunc returns s with every match replaced by what by makes of
// it.
func (p *Pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	return p.in(s).ReplaceAllStringFunc(s, by)
}
