// Package names knows which command-line options and environment variables of a
// training job's tools exist. So a question about a name that does not exist is not
// answered as if it did.
package names

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/knowledge/library"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

//go:embed names.txt
var table string

// listed returns the set of names in the table.
var listed = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(table) {
		set[strings.TrimSpace(line)] = true
	}
	return set
})

// Option reports whether an option such as --nodes exists in any of the tools, or is an
// abbreviation of an existing one, which argparse and getopt accept. Case does not
// matter, and _ counts as -.
func Option(name string) bool {
	name = strings.TrimRight(strings.ReplaceAll(strings.ToLower(name), "_", "-"), "-")
	if listed()[name] || library.BuiltIn().Holds(name) {
		return true
	}
	if _, ok := megatron.LookupFlag(name); ok {
		return true
	}
	return len(name) >= minAbbreviation &&
		slices.ContainsFunc(megatron.Flags(), func(f megatron.Flag) bool { return strings.HasPrefix(f.Name, name) })
}

// minAbbreviation is the least length of an abbreviated option, with its dashes.
const minAbbreviation = 7

// Variable reports whether an environment variable such as NCCL_DEBUG exists, or is the
// end of an existing name, as in MAX_CONNECTIONS.
func Variable(name string) bool {
	if listed()[name] || library.BuiltIn().Holds(strings.ToLower(name)) {
		return true
	}
	for known := range listed() {
		if strings.HasSuffix(known, "_"+name) {
			return true
		}
	}
	return false
}

// all lists the names that Near chooses from: the table, Megatron's flags, and the titles of
// cards that are a name.
var all = sync.OnceValue(func() []string {
	set := maps.Clone(listed())
	for _, f := range megatron.Flags() {
		set[f.Name] = true
	}
	for _, c := range library.BuiltIn().Cards {
		if name := c.Title.EN; strings.HasPrefix(name, "--") || strings.Contains(name, "_") {
			set[name] = true
		}
	}
	maps.DeleteFunc(set, func(name string, _ bool) bool { return name == "" || strings.ContainsAny(name, "# =<") })
	return slices.Sorted(maps.Keys(set))
})

// Near returns the existing names that an unknown option or variable is probably a
// misspelling of: all that are at the least distance, one letter for a short name, two for a
// long one. Names that differ in digits alone, or in a word of two letters such as TC and
// TO, are not misspelt.
func Near(unknown string) []string {
	limit := 2
	if len(unknown) >= longName {
		limit = 3
	}
	if strings.HasPrefix(unknown, "--") {
		unknown = strings.ReplaceAll(strings.ToLower(unknown), "_", "-")
	}
	letters := func(name string) string {
		return strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return -1
			}
			return r
		}, name)
	}
	var found []string
	for _, name := range all() {
		if more := len(name) - len(unknown); max(more, -more) >= limit || letters(name) == letters(unknown) || otherShortWord(name, unknown) {
			continue
		}
		switch d := near.Distance(unknown, name); {
		case d < limit-1 || d < limit && len(found) == 0:
			found, limit = []string{name}, d+1
		case d < limit:
			found = append(found, name)
		}
	}
	return found
}

// otherShortWord reports whether two names differ in a word of one or two letters, where a
// single letter makes another name.
func otherShortWord(a, b string) bool {
	words := func(name string) []string {
		return strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	}
	x, y := words(a), words(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] && min(len(x[i]), len(y[i])) <= 2 {
			return true
		}
	}
	return false
}

// longName is the number of characters from which two letters of a name may be wrong.
const longName = 14
