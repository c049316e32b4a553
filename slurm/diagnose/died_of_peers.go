package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// allLostPeers reports whether as many processes of an exception's launcher ended by an exception about a lost peer as the
// launcher says failed, and a process of another launcher ended for a reason of its own. So whichever process raised this
// exception lived on.
func (j *job) allLostPeers(e *scan.Event) bool {
	if e.Stack == nil || e.Agent || e.Stack.Uncaught || inThread(e) || outermost(e) {
		return false
	}
	by, failed := launcher{e.File, e.Tag.Label}, map[int]bool{}
	for _, s := range j.files[e.File].Elastic {
		if s.Task == by.task && s.Rank >= 0 {
			failed[s.Rank] = true
		}
	}
	lost, reason := 0, false
	for _, o := range j.events {
		if (launcher{o.File, o.Tag.Label}) != by {
			reason = reason || killedAlone(o) || leftModule(o)
		} else if o.Class == outcome.NCCLConnection && !o.Superseded && outermost(o) && o.Stack.Chain == python.Unchained {
			lost++
		}
	}
	return reason && lost > 0 && lost == len(failed)
}

// outermost reports whether an exception left the program's outermost frame, so that it ended its process. Below a function
// that catches an exception, a traceback begins with that function.
func outermost(e *scan.Event) bool {
	return e.Stack != nil && len(e.Stack.Frames) > 0 && e.Stack.Frames[0].Function == "<module>"
}

// killedAlone reports whether a launcher says that a signal ended a process. SIGABRT does not count, because a rank
// that lost a peer may end itself by it.
func killedAlone(e *scan.Event) bool {
	deaths := []string{outcome.HostOOM, outcome.Segfault, outcome.ShmBusError}
	return e.Agent && e.Rank >= 0 && slices.Contains(deaths, e.Class) && e.Exit != -6 && e.Exit != 134
}
