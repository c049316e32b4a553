package diagnose

import (
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// countRanks returns the world size, or if that is unknown the number of ranks in the logs.
func (j *job) countRanks() int {
	if j.world > 0 {
		return j.world
	}
	most := -1
	for i, f := range j.files {
		most = max(most, j.rankOf(i, logline.NoTag))
		if j.taskRank {
			for l := range f.Labels {
				most = max(most, l)
			}
		}
	}
	return max(most+1, j.ranksByReports())
}

// ranksByReports returns the number of ranks, if launchers report on all up to the highest, or on
// several and all but one.
func (j *job) ranksByReports() int {
	told, most := j.reportedRanks()
	if untold := most + 1 - len(told); untold > 1 || untold == 1 && len(told) < 3 {
		return 0
	}
	return most + 1
}

// unreportedRank returns the only rank on whose exit no launcher reports while they report on several
// others, so that it did not exit by itself; else -1.
func (j *job) unreportedRank() int {
	told, most := j.reportedRanks()
	if len(told) != most || most < 3 {
		return -1
	}
	for r := range most + 1 {
		if _, ok := told[r]; !ok {
			return r
		}
	}
	return -1
}

// reportedRanks returns the ranks on whose exits launchers report, and the highest rank that exists by
// these reports if all nodes have equally many.
func (j *job) reportedRanks() (told map[int]struct{}, most int) {
	told, most = map[int]struct{}{}, -1
	first, local := -1, 0 // the first rank of the last node, and the highest local rank
	for _, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank >= 0 {
				told[e.Rank], most = struct{}{}, max(most, e.Rank)
			}
			if e.Rank >= 0 && e.Local >= 0 {
				first, local = max(first, e.Rank-e.Local), max(local, e.Local)
			}
		}
		for _, e := range f.Events {
			for _, t := range e.Tasks {
				if j.taskRank {
					told[t], most = struct{}{}, max(most, t)
				}
			}
		}
	}
	return told, max(most, first+local)
}
