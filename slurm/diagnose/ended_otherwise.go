package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// endedOtherwise reports whether an exception was caught, and its process ended by another one: the same rank wrote that later,
// or as many exceptions ended processes of the launcher as it says failed. Another process must have ended for a reason of its
// own, which is not the same error: a program may report its error and then fail once more as it leaves.
func (j *job) endedOtherwise(e *scan.Event) bool {
	ends := j.endings()
	if e.Stack == nil || e.Agent || e.Stack.Uncaught || inThread(e) || ends.of(e) {
		return false
	}
	if last := raisedFrom(e, j.events); last != nil && ends.of(last) {
		return false
	}
	if j.othersCrashed(e) {
		return true
	}
	by, failed := launcher{e.File, e.Tag.Label}, map[int]bool{}
	for _, s := range j.files[e.File].Elastic {
		if s.Task == by.task && s.Rank >= 0 {
			failed[s.Rank] = true
		}
	}
	told := j.toldToEndFirst(j.events)
	ended, later, reason := 0, false, told != nil && !sameLauncher(e, told)
	for _, o := range j.events {
		if o.Superseded {
			continue
		}
		left := ends.of(o)
		reason = reason || (e.Rank < 0 || o.Rank != e.Rank) && o.Text != e.Text && (endedAlone(o) || left && !o.Agent && o.Kind != "" && o.Weight >= pattern.Death)
		if (launcher{o.File, o.Tag.Label}) == by && left && o.Stack.Chain == python.Unchained {
			ended++
			later = later || e.Rank >= 0 && o.Rank == e.Rank && o.Tag == e.Tag && o.Off > e.Off
		}
	}
	if j.attempts <= 1 && j.runs <= 1 { // not all of those events were kept
		raised := 0
		for from, times := range j.files[e.File].Raised {
			if from.Task == by.task && ends.at(from.Frame) {
				raised += times
			}
		}
		ended = max(ended, raised)
	}
	return reason && (later || ended > 0 && ended >= len(failed))
}

// raisedFrom returns the exception that a process raised from another one, or nil.
func raisedFrom(e *scan.Event, events []*scan.Event) *scan.Event {
	o := firstEvent(events, func(o *scan.Event) bool { return o.File == e.File && o.Tag == e.Tag && o.Off > e.Off })
	if o == nil || !o.Superseded || o.Stack == nil || o.Stack.Chain == python.Unchained {
		return nil
	}
	return o
}

// An endings has the functions of a program, besides the outermost one, that catch what ends a process.
type endings map[python.Frame]bool

// endings finds them: the tracebacks of exceptions about lost peers, which end a process, begin there.
func (j *job) endings() endings {
	found := endings{}
	for _, o := range j.events {
		if from, ok := o.From(); ok && o.Class == outcome.NCCLConnection && o.Weight < pattern.Death && !inThread(o) {
			found[from.Frame] = true
		}
	}
	return found
}

func (ends endings) at(f python.Frame) bool { return ends[f] || slices.Contains(starts, f.Function) }

// of reports whether an exception left such a function.
func (ends endings) of(e *scan.Event) bool {
	from, ok := e.From()
	return ok && ends.at(from.Frame)
}

// outermost reports whether an exception left the program's outermost frame, so that it ended its process. Below a function
// that catches an exception, a traceback begins with that function.
func outermost(e *scan.Event) bool {
	return e.Stack != nil && len(e.Stack.Frames) > 0 && slices.Contains(starts, e.Stack.Frames[0].Function)
}

// starts are the functions with which a process begins: a program's module, and multiprocessing's.
var starts = []string{"<module>", "_bootstrap"}

// endedAlone reports whether a launcher says that a process ended by a signal or a code other than that of an exception.
// SIGABRT does not count, because a rank that lost a peer may end itself by it.
func endedAlone(e *scan.Event) bool {
	return e.Agent && e.Rank >= 0 && !slices.Contains([]int{0, 1, -6, 134}, e.Exit)
}

// killedAlone reports whether a launcher says that a signal ended a process. SIGABRT does not count, because a rank
// that lost a peer may end itself by it.
func killedAlone(e *scan.Event) bool {
	deaths := []string{outcome.HostOOM, outcome.Segfault, outcome.ShmBusError}
	return e.Agent && e.Rank >= 0 && slices.Contains(deaths, e.Class) && e.Exit != -6 && e.Exit != 134
}

// othersCrashed reports whether launchers say that the rank of an exception ended by a signal; or, if its rank is unknown, that a
// signal ended processes, and that all the others, which lost them, left with the same code: nothing is left that the
// exception ended.
func (j *job) othersCrashed(e *scan.Event) bool {
	signals, codes, left := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, o := range j.events {
		if !o.Agent || o.Rank < 0 || o.Exit == 0 || len(o.Tasks) > 1 || scan.ToldToEnd(o.Exit) {
			continue
		}
		switch {
		case !crashed(o.Exit):
			codes[o.Exit], left[o.Rank] = true, true
		case o.Rank == e.Rank:
			return true
		default:
			signals[o.Exit] = true
		}
	}
	return e.Rank < 0 && len(signals) == 1 && len(codes) == 1 && len(left) > 1
}

// crashed reports whether an exit code is that of a signal which no launcher sends, and neither Python nor PyTorch after an
// exception: not SIGHUP, SIGINT, SIGABRT, SIGKILL, SIGPIPE and SIGTERM.
func crashed(exit int) bool {
	return exit < 0 && !slices.Contains([]int{-1, -2, -6, -9, -13, -15}, exit)
}
