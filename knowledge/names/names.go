// Package names knows which command line options and environment variables
// exist around a training job, so that a question about one that does not
// exist is not answered as if it did.
package names

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

//go:embed names.txt
var table string

var (
	option   = lazy.New(`--[a-zA-Z][\w-]+`)
	variable = lazy.New(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
)

// known holds the names of the table and those that the cards speak of.
var known = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(table) {
		set[strings.TrimSpace(line)] = true
	}
	for _, c := range cards.All() {
		for _, text := range []string{c.Text.EN, c.Text.ZH} {
			for _, o := range option.FindAllString(text, -1) {
				set[fold(o)] = true
			}
			for _, v := range variable.FindAllString(text, -1) {
				set[v] = true
			}
		}
	}
	return set
})

// fold brings an option to one spelling: lower case, hyphens.
func fold(o string) string {
	return strings.TrimRight(strings.ReplaceAll(strings.ToLower(o), "_", "-"), "-")
}

// Option reports whether an option such as --nodes exists in any of the tools.
func Option(name string) bool {
	name = fold(name)
	if known()[name] {
		return true
	}
	_, ok := megatron.LookupFlag(name)
	return ok
}

// Tail reports whether text is how a variable ends, as people shorten a long
// name: MAX_CONNECTIONS.
func Tail(text string) bool {
	if !strings.Contains(text, "_") {
		return false
	}
	for name := range known() {
		if strings.HasSuffix(name, "_"+text) {
			return true
		}
	}
	return false
}

// Variable reports whether an environment variable such as NCCL_DEBUG exists.
func Variable(name string) bool { return known()[name] }

// minBeginning is how long the beginning of an option has to be to stand for it.
const minBeginning = 7

// Begins reports whether an option is the beginning of known ones, as argparse
// and getopt take it.
func Begins(option string) bool {
	option = fold(option)
	if len(option) < minBeginning {
		return false
	}
	for name := range known() {
		if strings.HasPrefix(name, option) {
			return true
		}
	}
	return slices.ContainsFunc(megatron.Flags(), func(f megatron.Flag) bool { return strings.HasPrefix(f.Name, option) })
}
