// Package names knows which command-line options and environment variables of a
// training job's tools exist. So a question about a name that does not exist is not
// answered as if it did.
package names

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

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
