package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// lastRestartReports returns, for each file, the offset of the last failure that torchrun's agents
// reported and after which they restarted, if their folders show as many restarts. An agent that gives
// up reports once more, with a summary that names ranks.
func (j *job) lastRestartReports() map[int]int64 {
	told, gaveUp, by := 0, false, map[int][]int64{}
	for i, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank >= 0 {
				gaveUp = true
				continue
			}
			told++
			by[i] = append(by[i], e.Off)
		}
	}
	restarts := logfile.Restarts(j.src.Files())
	var last map[int]int64
	until := func(i int, off int64) {
		if last == nil {
			last = map[int]int64{}
		}
		last[i] = off
	}
	for i, offs := range by {
		slices.Sort(offs)
		switch {
		case gaveUp && len(by) == 1 && told == restarts+1 && restarts > 0:
			until(i, offs[restarts-1])
		case !gaveUp && told <= restarts:
			until(i, offs[len(offs)-1])
		}
	}
	return last
}

// allEarlier reports whether all launcher reports in a file belong to attempts before the last.
func (j *job) allEarlier(file int) bool {
	tells := func(e *scan.Event) bool { return e.File == file && e.Agent }
	return slices.ContainsFunc(j.earlier, tells) && !slices.ContainsFunc(j.events, tells)
}
