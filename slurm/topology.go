package slurm

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// ParseTopology reads what "scontrol show topology" printed: the lowest switch,
// or the block, of each node. A cluster without either has none.
func ParseTopology(out string) map[string]string {
	of := map[string]string{}
	for line := range strings.Lines(out) {
		v := pairs(line)
		name := v["SwitchName"]
		if name == "" {
			name = v["BlockName"]
		}
		if name == "" || v["Level"] != "" && v["Level"] != "0" {
			continue // a switch above others holds their nodes too
		}
		nodes, err := hostlist.Expand(v["Nodes"])
		if err != nil {
			continue
		}
		for _, n := range nodes {
			of[n] = name
		}
	}
	return of
}
