package slurm

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// ParseTopology reads the output of scontrol show topology and returns the lowest
// switch, or the block, of each node. The result is empty for a cluster without
// topology.
func ParseTopology(out string) map[string]string {
	switchOf := map[string]string{}
	for line := range strings.Lines(out) {
		v := keyValues(line)
		name := v["SwitchName"]
		if name == "" {
			name = v["BlockName"]
		}
		if name == "" || v["Level"] != "" && v["Level"] != "0" {
			continue // a higher switch lists the nodes of the switches below
		}
		nodes, err := hostlist.Expand(v["Nodes"])
		if err != nil {
			continue
		}
		for _, n := range nodes {
			switchOf[n] = name
		}
	}
	return switchOf
}
