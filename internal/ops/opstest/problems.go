package opstest

import "github.com/megatron-ops/megatron-ops/knowledge/rules"

// Ids are the rules that problems are of.
func Ids(ps []rules.Problem) []string {
	var all []string
	for _, p := range ps {
		all = append(all, p.Rule)
	}
	return all
}
