package diagnose

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A verdict is what the evidence comes to.
type verdict struct {
	class   string
	event   *scan.Event   // the line that says it; nil where none does
	others  []*scan.Event // further lines of the same cause
	laggard *laggard
	nobody  bool   // several ranks say the same of a peer, and none of them is to blame
	why     string // which step of the method decided
	since   time.Duration
}

// judge names the cause. The steps are those of the method, in its order.
func (j *job) judge() verdict {
	live := j.candidates()
	for _, step := range []func([]*scan.Event) (verdict, bool){
		j.firstCause,
		j.slurmEnd,
		j.betweenRanks,
		j.badNumbers,
		j.lessSure,
		j.calledWrongly,
		j.silentDeath,
		j.onlyDumps,
	} {
		if v, ok := step(live); ok {
			return v
		}
	}
	return j.health()
}

// judgeAll is judge, with a second look at events of which it is not sure
// that they belong to an earlier attempt, where nothing else explains a death.
func (j *job) judgeAll() verdict {
	v := j.judge()
	if len(j.unsure) == 0 || !j.deathSeen() || v.class != outcome.UnknownExit && !report.QuietClass(v.class) {
		return v
	}
	j.events, j.unsure = append(j.events, j.unsure...), nil
	return j.judge()
}

// candidates are the events that may be causes: what the program caught, and
// what came after Slurm had begun to end the job, is left out.
func (j *job) candidates() (live []*scan.Event) {
	ends := map[int]int64{} // file → first line that ends the job
	endAt := time.Time{}
	for _, e := range j.events {
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
	for _, e := range j.events {
		if e.Superseded || e.Form >= pattern.Report || j.leftRunning(e) {
			continue
		}
		at, ended := ends[e.File]
		if ended && e.Off > at && (e.Class == outcome.HostOOM && e.Weight == pattern.Death || e.Class == outcome.Container && strings.Contains(e.Text, "_join")) {
			continue // killed by Slurm, not by the kernel; too late to join the job's container
		}
		if e.Weight < pattern.Specific && e.Weight > pattern.Symptom && !scan.IsEnd(e.Class) && !endAt.IsZero() && !e.Before.IsZero() && e.Before.After(endAt) {
			continue
		}
		live = append(live, e)
	}
	return live
}

// firstCause finds the earliest cause that is none of NCCL's: an exception, a
// crash, a fault. Where two are close, the one that says more wins.
func (j *job) firstCause(live []*scan.Event) (verdict, bool) {
	causes, _ := j.standing(live)
	return j.earliest(causes, live)
}

// lessSure is firstCause for what is believed only where nothing else says more.
func (j *job) lessSure(live []*scan.Event) (verdict, bool) {
	_, unsure := j.standing(live)
	running, known := j.given.running()
	if !j.deathSeen() && (known && running || j.didWell()) {
		return verdict{}, false
	}
	return j.earliest(unsure, live)
}

// earliest decides between causes: the earliest wins, and of those that are
// close in time the one that says more.
func (j *job) earliest(causes, live []*scan.Event) (verdict, bool) {
	if causes = ofStore(causes, live); len(causes) == 0 {
		return verdict{}, false
	}
	var hard *scan.Event
	for _, e := range causes {
		if e.Class == outcome.GPUHardware && e.Weight == pattern.Fact {
			hard = e
			break
		}
	}
	all := causes
	if hard != nil {
		causes = overrule(causes)
	}
	best := causes[0]
	for _, e := range causes[1:] {
		if j.before(e, best) {
			best = e
		}
	}
	if best == hard && best.Rank < 0 {
		best.Rank = victimOf(hard, all)
	}
	v := verdict{class: best.Class, event: best, why: "first cause"}
	for _, e := range causes {
		if e != best && e.Class == best.Class {
			v.others = append(v.others, e)
		}
	}
	// One rank's collective does not fit another's, and either may be wrong; who counts is not who is missing.
	if fingerprint.MatchString(v.event.Text) || clientsJoined.MatchString(v.event.Text) {
		j.blameMissing(&v, live)
		return v, true
	}
	return j.withoutEnvironment(j.exactRank(v, live), live), true
}

// overrule drops what a broken GPU makes Python say.
func overrule(causes []*scan.Event) (kept []*scan.Event) {
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

// victimOf is the only rank of a broken GPU's node that failed of it, or -1.
func victimOf(hard *scan.Event, causes []*scan.Event) int {
	rank := -1
	for _, e := range causes {
		if e.Rank < 0 || e.Node != hard.Node || e.Node == "" {
			continue
		}
		if rank >= 0 && rank != e.Rank {
			return -1
		}
		rank = e.Rank
	}
	return rank
}

// before reports whether a is the better first cause than b.
func (j *job) before(a, b *scan.Event) bool {
	ta, tb := a.When(), b.When()
	gap := ta.Sub(tb)
	if ta.IsZero() || tb.IsZero() {
		gap = 0
	}
	late := func(e *scan.Event) bool { return e.Weight >= pattern.Fact-1 } // written after the fact
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
			return a.Weight > b.Weight // one story told twice: the line that says more
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

// standing are the events that may be the first cause: those whose process did
// not go on. Where a process is known to have died they include what only phases
// followed, which may be other ranks'. Less sure are lines without the form of
// an error, and tracebacks whose introduction says that they were handled.
func (j *job) standing(live []*scan.Event) (sure, unsure []*scan.Event) {
	var followed []*scan.Event
	for _, e := range live {
		if e.Weight < pattern.Death || scan.IsEnd(e.Class) || j.survived(e) && !j.lacksLast(e) || j.byWatchdog(e) {
			continue
		}
		switch after := j.after(e); {
		case j.lacksLast(e):
			sure = append(sure, e)
		case after == wentOn:
		case ofScript(e) && !j.diedOf(e):
			switch {
			case j.outdone(e, live), j.given.state() == "" && !j.deathSeen() && (setsUp(e) || j.files[e.File].Ran.Programs > e.Ran.Programs),
				setsUp(e) && j.ranBeside(e) && !j.failed() && !j.deathSeen():
			case j.nothingRan(e):
				sure = append(sure, e)
			default:
				unsure = append(unsure, e)
			}
		case e.Form == pattern.Bare && j.repeated(e), j.survivedBefore(e):
		case e.Form == pattern.Bare && !e.Agent && (e.Class == outcome.ParallelConfig || e.Class == outcome.ShapeMismatch):
			// Only an exception says so; a sentence with these words may be about anything.
		case e.Doubted, e.Form == pattern.Bare, clientKilled.MatchString(e.Text):
			unsure = append(unsure, e)
		case after == maybeWent:
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

// diedOf reports whether a line is Python's own that it cannot open the program that a
// launcher told it to run, and the launcher saw it leave for that.
func (j *job) diedOf(e *scan.Event) bool {
	return strings.Contains(e.Text, ": can't open file ") && slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Off > e.Off && o.Agent && o.Exit == 2
	})
}

// survived reports whether a run that ended well, or that writes on, only
// logged an event.
func (j *job) survived(e *scan.Event) bool {
	if e.Weight >= pattern.Fact && e.Class != outcome.GPUHardware {
		return false
	}
	if j.deathSeen() {
		return false
	}
	running, known := j.given.running()
	switch {
	case j.endedWell():
		return true
	case j.finishedAfter(e):
		return true
	case known && running && !j.stalled():
		return j.progressSince(e) > 0 || e.When().IsZero() && j.fresh()
	}
	return false
}

// finishedAfter reports whether the run said after an event that it ended well.
func (j *job) finishedAfter(e *scan.Event) bool {
	for i, f := range j.files {
		switch m := f.Finished; {
		case m == nil:
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

// failed reports whether Slurm calls the job failed.
func (j *job) failed() bool {
	code, _, _ := strings.Cut(j.given.ExitCode, ":")
	return j.given.state() == slurm.Failed || code != "" && code != "0"
}

// fresh reports whether a job writes so recently that no rank can be missing:
// the others would wait for it.
func (j *job) fresh() bool {
	age, known := j.age(now())
	usual, _ := j.pace()
	return known && age < time.Minute+3*usual
}

// finished reports whether any file holds the words of a run that ended well.
func (j *job) finished() bool {
	for _, f := range j.files {
		if f.Finished != nil {
			return true
		}
	}
	return false
}

// deathSeen reports whether a launcher or Slurm said that a process failed, and
// the run did not say afterwards that it ended well.
func (j *job) deathSeen() bool {
	for _, f := range j.files {
		if f.Failed != nil && (f.Finished == nil || f.Finished.Off < f.Failed.Off) {
			return true
		}
	}
	return false
}

// slurmEnd is Slurm ending the job: time limit, preemption, node failure,
// scancel. A step that is cancelled after a task failed is no cause.
func (j *job) slurmEnd(live []*scan.Event) (verdict, bool) {
	var best *scan.Event
	for _, e := range live {
		if !scan.IsEnd(e.Class) || e.Class == outcome.SlurmCancelled && j.failedBefore(e, live) ||
			e.StepOnly() && j.endedWell() && j.files[e.File].DoneBefore(e) || j.after(e) == wentOn && (e.Kind != "" || e.Class != outcome.SlurmNodeFail) {
			continue
		}
		if best != nil && best.Class == outcome.SlurmNodeFail && e.Class == outcome.SlurmNodeFail {
			if names := scan.FailureOn.MatchString(e.Text); names != scan.FailureOn.MatchString(best.Text) {
				if names { // which node it was
					best = e
				}
				continue
			}
		}
		if best == nil || e.Weight > best.Weight+1 || e.Weight >= best.Weight-1 && e.File == best.File && e.Off < best.Off {
			best = e
		}
	}
	if best != nil && best.Class == outcome.SlurmCancelled {
		// Somebody who watched the loss ends such a run by hand.
		if v, ok := j.badNumbers(live); ok {
			return v, true
		}
	}
	if best != nil {
		return verdict{class: best.Class, event: best, nobody: severalSay(best.Class, live), why: "slurm ended it"}, true
	}
	byState := map[slurm.State]string{
		slurm.Timeout:     outcome.SlurmTimeLimit,
		slurm.Deadline:    outcome.SlurmTimeLimit,
		slurm.Preempted:   outcome.SlurmPreempted,
		"REQUEUED":        outcome.SlurmPreempted,
		slurm.NodeFail:    outcome.SlurmNodeFail,
		slurm.BootFail:    outcome.SlurmNodeFail,
		slurm.OutOfMemory: outcome.HostOOM,
	}
	if class := byState[j.given.state()]; class != "" {
		return verdict{class: class, why: "slurm's state"}, true
	}
	if j.given.OOMKilled {
		return verdict{class: outcome.HostOOM, why: "slurm's state"}, true
	}
	return verdict{}, false
}

// failedBefore reports whether something had failed before Slurm cancelled.
func (j *job) failedBefore(end *scan.Event, live []*scan.Event) bool {
	for _, e := range live {
		if scan.IsEnd(e.Class) || e.Weight <= pattern.Symptom || e.Weight >= pattern.Death {
			continue
		}
		if e.File == end.File && e.Off < end.Off {
			return true
		}
		// A step is cancelled at once when a task fails; a job, by someone.
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

// ownFailure are exceptions that mostly come of another rank's death, and are
// the rank's own failure where nobody else complains.
var ownFailure = lazy.New(`^(?:\w+\.)*(?:Connection\w*|BrokenPipe|EOF)Error$`)

// betweenProcesses is where torch and Python raise such exceptions for another process
// that is gone.
var betweenProcesses = []string{"torch/distributed/", "torch/utils/data/", "multiprocessing/"}

// endedFromOutside is the first word of a process that it was told to end or that its
// terminal is gone, with which its log ends: somebody outside did that, where nothing
// had failed.
func (j *job) endedFromOutside(left []*scan.Event) *scan.Event {
	for _, e := range left {
		if !e.Agent && signalled.MatchString(e.Text) && j.files[e.File].Ran.Sentences-e.Ran.Sentences <= scan.Farewell {
			return e
		}
	}
	return nil
}

var signalled = lazy.New(`(?i)\b(?:received|got|caught)\b.{0,12}\b(?:SIGTERM|SIGHUP|signal:? (?:15|1))\b|\bSIG(?:TERM|HUP) (?:\(@0x[0-9a-f]+\) )?received\b|` +
	"`Termination signal` is detected by the operating system") // glog's words, and Paddle's

// silentDeath is for processes that died without a word: only symptoms and
// exit codes are left.
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
		if e.Weight > heavy.Weight || e.Weight == heavy.Weight && j.earlier2(e, heavy) {
			heavy = e
		}
	}
	if heavy.Weight <= pattern.Exited+1 && (heavy.Class == outcome.UnknownExit || heavy.Class == outcome.NCCLConnection) {
		for _, e := range left {
			if ownFailure.MatchString(e.Kind) && e.Stack != nil && (heavy.Class == outcome.UnknownExit || !e.Stack.Has(betweenProcesses...)) {
				return j.exactRank(verdict{class: outcome.UserException, event: e, why: "first cause"}, live), true
			}
		}
	}
	onlyHints := heavy.Weight == pattern.Symptom
	switch {
	case known && running && !j.deathSeen():
		return verdict{}, false
	case onlyHints && (j.finished() || j.endedWell() || known && running || !j.deathSeen() && j.endsWell()):
		return verdict{}, false
	case j.finished() && !j.deathSeen():
		return verdict{}, false
	case j.endedWell() && (j.finished() || j.endsWell() || j.files[heavy.File].DoneBefore(heavy)):
		return verdict{}, false
	case j.given.state() == slurm.Cancelled && heavy.Weight <= pattern.Exited:
		return verdict{class: outcome.SlurmCancelled, event: heavy, why: "slurm's state"}, true
	}
	sort.SliceStable(left, func(a, b int) bool { return j.earlier2(left[a], left[b]) })
	class := heavy.Class
	if heavy.Form == pattern.Bare && !heavy.Agent {
		class = outcome.UnknownExit // a sentence that names a symptom says no more than that
	}
	v := verdict{class: class, event: j.saidItself(heavy, live), others: left[:min(3, len(left))], why: "nothing says why"}
	if e := j.endedFromOutside(left); e != nil && onlyHints && class == outcome.UnknownExit && !j.given.slurmSays() {
		v.class, v.event = outcome.SlurmCancelled, e
		return v, true
	}
	if l, ok := j.missing(live); ok && !heavy.Agent {
		v.laggard, v.event = &l, j.laggardEvent(l, live, heavy)
		if class == outcome.NCCLConnection && j.deathSeen() { // it left without a word, and the others lost it
			v.class, v.others = outcome.UnknownExit, nil
			if e := exitOf(l.rank, live); e != nil {
				v.event = e
			}
		}
	} else if e := ownCode(live); e != nil && class == outcome.NCCLConnection && !heavy.Agent {
		v.class, v.event, v.others = outcome.UnknownExit, e, nil
	} else {
		v.nobody = class == outcome.NCCLConnection && severalSay(class, left)
	}
	return v, true
}

// exitOf is a launcher's word on how the process of a rank left.
func exitOf(rank int, live []*scan.Event) *scan.Event {
	for _, e := range live {
		if e.Agent && e.Exit != 0 && e.Rank == rank && len(e.Tasks) <= 1 {
			return e
		}
	}
	return nil
}
