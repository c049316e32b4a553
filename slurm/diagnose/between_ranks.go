package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// betweenRanks judges a job whose logs show only errors of the network between ranks.
func (j *job) betweenRanks(live []*scan.Event) (verdict, bool) {
	running, known := j.given.running()
	died := j.deathSeen()
	if !died && (j.finished() || j.slurmCompleted()) {
		return verdict{}, false
	}
	if stayed := slices.DeleteFunc(slices.Clone(live), func(e *scan.Event) bool {
		return known && running && !died && j.progressSince(e) > 0 ||
			j.after(e) == wentOn && (e.Class != outcome.Hang || j.progressSince(e) > 0) // a monitor goes on
	}); len(stayed) > 0 || !died {
		live = stayed
	}
	live = j.beforeMonitors(live)
	var best *scan.Event
	for _, e := range withoutStoreConsequences(live, live) {
		if e.Class == outcome.Rendezvous && j.reportedBefore(e) {
			continue
		}
		if e.Weight > pattern.TimedOut+5 && e.Weight < pattern.Ended && !scan.IsEnd(e.Class) &&
			(best == nil || e.Weight >= best.Weight+3 || j.precedes(e, best)) {
			best = e
		}
	}
	if best != nil {
		best = j.ownFault(best, live)
		v := verdict{class: best.Class, event: best, why: "only the network complained"}
		if e := j.lostPeer(live); e != nil && best.Class == outcome.NCCLIB && !portFault.MatchString(best.Text) {
			v.event, v.laggard = e, &laggard{-1, nil, "unreached"}
		}
		if best.Class == outcome.Rendezvous && j.ranksMissing() {
			v.class = outcome.NodeCountMismatch
		}
		if best.Class != outcome.NCCLIB && j.sameNodeRank() {
			v.class = outcome.NodeCountMismatch
		}
		if best.Class != outcome.NCCLConnection && waitedForOthers.MatchString(best.Text) {
			j.blameMissing(&v, live)
		}
		if v.class == outcome.Rendezvous && v.laggard == nil {
			ranks, nodes, _ := saidBy(live, ofClass(best.Class)) // as of an address that no name service knows
			v.ofMany = len(ranks) > 1
			v.noneAtFault = v.ofMany && len(nodes) > 1
		}
		return v, true
	}
	for _, e := range live {
		if e.Weight >= pattern.TimedOut-5 && e.Weight <= pattern.TimedOut+5 &&
			(best == nil || e.Weight > best.Weight+4 || e.Weight >= best.Weight && j.precedes(e, best)) &&
			e.Weight != pattern.Aborted {
			best = e
		}
	}
	if best == nil {
		return verdict{}, false
	}
	v := verdict{class: best.Class, event: best, why: "only collectives complained"}
	switch {
	case best.Class == outcome.NCCLTimeout, best.Class == outcome.Hang && severalSay(outcome.Hang, live):
		j.blameMissing(&v, live)
	case best.Class == outcome.Hang:
		v.laggard = &laggard{best.Rank, nil, "unheard"}
	}
	return v, true
}

// waitedForOthers matches rendezvous errors of a rank that waited for others in vain, or that met
// others with another world size.
var waitedForOthers = lazy.New(`(?i)\b(?:socket|wait) timeout\b|timed out waiting|store based barrier|clients joined|enforce fail`)

// blameMissing moves the blame in a verdict from the rank that complains of waiting to the rank for
// which it waited. If the logs do not show that rank, the verdict names none.
func (j *job) blameMissing(v *verdict, live []*scan.Event) {
	if v.noneAtFault = otherLength.MatchString(v.event.Text); v.noneAtFault {
		return // and the others only lost it
	}
	if l, ok := j.missing(live); ok {
		v.laggard, v.event = &l, j.laggardEvent(l, live, v.event)
	} else if j.manyProcesses() { // every rank that complains was waiting
		e := *v.event
		e.Rank, e.Node = -1, ""
		v.event = &e
	}
}

// reportedBefore reports whether a launcher reported a failed process before a rendezvous error, in the same attempt. The
// launcher that hosts the store ends with its process, and the store with it.
func (j *job) reportedBefore(e *scan.Event) bool {
	for i, f := range j.files {
		for _, failed := range f.Elastic {
			if slices.ContainsFunc(j.earlier, func(o *scan.Event) bool { return o.File == i && o.Off >= failed.Off }) {
				continue
			}
			if i == e.File && failed.Off < e.Off || i != e.File && !failed.At.IsZero() && e.When().Sub(failed.At) > skew {
				return true
			}
		}
	}
	return false
}

// missingByRecorder returns the rank that is missing by the flight recorder dumps.
func (j *job) missingByRecorder([]*scan.Event) (laggard, bool) {
	if j.missed == nil {
		return laggard{}, false
	}
	return laggard{j.missed.Rank, j.nccl[j.missed.Rank], "recorder"}, true
}

// namedByOthers returns the rank that the other ranks' errors name most often. A referee, whose own log
// is said to name the missing rank, counts only if no error names a missing rank itself.
func (j *job) namedByOthers([]*scan.Event) (laggard, bool) {
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

// laggardEvent returns the line that shows the rank for which others waited, or a copy of otherwise
// with that rank.
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
	e.Node = cmp.Or(e.Node, j.nodeByRank(l.rank, j.nodesOfRanks()))
	return e
}

// precedes reports whether a comes before b: by position in one file, else by time, else by file.
func (j *job) precedes(a, b *scan.Event) bool {
	ta, tb := a.When(), b.When()
	if a.File == b.File {
		return a.Off < b.Off
	}
	if !ta.IsZero() && !tb.IsZero() && !ta.Equal(tb) {
		return ta.Before(tb)
	}
	return a.File < b.File
}

// ranksMissing reports whether fewer Slurm tasks wrote lines than the world has ranks.
func (j *job) ranksMissing() bool {
	tasks := map[int]struct{}{}
	for _, f := range j.files {
		for l := range f.Labels {
			tasks[l] = struct{}{}
		}
	}
	return j.taskRank && len(tasks) > 0 && j.world > len(tasks)
}

// sameNodeRank reports whether two nodes started with the same node rank.
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

// onlyDumps judges a job for which only flight recorder dumps tell anything: some ranks wait in a
// collective that others never entered.
func (j *job) onlyDumps([]*scan.Event) (verdict, bool) {
	running, known := j.given.running()
	if j.missed == nil || j.succeeded() || known && running && (j.wroteRecently() || j.given.suspended()) {
		return verdict{}, false
	}
	v := verdict{class: outcome.NCCLTimeout, why: "only collectives complained", laggard: &laggard{rank: j.missed.Rank, why: "recorder"}}
	if known && running {
		v.class, v.why = outcome.Hang, "no progress"
	}
	return v, true
}

// abortedByWatchdog reports whether a process ended by SIGABRT because a collective timed out: it said
// so before, or as the reason. PyTorch's watchdog ends its process this way, so the timeout is the
// failure to explain.
func (j *job) abortedByWatchdog(e *scan.Event) bool {
	if e.Class != outcome.Segfault || !abortMessage.MatchString(e.Text) {
		return false
	}
	reason := e.Off + int64(len(e.Raw)) + 2 // C++ prints the reason on the next line
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.Class == outcome.NCCLTimeout && o.File == e.File && (e.Rank < 0 || o.Rank < 0 || o.Rank == e.Rank) &&
			(o.Off < e.Off || o.Off <= reason && strings.Contains(o.Text, "what():"))
	})
}

// abortedForPeer reports whether a process ended by SIGABRT because its watchdog found a peer gone. The
// peer is the failure to explain.
func (j *job) abortedForPeer(e *scan.Event) bool {
	return e.Class == outcome.Segfault && e.Weight == pattern.Aborted && e.Rank >= 0 && slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.Rank == e.Rank && endedForPeer.MatchString(o.Text)
	})
}

// endedForPeer matches the last words of PyTorch's watchdog before it ends its process for a lost peer.
var endedForPeer = lazy.New(`watchdog thread terminated with exception: NCCL error: remote process exited`)

// abortMessage matches C++'s and a shell's messages about SIGABRT.
var abortMessage = lazy.New(`^terminate called|(?i)\baborted\b`)
