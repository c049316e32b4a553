package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// What came after an event tells whether its process, or for the batch script's
// lines the job, went on: words before it do not.

// An aftermath is how sure it is that an event's process went on.
type aftermath uint8

const (
	silence   aftermath = iota // nothing that a dead process could not leave
	maybeWent                  // the run's phases came after it, perhaps of other ranks
	wentOn                     // iterations came after it, or programs that the script started
)

// plenty is how many lines show that a script went on to what
// it was to do.
const plenty = 30

// after judges what came after an event.
func (j *job) after(e *scan.Event) aftermath {
	f := j.files[e.File]
	if j.progressSince(e) >= scan.Enough && !j.mayFinish(e) {
		if j.buried(e) || e.Stack != nil && e.Stack.Uncaught && j.deathSeen() || j.diedWithIt(e) {
			return maybeWent
		}
		return wentOn
	}
	if !e.Agent && (!scan.EndsJob(e) || e.Kind != "") && e.Weight < pattern.Fact-1 && j.quietSince(e) >= scan.LongTail {
		return wentOn
	}
	if e.Kind == "" && e.Stack == nil && !e.Agent && !scan.EndsJob(e) && e.Weight < pattern.Fact-1 && j.quietAfter(e) >= scan.LongTail && !j.manyProcesses() {
		return wentOn
	}
	if inThread(e) && !j.deathSeen() && f.Ran.Sentences-e.Ran.Sentences >= scan.Enough {
		return wentOn // a thread died of it, and its process speaks on
	}
	if e.Kind != "" && j.quietAfter(e) >= scan.NextRun && !j.manyProcesses() {
		return wentOn // so much only another program writes
	}
	if f.Ran.Programs-e.Ran.Programs >= scan.Enough && ofSetUp(e) {
		return wentOn
	}
	if e.Kind != "" && !e.Dated && j.quietSince(e) >= 10 && f.LastTime.Sub(e.When()) > scan.LongAfter && !e.When().IsZero() {
		return wentOn
	}
	if scan.IsEnd(e.Class) && e.Kind == "" && !e.StepOnly() && f.NextRunAfter(e) || j.outlived(e) {
		return wentOn
	}
	if e.Kind != "" && e.Stack == nil && j.raisedLater(e) || j.didWithout(e) {
		return wentOn
	}
	if ofScript(e) {
		switch {
		case f.Ran.Sentences-e.Ran.Sentences >= plenty, f.Ran.Programs > e.Ran.Programs && sourced.MatchString(e.Text):
			return wentOn
		case f.Ran.Programs-e.Ran.Programs >= scan.Enough:
			return maybeWent
		}
	}
	if e.Tag == logline.NoTag && !e.Agent && !scan.EndsJob(e) && e.Weight < pattern.Fact-1 && f.Ran.Tagged-e.Ran.Tagged >= scan.Enough && !j.mourned(e) {
		return wentOn // it is the script's, and the script went on to start its tasks
	}
	if j.handles(e) || j.lostPeerLater(e) {
		return wentOn
	}
	all := f.Ran.Phases
	if e.Tag != logline.NoTag {
		all = f.PhasesBy[e.Tag]
	}
	if all-e.Ran.Phases >= scan.Enough {
		return maybeWent
	}
	return silence
}

// sourced is a shell's word on a file whose lines it was to run itself, for the settings
// in it, and not on a program.
var sourced = lazy.New(`: (?:\S*/)?(?:(?:conda|mamba|micromamba|modules?|lmod|setup|env|setvars)\.sh|(?:bin/)?activate|\.bash(?:rc|_profile)): No such file or directory$`)

// buried reports whether srun tells after an exception, and before any progress, that
// tasks ended with an exit code: the progress after that is other tasks'.
func (j *job) buried(e *scan.Event) bool {
	return e.Stack != nil && e.Form < pattern.Report && !e.Doubted && slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Off > e.Off && o.Agent && o.Exit > 0 && strings.HasPrefix(o.Text, "srun: ") && j.files[e.File].Iterated(e, o) == 0
	})
}

// raisedLater reports whether the program that printed an exception by its last line
// alone, as a library does that goes on without something, ended by another one, with
// its traceback, after it had said much else.
func (j *job) raisedLater(e *scan.Event) bool {
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Tag == e.Tag && scan.ProgramOf(o) != "" && o.Ran.Sentences-e.Ran.Sentences >= scan.Farewell
	})
}

// mayLack are the classes of what a program may do without, though a library of it
// complained: a device, a service, an extension, a file of several.
var mayLack = []string{outcome.CUDADriver, outcome.HFHub, outcome.ImportError, outcome.ExtensionABI, outcome.DatasetMissing}

// didWithout reports whether a program that lacked something, and raised nothing for
// it, wrote on and came to its end in the same file.
func (j *job) didWithout(e *scan.Event) bool {
	return e.Kind == "" && e.Stack == nil && !e.Agent && !ofScript(e) && slices.Contains(mayLack, e.Class) &&
		j.quietSince(e) >= 2*scan.Farewell && j.files[e.File].Ending().Said
}

// outlived reports whether a job of one process reached its time limit after an
// event in its standard error, and went on with its work in its standard output:
// another process of its script did.
func (j *job) outlived(e *scan.Event) bool {
	if e.Stack == nil || e.Tag != logline.NoTag || j.world > 1 || j.perNode > 0 || j.files[e.File].Failed != nil || len(j.files[e.File].Progress) > 0 {
		return false
	}
	ended := slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Off > e.Off && o.Class == outcome.SlurmTimeLimit && !o.StepOnly()
	})
	return ended && slices.ContainsFunc(j.files, func(f *scan.Facts) bool { return len(f.Progress) >= scan.Enough && len(f.Ranks)+len(f.Labels) == 0 })
}

// quietSince is how many lines a file goes on for after its last event, where
// that is this one or came after it, and nothing says that a process died.
func (j *job) quietSince(e *scan.Event) int {
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

// quietAfter is how many lines a file goes on for until its next event, or its end, where
// no launcher says before that a process failed.
func (j *job) quietAfter(e *scan.Event) int {
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

// repeated reports whether a program says a sentence over and over, with other
// values in it: it went on after each.
func (j *job) repeated(e *scan.Event) bool {
	times := 0
	for _, o := range j.events {
		if o.File == e.File && o.Tag == e.Tag && o.Class == e.Class && o.Form == pattern.Bare && logline.Template(o.Text) == logline.Template(e.Text) {
			times++
		}
	}
	return times > scan.Enough
}

// survivedBefore reports whether a program says a line again that it, or the run
// before it in the same log, went on after, and nothing says that a process died.
// A traceback ends a process, and is never such a line, nor is argparse's refusal or a
// shell's word on a program that was killed.
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

// mayFinish reports whether a process writes on only because Slurm lets it: it has its
// KillWait to end after a time limit or scancel, and says little but its steps,
// where another run would say how it begins.
func (j *job) mayFinish(e *scan.Event) bool {
	f := j.files[e.File]
	steps := 0
	for _, m := range f.Progress {
		if m.Off > e.Off {
			steps++
		}
	}
	return e.Agent && f.Ran.Sentences-e.Ran.Sentences-steps < scan.Farewell && !f.NextRunAfter(e) &&
		(e.Class == outcome.SlurmTimeLimit || e.Class == outcome.SlurmCancelled && !j.finishedAfter(e) && !j.endsWell())
}

// diedWithIt reports whether a rank wrote nothing after an exception, and a launcher tells
// that it left with 1, as Python does of one: the progress after it is other ranks'.
func (j *job) diedWithIt(e *scan.Event) bool {
	f := j.files[e.File]
	if e.Stack == nil || e.Rank < 0 || e.Tag == logline.NoTag || f.LastBy[e.Tag].Off > e.Off ||
		slices.ContainsFunc(f.Progress, func(m scan.Mark) bool { return m.Tag == e.Tag && m.Off > e.Off }) {
		return false
	}
	left := false
	for _, o := range j.events {
		if o.File == e.File && o.Tag == e.Tag && o.Off > e.Off {
			return false
		}
		left = left || o.Agent && o.Exit == 1 && slices.Contains(j.leavers(o), e.Rank)
	}
	return left
}

// lostPeerLater reports whether a rank raised an exception, and a second one later of
// having lost another, of whose death by a signal a launcher tells: it lived on after the
// first. SIGABRT does not count, by which a rank may end itself that lost a peer.
func (j *job) lostPeerLater(e *scan.Event) bool {
	if e.Stack == nil || e.Rank < 0 || e.Tag == logline.NoTag || inThread(e) || e.Stack.Uncaught {
		return false
	}
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Tag == e.Tag && o.Off > e.Off && o.Stack != nil && o.Class == outcome.NCCLConnection
	}) && slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.Agent && o.Rank >= 0 && o.Rank != e.Rank && (o.Class == outcome.HostOOM || o.Class == outcome.Segfault || o.Class == outcome.ShmBusError) &&
			o.Exit != -6 && o.Exit != 134
	})
}

// clientKilled is a shell's word on an srun that somebody killed: that is no rank, and
// needs no memory.
var clientKilled = lazy.New(`line \d+: +\d+ Killed +(?:\w+=\S+ +)*(?:\S*/)?srun `)

// handles reports whether a program lives on after its exceptions: several came
// before this one, many other lines stand between them and some after it, and
// nothing says that a process died. After one that reached the top of a program
// the script that started it may say a few words.
func (j *job) handles(e *scan.Event) bool {
	since := j.files[e.File].Ran.Sentences - e.Ran.Sentences
	if e.Stack == nil || e.Tag != logline.NoTag || j.deathSeen() || since == 0 || since < scan.Farewell && scan.ProgramOf(e) != "" {
		return false
	}
	times, previous := 0, -plenty
	for _, o := range j.events {
		if o.File != e.File || o.Stack == nil || o.Class != e.Class || o.Superseded {
			continue
		}
		if o.Tag != logline.NoTag || o.Ran.Sentences-previous < plenty {
			return false
		}
		times, previous = times+1, o.Ran.Sentences
	}
	return times > scan.Enough
}

// mourned reports whether a launcher of the same file says after an event that a
// process failed: then the event is a task's, not the script's.
func (j *job) mourned(e *scan.Event) bool {
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Off > e.Off && o.Agent && o.Tag.Label < 0 && !strings.HasPrefix(o.Text, "srun:") && !strings.HasPrefix(o.Text, "slurmstepd")
	})
}

// progressSince counts the reports of iterations after an event, by their place
// in its file and by time in others. What a launcher tags it passes on by whole
// lines, and so does srun with several tasks: all that a progress bar wrote comes at
// once, when the line ends. Where several ranks report each step, those that one of
// them reported count: the others end the step that they are in. Untagged, they
// may be all of one step.
func (j *job) progressSince(e *scan.Event) (most int) {
	byLine := j.deathSeen() && j.manyProcesses()
	by := map[logline.Tag]int{}
	step := ""
	for i, f := range j.files {
		for k, m := range f.Progress {
			if (m.Tag != logline.NoTag || byLine) && k > 0 && f.Progress[k-1].Off == m.Off {
				continue
			}
			after := m.Off > e.Off
			if i != e.File {
				at, ok := logline.ParseTime(m.Text)
				latest := e.Latest()
				after = !latest.IsZero() && ok && at.Year() != logline.Yearless && at.After(latest.Add(skew))
			}
			if after && byLine && m.Tag == logline.NoTag {
				n := m.Step()
				if n != "" && n == step { // of another rank
					continue
				}
				step = n
			}
			if after {
				by[m.Tag]++
				most = max(most, by[m.Tag])
			}
		}
	}
	return most
}

// ofScript reports whether the batch script or a command that it called says a
// line: the script itself may go on after it.
func ofScript(e *scan.Event) bool {
	return (e.Kind == "" || e.Stack == nil && condaError.MatchString(e.Kind)) &&
		!e.Agent && e.Tag.Local < 0 && e.Tag.Rank < 0 && e.Weight < pattern.Fact-1 && scriptLine.MatchString(e.Text) &&
		!strings.Contains(e.Text, ".py: ") && e.Class != outcome.SlurmSubmitRejected &&
		!ofProgram.MatchString(e.Text)
}

// ofProgram is a shell's word on a program that a signal ended, a container runtime's
// on what ends it, and that of a data loader's process on the signal that ends it.
var ofProgram = lazy.New(`line \d+: +\d+ [A-Z]|^FATAL: |^ERROR: Unexpected .* encountered in worker`)

// nothingRan reports whether no program wrote anything on a script line's node:
// then it is why. Files whose node nobody knows are one script's.
func (j *job) nothingRan(e *scan.Event) bool {
	for i, f := range j.files {
		if j.fileNode[i] == j.fileNode[e.File] && (f.Ran.Programs > 0 || len(f.Progress) > 0) {
			return false
		}
	}
	return true
}

// ranBeside reports whether a program ran after a script's line, or writes into another
// log of its node.
func (j *job) ranBeside(e *scan.Event) bool {
	for i, f := range j.files {
		if i != e.File && j.fileNode[i] == j.fileNode[e.File] && (f.Ran.Programs > 0 || len(f.Progress) > 0) {
			return true
		}
	}
	return j.files[e.File].Ran.Programs > e.Ran.Programs || j.progressSince(e) > 0
}

// lacksLast reports whether a log ends with Python's word that the program is not there
// which it was to run, after others that the script ran: it did not do all that it should.
func (j *job) lacksLast(e *scan.Event) bool {
	last := j.files[e.File].Last
	return e.Off > 0 && len(last) > 0 && last[len(last)-1].Off == e.Off && noProgram.MatchString(e.Text)
}

// noProgram is Python's word on it (Modules/main.c).
var noProgram = lazy.New(`^\S*python[\d.]*: can't open file .*: \[Errno 2\]`)

// workedBeside reports whether what the script started worked, by its own log beside
// the one of the script's line: it reported iterations, counted to its last or wrote
// much. Words of an end may be the script's own.
func (j *job) workedBeside(e *scan.Event) bool {
	for i, f := range j.files {
		if i == e.File || j.fileNode[i] != j.fileNode[e.File] {
			continue
		}
		if len(f.Progress) >= scan.Enough || f.Ending().Full || f.Ran.Sentences >= plenty {
			return true
		}
	}
	return false
}

// outdone reports whether a script's line explains nothing, since programs that
// the script started ran: they failed after or before it on their own account,
// they came to their end, or the script survived the same line elsewhere.
func (j *job) outdone(e *scan.Event, live []*scan.Event) bool {
	if _, diverged := j.badNumbers(live); diverged || j.didWell() || j.endsWell() && j.after(e) == wentOn {
		return true
	}
	if (e.Class == outcome.EnvLaunch || e.Class == outcome.Filesystem) && j.launched(live) || e.Class == outcome.EnvLaunch && j.workedBeside(e) {
		return true
	}
	if onlyShown.MatchString(e.Text) &&
		slices.ContainsFunc(live, func(o *scan.Event) bool {
			return (o.Agent || o.Weight >= pattern.Death) && !onlyShown.MatchString(o.Text)
		}) {
		return true
	}
	for _, o := range live {
		switch {
		case o == e, o.Kind == "" && o.Form == pattern.Bare && o.Class == e.Class: // a launcher's sentence on the same
		case ofScript(o):
			if o.Class == e.Class && logline.Template(o.Text) == logline.Template(e.Text) && j.after(o) == wentOn {
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

// onlyShown is a script's word on a command that it lacks and calls to write down what
// it prints: nothing that is launched needs it.
var onlyShown = lazy.New(`\b(?:nvidia-smi|nvcc|rocm-smi|git|lscpu|lsb_release|free|ibstat|ibv_devinfo|nvtop|htop|tree|seff|figlet): (?:command )?not found`)

// launched reports whether what the script was to start ran: it reported iterations or
// torchelastic tells how it ended, and that is not that there was nothing to run.
func (j *job) launched(live []*scan.Event) bool {
	shown := 0
	for _, f := range j.files {
		shown += len(f.Progress) + scan.Enough*len(f.Elastic)
	}
	return shown >= scan.Enough && slices.ContainsFunc(live, func(o *scan.Event) bool { return o.Agent && o.Exit != 0 && o.Exit != 126 && o.Exit != 127 })
}

// scriptLine is what shells, commands, environment modules and conda begin their
// errors with.
var scriptLine = lazy.New(`^(?:\S*/)?[\w.+-]+: |^Lmod |[Mm]odulefile|^Command'?NotFound|^Environment\w+NotFound|conda (?:activate|init)`)

// condaError are the names that conda gives its own errors, which look like
// Python's but come from a command of the script.
var condaError = lazy.New(`^(?:CommandNotFoundError|EnvironmentNameNotFound|EnvironmentLocationNotFound|Conda\w*Error|PackagesNotFoundError)$`)

// ofSetUp reports whether a command raised an exception that sets an environment up:
// what the script starts after it may do without.
func ofSetUp(e *scan.Event) bool {
	return e.Stack != nil && len(e.Stack.Frames) > 0 && setUpCommand.MatchString(e.Stack.Frames[0].File)
}

var setUpCommand = lazy.New(`/bin/(?:conda|mamba|pip3?)$`)

// setsUp reports whether a line is environment modules' or conda's, whose
// failure ends no script by itself.
func setsUp(e *scan.Event) bool { return e.Class == outcome.EnvLaunch && setUpLine.MatchString(e.Text) }

var setUpLine = lazy.New(`^Lmod has detected|Unable to locate a modulefile|^CommandNotFoundError|conda (?:activate|init)`)

// didWell reports whether anything says that the job ended well.
func (j *job) didWell() bool { return j.finished() || j.endedWell() }

// leftRunning reports whether an exception ended a thread alone, such as a writer of
// events, after the program had said that all is done. Two threads' tracebacks may
// stand within each other, so that one of them has no frames.
func (j *job) leftRunning(e *scan.Event) bool {
	return e.Kind != "" && j.files[e.File].DoneBefore(e) && (inThread(e) || e.Stack == nil && slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.File == e.File && o.Text == e.Text && inThread(o)
	}))
}

// inThread reports whether an exception's outermost frame is that of a thread.
func inThread(e *scan.Event) bool {
	return e.Stack != nil && len(e.Stack.Frames) > 0 && e.Stack.Frames[0].Function == "_bootstrap_inner"
}
