package scan

import (
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// Open MPI's mpirun reports the first rank that ended: by a signal in one line, with an exit code in
// two (orte/tools/orterun/help-orterun.txt).
var (
	mpirunSignal  = lazy.New(`^(?:mpi\w+|orterun|prterun) noticed that process rank (\d+) with PID \d+ on node (\S+) exited on signal \d+ \((.*?)\)`)
	mpirunProcess = lazy.New(`^ *Process name: \[\[\d+,\d+\],(\d+)\]$`)
	mpirunCode    = lazy.New(`^ *Exit code: +(\d+)$`)
)

// mpiAbort matches the report on a rank that called MPI_Abort, or whose MPI call failed: Open MPI's, and MPICH's
// and Intel MPI's, whose code may be an error of MPI's and is then no exit code.
var mpiAbort = lazy.New(`\b(?:MPI_ABORT was invoked on rank (\d+) in communicator MPI_COMM_WORLD|Abort\(-?\d+\) on node \d+ \(rank (\d+) in comm 0\)` +
	`|application called MPI_Abort\(MPI_COMM_WORLD, -?\d+\) - process (\d+))`)

// mpirunTells handles mpirun's report on the end of a rank.
func (s *scanner) mpirunTells(t logline.Tag, text, raw string, off int64) bool {
	if g := mpirunSignal.FindStringSubmatch(text); g != nil {
		s.Hosts[g[2]]++
		return s.taskEnded(g[2], TaskList(g[1]), g[3], t, text, raw, off)
	}
	if g := mpirunProcess.FindStringSubmatch(text); g != nil {
		s.mpirunFirst = TaskList(g[1])
		return true
	}
	if g := mpiAbort.FindStringSubmatch(text); g != nil {
		return s.taskEnded("", TaskList(g[1]+g[2]+g[3]), "exit code 1", t, text, raw, off)
	}
	g, tasks := mpirunCode.FindStringSubmatch(text), s.mpirunFirst
	if g == nil || tasks == nil {
		return false
	}
	s.mpirunFirst = nil
	return s.taskEnded("", tasks, "exit code "+g[1], t, text, raw, off)
}
