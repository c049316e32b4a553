// Package names knows which command line options and environment variables
// exist around a training job, so that a question about one that does not
// exist is not answered as if it did.
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

// listed holds the names of the table.
var listed = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(table) {
		set[strings.TrimSpace(line)] = true
	}
	return set
})

// fold brings an option to one spelling: lower case, hyphens.
func fold(o string) string {
	return strings.TrimRight(strings.ReplaceAll(strings.ToLower(o), "_", "-"), "-")
}

// Option reports whether an option such as --nodes exists in any of the tools,
// or begins one that does, as argparse and getopt take it.
func Option(name string) bool {
	name = fold(name)
	if listed()[name] || library.BuiltIn().Holds(name) {
		return true
	}
	if _, ok := megatron.LookupFlag(name); ok {
		return true
	}
	return len(name) >= minBeginning &&
		slices.ContainsFunc(megatron.Flags(), func(f megatron.Flag) bool { return strings.HasPrefix(f.Name, name) })
}

// minBeginning is how long the beginning of an option has to be to stand for it.
const minBeginning = 7

// Variable reports whether an environment variable such as NCCL_DEBUG exists, or
// is how one ends, as people shorten a long name: MAX_CONNECTIONS.
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
