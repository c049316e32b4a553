package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// storeMessages match the messages of ranks about a rendezvous store that not all of them reach. A
// message explains those after it: one rank cannot connect, so the master counts too few, so all others
// wait. Source: torch/csrc/distributed/c10d, socket.cpp and TCPStore.cpp.
var storeMessages = []*lazy.Pattern{
	lazy.New(`(?i)client socket has (?:timed out|failed).{0,60}connect to`),
	clientsJoined,
	lazy.New(`(?i)wait timeout after \d+ ?ms`),
}

// clientsJoined matches the message of the rank that hosts the store about how many ranks joined.
var clientsJoined = lazy.New(`(?i)\d+/\d+ clients joined`)

// withoutStoreConsequences drops the causes that an earlier message of storeMessages explains.
func withoutStoreConsequences(causes, live []*scan.Event) []*scan.Event {
	said := func(e *scan.Event) int {
		return slices.IndexFunc(storeMessages, func(re *lazy.Pattern) bool { return re.MatchString(e.Text) })
	}
	first := len(storeMessages)
	for _, e := range live {
		if k := said(e); k >= 0 {
			first = min(first, k)
		}
	}
	return slices.DeleteFunc(slices.Clone(causes), func(e *scan.Event) bool { return said(e) > first })
}
