package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// EndsJob reports whether an event is Slurm's message that it ends the job or step.
func EndsJob(e *Event) bool {
	return IsEnd(e.Class) || strings.HasPrefix(e.Text, "srun: ") && (strings.Contains(e.Text, "Terminating") || strings.Contains(e.Text, "step aborted") ||
		strings.Contains(e.Text, "First task exited"))
}

// IsEnd reports whether a class is one of Slurm's reasons to end a job.
func IsEnd(class string) bool {
	switch class {
	case outcome.SlurmTimeLimit, outcome.SlurmPreempted, outcome.SlurmNodeFail, outcome.SlurmCancelled:
		return true
	}
	return false
}

// StepOnly reports whether Slurm ended only a step, as it does after a task failed (srun
// --kill-on-bad-exit).
func (e *Event) StepOnly() bool {
	return e.Class == outcome.SlurmCancelled && strings.Contains(e.Text, "*** STEP ")
}
