package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// storeWords are what ranks say of a store that not all of them reach, what explains the
// rest first: one cannot connect, so the master counts too few, so all others wait.
// Source: torch/csrc/distributed/c10d, socket.cpp and TCPStore.cpp.
var storeWords = []*lazy.Pattern{
	lazy.New(`(?i)client socket has (?:timed out|failed).{0,60}connect to`),
	clientsJoined,
	lazy.New(`(?i)wait timeout after \d+ ?ms`),
}

// clientsJoined is how the rank that hosts the store counts who came to it.
var clientsJoined = lazy.New(`(?i)\d+/\d+ clients joined`)

// ofStore drops of causes what another event's word on the store explains.
func ofStore(causes, live []*scan.Event) []*scan.Event {
	said := func(e *scan.Event) int {
		return slices.IndexFunc(storeWords, func(re *lazy.Pattern) bool { return re.MatchString(e.Text) })
	}
	first := len(storeWords)
	for _, e := range live {
		if k := said(e); k >= 0 {
			first = min(first, k)
		}
	}
	return slices.DeleteFunc(slices.Clone(causes), func(e *scan.Event) bool { return said(e) > first })
}
