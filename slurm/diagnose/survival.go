package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// Whether the process of an event went on (for lines of the batch script: whether the job did) shows in
// what came after the event.

// A continuation says how certain it is that an event's process went on.
type continuation uint8

const (
	noSign        continuation = iota // only what a dead process may leave behind
	mayHaveGoneOn                     // the run's phases followed, perhaps of other ranks
	wentOn                            // iterations followed, or programs that the script started
)

// manyLines is the number of lines after which a script has clearly gone on to its work.
const manyLines = 30

// after judges from the lines after an event whether its process went on.
func (j *job) after(e *scan.Event) continuation {
	f := j.files[e.File]
	if e.Kind == scan.Interrupt && j.passedOn(e, false) {
		return noSign
	}
	if e.StartedAgain() && !j.manyProcesses() {
		return wentOn
	}
	if j.progressSince(e) >= scan.Enough && !j.finishingUp(e) {
		if j.failedBeforeProgress(e) || e.Stack != nil && e.Stack.Uncaught && j.deathSeen() || j.diedWithIt(e) {
			return mayHaveGoneOn
		}
		return wentOn
	}
	late := e.Kind == scan.Interrupt && e.Fresh < scan.Enough && e.Outermost() // what it had written reached the log
	if !late && !e.Agent && (!scan.EndsJob(e) || e.Kind != "") && e.Weight < pattern.Fact-1 && j.linesSinceEvents(e) >= scan.LongTail {
		return wentOn
	}
	if e.Kind == "" && e.Stack == nil && !e.Agent && !scan.EndsJob(e) && e.Weight < pattern.Fact-1 &&
		j.linesUntilNext(e) >= scan.LongTail && !j.manyProcesses() {
		return wentOn
	}
	if e.Answered && !leftModule(e) {
		return wentOn // the exception was a request's, and the server lived on to answer it
	}
	if inThread(e) && !j.deathSeen() && (f.Ran.Sentences-e.Ran.Sentences >= scan.Enough || e.Class == outcome.UserException && interruptedSince(e, j.events)) {
		return wentOn // a thread died, and its process writes on
	}
	if e.Kind != "" && j.linesUntilNext(e) >= scan.NextRun && !j.manyProcesses() {
		return wentOn // only another program writes so much
	}
	if raisedBySetUp(e) && (f.Ran.Programs-j.lastAlike(e).Ran.Programs >= scan.Enough || j.didWithout(e)) {
		return wentOn
	}
	if e.Kind != "" && !e.Dated && j.linesSinceEvents(e) >= 10 && f.LastTime.Sub(e.When()) > scan.LongAfter && !e.When().IsZero() {
		return wentOn
	}
	if scan.IsEnd(e.Class) && e.Kind == "" && !e.StepOnly() && f.NextRunAfter(e) || j.otherProcessWentOn(e) {
		return wentOn
	}
	if e.Kind != "" && e.Stack == nil && j.raisedLater(e) || j.workedWithout(e) {
		return wentOn
	}
	if fromScript(e) {
		switch {
		case startUpFile.MatchString(e.Text) && j.anythingAfter(e),
			failedCd.MatchString(e.Text) && f.Ran.Sentences-e.Ran.Sentences >= scan.Enough:
			return wentOn
		case f.Ran.Sentences-e.Ran.Sentences >= manyLines, f.Ran.Programs > e.Ran.Programs && sourcedFile.MatchString(e.Text):
			return wentOn
		case f.Ran.Programs-e.Ran.Programs >= scan.Enough:
			return mayHaveGoneOn
		}
	}
	if e.Tag == logline.NoTag && !e.Agent && !scan.EndsJob(e) && e.Weight < pattern.Fact-1 &&
		f.Ran.Tagged-e.Ran.Tagged >= scan.Enough && !j.failureReportedAfter(e) {
		return wentOn // the script's own line, and the script went on to start its tasks
	}
	if j.handlesExceptions(e) || j.catchesOften(e) || j.lostPeerLater(e) || j.endedOtherwise(e) {
		return wentOn
	}
	all := f.Ran.Phases
	if e.Tag != logline.NoTag {
		all = f.PhasesBy[e.Tag]
	}
	if all-e.Ran.Phases >= scan.Enough {
		return mayHaveGoneOn
	}
	return noSign
}

// lastAlike returns the last event of a file with the text of an event: several processes that fail alike do not go on.
func (j *job) lastAlike(e *scan.Event) *scan.Event {
	for _, o := range slices.Backward(j.events) {
		if o.File == e.File && o.Text == e.Text && o.Off > e.Off {
			return o
		}
	}
	return e
}

// sourcedFile matches a shell's message about a missing file that it was to source for settings, as
// opposed to a program.
var sourcedFile = lazy.New(`: (?:\S*/)?(?:(?:conda|mamba|micromamba|modules?|lmod|setup|env|setvars)\.sh|(?:bin/)?activate|\.bash(?:rc|_profile)): No such file or directory$`)

// startUpFile matches a message about a line of a file that a shell reads when it starts, or of a function
// that Bash takes from its environment. The shell goes on after every error in it.
var startUpFile = lazy.New(`^environment: line \d+: |^(?:\S*/)?(?:\.bash(?:rc|_profile|_aliases|_login)|\.profile|\.z(?:shrc|shenv|profile)` +
	`|etc/(?:profile|bashrc|profile\.d/[\w.-]+)): line \d+: `)

// failedCd matches a shell's message about a folder that it could not enter. What a script writes after
// that, it writes in the folder where it was.
var failedCd = lazy.New(`: line \d+: cd: `)

// anythingAfter reports whether a program wrote anything after an event, in its file or in another one.
func (j *job) anythingAfter(e *scan.Event) bool {
	for i, f := range j.files {
		if i == e.File && f.Ran.Sentences > e.Ran.Sentences || i != e.File && f.Ran.Sentences > 0 {
			return true
		}
	}
	return false
}

// failedBeforeProgress reports whether srun reported exit codes of tasks after an exception and before
// any progress. The progress after that is other tasks'.
func (j *job) failedBeforeProgress(e *scan.Event) bool {
	return e.Stack != nil && e.Form < pattern.Report && !e.Doubted && slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Off > e.Off && o.Agent && o.Exit > 0 && strings.HasPrefix(o.Text, "srun: ") &&
			j.files[e.File].Iterated(e, o) == 0 && !j.files[e.File].CommandAfter(o.Off)
	})
}

// raisedLater reports whether a program that printed only the last line of an exception, as a library
// does that goes on, later ended by another exception with a traceback, after many other lines.
func (j *job) raisedLater(e *scan.Event) bool {
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Tag == e.Tag && scan.ProgramOf(o) != "" && o.Ran.Sentences-e.Ran.Sentences >= scan.Farewell
	})
}

// optional are the classes of what a program may do without although a library complains: a device, a
// service, an extension, one of several files.
var optional = []string{outcome.CUDADriver, outcome.HFHub, outcome.ImportError, outcome.ExtensionABI, outcome.DatasetMissing}

// workedWithout reports whether a program lacked something without raising an exception, wrote on, and
// completed in the same file.
func (j *job) workedWithout(e *scan.Event) bool {
	return e.Kind == "" && e.Stack == nil && !e.Agent && !fromScript(e) && slices.Contains(optional, e.Class) &&
		j.linesSinceEvents(e) >= 2*scan.Farewell && j.files[e.File].Ending().Said
}

// otherProcessWentOn reports whether a job of one process reached its time limit after an event in its
// standard error, with iterations in its standard output: another process of its script went on.
func (j *job) otherProcessWentOn(e *scan.Event) bool {
	if e.Stack == nil || e.Tag != logline.NoTag || j.world > 1 || j.perNode > 0 || j.files[e.File].Failed != nil || len(j.files[e.File].Progress) > 0 {
		return false
	}
	ended := slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Off > e.Off && o.Class == outcome.SlurmTimeLimit && !o.StepOnly()
	})
	return ended && slices.ContainsFunc(j.files, func(f *scan.Facts) bool { return len(f.Progress) >= scan.Enough && len(f.Ranks)+len(f.Labels) == 0 })
}

// linesSinceEvents counts the lines of a file after its last event from this one on; 0 if a later line
// reports a failed process.
func (j *job) linesSinceEvents(e *scan.Event) int {
	f := j.files[e.File]
	if f.Failed != nil && f.Failed.Off > e.Off {
		return 0
	}
	last := e
	for _, o := range j.events {
		if o.File == e.File && o.Off > last.Off && o.Counts() && (o.Form != pattern.Bare || !j.repeated(o)) {
			last = o
		}
	}
	return f.Ran.Sentences - last.Ran.Sentences
}

// linesUntilNext counts the lines of a file between an event and the next one, or the file's end; 0 if
// a launcher reports a failed process in between.
func (j *job) linesUntilNext(e *scan.Event) int {
	f := j.files[e.File]
	next, until := int64(math.MaxInt64), f.Ran.Sentences
	for _, o := range j.events {
		if o.File == e.File && o.Off > e.Off && o.Off < next && o.Counts() {
			next, until = o.Off, o.Ran.Sentences
		}
	}
	if f.Failed != nil && f.Failed.Off > e.Off && f.Failed.Off < next {
		return 0
	}
	return until - e.Ran.Sentences
}

// repeated reports whether a program writes a sentence again and again with other values, so that it
// went on after each.
func (j *job) repeated(e *scan.Event) bool {
	times := 0
	for _, o := range j.events {
		if o.File == e.File && o.Tag == e.Tag && o.Class == e.Class && o.Form == pattern.Bare && logline.Template(o.Text) == logline.Template(e.Text) {
			times++
		}
	}
	return times > scan.Enough
}

// survivedBefore reports whether a program writes a line after which it, or the run before it in the
// same log, went on before; and nothing says that a process died. This excludes tracebacks, argparse's
// refusals, and a shell's message about a killed program.
func (j *job) survivedBefore(e *scan.Event) bool {
	if e.Stack != nil || scan.Killed.MatchString(e.Text) || scan.Complaint.MatchString(e.Text) || e.Agent || e.Weight >= pattern.Fact-1 ||
		scan.IsEnd(e.Class) || j.deathSeen() {
		return false
	}
	var previous *scan.Event
	for _, o := range j.events {
		if o.File != e.File || o.Tag != e.Tag || o.Class != e.Class || logline.Template(o.Text) != logline.Template(e.Text) {
			continue
		}
		if previous != nil && (e.Kind == "" && o.Ran.Sentences-previous.Ran.Sentences >= scan.Farewell ||
			j.files[e.File].Iterated(previous, o) >= scan.Enough) {
			return true
		}
		previous = o
	}
	return false
}

// finishingUp reports whether a process writes on only because Slurm allows it KillWait after a time
// limit or scancel. Such a process writes little but its steps, where another run would write the lines
// of its start.
func (j *job) finishingUp(e *scan.Event) bool {
	f := j.files[e.File]
	if e.Kind == scan.Interrupt {
		return j.passedOn(e, true)
	}
	steps := 0
	for _, m := range f.Progress {
		if m.Off > e.Off {
			steps++
		}
	}
	return e.Agent && f.Ran.Sentences-e.Ran.Sentences-steps < scan.Farewell && !f.NextRunAfter(e) &&
		(e.Class == outcome.SlurmTimeLimit || e.Class == outcome.SlurmCancelled && !j.finishedAfter(e) && !j.endsWell())
}

// passedOn reports whether the lines and steps after a Ctrl-C are those of Ray's workers, which Ray's driver
// passes on while it exits: few lines, or more of which the last ones are all of workers.
func (j *job) passedOn(e *scan.Event, few bool) bool {
	f := j.files[e.File]
	own := func(m scan.Mark) bool { return m.Off > e.Off && !ofWorker.MatchString(m.Text) }
	if few && f.Ran.Sentences-e.Ran.Sentences >= scan.LongTail || !few && slices.ContainsFunc(f.Last, own) {
		return false
	}
	return !ofWorker.MatchString(e.Raw) && !slices.ContainsFunc(f.Progress, own) && !j.finishedAfter(e) && !j.endsWell()
}

// ofWorker matches a line of one of Ray's workers, in the driver's output.
var ofWorker = lazy.New(`^(?:\x1b\[\d+m)*\([^()]*\bpid=\d+`)

// diedWithIt reports whether a launcher reports a rank's exit with 1, as Python exits after an exception, and this is the
// rank's last exception and left its module, or its last line. The progress after that is other ranks', or what the rank
// had written before reached the file later.
func (j *job) diedWithIt(e *scan.Event) bool {
	f := j.files[e.File]
	if e.Stack == nil || e.Rank < 0 || !leftModule(e) && (e.Tag == logline.NoTag || f.LastBy[e.Tag].Off > e.Off ||
		slices.ContainsFunc(f.Progress, func(m scan.Mark) bool { return m.Tag == e.Tag && m.Off > e.Off })) {
		return false
	}
	left := false
	for _, o := range j.events {
		switch {
		case o.Agent:
			left = left || o.Exit == 1 && slices.Contains(j.exitedRanks(o), e.Rank) && !j.resumed(o)
		case o.File == e.File && o.Tag == e.Tag && o.Off > e.Off:
			return false
		}
	}
	return left
}

// resumed reports whether an iteration behind a launcher's report is dated after it, as in a run that the script starts again.
func (j *job) resumed(o *scan.Event) bool {
	return !o.When().IsZero() && slices.ContainsFunc(j.files[o.File].Progress, func(m scan.Mark) bool {
		return m.Off > o.Off && reportedAt(m).After(o.When().Add(skew))
	})
}

// lostPeerLater reports whether a process raised an exception, and later a second one about a lost peer whose death has a
// cause of its own: it lived on after the first. The lines of one process have a rank's prefix or a file of torchrun's for it.
func (j *job) lostPeerLater(e *scan.Event) bool {
	own := logfile.AttemptPath.MatchString(j.src.Logs[e.File].Name)
	if !own && (e.Tag == logline.NoTag || e.Rank < 0) || e.Stack == nil || inThread(e) || e.Stack.Uncaught {
		return false
	}
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Tag == e.Tag && o.Off > e.Off && o.Stack != nil && o.Class == outcome.NCCLConnection
	}) && slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		if other := o.Rank != e.Rank || own && o.File != e.File; !other || leftModule(e) {
			return other && e.Rank >= 0 && killedAlone(o)
		}
		thread := inThread(o) && o.Weight >= pattern.Death && !o.Superseded && !peerErrors.MatchString(o.Kind) // it may end its process
		return leftModule(o) || thread || e.Rank >= 0 && killedAlone(o)
	})
}

// leftModule reports whether an exception that is no complaint about others ended its process.
func leftModule(e *scan.Event) bool {
	return !e.Agent && e.Kind != "" && e.Weight >= pattern.Death && e.Outermost()
}

// srunKilled matches a shell's message about an srun that somebody killed. srun is no rank, and memory
// is not the reason.
var srunKilled = lazy.New(`line \d+: +\d+ Killed +(?:\w+=\S+ +)*(?:\S*/)?srun `)

// handlesExceptions reports whether a program lives on after its exceptions: several came before this
// one, with many lines between them and some after the last, and nothing says that a process died.
// After an exception that ended a program, the script that started it may write a few lines too.
func (j *job) handlesExceptions(e *scan.Event) bool {
	since := j.files[e.File].Ran.Sentences - e.Ran.Sentences
	if e.Stack == nil || e.Tag != logline.NoTag || j.deathSeen() || since == 0 || since < scan.Farewell && scan.ProgramOf(e) != "" {
		return false
	}
	times, previous := 0, -manyLines
	for _, o := range j.events {
		if o.File != e.File || o.Stack == nil || o.Class != e.Class || o.Superseded {
			continue
		}
		if o.Tag != logline.NoTag || o.Ran.Sentences-previous < manyLines {
			return false
		}
		times, previous = times+1, o.Ran.Sentences
	}
	return times > scan.Enough
}

// failureReportedAfter reports whether a launcher in the same file reports a failed process after an
// event. Then the event is a task's, not the script's.
func (j *job) failureReportedAfter(e *scan.Event) bool {
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Off > e.Off && o.Agent && o.Tag.Label < 0 && !strings.HasPrefix(o.Text, "srun:") && !strings.HasPrefix(o.Text, "slurmstepd")
	})
}

// fromScript reports whether the batch script or a command of it wrote a line. The script may go on
// after it.
func fromScript(e *scan.Event) bool {
	return (e.Kind == "" || e.Stack == nil && condaError.MatchString(e.Kind)) &&
		!e.Agent && e.Tag.Local < 0 && e.Tag.Rank < 0 && e.Weight < pattern.Fact-1 && scriptLine.MatchString(e.Text) &&
		!strings.Contains(e.Text, ".py: ") && e.Class != outcome.SlurmSubmitRejected &&
		!aboutProgram.MatchString(e.Text)
}

// aboutProgram matches messages about the end of a program: a shell's about a signal, a container
// runtime's, and a data loader's about the signal that ends its worker.
var aboutProgram = lazy.New(`line \d+: +\d+ [A-Z]|行 ?\d+[:：] *\d+ |^FATAL: |^ERROR: Unexpected .* encountered in worker`)

// nothingRan reports whether no program wrote anything on a script line's node, so that the line
// explains the failure. Files of unknown nodes count as one script's.
func (j *job) nothingRan(e *scan.Event) bool {
	for i, f := range j.files {
		if j.fileNode[i] == j.fileNode[e.File] && (f.Ran.Programs > 0 || len(f.Progress) > 0) {
			return false
		}
	}
	return true
}

// programRan reports whether a program ran after a script's line, or writes into another log of its
// node.
func (j *job) programRan(e *scan.Event) bool {
	for i, f := range j.files {
		if i != e.File && j.fileNode[i] == j.fileNode[e.File] && (f.Ran.Programs > 0 || len(f.Progress) > 0) {
			return true
		}
	}
	return j.files[e.File].Ran.Programs > e.Ran.Programs || j.progressSince(e) > 0
}

// lastProgramMissing reports whether a log ends with Python's message that the program to run does not
// exist, after other programs that the script ran: the script did not complete.
func (j *job) lastProgramMissing(e *scan.Event) bool {
	last := j.files[e.File].Last
	return e.Off > 0 && len(last) > 0 && last[len(last)-1].Off == e.Off && noProgram.MatchString(e.Text)
}

// noProgram matches Python's message about that (Modules/main.c).
var noProgram = lazy.New(`^\S*python[\d.]*: can't open file .*: \[Errno 2\]`)

// otherLogWorked reports whether what the script started worked, by another log of the node: it has
// iterations, a counter that reached its end, or many lines. A message about an end may be the script's
// own.
func (j *job) otherLogWorked(e *scan.Event) bool {
	for i, f := range j.files {
		if i == e.File || j.fileNode[i] != j.fileNode[e.File] {
			continue
		}
		if len(f.Progress) >= scan.Enough || f.Ending().Full || f.Ran.Sentences >= manyLines {
			return true
		}
	}
	return false
}

// ranAnyway reports whether a script's line explains nothing, because the programs that the script
// started ran: they failed for reasons of their own, they completed, or the script survived the same
// line elsewhere.
func (j *job) ranAnyway(e *scan.Event, live []*scan.Event) bool {
	if _, diverged := j.badNumbers(live); diverged || j.succeeded() || j.endsWell() && j.after(e) == wentOn {
		return true
	}
	if (e.Class == outcome.EnvLaunch || e.Class == outcome.Filesystem && !storageLost.MatchString(e.Text)) && j.launched(live) ||
		e.Class == outcome.EnvLaunch && j.otherLogWorked(e) {
		return true
	}
	if informational.MatchString(e.Text) &&
		slices.ContainsFunc(live, func(o *scan.Event) bool {
			return (o.Agent || o.Weight >= pattern.Death) && !informational.MatchString(o.Text)
		}) {
		return true
	}
	for _, o := range live {
		switch {
		case o == e, o.Kind == "" && o.Form == pattern.Bare && o.Class == e.Class: // a launcher's sentence about the same failure
		case fromScript(o):
			if logline.Template(o.Text) == logline.Template(e.Text) && j.after(o) == wentOn {
				return true
			}
		case o.Weight >= pattern.Death && !o.Agent, scan.IsEnd(o.Class) && !o.StepOnly() && (o.Class != outcome.SlurmCancelled || !j.failedBefore(o, live)):
			return true
		case o.Weight >= pattern.TimedOut-5 && !o.Agent && !j.nothingRan(e):
			return true
		case o.File == e.File && o.Off < e.Off:
			return true
		}
	}
	return false
}

// storageLost matches the system's words for a file system that does not answer, which all programs of the node meet. Other
// errors of files concern one command.
var storageLost = lazy.New(`(?i)(?:input/output error|stale file handle|transport endpoint (?:shutdown|is not connected))\W*$`)

// informational matches a script's message about a missing command that it calls only for information:
// no program needs it.
var informational = lazy.New(`\b(?:nvidia-smi|nvcc|rocm-smi|git|lscpu|lsb_release|free|ibstat|ibv_devinfo|nvtop|htop|tree|seff|figlet): (?:command )?not found`)

// launched reports whether what the script was to start ran: there are iterations, or torchelastic's
// summaries, and a launcher's exit code that is not the one for a missing program.
func (j *job) launched(live []*scan.Event) bool {
	shown := 0
	for _, f := range j.files {
		shown += len(f.Progress) + scan.Enough*len(f.Elastic)
	}
	return shown >= scan.Enough && slices.ContainsFunc(live, func(o *scan.Event) bool { return o.Agent && o.Exit != 0 && o.Exit != 126 && o.Exit != 127 })
}

// scriptLine matches the beginnings of errors of shells, commands, environment modules and conda.
var scriptLine = lazy.New(`^(?:\S*/)?[\w.+-]+: |^Lmod |[Mm]odulefile|^Command'?NotFound|^Environment\w+NotFound|^Could not find conda environment: |conda (?:activate|init)`)

// condaError matches the names of conda's own errors. They look like Python's but come from a command
// of the script.
var condaError = lazy.New(`^(?:CommandNotFoundError|EnvironmentNameNotFound|EnvironmentLocationNotFound|EnvironmentFileNotFound|Conda\w*Error|PackagesNotFoundError)$`)

// succeeded reports whether the run or Slurm says that the job completed.
func (j *job) succeeded() bool { return j.finished() || j.slurmCompleted() }

// threadAfterEnd reports whether an exception ended only a thread, such as a writer of event files,
// after the program had said that it was done. The tracebacks of two threads may be mixed, so that one
// has no frames.
func (j *job) threadAfterEnd(e *scan.Event) bool {
	return e.Kind != "" && j.files[e.File].DoneBefore(e) && (inThread(e) || e.Stack == nil && slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Text == e.Text && inThread(o)
	}))
}

// inThread reports whether an exception's outermost frame is that of a thread.
func inThread(e *scan.Event) bool {
	return e.Stack != nil && len(e.Stack.Frames) > 0 && e.Stack.Frames[0].Function == "_bootstrap_inner"
}

// interruptedSince reports whether a person ended the process after an exception, by Ctrl-C.
func interruptedSince(e *scan.Event, events []*scan.Event) bool {
	return slices.ContainsFunc(events, func(o *scan.Event) bool {
		return o.File == e.File && o.Tag == e.Tag && o.Off > e.Off && o.Counts() && o.Kind == scan.Interrupt
	})
}
