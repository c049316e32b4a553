// Package lazy holds regular expressions that are compiled on first use, so
// that tables of them cost nothing when the program starts.
package lazy

import (
	"regexp"
	"sync"
)

// A Pattern is a regular expression that is compiled when first needed. The
// methods are those of regexp.Regexp. It runs only over texts that hold the
// words which every match needs.
type Pattern struct {
	re    func() *regexp.Regexp
	parts func() *parts
}

// parts are the alternatives of an expression.
type parts struct {
	fold bool // whether the words are in lower case
	open bool // whether some alternative needs no word
	list []part
}

// A part is one alternative. It matches where one of words stands, or else
// where needs are met and re matches.
type part struct {
	words []word
	needs [][]word
	re    func() *regexp.Regexp
}

// New returns the pattern of an expression. A wrong one panics at first use;
// tests of the tables use every one.
func New(expr string) *Pattern {
	return &Pattern{
		re:    compiled(expr),
		parts: sync.OnceValue(func() *parts { return split(expr) }),
	}
}

func compiled(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// MatchString reports whether s holds a match.
func (p *Pattern) MatchString(s string) bool {
	all := p.parts()
	var text sought
	if !all.ready(&text, s) {
		return p.re().MatchString(s)
	}
	for i := range all.list {
		switch a := &all.list[i]; {
		case a.words != nil:
			if text.any(a.words) {
				return true
			}
		case text.all(a.needs) && a.re().MatchString(s):
			return true
		}
	}
	return false
}

// may reports whether s can hold a match.
func (p *Pattern) may(s string) bool {
	all := p.parts()
	var text sought
	if all.open || !all.ready(&text, s) {
		return true
	}
	for i := range all.list {
		if text.all(all.list[i].needs) {
			return true
		}
	}
	return false
}

// ready reads s in the spelling of the words; false where that cannot be.
func (a *parts) ready(text *sought, s string) bool {
	if !a.fold {
		text.read(s)
		return true
	}
	text.read(lower(s))
	return !strange(s)
}

// FindString returns the leftmost match in s.
func (p *Pattern) FindString(s string) string {
	if !p.may(s) {
		return ""
	}
	return p.re().FindString(s)
}

// FindAllString returns the first n matches in s, all where n is negative.
func (p *Pattern) FindAllString(s string, n int) []string {
	if !p.may(s) {
		return nil
	}
	return p.re().FindAllString(s, n)
}

// FindStringSubmatch returns the leftmost match in s and its groups.
func (p *Pattern) FindStringSubmatch(s string) []string {
	if !p.may(s) {
		return nil
	}
	return p.re().FindStringSubmatch(s)
}

// FindStringSubmatchIndex returns where the leftmost match and its groups are.
func (p *Pattern) FindStringSubmatchIndex(s string) []int {
	if !p.may(s) {
		return nil
	}
	return p.re().FindStringSubmatchIndex(s)
}

// FindAllStringSubmatch returns the first n matches in s with their groups.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	if !p.may(s) {
		return nil
	}
	return p.re().FindAllStringSubmatch(s, n)
}

// ReplaceAllString returns s with every match replaced.
func (p *Pattern) ReplaceAllString(s, by string) string {
	if !p.may(s) {
		return s
	}
	return p.re().ReplaceAllString(s, by)
}

// ReplaceAllStringFunc returns s with every match replaced by what by makes of
// it.
func (p *Pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	if !p.may(s) {
		return s
	}
	return p.re().ReplaceAllStringFunc(s, by)
}

// FindStringIndex returns where the leftmost match in s is.
func (p *Pattern) FindStringIndex(s string) []int {
	if !p.may(s) {
		return nil
	}
	return p.re().FindStringIndex(s)
}

// FindAllStringIndex is Regexp's.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	if !p.may(s) {
		return nil
	}
	return p.re().FindAllStringIndex(s, n)
}

// FindAllStringSubmatchIndex returns where the first n matches in s and their
// groups are.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	if !p.may(s) {
		return nil
	}
	return p.re().FindAllStringSubmatchIndex(s, n)
}
