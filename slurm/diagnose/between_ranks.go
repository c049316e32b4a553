package diagnose

import (
	"slices"
)

// betweenRanks is for jobs where only the network between ranks complained.
func (j *job) betweenRanks(live []*event) (verdict, bool) {
	running, known := j.given.running()
	if !j.deathSeen() {
		if j.finished() || j.endedWell() {
			return verdict{}, false
		}
		live = slices.DeleteFunc(slices.Clone(live), func(e *event) bool {
			return known && running && j.progressSince(e) > 0 || j.after(e) == wentOn
		})
	}
	var best *event
	for _, e := range live {
		if e.class == Rendezvous && j.reportedBefore(e) {
			continue
		}
		if e.weight > timedOut+5 && e.weight < ended && !isEnd(e.class) && (best == nil || e.weight >= best.weight+3 || j.earlier2(e, best)) {
			best = e
		}
	}
	if best != nil {
		v := verdict{class: best.class, event: best, why: "only the network complained"}
		if best.class == Rendezvous && j.ranksMissing() {
			v.class = NodeCountMismatch
		}
		if best.class != NCCLIB && j.sameNodeRank() {
			v.class = NodeCountMismatch
		}
		return v, true
	}
	for _, e := range live {
		if e.weight >= timedOut-5 && e.weight <= timedOut+5 && (best == nil || e.weight > best.weight+4 || e.weight >= best.weight && j.earlier2(e, best)) &&
			e.weight != aborted {
			best = e
		}
	}
	if best == nil {
		return verdict{}, false
	}
	v := verdict{class: best.class, event: best, why: "only collectives complained"}
	if best.class == NCCLTimeout {
		l, ok := j.missing(live)
		if ok {
			v.laggard = &l
			v.event = j.laggardEvent(l, live, best)
		} else if j.manyProcesses() { // whoever complains had to wait
			e := *best
			e.rank, e.node = -1, ""
			v.event = &e
		}
	}
	return v, true
}

// reportedBefore reports whether a launcher had said before a complaint of the
// rendezvous that a process failed: the store goes with the launcher that hosts it.
func (j *job) reportedBefore(e *event) bool {
	for i, f := range j.files {
		for _, failed := range f.elastic {
			if i == e.file && failed.off < e.off || i != e.file && !failed.at.IsZero() && e.when().Sub(failed.at) > skew {
				return true
			}
		}
	}
	return false
}

// recorded is the rank that flight recorder dumps show to be missing.
func (j *job) recorded([]*event) (laggard, bool) {
	if j.missed == nil {
		return laggard{}, false
	}
	return laggard{j.missed.rank, j.nccl[j.missed.rank], "recorder"}, true
}

// named is the rank that errors of the others name, where they agree.
func (j *job) named([]*event) (laggard, bool) {
	votes, most := map[namedRank]int{}, namedRank{rank: -1, referee: true}
	for _, f := range j.files {
		for _, r := range f.missing {
			votes[r]++
			switch {
			case r.referee != most.referee && most.rank >= 0:
				if r.referee {
					continue
				}
			case most.rank >= 0 && (votes[r] < votes[most] || votes[r] == votes[most] && r.rank >= most.rank):
				continue
			}
			most = r
		}
	}
	return laggard{most.rank, j.nccl[most.rank], "named"}, most.rank >= 0
}

// laggardEvent is the line that shows the rank that others waited for.
func (j *job) laggardEvent(l laggard, live []*event, otherwise *event) *event {
	if l.by == nil {
		e := *otherwise
		e.rank, e.node = l.rank, j.nodeByRank(l.rank, map[int]string{})
		return &e
	}
	e := &event{
		file:   l.by.file,
		off:    l.by.off,
		raw:    l.by.raw,
		text:   l.by.raw,
		tag:    l.by.tag,
		class:  NCCLTimeout,
		weight: timedOut,
		rank:   l.rank,
		node:   j.fileNode[l.by.file],
	}
	for _, o := range live {
		if o.rank == l.rank && o.node != "" {
			e.node = o.node
			break
		}
	}
	if e.node == "" {
		for _, f := range j.files {
			for t, h := range f.hostOf {
				if t.rank == l.rank || j.taskRank && t.label == l.rank {
					e.node = h
				}
			}
		}
	}
	return e
}

// earlier2 reports whether a comes before b, by time and then by place.
func (j *job) earlier2(a, b *event) bool {
	ta, tb := a.when(), b.when()
	if a.file == b.file {
		return a.off < b.off
	}
	if !ta.IsZero() && !tb.IsZero() && !ta.Equal(tb) {
		return ta.Before(tb)
	}
	return a.file < b.file
}

// ranksMissing reports whether fewer Slurm tasks spoke than the world has.
func (j *job) ranksMissing() bool {
	tasks := map[int]bool{}
	for _, f := range j.files {
		for l := range f.labels {
			tasks[l] = true
		}
	}
	return j.taskRank && len(tasks) > 0 && j.world > len(tasks)
}

// sameNodeRank reports whether two nodes started with one node rank.
func (j *job) sameNodeRank() bool {
	nodes := map[string]string{}
	for _, f := range j.files {
		for node, rank := range f.nodeRank {
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
func (j *job) onlyDumps([]*event) (verdict, bool) {
	running, known := j.given.running()
	if j.missed == nil || j.didWell() || known && running && j.fresh() {
		return verdict{}, false
	}
	v := verdict{class: NCCLTimeout, why: "only collectives complained", laggard: &laggard{rank: j.missed.rank, why: "recorder"}}
	if known && running {
		v.class, v.why = Hang, "no progress"
	}
	return v, true
}
