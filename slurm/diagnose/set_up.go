package diagnose

import (
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// raisedBySetUp reports whether an exception was raised by a command that sets up an environment, or by
// "python -c" in a script, which checks one. The script may go on without it.
func raisedBySetUp(e *scan.Event) bool {
	if e.Stack == nil || len(e.Stack.Frames) == 0 {
		return false
	}
	first := e.Stack.Frames[0]
	return setUpCommand.MatchString(first.File) || first.File == "<string>" && first.Function == "<module>" && !e.Stack.Has("multiprocessing/")
}

// didWithout reports whether a script's check by "python -c" (see raisedBySetUp) found no module, and a program of its only process
// wrote on in the same file and completed by the job's other log.
func (j *job) didWithout(e *scan.Event) bool {
	return e.Class == outcome.ImportError && len(e.Stack.Frames) == 1 && e.Tag == logline.NoTag &&
		j.fileRank[e.File] < 0 && !j.manyProcesses() && !j.deathSeen() && j.linesSinceEvents(e) >= scan.Enough && j.readsWell(e.File)
}

var setUpCommand = lazy.New(`/bin/(?:conda|mamba|pip3?)$`)

// isSetUp reports whether a line is from environment modules or conda, whose failures do not end a
// script.
func isSetUp(e *scan.Event) bool {
	return e.Class == outcome.EnvLaunch && setUpLine.MatchString(e.Text)
}

var setUpLine = lazy.New(`^Lmod has detected|Unable to locate a modulefile|^CommandNotFoundError|conda (?:activate|init)`)
