package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// lastRestartReports returns, for each file, the offset of the last failure that torchrun's agents
// reported and after which they restarted, if their folders show as many restarts. Where an agent gave
// up, its summary shows that too.
func (j *job) lastRestartReports() map[int]int64 {
	told, last := 0, map[int]int64{}
	for i, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank >= 0 {
				return nil
			}
			told, last[i] = told+1, max(last[i], e.Off)
		}
	}
	if told == 0 || told > logfile.Restarts(j.src.Files()) {
		return nil
	}
	return last
}

// allEarlier reports whether all launcher reports in a file belong to attempts before the last.
func (j *job) allEarlier(file int) bool {
	tells := func(e *scan.Event) bool { return e.File == file && e.Agent }
	return slices.ContainsFunc(j.earlier, tells) && !slices.ContainsFunc(j.events, tells)
}
