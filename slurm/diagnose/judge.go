package diagnose

import (
	"sort"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A verdict is what the evidence comes to.
type verdict struct {
	class   string
	event   *event   // the line that says it; nil where none does
	others  []*event // further lines of the same cause
	laggard *laggard
	why     string // which step of the method decided
	since   time.Duration
}

// judge names the cause. The steps are those of the method, in its order.
func (j *job) judge() verdict {
	live := j.candidates()
	for _, step := range []func([]*event) (verdict, bool){
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
	if len(j.unsure) == 0 || !j.deathSeen() || v.class != UnknownExit && !quietClass(v.class) {
		return v
	}
	j.events, j.unsure = append(j.events, j.unsure...), nil
	return j.judge()
}

// candidates are the events that may be causes: what the program caught, and
// what came after Slurm had begun to end the job, is left out.
func (j *job) candidates() (live []*event) {
	ends := map[int]int64{} // file → first line that ends the job
	endAt := time.Time{}
	for _, e := range j.events {
		if endsJob(e) {
			if at, ok := ends[e.file]; !ok || e.off < at {
				ends[e.file] = e.off
			}
			if isEnd(e.class) && e.class != SlurmNodeFail && !e.stepOnly() {
				if w := e.when(); !w.IsZero() && (endAt.IsZero() || w.Before(endAt)) {
					endAt = w
				}
			}
		}
	}
	for _, e := range j.events {
		if e.superseded || e.form >= report {
			continue
		}
		at, ended := ends[e.file]
		if ended && e.off > at && (e.class == HostOOM && e.weight == death || e.class == Container && strings.Contains(e.text, "_join")) {
			continue // killed by Slurm, not by the kernel; too late to join the job's container
		}
		if e.weight < specific && e.weight > symptom && !isEnd(e.class) && !endAt.IsZero() && !e.before.IsZero() && e.before.After(endAt) {
			continue
		}
		live = append(live, e)
	}
	return live
}

// endsJob reports whether a line is Slurm's word that it ends the job or step.
func endsJob(e *event) bool {
	return isEnd(e.class) || strings.HasPrefix(e.text, "srun: ") && (strings.Contains(e.text, "Terminating") || strings.Contains(e.text, "step aborted") ||
		strings.Contains(e.text, "First task exited"))
}

func isEnd(class string) bool {
	switch class {
	case SlurmTimeLimit, SlurmPreempted, SlurmNodeFail, SlurmCancelled:
		return true
	}
	return false
}

// stepOnly reports whether Slurm ended only the step, as it does after a task
// failed (srun --kill-on-bad-exit).
func (e *event) stepOnly() bool {
	return e.class == SlurmCancelled && strings.Contains(e.text, "*** STEP ")
}

// firstCause finds the earliest cause that is none of NCCL's: an exception, a
// crash, a fault. Where two are close, the one that says more wins.
func (j *job) firstCause(live []*event) (verdict, bool) {
	causes, _ := j.standing(live)
	return j.earliest(causes, live)
}

// lessSure is firstCause for what is believed only where nothing else says more.
func (j *job) lessSure(live []*event) (verdict, bool) {
	_, unsure := j.standing(live)
	running, known := j.given.running()
	if !j.deathSeen() && (known && running || j.didWell()) {
		return verdict{}, false
	}
	return j.earliest(unsure, live)
}

// earliest decides between causes: the earliest wins, and of those that are
// close in time the one that says more.
func (j *job) earliest(causes, live []*event) (verdict, bool) {
	if len(causes) == 0 {
		return verdict{}, false
	}
	var hard *event
	for _, e := range causes {
		if e.class == GPUHardware && e.weight == fact {
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
	if best == hard && best.rank < 0 {
		best.rank = victimOf(hard, all)
	}
	v := verdict{class: best.class, event: best, why: "first cause"}
	for _, e := range causes {
		if e != best && e.class == best.class {
			v.others = append(v.others, e)
		}
	}
	v = j.exactRank(v, live)
	return v, true
}

// overrule drops what a broken GPU makes Python say.
func overrule(causes []*event) (kept []*event) {
	for _, e := range causes {
		switch e.class {
		case CUDAIllegalAccess, CUDADriver, UserException, Segfault, NaNLoss, GPUHardware, DeviceAssert:
			if e.class != GPUHardware || e.weight < fact {
				continue
			}
		}
		kept = append(kept, e)
	}
	return kept
}

// victimOf is the only rank of a broken GPU's node that failed of it, or -1.
func victimOf(hard *event, causes []*event) int {
	rank := -1
	for _, e := range causes {
		if e.rank < 0 || e.node != hard.node || e.node == "" {
			continue
		}
		if rank >= 0 && rank != e.rank {
			return -1
		}
		rank = e.rank
	}
	return rank
}

// before reports whether a is the better first cause than b.
func (j *job) before(a, b *event) bool {
	ta, tb := a.when(), b.when()
	gap := ta.Sub(tb)
	if ta.IsZero() || tb.IsZero() {
		gap = 0
	}
	late := func(e *event) bool { return e.weight >= fact-1 } // written after the fact
	slack := skew
	if late(a) != late(b) {
		slack = 2 * time.Minute
	}
	if gap > slack || gap < -slack {
		return gap < 0
	}
	if d := a.weight - b.weight; d >= 10 || d <= -10 {
		return d > 0
	}
	if a.file == b.file {
		if a.tag == b.tag && a.weight != b.weight && a.off-b.off < 4096 && b.off-a.off < 4096 {
			return a.weight > b.weight // one story told twice: the line that says more
		}
		return a.off < b.off
	}
	if gap != 0 {
		return gap < 0
	}
	if a.weight != b.weight {
		return a.weight > b.weight
	}
	return a.rank >= 0 && (b.rank < 0 || a.rank < b.rank)
}

// standing are the events that may be the first cause: those whose process did
// not go on. Where a process is known to have died they include what only phases
// followed, which may be other ranks'. Less sure are lines without the form of
// an error, and tracebacks whose introduction says that they were handled.
func (j *job) standing(live []*event) (sure, unsure []*event) {
	var followed []*event
	for _, e := range live {
		if e.weight < death || isEnd(e.class) || j.survived(e) {
			continue
		}
		switch after := j.after(e); {
		case after == wentOn:
		case ofScript(e):
			switch {
			case j.outdone(e, live), j.given.state() == "" && !j.deathSeen() && (setsUp(e) || j.files[e.file].ran.programs > e.ran.programs),
				setsUp(e) && j.ranBeside(e) && !j.failed() && !j.deathSeen():
			case j.nothingRan(e):
				sure = append(sure, e)
			default:
				unsure = append(unsure, e)
			}
		case e.form == bare && j.repeated(e), j.survivedBefore(e):
		case e.form == bare && !e.agent && (e.class == ParallelConfig || e.class == ShapeMismatch):
			// Only an exception says so; a sentence with these words may be about anything.
		case e.doubted, e.form == bare:
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

// survived reports whether a run that ended well, or that writes on, only
// logged an event.
func (j *job) survived(e *event) bool {
	if e.weight >= fact && e.class != GPUHardware {
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
		return j.progressSince(e) > 0 || e.when().IsZero() && j.fresh()
	}
	return false
}

// finishedAfter reports whether the run said after an event that it ended well.
func (j *job) finishedAfter(e *event) bool {
	for i, f := range j.files {
		switch m := f.finished; {
		case m == nil:
		case i == e.file:
			if m.off > e.off {
				return true
			}
		case e.when().IsZero() || m.at.IsZero() || m.at.After(e.when().Add(-skew)):
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
		if f.finished != nil {
			return true
		}
	}
	return false
}

// deathSeen reports whether a launcher or Slurm said that a process failed, and
// the run did not say afterwards that it ended well.
func (j *job) deathSeen() bool {
	for _, f := range j.files {
		if f.failed != nil && (f.finished == nil || f.finished.off < f.failed.off) {
			return true
		}
	}
	return false
}

// slurmEnd is Slurm ending the job: time limit, preemption, node failure,
// scancel. A step that is cancelled after a task failed is no cause.
func (j *job) slurmEnd(live []*event) (verdict, bool) {
	var best *event
	for _, e := range live {
		if !isEnd(e.class) || e.class == SlurmCancelled && j.failedBefore(e, live) || j.after(e) == wentOn && (e.kind != "" || e.class != SlurmNodeFail) {
			continue
		}
		if best != nil && best.class == SlurmNodeFail && e.class == SlurmNodeFail {
			if names := failureOn.MatchString(e.text); names != failureOn.MatchString(best.text) {
				if names { // which node it was
					best = e
				}
				continue
			}
		}
		if best == nil || e.weight > best.weight+1 || e.weight >= best.weight-1 && e.file == best.file && e.off < best.off {
			best = e
		}
	}
	if best != nil && best.class == SlurmCancelled {
		// Somebody who watched the loss ends such a run by hand.
		if v, ok := j.badNumbers(live); ok {
			return v, true
		}
	}
	if best != nil {
		return verdict{class: best.class, event: best, why: "slurm ended it"}, true
	}
	byState := map[slurm.State]string{
		slurm.Timeout:     SlurmTimeLimit,
		slurm.Deadline:    SlurmTimeLimit,
		slurm.Preempted:   SlurmPreempted,
		"REQUEUED":        SlurmPreempted,
		slurm.NodeFail:    SlurmNodeFail,
		slurm.BootFail:    SlurmNodeFail,
		slurm.OutOfMemory: HostOOM,
	}
	if class := byState[j.given.state()]; class != "" {
		return verdict{class: class, why: "slurm's state"}, true
	}
	if j.given.OOMKilled {
		return verdict{class: HostOOM, why: "slurm's state"}, true
	}
	return verdict{}, false
}

// failedBefore reports whether something had failed before Slurm cancelled.
func (j *job) failedBefore(end *event, live []*event) bool {
	for _, e := range live {
		if isEnd(e.class) || e.weight <= symptom || e.weight >= death {
			continue
		}
		if e.file == end.file && e.off < end.off {
			return true
		}
		// A step is cancelled at once when a task fails; a job, by someone.
		slack := -skew
		if end.stepOnly() {
			slack = skew
		}
		if end.stepOnly() && e.file != end.file && e.when().IsZero() {
			return true
		}
		if w, at := e.when(), end.when(); e.file != end.file && !w.IsZero() && !at.IsZero() && w.Before(at.Add(slack)) {
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
func (j *job) endedFromOutside(left []*event) *event {
	for _, e := range left {
		if !e.agent && signalled.MatchString(e.text) && j.files[e.file].ran.sentences-e.ran.sentences <= farewell {
			return e
		}
	}
	return nil
}

var signalled = lazy.New(`(?i)\b(?:received|got|caught)\b.{0,12}\b(?:SIGTERM|SIGHUP|signal:? (?:15|1))\b|\bSIG(?:TERM|HUP) (?:\(@0x[0-9a-f]+\) )?received\b|` +
	"`Termination signal` is detected by the operating system") // glog's words, and Paddle's

// silentDeath is for processes that died without a word: only symptoms and
// exit codes are left.
func (j *job) silentDeath(live []*event) (verdict, bool) {
	var left []*event
	for _, e := range live {
		if e.weight <= aborted && e.weight >= symptom && (j.deathSeen() || j.after(e) != wentOn) {
			left = append(left, e)
		}
	}
	if len(left) == 0 {
		return verdict{}, false
	}
	running, known := j.given.running()
	heavy := left[0]
	for _, e := range left[1:] {
		if e.weight > heavy.weight || e.weight == heavy.weight && j.earlier2(e, heavy) {
			heavy = e
		}
	}
	if heavy.weight <= exited+1 && (heavy.class == UnknownExit || heavy.class == NCCLConnection) {
		for _, e := range left {
			if ownFailure.MatchString(e.kind) && e.stack != nil && (heavy.class == UnknownExit || !e.stack.has(betweenProcesses...)) {
				return j.exactRank(verdict{class: UserException, event: e, why: "first cause"}, live), true
			}
		}
	}
	onlyHints := heavy.weight == symptom
	switch {
	case known && running && !j.deathSeen():
		return verdict{}, false
	case onlyHints && (j.finished() || j.endedWell() || known && running || !j.deathSeen() && j.endsWell()):
		return verdict{}, false
	case j.finished() && !j.deathSeen():
		return verdict{}, false
	case j.endedWell() && j.finished():
		return verdict{}, false
	case j.given.state() == slurm.Cancelled && heavy.weight <= exited:
		return verdict{class: SlurmCancelled, event: heavy, why: "slurm's state"}, true
	}
	sort.SliceStable(left, func(a, b int) bool { return j.earlier2(left[a], left[b]) })
	class := heavy.class
	if heavy.form == bare && !heavy.agent {
		class = UnknownExit // a sentence that names a symptom says no more than that
	}
	v := verdict{class: class, event: heavy, others: left[:min(3, len(left))], why: "nothing says why"}
	if e := j.endedFromOutside(left); e != nil && onlyHints && class == UnknownExit && j.given.state() == "" {
		v.class, v.event = SlurmCancelled, e
		return v, true
	}
	if l, ok := j.missing(live); ok && !heavy.agent {
		v.laggard, v.event = &l, j.laggardEvent(l, live, heavy)
		if class == NCCLConnection && j.deathSeen() { // it left without a word, and the others lost it
			v.class, v.others = UnknownExit, nil
			if e := exitOf(l.rank, live); e != nil {
				v.event = e
			}
		}
	}
	return v, true
}

// exitOf is a launcher's word on how the process of a rank left.
func exitOf(rank int, live []*event) *event {
	for _, e := range live {
		if e.agent && e.exit != 0 && e.rank == rank && len(e.tasks) <= 1 {
			return e
		}
	}
	return nil
}
