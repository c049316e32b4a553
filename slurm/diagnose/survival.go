package diagnose

import (
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// What came after an event tells whether its process, or for the batch script's
// lines the job, went on: words before it do not.

// ranBefore counts, up to some line of a file, the lines by which a program
// shows that it runs.
type ranBefore struct {
	phases    int // the run's own account of where it is: arguments, phases, starts
	programs  int // lines of programs that the script started
	sentences int // lines that are no table, setting or echo at first sight
	tagged    int // lines that launchers mark as those of a task
}

// An aftermath is how sure it is that an event's process went on.
type aftermath uint8

const (
	silence   aftermath = iota // nothing that a dead process could not leave
	maybeWent                  // the run's phases came after it, perhaps of other ranks
	wentOn                     // iterations came after it, or programs that the script started
)

// enough is how many lines of the kind are believed: ranks that do not know yet
// that another one died write one or two.
const enough = 3

// plenty is how many lines show that a script went on to what
// it was to do.
const plenty = 30

// after judges what came after an event.
func (j *job) after(e *event) aftermath {
	f := j.files[e.file]
	if j.progressSince(e) >= enough && !j.mayFinish(e) {
		if j.buried(e) {
			return maybeWent
		}
		return wentOn
	}
	if !e.agent && (!endsJob(e) || e.kind != "") && e.weight < fact-1 && j.quietSince(e) >= longTail {
		return wentOn
	}
	if e.kind != "" && !e.dated && j.quietSince(e) >= 10 && f.lastTime.Sub(e.when()) > longAfter && !e.when().IsZero() {
		return wentOn
	}
	if isEnd(e.class) && e.kind == "" && !e.stepOnly() && f.nextRunAfter(e) || j.outlived(e) {
		return wentOn
	}
	if e.kind != "" && e.stack == nil && j.raisedLater(e) || j.didWithout(e) {
		return wentOn
	}
	if ofScript(e) {
		switch {
		case f.ran.sentences-e.ran.sentences >= plenty:
			return wentOn
		case f.ran.programs-e.ran.programs >= enough:
			return maybeWent
		}
	}
	if e.tag == noTag && !e.agent && !endsJob(e) && e.weight < fact-1 && f.ran.tagged-e.ran.tagged >= enough && !j.mourned(e) {
		return wentOn // it is the script's, and the script went on to start its tasks
	}
	if j.handles(e) {
		return wentOn
	}
	all := f.ran.phases
	if e.tag != noTag {
		all = f.phasesBy[e.tag]
	}
	if all-e.ran.phases >= enough {
		return maybeWent
	}
	return silence
}

// buried reports whether srun tells after an exception, and before any progress, that
// tasks ended with an exit code: the progress after that is other tasks'.
func (j *job) buried(e *event) bool {
	return e.stack != nil && e.form < report && !e.doubted && slices.ContainsFunc(j.events, func(o *event) bool {
		return o.file == e.file && o.off > e.off && o.agent && o.exit > 0 && strings.HasPrefix(o.text, "srun: ") && j.files[e.file].iterated(e, o) == 0
	})
}

// raisedLater reports whether the program that printed an exception by its last line
// alone, as a library does that goes on without something, ended by another one, with
// its traceback, after it had said much else.
func (j *job) raisedLater(e *event) bool {
	return slices.ContainsFunc(j.events, func(o *event) bool {
		return o.file == e.file && o.tag == e.tag && o.counts() && programOf(o) != "" && o.ran.sentences-e.ran.sentences >= farewell
	})
}

// mayLack are the classes of what a program may do without, though a library of it
// complained: a device, a service, an extension, a file of several.
var mayLack = []string{CUDADriver, HFHub, ImportError, ExtensionABI, DatasetMissing}

// didWithout reports whether a program that lacked something, and raised nothing for
// it, wrote on and came to its end in the same file.
func (j *job) didWithout(e *event) bool {
	return e.kind == "" && e.stack == nil && !e.agent && !ofScript(e) && slices.Contains(mayLack, e.class) &&
		j.quietSince(e) >= 2*farewell && j.files[e.file].ending().said
}

// outlived reports whether a job of one process reached its time limit after an
// event in its standard error, and went on with its work in its standard output:
// another process of its script did.
func (j *job) outlived(e *event) bool {
	if e.stack == nil || e.tag != noTag || j.world > 1 || j.perNode > 0 || j.files[e.file].failed != nil || len(j.files[e.file].progress) > 0 {
		return false
	}
	ended := slices.ContainsFunc(j.events, func(o *event) bool {
		return o.file == e.file && o.off > e.off && o.class == SlurmTimeLimit && !o.stepOnly()
	})
	return ended && slices.ContainsFunc(j.files, func(f *facts) bool { return len(f.progress) >= enough && len(f.ranks)+len(f.labels) == 0 })
}

// quietSince is how many lines a file goes on for after its last event, where
// that is this one or came after it, and nothing says that a process died.
func (j *job) quietSince(e *event) int {
	f := j.files[e.file]
	if f.failed != nil && f.failed.off > e.off {
		return 0
	}
	last := e
	for _, o := range j.events {
		if o.file == e.file && o.off > last.off && o.counts() && (o.form != bare || !j.repeated(o)) {
			last = o
		}
	}
	return f.ran.sentences - last.ran.sentences
}

// longTail is how many lines after the last event of a file show that whatever
// it was did not end the job.
const longTail = 50

// repeated reports whether a program says a sentence over and over, with other
// values in it: it went on after each.
func (j *job) repeated(e *event) bool {
	times := 0
	for _, o := range j.events {
		if o.file == e.file && o.tag == e.tag && o.class == e.class && o.form == bare && template(o.text) == template(e.text) {
			times++
		}
	}
	return times > enough
}

// survivedBefore reports whether a program says a line again that it, or the run
// before it in the same log, went on after, and nothing says that a process died.
// A traceback ends a process, and is never such a line, nor is argparse's refusal or a
// shell's word on a program that was killed.
func (j *job) survivedBefore(e *event) bool {
	if e.stack != nil || killed.MatchString(e.text) || complaint.MatchString(e.text) || e.agent || e.weight >= fact-1 || isEnd(e.class) || j.deathSeen() {
		return false
	}
	var previous *event
	for _, o := range j.events {
		if o.file != e.file || o.tag != e.tag || o.class != e.class || template(o.text) != template(e.text) {
			continue
		}
		if previous != nil && (e.kind == "" && o.ran.sentences-previous.ran.sentences >= farewell || j.files[e.file].iterated(previous, o) >= enough) {
			return true
		}
		previous = o
	}
	return false
}

// iterated counts the reports of iterations between two events.
func (f *facts) iterated(from, to *event) (n int) {
	for _, m := range f.progress {
		if from.off < m.off && m.off < to.off {
			n++
		}
	}
	return n
}

// nextRunAfter reports whether so many lines, or lines over so long, come after
// Slurm's word on the end of a job that another run writes into the same file: a
// job that was requeued does.
func (f *facts) nextRunAfter(e *event) bool {
	const lines, while = 1000, 15 * time.Minute
	return f.ran.sentences-e.ran.sentences >= lines || !e.after.IsZero() && f.lastTime.Sub(e.after) > while
}

// mayFinish reports whether a process writes on only because Slurm lets it: it
// has its KillWait to end after the time limit, and says little but its steps,
// where another run would say how it begins.
func (j *job) mayFinish(e *event) bool {
	f := j.files[e.file]
	steps := 0
	for _, m := range f.progress {
		if m.off > e.off {
			steps++
		}
	}
	return e.class == SlurmTimeLimit && e.agent && f.ran.sentences-e.ran.sentences-steps < farewell && !f.nextRunAfter(e)
}

// handles reports whether a program lives on after its exceptions: several came
// before this one, many other lines stand between them and some after it, and
// nothing says that a process died. After one that reached the top of a program
// the script that started it may say a few words.
func (j *job) handles(e *event) bool {
	since := j.files[e.file].ran.sentences - e.ran.sentences
	if e.stack == nil || e.tag != noTag || j.deathSeen() || since == 0 || since < farewell && programOf(e) != "" {
		return false
	}
	times, previous := 0, -plenty
	for _, o := range j.events {
		if o.file != e.file || o.stack == nil || o.class != e.class || o.superseded {
			continue
		}
		if o.tag != noTag || o.ran.sentences-previous < plenty {
			return false
		}
		times, previous = times+1, o.ran.sentences
	}
	return times > enough
}

// longAfter is how long after an exception a file's lines are another program's:
// whoever waits for a dead process gives up before.
const longAfter = time.Hour

// mourned reports whether a launcher of the same file says after an event that a
// process failed: then the event is a task's, not the script's.
func (j *job) mourned(e *event) bool {
	return slices.ContainsFunc(j.events, func(o *event) bool {
		return o.file == e.file && o.off > e.off && o.agent && o.tag.label < 0 && !strings.HasPrefix(o.text, "srun:") && !strings.HasPrefix(o.text, "slurmstepd")
	})
}

// progressSince counts the reports of iterations after an event, by their place
// in its file and by time in others. What a launcher tags it passes on by whole
// lines, and so does srun with several tasks: all that a progress bar wrote comes at
// once, when the line ends. Where several ranks report each step, those that one of
// them reported count: the others end the step that they are in.
func (j *job) progressSince(e *event) (most int) {
	byLine := j.deathSeen() && j.manyProcesses()
	by := map[tag]int{}
	for i, f := range j.files {
		for k, m := range f.progress {
			if (m.tag != noTag || byLine) && k > 0 && f.progress[k-1].off == m.off {
				continue
			}
			after := m.off > e.off
			if i != e.file {
				at, ok := timestamp(m.text)
				latest := e.latest()
				after = !latest.IsZero() && ok && at.Year() != yearless && at.After(latest.Add(skew))
			}
			if after {
				by[m.tag]++
				most = max(most, by[m.tag])
			}
		}
	}
	return most
}

// latest is the time before which an event surely happened, or zero.
func (e *event) latest() time.Time {
	if e.dated {
		return e.before
	}
	return e.after
}

// ofScript reports whether the batch script or a command that it called says a
// line: the script itself may go on after it.
func ofScript(e *event) bool {
	return (e.kind == "" || e.stack == nil && condaError.MatchString(e.kind)) &&
		!e.agent && e.tag.local < 0 && e.tag.rank < 0 && e.weight < fact-1 && scriptLine.MatchString(e.text) &&
		!strings.Contains(e.text, ".py: ") && e.class != SlurmSubmitRejected &&
		!ofProgram.MatchString(e.text)
}

// ofProgram is a shell's word on a program that a signal ended, a container runtime's
// on what ends it, and that of a data loader's process on the signal that ends it.
var ofProgram = lazy.New(`line \d+: +\d+ [A-Z]|^FATAL: |^ERROR: Unexpected .* encountered in worker`)

// nothingRan reports whether no program wrote anything on a script line's node:
// then it is why. Files whose node nobody knows are one script's.
func (j *job) nothingRan(e *event) bool {
	for i, f := range j.files {
		if j.fileNode[i] == j.fileNode[e.file] && (f.ran.programs > 0 || len(f.progress) > 0) {
			return false
		}
	}
	return true
}

// ranBeside reports whether a program ran after a script's line, or writes into another
// log of its node.
func (j *job) ranBeside(e *event) bool {
	for i, f := range j.files {
		if i != e.file && j.fileNode[i] == j.fileNode[e.file] && (f.ran.programs > 0 || len(f.progress) > 0) {
			return true
		}
	}
	return j.files[e.file].ran.programs > e.ran.programs || j.progressSince(e) > 0
}

// workedBeside reports whether what the script started worked, by its own log beside
// the one of the script's line: it reported iterations, counted to its last or wrote
// much. Words of an end may be the script's own.
func (j *job) workedBeside(e *event) bool {
	for i, f := range j.files {
		if i == e.file || j.fileNode[i] != j.fileNode[e.file] {
			continue
		}
		if len(f.progress) >= enough || f.ending().full || f.ran.sentences >= plenty {
			return true
		}
	}
	return false
}

// outdone reports whether a script's line explains nothing, since programs that
// the script started ran: they failed after or before it on their own account,
// they came to their end, or the script survived the same line elsewhere.
func (j *job) outdone(e *event, live []*event) bool {
	if _, diverged := j.badNumbers(live); diverged || j.didWell() || j.endsWell() && j.after(e) == wentOn {
		return true
	}
	if (e.class == EnvLaunch || e.class == Filesystem) && j.launched(live) || e.class == EnvLaunch && j.workedBeside(e) {
		return true
	}
	for _, o := range live {
		switch {
		case o == e:
		case ofScript(o):
			if o.class == e.class && template(o.text) == template(e.text) && j.after(o) == wentOn {
				return true
			}
		case o.weight >= death && !o.agent, isEnd(o.class) && !o.stepOnly() && (o.class != SlurmCancelled || !j.failedBefore(o, live)):
			return true
		case o.weight >= timedOut-5 && !o.agent && !j.nothingRan(e):
			return true
		case o.file == e.file && o.off < e.off:
			return true
		}
	}
	return false
}

// launched reports whether what the script was to start ran: it reported iterations or
// torchelastic tells how it ended, and that is not that there was nothing to run.
func (j *job) launched(live []*event) bool {
	shown := 0
	for _, f := range j.files {
		shown += len(f.progress) + enough*len(f.elastic)
	}
	return shown >= enough && slices.ContainsFunc(live, func(o *event) bool { return o.agent && o.exit != 0 && o.exit != 126 && o.exit != 127 })
}

// scriptLine is what shells, commands, environment modules and conda begin their
// errors with.
var scriptLine = lazy.New(`^(?:\S*/)?[\w.+-]+: |^Lmod |[Mm]odulefile|^Command'?NotFound|^Environment\w+NotFound|conda (?:activate|init)`)

// condaError are the names that conda gives its own errors, which look like
// Python's but come from a command of the script.
var condaError = lazy.New(`^(?:CommandNotFoundError|EnvironmentNameNotFound|EnvironmentLocationNotFound|CondaError|PackagesNotFoundError)$`)

// setsUp reports whether a line is environment modules' or conda's, whose
// failure ends no script by itself.
func setsUp(e *event) bool { return e.class == EnvLaunch && setUpLine.MatchString(e.text) }

var setUpLine = lazy.New(`^Lmod has detected|Unable to locate a modulefile|^CommandNotFoundError|conda (?:activate|init)`)

// logfmt begins the lines of programs that log in names and values.
const logfmt = `time="`

// shows notes what a line tells of a program that runs.
func (s *scanner) shows(t tag, text string, phase bool) {
	if phase {
		s.ran.phases++
		if t != noTag && len(s.phasesBy) < 1<<14 {
			s.phasesBy[t]++
		}
	}
	if (t.label >= 0 || t.local >= 0) && !agentLine(text) {
		s.ran.tagged++
	}
	word, _, _ := strings.Cut(text, " ")
	c := word0(word)
	if digit(c) || len(word) > 8 && c == '[' && digit(word[1]) && digit(word[4]) ||
		c == '/' && strings.Contains(word, ".py:") || // a warning
		c >= 'A' && (!strings.Contains(word, "=") || strings.HasPrefix(word, logfmt)) {
		s.ran.sentences++
	}
	if phase || t != noTag || strings.Contains(text, ".py") || strings.Contains(text, " NCCL INFO ") || strings.Contains(text, header) {
		s.ran.programs++
	}
}

// didWell reports whether anything says that the job ended well.
func (j *job) didWell() bool { return j.finished() || j.endedWell() }

// word0 is a word's first byte, or 0.
func word0(word string) byte {
	if word == "" {
		return 0
	}
	return word[0]
}
