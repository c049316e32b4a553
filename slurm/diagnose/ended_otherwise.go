package diagnose

import (
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// endedOtherwise reports whether an exception was caught, and its process ended by another one: the same rank wrote that later,
// or as many exceptions ended processes of the launcher as it says failed. Another process must have ended for a reason of its
// own, which is not the same error: a program may report its error and then fail once more as it leaves.
func (j *job) endedOtherwise(e *scan.Event) bool {
	if e.Stack == nil || e.Agent || e.Stack.Uncaught || inThread(e) || e.Outermost() {
		return false
	}
	if last := raisedFrom(e, j.events); last != nil && last.Outermost() {
		return false
	}
	if j.othersCrashed(e) || j.steppedUntilEnd(e) {
		return true
	}
	by, failed := launcher{e.File, e.Tag.Label}, map[int]bool{}
	for _, s := range j.files[e.File].Elastic {
		if s.Task == by.task && s.Rank >= 0 {
			failed[s.Rank] = true
		}
	}
	told := j.toldToEndFirst(j.events)
	ended, later, reason := 0, false, told != nil && len(failed) > 0 && !sameLauncher(e, told)
	for _, o := range j.events {
		if !o.Superseded {
			reason = reason || (e.Rank < 0 || o.Rank != e.Rank) && o.Text != e.Text && (endedAlone(o) || leftModule(o))
		}
		if (launcher{o.File, o.Tag.Label}) == by && o.Outermost() && !launcherRaised(o) && chainedTo(o, j.events) == nil {
			ended++
			later = later || e.Rank >= 0 && o.Rank == e.Rank && o.Tag == e.Tag && o.Off > e.Off
		}
	}
	if j.attempts <= 1 && j.runs <= 1 { // not all of those events were kept
		ended = max(ended, j.files[e.File].Raised[by.task])
	}
	return reason && (later || ended > 0 && ended >= len(failed))
}

// steppedUntilEnd reports whether the ranks made steps after an exception until Slurm ended the whole job, when no process had
// left by itself: a launcher may have left by a signal. Every step needs all ranks, so that none had died of the exception.
func (j *job) steppedUntilEnd(e *scan.Event) bool {
	var end time.Time
	told := slices.ContainsFunc(j.events, func(o *scan.Event) bool { return scan.DeathSignal.MatchString(o.Text) })
	for _, o := range j.events {
		launcher := told && len(o.Tasks) > 0 // it left because of the signal
		if o.Agent && o.Exit != 0 && o.Exit != -9 && !scan.ToldToEnd(o.Exit) && !launcher {
			return false
		}
		if at := o.When(); scan.IsEnd(o.Class) && !o.StepOnly() && o.Kind == "" && !at.IsZero() && (end.IsZero() || at.Before(end)) {
			end = at
		}
	}
	usual, _ := j.pace()
	from := end.Add(-skew - doubtFactor*usual)
	return !end.IsZero() && slices.ContainsFunc(j.lastReports(), func(at time.Time) bool { return at.After(from) && !at.Before(e.Before) })
}

// raisedFrom returns the exception that a process raised from another one, which says more, or nil.
func raisedFrom(e *scan.Event, events []*scan.Event) *scan.Event {
	if o := chainedTo(e, events); o != nil && o.Superseded {
		return o
	}
	return nil
}

// chainedTo returns the next part of the chain of exceptions to which one belongs, or nil.
func chainedTo(e *scan.Event, events []*scan.Event) *scan.Event {
	o := firstEvent(events, func(o *scan.Event) bool { return o.File == e.File && o.Tag == e.Tag && o.Off > e.Off })
	if o == nil || o.Stack == nil || o.Stack.Chain == python.Unchained {
		return nil
	}
	return o
}

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

// othersCrashed reports whether launchers say that the rank of an exception ended by a signal; or that one signal ended processes, and
// that all the others, which lost them, left with the same code, or that there are none: nothing is left that the exception ended.
// Python leaves with 1 after an exception, so that this code tells only of one of an unknown rank. SIGKILL may come after it.
func (j *job) othersCrashed(e *scan.Event) bool {
	signals, codes, left, ended := map[int]bool{}, map[int]bool{}, map[int]bool{}, 0
	byRank := slices.ContainsFunc(j.events, func(o *scan.Event) bool { return o.Agent && o.Exit != 0 && o.Rank >= 0 })
	for _, o := range j.events {
		if !o.Agent || o.Exit == 0 || scan.ToldToEnd(o.Exit) || o.Rank < 0 && (byRank || len(o.Tasks) == 0) {
			continue // a task that is a launcher leaves as its ranks make it
		}
		switch {
		case o.Exit == -9 && len(o.Tasks) > 0: // Slurm kills the tasks that are left
		case !crashed(o.Exit) && o.Exit != -9:
			if codes[o.Exit] = true; o.Rank >= 0 {
				left[o.Rank] = true
			}
		case o.Rank >= 0 && o.Rank == e.Rank && o.Exit != -9:
			return true
		default:
			signals[o.Exit], ended = true, ended+max(1, len(o.Tasks))
		}
	}
	switch {
	case len(signals) != 1 || len(codes) > 1:
		return false
	case len(codes) == 0:
		return ended > 1 && !signals[-9]
	case codes[1]:
		return len(left) > 1 && e.Rank < 0 && !signals[-9]
	}
	return len(left) > 1 && (e.Rank < 0 || left[e.Rank])
}

// crashed reports whether an exit code is that of a signal which no launcher sends, and neither Python nor PyTorch after an
// exception: not SIGHUP, SIGINT, SIGABRT, SIGKILL, SIGPIPE and SIGTERM.
func crashed(exit int) bool {
	return exit < 0 && !slices.Contains([]int{-1, -2, -6, -9, -13, -15}, exit)
}
