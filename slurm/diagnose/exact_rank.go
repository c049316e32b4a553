package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// exactRank finds the rank of a cause that Slurm's daemon told of its node,
// from srun's word on the same thing. A launcher knows the ranks of its own task alone.
func (j *job) exactRank(v verdict, live []*scan.Event) verdict {
	if v.event.Rank >= 0 {
		return v
	}
	if task := v.event.Tag.Label; task >= 0 {
		live = slices.DeleteFunc(slices.Clone(live), func(e *scan.Event) bool { return e.Tag.Label >= 0 && e.Tag.Label != task })
	}
	if r := j.untold(); r >= 0 && inThread(v.event) { // its process lived on until the launcher ended it
		v.event.Rank, v.event.Node = r, cmp.Or(v.event.Node, j.nodeByRank(r, j.nodesOfRanks()))
		return v
	}
	for _, e := range live {
		if e.Class == v.class && e.Rank >= 0 && e != v.event && (e.Node == v.event.Node || v.event.Node == "" || e.Node == "") && e.Weight >= pattern.Death {
			v.event.Rank = e.Rank
			if v.event.Node == "" {
				v.event.Node = e.Node
			}
			return v
		}
	}
	for _, e := range live {
		if e.Spawns() && e.Agent && e.Rank >= 0 && e.File == v.event.File {
			v.event.Rank = e.Rank
			return v
		}
	}
	if !v.event.Agent {
		if e := onlyExit(live); e != nil {
			v.event.Rank = e.Rank
			if v.event.Node == "" {
				v.event.Node = e.Node
			}
		}
	}
	if v.event.Rank < 0 && v.event.Kind != "" {
		j.rankByFirstExit(v, live)
	}
	if v.event.Rank < 0 && v.class == outcome.EnvLaunch {
		j.rankByShell(v, live)
	}
	if v.event.Rank < 0 {
		j.rankBySummaries(v)
	}
	if l, ok := j.leftAlone(live); ok && v.event.Rank < 0 && !strings.HasPrefix(v.event.Text, "slurmstepd") {
		v.event.Rank = l.rank
		v.event.Node = cmp.Or(v.event.Node, j.nodeByRank(l.rank, j.nodesOfRanks()))
	}
	return v
}

// rankByFirstExit finds the rank of an exception that ended one process, where every
// Slurm task is a rank: the process that srun saw leave first. The others leave once
// they miss it.
func (j *job) rankByFirstExit(v verdict, live []*scan.Event) {
	ofRank := func(e scan.ElasticEntry) bool { return e.Rank >= 0 || e.Local >= 0 } // and not the script's own exit code
	if !j.taskRank || slices.ContainsFunc(j.files, func(f *scan.Facts) bool { return slices.ContainsFunc(f.Elastic, ofRank) }) {
		return
	}
	var first *scan.Event
	for _, e := range live {
		if e.File == v.event.File && e.Off < v.event.Off || v.event.Node != "" && v.event.Node != e.Node {
			continue // of an attempt before, or elsewhere
		}
		if e.Agent && len(e.Tasks) > 0 && e.Exit > 0 && !scan.ToldToEnd(e.Exit) && (first == nil || j.earlier2(e, first)) {
			first = e
		}
	}
	if first != nil {
		v.event.Rank, v.event.Node = first.Tasks[0], first.Node
	}
}

// rankByShell finds the rank whose shell could not start a program, where every Slurm task
// is a rank: the first that left with a shell's code for it, where all such are of one node.
func (j *job) rankByShell(v verdict, live []*scan.Event) {
	var first *scan.Event
	for _, e := range live {
		if !j.taskRank || len(e.Tasks) == 0 || e.Exit != 126 && e.Exit != 127 {
			continue
		}
		if first != nil && first.Node != e.Node {
			return
		}
		if first == nil || e.Tasks[0] < first.Tasks[0] {
			first = e
		}
	}
	if first != nil && (v.event.Node == "" || v.event.Node == first.Node) {
		v.event.Rank, v.event.Node = first.Tasks[0], first.Node
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
		if e.File == v.event.File && e.Kind == v.event.Kind {
			same++
		}
	}
	failed := map[int]scan.ElasticEntry{}
	var all []scan.ElasticEntry
	for i, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank < 0 || e.Exit == -15 || e.Task >= 0 && v.event.Tag.Label >= 0 && e.Task != v.event.Tag.Label {
				continue
			}
			all = append(all, e)
			if i == v.event.File {
				failed[e.Rank] = e
			}
		}
	}
	var found *scan.ElasticEntry
	if len(failed) == same {
		for _, e := range failed {
			if here := v.event.Node == "" || v.event.Node == e.Host; here && (found == nil || e.Rank < found.Rank) {
				found = &e
			}
		}
	}
	slices.SortStableFunc(all, func(a, b scan.ElasticEntry) int { return a.At.Compare(b.At) })
	if found == nil && len(all) > 1 && !all[0].At.IsZero() && all[1].At.Sub(all[0].At) >= skew {
		found = &all[0]
	}
	if found != nil && (v.event.Node == "" || v.event.Node == found.Host) {
		v.event.Rank, v.event.Node = found.Rank, found.Host
	}
}

// onlyExit is the account of the only rank that exited by itself, as one does
// after an exception; the others were ended by a signal.
func onlyExit(live []*scan.Event) (only *scan.Event) {
	for _, e := range live {
		if !e.Agent || e.Class != outcome.UnknownExit || e.Weight != pattern.Exited {
			continue
		}
		if e.Rank < 0 || len(e.Tasks) > 1 || only != nil && only.Rank != e.Rank {
			return nil
		}
		only = e
	}
	return only
}

// ownCode is a launcher's word on the only process that left with a code of the program's own,
// where each of the others left with 1, as Python does after an exception, or was told
// to end.
func ownCode(live []*scan.Event) (own *scan.Event) {
	others := 0
	for _, e := range live {
		switch {
		case len(e.Tasks) == 0 && (!e.Agent || e.Rank < 0 && !e.Spawns() || e.Exit == 0):
		case e.Exit == 1 || scan.ToldToEnd(e.Exit):
			others++
		case own != nil && (e.Rank < 0 || e.Rank != own.Rank) || len(e.Tasks) > 1 || e.Exit < 2 || e.Exit > 125:
			return nil
		default:
			own = e
		}
	}
	if others == 0 {
		return nil
	}
	return own
}
