package diagnose

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// betweenRanks is for jobs where only the network between ranks complained.
func (j *job) betweenRanks(live []*scan.Event) (verdict, bool) {
	running, known := j.given.running()
	if !j.deathSeen() {
		if j.finished() || j.endedWell() {
			return verdict{}, false
		}
		live = slices.DeleteFunc(slices.Clone(live), func(e *scan.Event) bool {
			return known && running && j.progressSince(e) > 0 || j.after(e) == wentOn
		})
	}
	var best *scan.Event
	for _, e := range ofStore(live, live) {
		if e.Class == outcome.Rendezvous && j.reportedBefore(e) {
			continue
		}
		if e.Weight > pattern.TimedOut+5 && e.Weight < pattern.Ended && !scan.IsEnd(e.Class) &&
			(best == nil || e.Weight >= best.Weight+3 || j.earlier2(e, best)) {
			best = e
		}
	}
	if best != nil {
		v := verdict{class: best.Class, event: best, why: "only the network complained"}
		if best.Class == outcome.Rendezvous && j.ranksMissing() {
			v.class = outcome.NodeCountMismatch
		}
		if best.Class != outcome.NCCLIB && j.sameNodeRank() {
			v.class = outcome.NodeCountMismatch
		}
		if best.Class != outcome.NCCLConnection && waitedForOthers.MatchString(best.Text) {
			j.blameMissing(&v, live)
		}
		return v, true
	}
	for _, e := range live {
		if e.Weight >= pattern.TimedOut-5 && e.Weight <= pattern.TimedOut+5 &&
			(best == nil || e.Weight > best.Weight+4 || e.Weight >= best.Weight && j.earlier2(e, best)) &&
			e.Weight != pattern.Aborted {
			best = e
		}
	}
	if best == nil {
		return verdict{}, false
	}
	v := verdict{class: best.Class, event: best, why: "only collectives complained"}
	if best.Class == outcome.NCCLTimeout {
		j.blameMissing(&v, live)
	}
	return v, true
}

// waitedForOthers matches complaints of a rendezvous by a rank that had come to it, or
// that others met with another number of ranks in mind.
var waitedForOthers = lazy.New(`(?i)\b(?:socket|wait) timeout\b|timed out waiting|store based barrier|clients joined|enforce fail`)

// blameMissing gives a verdict whose line is a rank's complaint that it waited the
// rank that it waited for, or none where nothing shows which that is.
func (j *job) blameMissing(v *verdict, live []*scan.Event) {
	if l, ok := j.missing(live); ok {
		v.laggard, v.event = &l, j.laggardEvent(l, live, v.event)
	} else if j.manyProcesses() { // whoever complains had to wait
		e := *v.event
		e.Rank, e.Node = -1, ""
		v.event = &e
	}
}

// reportedBefore reports whether a launcher had said before a complaint of the
// rendezvous that a process failed: the store goes with the launcher that hosts it.
func (j *job) reportedBefore(e *scan.Event) bool {
	for i, f := range j.files {
		for _, failed := range f.Elastic {
			if i == e.File && failed.Off < e.Off || i != e.File && !failed.At.IsZero() && e.When().Sub(failed.At) > skew {
				return true
			}
		}
	}
	return false
}

// recorded is the rank that flight recorder dumps show to be missing.
func (j *job) recorded([]*scan.Event) (laggard, bool) {
	if j.missed == nil {
		return laggard{}, false
	}
	return laggard{j.missed.Rank, j.nccl[j.missed.Rank], "recorder"}, true
}

// named is the rank that errors of the others name, where they agree.
func (j *job) named([]*scan.Event) (laggard, bool) {
	votes, most := map[scan.NamedRank]int{}, scan.NamedRank{Rank: -1, Referee: true}
	for _, f := range j.files {
		for _, r := range f.Missing {
			votes[r]++
			switch {
			case r.Referee != most.Referee && most.Rank >= 0:
				if r.Referee {
					continue
				}
			case most.Rank >= 0 && (votes[r] < votes[most] || votes[r] == votes[most] && r.Rank >= most.Rank):
				continue
			}
			most = r
		}
	}
	return laggard{most.Rank, j.nccl[most.Rank], "named"}, most.Rank >= 0
}

// laggardEvent is the line that shows the rank that others waited for.
func (j *job) laggardEvent(l laggard, live []*scan.Event, otherwise *scan.Event) *scan.Event {
	if l.by == nil {
		e := *otherwise
		e.Rank, e.Node = l.rank, j.nodeByRank(l.rank, j.nodesOfRanks())
		return &e
	}
	e := &scan.Event{
		File:   l.by.File,
		Off:    l.by.Off,
		Raw:    l.by.Raw,
		Text:   l.by.Raw,
		Tag:    l.by.Tag,
		Class:  outcome.NCCLTimeout,
		Weight: pattern.TimedOut,
		Rank:   l.rank,
		Node:   j.fileNode[l.by.File],
	}
	for _, o := range live {
		if o.Rank == l.rank && o.Node != "" {
			e.Node = o.Node
			break
		}
	}
	if e.Node == "" {
		for _, f := range j.files {
			for t, h := range f.HostOf {
				if t.Rank == l.rank || j.taskRank && t.Label == l.rank {
					e.Node = h
				}
			}
		}
	}
	return e
}

// earlier2 reports whether a comes before b, by time and then by place.
func (j *job) earlier2(a, b *scan.Event) bool {
	ta, tb := a.When(), b.When()
	if a.File == b.File {
		return a.Off < b.Off
	}
	if !ta.IsZero() && !tb.IsZero() && !ta.Equal(tb) {
		return ta.Before(tb)
	}
	return a.File < b.File
}

// ranksMissing reports whether fewer Slurm tasks spoke than the world has.
func (j *job) ranksMissing() bool {
	tasks := map[int]struct{}{}
	for _, f := range j.files {
		for l := range f.Labels {
			tasks[l] = struct{}{}
		}
	}
	return j.taskRank && len(tasks) > 0 && j.world > len(tasks)
}

// sameNodeRank reports whether two nodes started with one node rank.
func (j *job) sameNodeRank() bool {
	nodes := map[string]string{}
	for _, f := range j.files {
		for node, rank := range f.NodeRank {
			if other, ok := nodes[rank]; ok && other != node {
				return true
			}
			nodes[rank] = node
		}
	}
	return false
}

// onlyDumps is for jobs of which flight recorder dumps alone tell: some ranks
// wait in a collective that others never entered.
func (j *job) onlyDumps([]*scan.Event) (verdict, bool) {
	running, known := j.given.running()
	if j.missed == nil || j.didWell() || known && running && j.fresh() {
		return verdict{}, false
	}
	v := verdict{class: outcome.NCCLTimeout, why: "only collectives complained", laggard: &laggard{rank: j.missed.Rank, why: "recorder"}}
	if known && running {
		v.class, v.why = outcome.Hang, "no progress"
	}
	return v, true
}

// byWatchdog reports whether a process that ended by SIGABRT had said that a collective
// timed out, or says so as its reason: PyTorch's watchdog ends it so, and the timeout is
// what is to be explained.
func (j *job) byWatchdog(e *scan.Event) bool {
	if e.Class != outcome.Segfault || !ofAbort.MatchString(e.Text) {
		return false
	}
	reason := e.Off + int64(len(e.Raw)) + 2 // C++ gives it on the next line
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.Class == outcome.NCCLTimeout && o.File == e.File && (e.Rank < 0 || o.Rank < 0 || o.Rank == e.Rank) &&
			(o.Off < e.Off || o.Off <= reason && strings.Contains(o.Text, "what():"))
	})
}

// ofAbort matches C++'s and a shell's words on SIGABRT.
var ofAbort = lazy.New(`^terminate called|(?i)\baborted\b`)
