package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A batch script that does not check its commands runs the next program after one that failed. The program
// that ended last then decides.

// ofLastProgram drops the causes of programs that had ended before another one of the same file began, and
// failed or was ended by Slurm: the script survived them. If the later program failed for want of what the
// one before was to make, or only the one before reported iterations, its own causes are dropped instead: a
// plot or a message after the training is not the job's work.
func (j *job) ofLastProgram(causes, live []*scan.Event) (kept []*scan.Event) {
	byFile := map[int][]*scan.Event{}
	for _, e := range causes {
		byFile[e.File] = append(byFile[e.File], e)
	}
	dropped := map[*scan.Event]bool{}
	j.ofEarlier = nil
	for i, here := range byFile {
		for _, end := range slices.Backward(programEnds(j.files[i], here)) {
			before := func(e *scan.Event) bool { return e.Off <= end }
			last := firstAfter(end, here, live)
			if last == nil || !slices.ContainsFunc(here, before) {
				continue
			}
			noGPU := slices.ContainsFunc(here, func(e *scan.Event) bool { return before(e) && scriptOf(e) == gpuCheck })
			trained := j.files[i].IteratedOnlyUntil(end) && !j.files[i].DoneBefore(firstEvent(here, before))
			follows := lacks(last) || noGPU && aboutGPU.MatchString(last.Text) || trained
			here = slices.DeleteFunc(slices.Clone(here), func(e *scan.Event) bool {
				drop := before(e) != follows && (follows || e.Class != outcome.GPUHardware)
				dropped[e] = dropped[e] || drop
				if drop && !follows {
					j.ofEarlier = append(j.ofEarlier, e)
				}
				return drop
			})
			if !follows {
				break
			}
		}
	}
	for _, e := range causes {
		if !dropped[e] {
			kept = append(kept, e)
		}
	}
	return kept
}

// firstAfter returns the failure of the program that began at an offset of a file: the first of the causes
// here that names its script, else the first, else Slurm's end of the job.
func firstAfter(end int64, here, live []*scan.Event) *scan.Event {
	after := func(e *scan.Event) bool { return e.Off > end }
	if e := firstEvent(here, func(e *scan.Event) bool { return after(e) && scriptOf(e) != "" }); e != nil {
		return e
	}
	if e := firstEvent(here, after); e != nil {
		return e
	}
	return firstEvent(live, func(e *scan.Event) bool {
		return e.File == here[0].File && after(e) && scan.IsEnd(e.Class) && !e.StepOnly()
	})
}

// programEnds returns the offsets in a file up to which all belongs to programs that had ended when the next
// one began.
func programEnds(f *scan.Facts, causes []*scan.Event) (ends []int64) {
	for _, m := range f.Commands[min(1, len(f.Commands)):] {
		ends = append(ends, m.Off)
	}
	ends = append(append(ends, stepEnds(f.Events)...), scriptEnds(causes)...)
	slices.Sort(ends)
	return ends
}

// stepEnds returns the offsets of Slurm's last reports on steps that another step followed: srun reports the
// end of a task once. The step's daemon may write a few lines later. Steps on other nodes may run at the same
// time.
func stepEnds(events []*scan.Event) (ends []int64) {
	type taskOn struct {
		node string
		task int
	}
	ended := map[taskOn]bool{}
	var last *scan.Event
	for _, e := range events {
		switch {
		case last != nil && strings.HasPrefix(e.Text, logline.Daemon) && e.Ran.Sentences-last.Ran.Sentences <= scan.Enough:
			last = e
		case !e.Agent, !strings.HasPrefix(e.Text, "srun: "):
		default:
			if slices.ContainsFunc(e.Tasks, func(task int) bool { return ended[taskOn{e.Node, task}] }) {
				ends = append(ends, last.Off)
				clear(ended)
			}
			for _, task := range e.Tasks {
				ended[taskOn{e.Node, task}] = true
			}
			last = e
		}
	}
	return ends
}

// A turn is one script's time in a file: the events that ended its processes, one for each rank.
type turn struct {
	script      string
	first, last *scan.Event
	tags        map[logline.Tag]bool
}

// scriptEnds returns the offsets of the last failures of scripts that another one followed, by the causes in a
// file; none if scripts take turns again and again, as those do that run side by side.
func scriptEnds(causes []*scan.Event) (ends []int64) {
	var here []*scan.Event
	for _, e := range causes {
		if scriptOf(e) != "" {
			here = append(here, e)
		}
	}
	slices.SortFunc(here, func(a, b *scan.Event) int { return cmp.Compare(a.Off, b.Off) })
	var turns []*turn
	for _, e := range here {
		script, n := scriptOf(e), len(turns)
		switch {
		case n > 0 && turns[n-1].script == script:
		case slices.ContainsFunc(turns, func(t *turn) bool { return t.script == script }):
			return nil
		default:
			turns = append(turns, &turn{script: script, first: e, tags: map[logline.Tag]bool{}})
			n++
		}
		turns[n-1].last, turns[n-1].tags[e.Tag] = e, true
	}
	for n, t := range turns {
		if n > 0 && t.follows(turns[n-1]) {
			ends = append(ends, turns[n-1].last.Off)
		}
	}
	return ends
}

// follows reports whether a script began after another had failed: the same process of the job, by its tag,
// wrote lines of its own between the two failures, or lacks something. A traceback's header and last line
// are no lines of its own.
func (t *turn) follows(before *turn) bool {
	own := t.first.Ran.Sentences - before.last.Ran.Sentences
	if t.first.Stack != nil {
		own -= 2
	}
	for tag := range t.tags {
		if before.tags[tag] {
			return lacks(t.first) || own >= scan.Enough
		}
	}
	return false
}

// scriptOf returns the name of the script or command whose process an event ended, or the empty string.
func scriptOf(e *scan.Event) string {
	switch {
	case !e.Counts():
		return ""
	case e.Stack != nil:
		return e.Program()
	case ofGPUCheck.MatchString(e.Text):
		return gpuCheck
	}
	if g := startedScript.FindStringSubmatch(e.Text); g != nil {
		return g[1]
	}
	if g := startedCommand.FindStringSubmatch(e.Text); g != nil && !starter.MatchString(g[1]) {
		return g[1]
	}
	return e.Program()
}

// startedScript matches the script in a shell's message about the end of its process, and in Python's about
// one that it could not open. startedCommand matches a command with a path, and starter those that start
// another program.
var (
	startedScript  = lazy.New(`(?:line \d+: +\d+ [A-Z]|can't open file ).*?([\w.-]+\.py)\b`)
	startedCommand = lazy.New(`line \d+: +\d+ [A-Z][a-z]+(?: [a-z]+)? +(?:\(core dumped\) +)?[\w.~/-]*/([\w-]+)(?: |$)`)
	starter        = lazy.New(`^(?:python\d*|[a-z]*sh|srun|mpirun|mpiexec|torchrun|deepspeed|accelerate|apptainer|singularity|conda|env|time)$`)
)

// gpuCheck is the command with which scripts list the GPUs before their work; ofGPUCheck matches its own
// messages, and aboutGPU those of a program that may fail for the same reason.
const gpuCheck = "nvidia-smi"

var (
	ofGPUCheck = lazy.New(`^(?:NVIDIA-SMI has failed|Failed to initialize NVML|No devices were found|Unable to determine the device handle)`)
	aboutGPU   = lazy.New(`(?i)cuda|gpu|nvidia|nvml|nccl|cudnn|\bhip|device`)
)

// lacks reports whether a program's exception says that something is missing that another one was to make or
// to serve, or reports on another process, which it may have started.
func lacks(e *scan.Event) bool {
	return e.Class == outcome.DatasetMissing || e.Class == outcome.Rendezvous || e.Class == outcome.NCCLConnection ||
		peerErrors.MatchString(e.Kind) || e.Stack.Has("subprocess.py") ||
		!scan.IsEnd(e.Class) && wanting.MatchString(e.Text) && !own.MatchString(e.Text)
}

// wanting matches words for what is missing, and for the end of another process.
var wanting = lazy.New(`(?i)no such file|\bnot? (?:found|exist)|\bcannot find|\brefused\b|\b(?:exit|return)(?:ed)?[ _-]?(?:code|status)|\bnon-?zero\b|` +
	`\bcode -?\d|\bcommand\b|\b` + another + `[^.:;]{0,30}\b(?:died|exited|fail(?:s|ed|ure)|terminated|killed|crashed|unsuccessful|did not (?:succeed|finish|complete))\b|` +
	`\bfail(?:ed|ure)\b[^.:;]{0,30}\b` + another)

// another is what a program may call one that it started.
const another = `(?:sub-?process|process|worker|job|run|step|stage|task|trial|script|program|training)(?:es|s)?\b`

// own matches what is missing in the program's own installation, and the death of its own helper.
var own = lazy.New(`\.so(?:\.\d+)*: cannot open shared object file|\bDataLoader worker\b`)
