package diagnose

import (
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// saidItself is the first line in which a process says itself why it left, where a
// launcher's word on its end only repeats that; else the launcher's word.
func (j *job) saidItself(launchers *scan.Event, live []*scan.Event) *scan.Event {
	first := launchers
	for _, e := range live {
		same := e.Rank < 0 || launchers.Rank < 0 || e.Rank == launchers.Rank
		if launchers.Agent && !e.Agent && same && e.Class == launchers.Class && e.Class != outcome.UnknownExit && j.earlier2(e, first) {
			first = e
		}
	}
	return first
}
