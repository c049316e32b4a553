package diagnose

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A verdict is the conclusion from the evidence.
type verdict struct {
	class       string
	event       *scan.Event   // the line that shows the cause; nil without one
	others      []*scan.Event // further lines that show the same cause
	laggard     *laggard
	noneAtFault bool   // several ranks blame a peer, and none of them is at fault, or one of several is, and nothing tells which
	ofMany      bool   // several ranks say it, and none of them is at fault
	onlyLast    bool   // event is the last line of the logs, and no cause
	why         string // the step of the method that decided
	since       time.Duration
}

// judge determines the verdict by the steps of the method.
func (j *job) judge() verdict {
	live := j.candidates()
	for _, step := range []func([]*scan.Event) (verdict, bool){
		j.firstCause,
		j.slurmEnd,
		j.lastSentence,
		j.betweenRanks,
		j.badNumbers,
		j.firstDoubtfulCause,
		j.wrongUsage,
		j.silentDeath,
		j.onlyDumps,
	} {
		if v, ok := step(live); ok {
			return v
		}
	}
	return j.health()
}

// judgeAll is judge. If that does not explain a death, or only by the loss of a peer, it judges again with the events that may or may
// not belong to an earlier attempt.
func (j *job) judgeAll() verdict {
	v := j.judge()
	if len(j.unsure) == 0 || !j.deathSeen() || v.class != outcome.UnknownExit && v.class != outcome.NCCLConnection && !report.QuietClass(v.class) {
		return v
	}
	j.events, j.unsure = append(j.events, j.unsure...), nil
	return j.judge()
}

// candidates returns the events that may be causes. It leaves out what the program handled, and
// consequences of Slurm's end of the job.
func (j *job) candidates() (live []*scan.Event) {
	ends := map[int]int64{} // file → offset of the first line that ends the job
	endAt := time.Time{}
	lost := map[string]bool{} // nodes that Slurm says failed
	for _, e := range j.events {
		if e.Class == outcome.SlurmNodeFail && e.Node != "" {
			lost[e.Node] = true
		}
		if scan.EndsJob(e) {
			if at, ok := ends[e.File]; !ok || e.Off < at {
				ends[e.File] = e.Off
			}
			if scan.IsEnd(e.Class) && e.Class != outcome.SlurmNodeFail && !e.StepOnly() {
				if w := e.When(); !w.IsZero() && (endAt.IsZero() || w.Before(endAt)) {
					endAt = w
				}
			}
		}
	}
	waited, unheard := j.waitedInVain(), j.unheard()
	for _, e := range j.events {
		if e.Superseded || e.Form >= pattern.Report || j.threadAfterEnd(e) || j.onlyPeersLeft(e) {
			continue
		}
		if e.Class == outcome.NCCLConnection && peerClosed.MatchString(e.Text) {
			e.Weight = min(e.Weight, pattern.Symptom+3) // also where NCCL itself warns of it: the peer is gone, and says why or nothing
		}
		if j.abortedForPeer(e) {
			e.Class, e.Weight = outcome.UnknownExit, pattern.Symptom
		}
		if waited && e.Class == outcome.HostOOM && e.Agent && e.Rank >= 0 && len(e.Tasks) == 0 && j.observedLater(e) {
			e.Class, e.Weight = outcome.UnknownExit, pattern.Symptom // it hung, and was killed after others had failed
			j.hung = append(j.hung, e.Rank)
		}
		if unheard.killed(e) {
			e.Class, e.Weight = outcome.UnknownExit, pattern.Symptom // its monitor killed it
		}
		if e.Class == outcome.HostOOM && e.Weight == pattern.Death && len(e.Tasks) > 0 && lost[e.Node] {
			continue // it ended with its node
		}
		at, ended := ends[e.File]
		killed := e.Class == outcome.HostOOM && e.Weight >= pattern.Death && e.Weight < pattern.Generic
		if ended && e.Off > at && (killed || e.Class == outcome.Container && strings.Contains(e.Text, "_join")) {
			continue // Slurm killed it, not the kernel; or it was too late to join the job's container
		}
		if e.Weight < pattern.Specific && e.Weight > pattern.Symptom && !scan.IsEnd(e.Class) && !endAt.IsZero() && !e.Before.IsZero() && e.Before.After(endAt) {
			continue
		}
		live = append(live, e)
	}
	return live
}

// peerClosed matches NCCL's words for a peer whose process is gone.
var peerClosed = lazy.New(`(?i)\bconnection closed by remote peer\b`)

// firstCause finds the earliest exception, crash or fault that is not NCCL's. Of two that are close in
// time, the one that says more wins.
func (j *job) firstCause(live []*scan.Event) (verdict, bool) {
	causes, _ := j.possibleCauses(live)
	return j.earliest(causes, live)
}

// firstDoubtfulCause is firstCause for events that count only if no other evidence explains the end.
func (j *job) firstDoubtfulCause(live []*scan.Event) (verdict, bool) {
	_, unsure := j.possibleCauses(live)
	running, known := j.given.running()
	if !j.deathSeen() && (known && running || j.succeeded()) {
		return verdict{}, false
	}
	return j.earliest(slices.DeleteFunc(unsure, j.skips), live)
}

// earliest chooses between causes: the earliest wins, and of those that are close in time the one that
// says more.
func (j *job) earliest(causes, live []*scan.Event) (verdict, bool) {
	if causes = j.ofLastProgram(withoutStoreConsequences(causes, live), live); len(causes) == 0 {
		return verdict{}, false
	}
	brokenGPU := firstEvent(causes, func(e *scan.Event) bool { return e.Class == outcome.GPUHardware && e.Weight == pattern.Fact })
	all := causes
	if brokenGPU != nil {
		causes = withoutGPUConsequences(causes)
	}
	best := causes[0]
	for _, e := range causes[1:] {
		if j.betterCause(e, best) {
			best = e
		}
	}
	if best == brokenGPU && best.Rank < 0 {
		best.Rank = failedRankOn(brokenGPU, all)
	}
	v := verdict{class: best.Class, event: best, why: "first cause"}
	for _, e := range causes {
		if e != best && e.Class == best.Class {
			v.others = append(v.others, e)
		}
	}
	// One rank's collective differs from another's, and either may be wrong; and the rank that counts
	// the joined ranks is not the missing one.
	if t := v.event.Text; fingerprint.MatchString(t) || otherLength.MatchString(t) || clientsJoined.MatchString(t) {
		j.blameMissing(&v, live)
		return v, true
	}
	v = j.withoutEnvironment(j.exactRank(v, live), live)
	v.noneAtFault = v.noneAtFault || v.event == best && firstByChance(best, causes)
	return j.ofAll(v), true
}

// withoutGPUConsequences drops the Python errors that a broken GPU causes.
func withoutGPUConsequences(causes []*scan.Event) (kept []*scan.Event) {
	for _, e := range causes {
		switch e.Class {
		case outcome.CUDAIllegalAccess, outcome.CUDADriver, outcome.UserException, outcome.Segfault, outcome.NaNLoss, outcome.GPUHardware, outcome.DeviceAssert:
			if e.Class != outcome.GPUHardware || e.Weight < pattern.Fact {
				continue
			}
		}
		kept = append(kept, e)
	}
	return kept
}

// failedRankOn returns the only rank on a broken GPU's node that failed because of it, or -1.
func failedRankOn(brokenGPU *scan.Event, causes []*scan.Event) int {
	rank := -1
	for _, e := range causes {
		if e.Rank < 0 || len(e.Tasks) > 1 || e.Node != brokenGPU.Node || e.Node == "" {
			continue
		}
		if rank >= 0 && rank != e.Rank {
			return -1
		}
		rank = e.Rank
	}
	return rank
}

// betterCause reports whether a is a better first cause than b.
func (j *job) betterCause(a, b *scan.Event) bool {
	ta, tb := a.When(), b.When()
	gap := ta.Sub(tb)
	if ta.IsZero() || tb.IsZero() {
		gap = 0
	}
	late := func(e *scan.Event) bool { return e.Weight >= pattern.Fact-1 } // written after the event
	slack := skew
	if late(a) != late(b) {
		slack = 2 * time.Minute
	}
	if gap > slack || gap < -slack {
		return gap < 0
	}
	if d := a.Weight - b.Weight; d >= 10 || d <= -10 {
		return d > 0
	}
	if a.File == b.File {
		if a.Tag == b.Tag && a.Weight != b.Weight && a.Off-b.Off < 4096 && b.Off-a.Off < 4096 {
			return a.Weight > b.Weight // both describe one failure, so the line that says more wins
		}
		return a.Off < b.Off
	}
	if gap != 0 {
		return gap < 0
	}
	if a.Weight != b.Weight {
		return a.Weight > b.Weight
	}
	return a.Rank >= 0 && (b.Rank < 0 || a.Rank < b.Rank)
}

// possibleCauses returns the events that may be the first cause, because their process did not go on.
// If a process is known to have died, sure includes events followed only by phases, which may be other
// ranks'. unsure are lines without the form of an error, and tracebacks introduced as handled.
func (j *job) possibleCauses(live []*scan.Event) (sure, unsure []*scan.Event) {
	var followed []*scan.Event
	for _, e := range live {
		if e.Weight < pattern.Death || scan.IsEnd(e.Class) || j.survived(e) && !j.lastProgramMissing(e) || j.abortedByWatchdog(e) {
			continue
		}
		switch after := j.after(e); {
		case j.lastProgramMissing(e), j.saysItExits(e):
			sure = append(sure, e)
		case after == wentOn:
		case fromScript(e) && !j.exitedFor(e):
			switch {
			case j.ranAnyway(e, live), j.given.state() == "" && !j.deathSeen() && (isSetUp(e) || j.files[e.File].Ran.Programs > e.Ran.Programs),
				isSetUp(e) && j.programRan(e) && !j.slurmFailed() && !j.deathSeen():
			case j.nothingRan(e):
				sure = append(sure, e)
			default:
				unsure = append(unsure, e)
			}
		case e.Form == pattern.Bare && j.repeated(e), j.survivedBefore(e):
		case e.Form == pattern.Bare && !e.Agent && (e.Class == outcome.ParallelConfig || e.Class == outcome.ShapeMismatch):
			// Only an exception counts; a sentence with these words may be about anything.
		case e.Doubted, e.Form == pattern.Bare, srunKilled.MatchString(e.Text):
			unsure = append(unsure, e)
		case after == mayHaveGoneOn:
			followed = append(followed, e)
		default:
			sure = append(sure, e)
		}
	}
	if len(sure) == 0 && j.deathSeen() {
		return followed, unsure
	}
	return sure, append(followed, unsure...)
}

// exitedFor reports whether Python could not open the program that a launcher told it to run, and the
// launcher reports the exit code for that.
func (j *job) exitedFor(e *scan.Event) bool {
	return strings.Contains(e.Text, ": can't open file ") && slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Off > e.Off && o.Agent && o.Exit == 2
	})
}

// survived reports whether the run only logged an event: it completed, or it still makes progress. Slurm's
// COMPLETED says only how the script ended, which may have lost the exit status of its program.
func (j *job) survived(e *scan.Event) bool {
	if e.Weight >= pattern.Fact && e.Class != outcome.GPUHardware {
		return false
	}
	if j.deathSeen() {
		return false
	}
	running, known := j.given.running()
	switch {
	case j.saysItExits(e):
		return false
	case j.slurmCompleted() && (e.Stack == nil || j.saidDone(e) && !j.lastBeforeAccount(e)):
		return true
	case j.finishedAfter(e), j.caughtBehindEnd(e):
		return true
	case known && running && !j.stalled():
		return j.progressSince(e) > 0 || e.When().IsZero() && j.wroteRecently()
	}
	return false
}

// caughtBehindEnd reports whether a program of several processes caught an exception of its work after the training, such as
// an evaluation, and nobody reports an exit: the launcher writes into the same log, or where each process has a file of its
// own, into the one to which Slurm gives the job's number.
func (j *job) caughtBehindEnd(e *scan.Event) bool {
	if e.Stack == nil || e.Stack.Headless || e.Outermost() || inThread(e) || !j.finished() || j.slurmFailed() || !j.manyProcesses() {
		return false
	}
	return !logfile.AttemptPath.MatchString(j.src.Logs[e.File].Name) &&
		(j.fileRank[e.File] < 0 || slices.ContainsFunc(j.src.Files(), logfile.OfJob))
}

// saysItExits reports whether a program says with an error that it exits because of it, maybe with 0, as
// Megatron-LM's loading of checkpoints does: ">> '--exit-on-missing-checkpoint' set ... exiting. <<".
func (j *job) saysItExits(e *scan.Event) bool {
	return e.Class == outcome.CheckpointLoad && exiting.MatchString(e.Text) && j.progressSince(e) == 0
}

var exiting = lazy.New(`(?i)\bexiting\b[ .<]*$`)

// saidDone reports whether the run said that it had completed, or ends like one that has.
func (j *job) saidDone(e *scan.Event) bool {
	return j.finished() || j.endsWell() || j.files[e.File].DoneBefore(e)
}

// finishedAfter reports whether the run said after an event that it had completed. A batch system says it of the script, which may
// end well behind a program that did not.
func (j *job) finishedAfter(e *scan.Event) bool {
	for i, f := range j.files {
		switch m := f.Finished; {
		case m == nil, scan.OfScript(m) && leftModule(e) && j.files[e.File].Ran.Programs <= e.Ran.Programs+1: // its own line counts
		case i == e.File:
			if m.Off > e.Off {
				return true
			}
		case e.When().IsZero() || m.At.IsZero() || m.At.After(e.When().Add(-skew)):
			return true
		}
	}
	return false
}

// slurmFailed reports whether Slurm's state or exit code is that of a failure.
func (j *job) slurmFailed() bool {
	code, _, _ := strings.Cut(j.given.ExitCode, ":")
	return j.given.state() == slurm.Failed || code != "" && code != "0"
}

// wroteRecently reports whether the job wrote so recently that no rank can be missing: the others would
// be waiting for it.
func (j *job) wroteRecently() bool {
	age, known := j.age(now())
	usual, _ := j.pace()
	return known && age < time.Minute+3*usual
}

// finished reports whether any file says that the run completed.
func (j *job) finished() bool {
	return slices.ContainsFunc(j.files, func(f *scan.Facts) bool { return f.Finished != nil })
}

// deathSeen reports whether a launcher or Slurm reported a failed process, and afterwards the run did not say
// that it had completed, nor did the script start another program.
func (j *job) deathSeen() bool {
	return slices.ContainsFunc(j.files, func(f *scan.Facts) bool {
		return f.Failed != nil && !f.CommandAfter(f.Failed.Off) && (f.Finished == nil || f.Finished.Off < f.Failed.Off)
	})
}

// failedBefore reports whether something had failed before Slurm cancelled the job or step.
func (j *job) failedBefore(end *scan.Event, live []*scan.Event) bool {
	for _, e := range live {
		if scan.IsEnd(e.Class) || e.Weight <= pattern.Symptom || e.Weight >= pattern.Death {
			continue
		}
		if end.Exit == -2 && peerErrors.MatchString(e.Kind) && (e.Stack == nil || e.Stack.Has("torch/utils/data/", "multiprocessing/")) {
			continue // the terminal interrupts the processes that load data, too
		}
		if e.File == end.File && e.Off < end.Off {
			return true
		}
		// Slurm cancels a step as soon as a task fails; a person cancels a job.
		slack := -skew
		if end.StepOnly() {
			slack = skew
		}
		if end.StepOnly() && e.File != end.File && e.When().IsZero() {
			return true
		}
		if w, at := e.When(), end.When(); e.File != end.File && !w.IsZero() && !at.IsZero() && w.Before(at.Add(slack)) {
			return true
		}
	}
	return false
}

// silentDeath judges processes that died without a message: only symptoms and exit codes are left.
func (j *job) silentDeath(live []*scan.Event) (verdict, bool) {
	var left []*scan.Event
	for _, e := range live {
		if e.Weight <= pattern.Aborted && e.Weight >= pattern.Symptom && (j.deathSeen() || j.after(e) != wentOn) {
			left = append(left, e)
		}
	}
	if len(left) == 0 {
		return verdict{}, false
	}
	running, known := j.given.running()
	heavy := left[0]
	for _, e := range left[1:] {
		if e.Weight > heavy.Weight || e.Weight == heavy.Weight && j.precedes(e, heavy) {
			heavy = e
		}
	}
	if e := j.unexplained(heavy, left); e != nil {
		return j.exactRank(verdict{class: outcome.UserException, event: e, why: "first cause"}, live), true
	}
	onlyHints := heavy.Weight == pattern.Symptom
	switch {
	case known && running && !j.deathSeen():
		return verdict{}, false
	case onlyHints && (j.finished() || j.slurmCompleted() || known && running || !j.deathSeen() && j.endsWell()):
		return verdict{}, false
	case j.finished() && !j.deathSeen():
		return verdict{}, false
	case j.slurmCompleted() && j.saidDone(heavy):
		return verdict{}, false
	case j.given.state() == slurm.Cancelled && heavy.Weight <= pattern.Exited:
		return verdict{class: outcome.SlurmCancelled, event: heavy, why: "slurm's state"}, true
	}
	sort.SliceStable(left, func(a, b int) bool { return j.precedes(left[a], left[b]) })
	class := heavy.Class
	if heavy.Form == pattern.Bare && !heavy.Agent {
		class = outcome.UnknownExit // a sentence that names a symptom proves nothing
	}
	v := verdict{class: class, event: j.ownReason(heavy, live), others: left[:min(3, len(left))], why: "nothing says why"}
	if e := j.endedFromOutside(left); e != nil && class == outcome.UnknownExit && !j.given.slurmSays() {
		v.class, v.event = outcome.SlurmCancelled, e
		return v, true
	}
	if e := j.toldToEndFirst(live); e != nil && class == outcome.NCCLConnection {
		v.class, v.event, v.others = outcome.UnknownExit, e, nil
		return v, true
	}
	if e := terminated(live, j.events); e != nil && class == outcome.NCCLConnection {
		v.class, v.event, v.others = outcome.UnknownExit, e, nil
		return v, true
	}
	if l, ok := j.missing(live); ok && !heavy.Agent {
		v.laggard, v.event = &l, j.laggardEvent(l, live, heavy)
		said, left := j.departure(l.rank, heavy)
		if class == outcome.NCCLConnection && (left || j.deathSeen()) { // the rank exited silently, and the others lost it
			v.class, v.others = outcome.UnknownExit, nil
			if said != nil {
				v.event = said
			} else if e := exitReport(l.rank, live); e != nil {
				v.event = j.ownReason(e, live)
			} else if e := j.partingWords(l.rank); e != nil {
				v.event, v.onlyLast = e, true
			}
		}
	} else if e := ownExitCode(live); e != nil && class == outcome.NCCLConnection && !heavy.Agent {
		v.class, v.event, v.others = outcome.UnknownExit, e, nil
	} else if e, why := j.lostWithNode(heavy, live); e != nil && class == outcome.NCCLConnection && !heavy.Agent {
		v.class, v.event, v.others, v.laggard = outcome.UnknownExit, e, nil, &laggard{-1, nil, why}
	} else {
		v.noneAtFault = class == outcome.NCCLConnection && severalSay(class, left)
	}
	return j.saidLast(j.logged(v)), true
}

// onlyPeersLeft reports whether a complaint about the network between ranks belongs to the end of a run that said
// that all its work was done, and ends like that: a rank that leaves first looks to the others like one that died.
func (j *job) onlyPeersLeft(e *scan.Event) bool {
	return e.Kind == "" && (e.Class == outcome.NCCLConnection || e.Class == outcome.Rendezvous || e.Class == outcome.NCCLTimeout) &&
		j.files[e.File].SaidDone() && j.endsWell() && !j.deathSeen()
}

// exitReport returns a launcher's report on the exit of a rank's process.
func exitReport(rank int, live []*scan.Event) *scan.Event {
	return firstEvent(live, func(e *scan.Event) bool { return e.Agent && e.Exit != 0 && e.Rank == rank && len(e.Tasks) <= 1 })
}

// firstEvent returns the first of the events that meets a condition, or nil.
func firstEvent(events []*scan.Event, meets func(*scan.Event) bool) *scan.Event {
	for _, e := range events {
		if meets(e) {
			return e
		}
	}
	return nil
}
