package diagnose

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// workedWithout reports whether a program caught what an event tells of, since the file says at its end that all went well: either
// many lines came between, or that end stands before a line that is no exception, and no exception follows. What ends a program,
// and the script's own lines, do not count.
func (j *job) workedWithout(e *scan.Event) bool {
	if e.Agent || e.Outermost() || e.Stack != nil && (e.Stack.Uncaught || e.Stack.Headless) ||
		e.Kind == "" && slices.Contains(deadly, e.Class) || fromScript(e) || endsProgram(e) || j.deathSeen() {
		return false
	}
	f := j.files[e.File]
	if e.Kind == "" && f.ReadsWellBefore(e) {
		return !slices.ContainsFunc(j.events, func(o *scan.Event) bool {
			return o.File == e.File && o.Off > e.Off && o.Kind != "" && o.Counts()
		})
	}
	return j.linesSinceEvents(e) >= 2*scan.Farewell && f.Ending().Said
}

// endsProgram reports whether a line that is no exception tells that a program ended, or did not begin.
func endsProgram(e *scan.Event) bool {
	return e.Weight >= pattern.Fact-1 || scan.IsEnd(e.Class) || scan.Killed.MatchString(e.Text) ||
		scan.Complaint.MatchString(e.Text) || aboutProgram.MatchString(e.Text) || strings.Contains(e.Text, ": can't open file ")
}

// deadly are the classes of what no program catches, or what tells that it did not.
var deadly = []string{
	outcome.UserException, outcome.Segfault, outcome.HostOOM, outcome.ShmBusError, outcome.NCCLTimeout, outcome.DeviceAssert,
	outcome.GPUHardware, outcome.NaNLoss, outcome.SlurmSubmitRejected,
}
