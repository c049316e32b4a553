package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// endedFromOutside returns the line in which a process reports that it was told to end or that its
// terminal is gone, if the log ends with it. Somebody outside ended the job if nothing had failed: a launcher that a signal
// ended leaves with 1, which srun reports after it.
func (j *job) endedFromOutside(left []*scan.Event) *scan.Event {
	return firstEvent(left, func(e *scan.Event) bool {
		return !e.Agent && signalled.MatchString(e.Text) && j.files[e.File].Ran.Sentences-e.Ran.Sentences <= scan.Farewell &&
			!slices.ContainsFunc(left, func(o *scan.Event) bool {
				return o.Weight > pattern.Symptom && (o.File != e.File || o.Off < e.Off || o.Exit != 1)
			})
	})
}

var signalled = lazy.New(`(?i)\b(?:received|got|caught)\b.{0,12}\b(?:SIGTERM|SIGHUP|SIGINT|signal:? (?:15|1|2)|(?:15|1|2) death signal)\b|` +
	`\bSIG(?:TERM|HUP) (?:\(@0x[0-9a-f]+\) )?received\b|` +
	"`Termination signal` is detected by the operating system" + // glog and Paddle
	`|^Terminated$`) // a shell, about the program that it waited for

// terminated returns a launcher's report on the only process that SIGTERM ended, if the launcher says neither that it told a
// process to end nor that it was told to end itself: something else ended the process, and the others lost it.
func terminated(live, all []*scan.Event) *scan.Event {
	var only *scan.Event
	for _, e := range live {
		if e.Agent && e.Exit == -15 && e.Rank >= 0 && len(e.Tasks) == 0 {
			if only != nil && only.Rank != e.Rank {
				return nil
			}
			only = cmp.Or(only, e)
		}
	}
	if only == nil || slices.ContainsFunc(all, func(e *scan.Event) bool {
		return e.File == only.File && (strings.Contains(e.Text, " closing signal ") || scan.DeathSignal.MatchString(e.Text))
	}) {
		return nil
	}
	return only
}

// lastSignal returns the line in which a process reports that it was told to end, if a log ends with it, and neither that
// log says that the work was done before, nor does another one end well: a script ends its servers when it is done.
func (j *job) lastSignal() *scan.Event {
	if j.given.slurmSays() || j.finished() {
		return nil
	}
	var last *scan.Event
	for i, f := range j.files {
		m := lastLine(f)
		if s, ok := f.LastWithoutEnd(signalled.MatchString); ok {
			m = s
		}
		_, text := logline.CutTag(m.Text)
		switch told := signalled.MatchString(text) && pattern.FormOf(text) < pattern.Inert; {
		case j.old[i] || m.Text == "":
		case f.SaidDone(), told && f.DoneBeforeSignal(text), !told && f.Ending().Said:
			return nil
		case told && (last == nil || m.At.Before(last.Before)):
			last = eventOf(i, m)
			last.Class, last.Rank, last.Node = outcome.SlurmCancelled, j.rankOf(i, last.Tag), j.fileNode[i]
		}
	}
	return last
}

// saysOver reports whether the log that was written last ends with a line after which its program writes no more: that it
// failed, that it leaves with a status other than zero, or a shell's prompt.
func (j *job) saysOver() bool {
	silent := j.stalled()
	newest := -1
	for i, f := range j.src.Logs {
		if len(j.files[i].Last) > 0 && (newest < 0 || f.Modified.After(j.src.Logs[newest].Modified)) {
			newest = i
		}
	}
	return newest >= 0 && j.files[newest].SaysOver(silent) || slices.ContainsFunc(j.files, (*scan.Facts).AtPrompt)
}
