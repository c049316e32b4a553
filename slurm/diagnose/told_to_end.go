package diagnose

import (
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// toldToEndFirst returns the line in which the launcher of one node says that a signal ends it, if nothing had failed
// before: srun reports the exit of that node's task first, or reports none and all complaints follow in the same file; and
// its ranks did not complain. The others lost its ranks. If another node's task exits first, srun itself tells the launcher
// to end.
func (j *job) toldToEndFirst(live []*scan.Event) *scan.Event {
	var told, first *scan.Event
	for _, e := range live {
		switch {
		case scan.DeathSignal.MatchString(e.Text) && (told == nil || told.File == e.File):
			told = e
		case scan.DeathSignal.MatchString(e.Text):
			return nil
		case len(e.Tasks) > 0 && e.Node != "" && (first == nil || e.File == first.File && e.Off < first.Off):
			first = e
		}
	}
	if told != nil && first == nil && told.Tag.Label >= 0 {
		return j.toldBeforeComplaints(told, live)
	}
	if told == nil || first == nil || j.taskRank || len(first.Tasks) > 1 || first.Exit != 1 || told.Node != "" && told.Node != first.Node {
		return nil
	}
	lost := false
	for _, e := range live {
		if !misses(e) || launcherRaised(e) || e.Class == outcome.UnknownExit {
			continue
		}
		if lost = true; e.File == told.File || j.isOn(e, first.Node) {
			return nil
		}
	}
	if !lost {
		return nil
	}
	e := *told
	e.Node = first.Node
	return &e
}

// toldBeforeComplaints returns a launcher's line that a signal ends it, if the ranks of other tasks then lost its ranks.
func (j *job) toldBeforeComplaints(told *scan.Event, live []*scan.Event) *scan.Event {
	lost := false
	for _, e := range live {
		own := e.Tag.Label == told.Tag.Label
		switch {
		case e == told || launcherRaised(e):
		case e.File != told.File, e.Off < told.Off, own && e.Class != outcome.UnknownExit:
			return nil
		}
		lost = lost || !own && e.Class == outcome.NCCLConnection
	}
	if !lost {
		return nil
	}
	return told
}

// isOn reports whether an event may have happened on a node, by its file's launcher where the event tells none.
func (j *job) isOn(e *scan.Event, node string) bool {
	if e.Node != "" {
		return e.Node == node
	}
	for _, f := range j.files[e.File].Elastic {
		if f.Host != "" {
			return f.Host == node
		}
	}
	return false
}
