package diagnose

import (
	"cmp"
	"slices"
	"strings"
)

// exactRank finds the rank of a cause that Slurm's daemon told of its node,
// from srun's word on the same thing.
func (j *job) exactRank(v verdict, live []*event) verdict {
	if v.event.rank >= 0 {
		return v
	}
	for _, e := range live {
		if e.class == v.class && e.rank >= 0 && e != v.event && (e.node == v.event.node || v.event.node == "" || e.node == "") && e.weight >= death {
			v.event.rank = e.rank
			if v.event.node == "" {
				v.event.node = e.node
			}
			return v
		}
	}
	if !v.event.agent {
		if e := onlyExit(live); e != nil {
			v.event.rank = e.rank
			if v.event.node == "" {
				v.event.node = e.node
			}
		}
	}
	if v.event.rank < 0 && v.event.stack != nil {
		j.rankByFirstExit(v, live)
	}
	if v.event.rank < 0 {
		j.rankBySummaries(v)
	}
	if l, ok := j.leftAlone(live); ok && v.event.rank < 0 && !strings.HasPrefix(v.event.text, "slurmstepd") {
		v.event.rank = l.rank
		v.event.node = cmp.Or(v.event.node, j.nodeByRank(l.rank, j.nodesOfRanks()))
	}
	return v
}

// rankByFirstExit finds the rank of an exception that ended one process, where every
// Slurm task is a rank: the process that srun saw leave first. The others leave once
// they miss it.
func (j *job) rankByFirstExit(v verdict, live []*event) {
	if !j.taskRank || slices.ContainsFunc(j.files, func(f *facts) bool { return len(f.elastic) > 0 }) {
		return
	}
	var first *event
	for _, e := range live {
		if e.file == v.event.file && e.off < v.event.off || v.event.node != "" && v.event.node != e.node {
			continue // of an attempt before, or elsewhere
		}
		if e.agent && len(e.tasks) > 0 && e.exit > 0 && !toldToEnd(e.exit) && (first == nil || j.earlier2(e, first)) {
			first = e
		}
	}
	if first != nil {
		v.event.rank, v.event.node = first.tasks[0], first.node
	}
}

// rankBySummaries finds the rank of a cause whose lines do not say it, from
// torchelastic's summaries: where as many ranks failed as the file shows the
// cause, it is all of theirs; where one rank failed well before all others, it
// is its own.
func (j *job) rankBySummaries(v verdict) {
	if j.attempts > 1 {
		return
	}
	same := 1
	for _, e := range v.others {
		if e.file == v.event.file && e.kind == v.event.kind {
			same++
		}
	}
	failed := map[int]elasticEntry{}
	var all []elasticEntry
	for i, f := range j.files {
		for _, e := range f.elastic {
			if e.rank < 0 || e.exit == -15 {
				continue
			}
			all = append(all, e)
			if i == v.event.file {
				failed[e.rank] = e
			}
		}
	}
	var found *elasticEntry
	if len(failed) == same {
		for _, e := range failed {
			if here := v.event.node == "" || v.event.node == e.host; here && (found == nil || e.rank < found.rank) {
				found = &e
			}
		}
	}
	slices.SortStableFunc(all, func(a, b elasticEntry) int { return a.at.Compare(b.at) })
	if found == nil && len(all) > 1 && !all[0].at.IsZero() && all[1].at.Sub(all[0].at) >= skew {
		found = &all[0]
	}
	if found != nil && (v.event.node == "" || v.event.node == found.host) {
		v.event.rank, v.event.node = found.rank, found.host
	}
}

// onlyExit is the account of the only rank that exited by itself, as one does
// after an exception; the others were ended by a signal.
func onlyExit(live []*event) (only *event) {
	for _, e := range live {
		if !e.agent || e.class != UnknownExit || e.weight != exited {
			continue
		}
		if e.rank < 0 || len(e.tasks) > 1 || only != nil && only.rank != e.rank {
			return nil
		}
		only = e
	}
	return only
}
