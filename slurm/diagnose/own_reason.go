package diagnose

import (
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// ownReason returns the first line in which a process itself says why it exited, if the launcher's
// report only repeats that; else the launcher's report.
func (j *job) ownReason(launchers *scan.Event, live []*scan.Event) *scan.Event {
	first := launchers
	for _, e := range live {
		same := e.Rank < 0 || launchers.Rank < 0 || e.Rank == launchers.Rank
		if launchers.Agent && !e.Agent && same && e.Class == launchers.Class && e.Class != outcome.UnknownExit && j.precedes(e, first) {
			first = e
		}
	}
	return first
}
