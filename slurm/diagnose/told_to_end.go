package diagnose

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// toldToEndFirst returns the line in which the launcher of one node says that a signal ends it, if nothing had failed
// before: its ranks did not complain, and those of other launchers lost them. Slurm ends the launchers that are left by
// SIGTERM, so another signal came from elsewhere. If srun reports exits, that of this node's task must be the first; without
// such reports, the ranks must complain later in the same file, for two files do not tell which came first.
func (j *job) toldToEndFirst(live []*scan.Event) *scan.Event {
	var told, first *scan.Event
	several, byTerm := false, func(e *scan.Event) bool {
		return strings.Contains(e.Text, " 15 ") || strings.Contains(e.Text, "SIGTERM")
	}
	for _, e := range live {
		switch {
		case scan.DeathSignal.MatchString(e.Text) && (told == nil || byTerm(told) && !byTerm(e)):
			told, several = e, false
		case scan.DeathSignal.MatchString(e.Text) && byTerm(e) == byTerm(told):
			several = several || !sameLauncher(e, told)
		case len(e.Tasks) > 0 && e.Node != "" && (first == nil || e.File == first.File && e.Off < first.Off):
			first = e
		}
	}
	if told == nil || several {
		return nil
	}
	if first != nil && (j.taskRank || len(first.Tasks) > 1 || first.Exit != 1 || told.Node != "" && told.Node != first.Node) {
		return nil
	}
	lost, beside := false, false
	for _, e := range complaintsOfPeers(live) {
		before := e.File == told.File && e.Off < told.Off || first == nil && e.File != told.File
		if lost = true; before || sameLauncher(e, told) || first != nil && j.isOn(e, first.Node) {
			return nil
		}
		beside = beside || e.Node == told.Node
	}
	if !lost {
		return nil
	}
	e := *told
	if e.Rank = -1; first != nil {
		e.Node = first.Node
	} else if beside {
		e.Node = "" // it is that of the ranks that lost the others
	}
	return &e
}

// launcherTold reports whether the launcher that wrote into a file says that a signal ends it.
func (j *job) launcherTold(file int) bool {
	return slices.ContainsFunc(j.events, func(e *scan.Event) bool { return e.File == file && scan.DeathSignal.MatchString(e.Text) })
}

// sameLauncher reports whether two lines have the same origin but for the rank: the file, or the task or node before it.
func sameLauncher(a, b *scan.Event) bool {
	return a.File == b.File && a.Tag.Label == b.Tag.Label && a.Tag.Host == b.Tag.Host
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
