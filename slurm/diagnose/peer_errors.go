package diagnose

import (
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// peerErrors matches exceptions that mostly follow another rank's death. They are the rank's own
// failure if no other rank complains.
var peerErrors = lazy.New(`^(?:\w+\.)*(?:Connection\w*|BrokenPipe|EOF)Error$`)

// peerFiles are the files in which torch and Python raise such exceptions for another process that is
// gone.
var peerFiles = []string{"torch/distributed/", "torch/utils/data/", "multiprocessing/"}

// unexplained returns such an exception among the symptoms of a death if the run did not survive it, and the heaviest
// symptom does not explain it. At the end of a run that completed, a process that leaves first looks like one that died.
func (j *job) unexplained(heavy *scan.Event, left []*scan.Event) *scan.Event {
	if j.finished() && !j.deathSeen() || heavy.Weight > pattern.Exited+1 || heavy.Class != outcome.UnknownExit && heavy.Class != outcome.NCCLConnection {
		return nil
	}
	return firstEvent(left, func(e *scan.Event) bool {
		return peerErrors.MatchString(e.Kind) && e.Stack != nil && !e.Doubted && j.after(e) != wentOn &&
			(heavy.Class == outcome.UnknownExit || !e.Stack.Has(peerFiles...)) && !j.survived(e)
	})
}
