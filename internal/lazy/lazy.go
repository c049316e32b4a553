// Package lazy holds what tables of regular expressions cost nothing by until
// they are needed: expressions that are compiled at their first use, and a set
// of words by which it is decided which of many expressions are worth asking.
package lazy

import (
	"regexp"
	"sync"
)

// A Pattern is a regular expression that is compiled when first needed. The
// methods are those of regexp.Regexp.
type Pattern struct{ re func() *regexp.Regexp }

// New returns the pattern of an expression. A wrong one panics at first use;
// tests of the tables use every one.
func New(expr string) *Pattern {
	return &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// MatchString reports whether s holds a match.
func (p *Pattern) MatchString(s string) bool { return p.re().MatchString(s) }

// FindString returns the leftmost match in s.
func (p *Pattern) FindString(s string) string { return p.re().FindString(s) }

// FindStringIndex returns where the leftmost match in s is.
func (p *Pattern) FindStringIndex(s string) []int { return p.re().FindStringIndex(s) }

// FindStringSubmatch returns the leftmost match in s and its groups.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.re().FindStringSubmatch(s) }

// FindStringSubmatchIndex returns where the leftmost match and its groups are.
func (p *Pattern) FindStringSubmatchIndex(s string) []int { return p.re().FindStringSubmatchIndex(s) }

// FindAllString returns the first n matches in s, all where n is negative.
func (p *Pattern) FindAllString(s string, n int) []string { return p.re().FindAllString(s, n) }

// FindAllStringIndex returns where the first n matches in s are.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int { return p.re().FindAllStringIndex(s, n) }

// FindAllStringSubmatch returns the first n matches in s with their groups.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.re().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex returns where the first n matches in s and their
// groups are.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.re().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString returns s with every match replaced.
func (p *Pattern) ReplaceAllString(s, by string) string { return p.re().ReplaceAllString(s, by) }

// ReplaceAllStringFunc returns s with every match replaced by what by makes of
// it.
func (p *Pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	return p.re().ReplaceAllStringFunc(s, by)
}
