package opstest

import "github.com/megatron-ops/megatron-ops/knowledge/rules"

// Ids returns the rules of problems.
func Ids(ps []rules.Problem) []string {
	var all []string
	for _, p := range ps {
		all = append(all, p.Rule)
	}
	return all
}
