package diagnose

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// leftUncounted returns the only rank for which nobody accounts, if others lost a peer: it left with 0, on which
// neither srun nor torchelastic reports.
func (j *job) leftUncounted(live []*scan.Event) (laggard, bool) {
	complaints := 0
	for _, e := range live {
		if misses(e) && e.Class == outcome.NCCLConnection {
			complaints++
		}
	}
	r := j.untoldTask(live)
	if len(j.launchers()) > 0 {
		r = j.untoldProcess(complaints)
	}
	return laggard{r, nil, "silent"}, r >= 0 && complaints > 0 && !complaining(live)[r]
}

// firstSeen returns the only rank that the launcher of all ranks reports as failed, if that one complained of nothing and the others
// lost a peer: the launcher looks at all of them at once, so that the others, which it told to end, were still there. One more
// may have left between its look and its word.
func (j *job) firstSeen(live []*scan.Event) (laggard, bool) {
	complaints, complains, all := complaintsOfPeers(live), complaining(live), j.launchers()
	if len(all) != 1 || len(complaints) == 0 || !allClosed(complaints) {
		return laggard{}, false
	}
	for l, p := range all {
		ended := max(p.ended, launchedBy(j.files[l.file])-1) // not all of those events were kept
		for r := range p.failed {
			if len(p.failed) == 1 && !complains[r] && len(complaints) <= ended && ended < j.ranks() && ended >= max(1, j.ranks()-2) {
				return laggard{r, j.nccl[r], ""}, true
			}
		}
	}
	return laggard{}, false
}

// untoldTask returns the only rank on whose exit srun does not report, where every task is a rank; else -1.
// srun reports on each task that exits with a code of its own or by a signal. One that neither complained nor was told to
// end may be the one that the others lost; the untold one may have caught SIGTERM.
func (j *job) untoldTask(live []*scan.Event) int {
	told, _ := j.reportedRanks()
	complains := complaining(live)
	for _, e := range live {
		if len(e.Tasks) > 0 && !scan.ToldToEnd(e.Exit) && slices.ContainsFunc(e.Tasks, func(t int) bool { return !complains[t] }) {
			return -1
		}
	}
	if world := j.ranks(); j.taskRank && world > 2 && len(told) == world-1 {
		for r := range world {
			if _, ok := told[r]; !ok {
				return r
			}
		}
	}
	return -1
}

// silentNode returns a report on the only node whose ranks the others lost, and why none of its ranks is named, as in
// report.Report.Laggard: it has no log, or one of its ranks left with 1 and said nothing, and the log does not tell which.
func (j *job) silentNode(live []*scan.Event) (*scan.Event, string) {
	if e := j.nodeWithoutLog(); e != nil {
		return e, "unlogged"
	}
	all, silent := j.launchers(), (*scan.Event)(nil)
	complaints := map[launcher]int{}
	for _, e := range complaintsOfPeers(live) {
		complaints[launcher{e.File, e.Tag.Label}]++
	}
	for l, p := range all {
		quiet := len(p.failed) - complaints[l]
		report := firstEvent(live, func(e *scan.Event) bool {
			return e.Agent && e.Exit == 1 && e.Node != "" && launcher{e.File, e.Tag.Label} == l
		})
		switch {
		case quiet <= 0:
		case quiet > 1 || silent != nil || report == nil || len(all) < 2 || len(p.failed) > j.mostLocal()+1:
			return nil, ""
		default:
			of := *report
			of.Rank, silent = -1, &of
		}
	}
	return silent, "unprefixed"
}

// silentProcess returns a report on a process that left with 1, without its rank, if the launchers account for all ranks and
// one fewer complain, all of a connection that was closed: one left first and said nothing.
func (j *job) silentProcess(live []*scan.Event) *scan.Event {
	accounted, complaints := 0, complaintsOfPeers(live)
	for _, p := range j.launchers() {
		accounted += len(p.failed) + p.ended
	}
	report := firstEvent(live, func(e *scan.Event) bool { return e.Agent && e.Exit == 1 && len(e.Tasks) == 0 })
	if report == nil || !allClosed(complaints) || len(complaints) < 2 || len(complaints) != accounted-1 || accounted != j.ranks() {
		return nil
	}
	of := *report
	of.Rank, of.Node = -1, ""
	return &of
}

// A launcher is known by its file and srun's label.
type launcher struct{ file, task int }

// processes are what a launcher says of its processes.
type processes struct {
	first  int // the first one's rank
	failed map[int]bool
	ended  int // how many it told to end
}

// launchers returns what each of torch's launchers says of its processes.
func (j *job) launchers() map[launcher]*processes {
	all := map[launcher]*processes{}
	for i, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank < 0 || e.Local < 0 {
				continue
			}
			l := launcher{i, e.Task}
			if all[l] == nil {
				all[l] = &processes{first: e.Rank - e.Local, failed: map[int]bool{}}
			}
			all[l].failed[e.Rank] = true
		}
	}
	for _, e := range j.events {
		if p := all[launcher{e.File, e.Tag.Label}]; p != nil && strings.Contains(e.Text, " closing signal ") {
			p.ended++
		}
	}
	return all
}

// untoldProcess returns the only rank that its launcher neither reports as failed nor told to end, where every launcher
// accounts for its other ranks and each of these complains; else -1. With fewer complaints it may have complained
// itself, and have exited between the launcher's look at its processes and the signal to them.
func (j *job) untoldProcess(complaints int) int {
	all, left := j.launchers(), -1
	_, most := j.reportedRanks()
	per := j.mostLocal() + 1
	if len(all)*per != most+1 || j.world > most+1 || complaints != most {
		return -1
	}
	for _, p := range all {
		if len(p.failed)+p.ended >= per {
			continue
		}
		for r := p.first; r < p.first+per; r++ {
			switch {
			case p.failed[r]:
			case left >= 0:
				return -1
			default:
				left = r
			}
		}
	}
	return left
}
