package diagnose

import (
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// launchedBy returns how many processes a file's launcher certainly had; 0 if it reports none, or if several launchers may
// have written the file.
func launchedBy(f *scan.Facts) int {
	if len(f.Labels) > 0 {
		return 0
	}
	return f.Launched
}

// onlyOneNotWaiting returns the only rank that did not complain when all others waited in vain, and which its launcher then
// told to end, so that only the launcher shows that it existed.
func (j *job) onlyOneNotWaiting(live []*scan.Event) (laggard, bool) {
	complains, world := complaining(live), 0
	for _, e := range live {
		if misses(e) && e.Class == outcome.NCCLConnection {
			return laggard{}, false // it waited, too, until another one was gone
		}
	}
	for i, f := range j.files {
		if n := launchedBy(f); n > 0 && j.baseRank[i] >= 0 {
			world = max(world, j.baseRank[i]+n)
		}
	}
	if delete(complains, -1); world < 3 || len(complains) != world-1 {
		return laggard{}, false
	}
	for r := range world {
		if !complains[r] {
			return laggard{r, j.nccl[r], "silent"}, true
		}
	}
	return laggard{}, false
}
