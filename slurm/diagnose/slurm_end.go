package diagnose

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// slurmEnd judges a job that Slurm ended: time limit, preemption, node failure, scancel. A step that is
// cancelled because a task failed is not a cause.
func (j *job) slurmEnd(live []*scan.Event) (verdict, bool) {
	stuck := j.stuck(live)
	var best *scan.Event
	for _, e := range live {
		if !scan.IsEnd(e.Class) || e.Class == outcome.SlurmCancelled && j.failedBefore(e, live) || e.Class == outcome.SlurmTimeLimit && stuck ||
			e.StepOnly() && (j.slurmCompleted() && (j.finished() || j.files[e.File].DoneBefore(e)) || j.endedByScript(e)) ||
			j.after(e) == wentOn && (e.Kind != "" || e.Class != outcome.SlurmNodeFail) {
			continue
		}
		if best != nil && best.Class == outcome.SlurmNodeFail && e.Class == outcome.SlurmNodeFail {
			if names := scan.FailureOn.MatchString(e.Text); names != scan.FailureOn.MatchString(best.Text) {
				if names { // the line that names the node
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
		// A person who watches the loss cancels a diverged run.
		if v, ok := j.badNumbers(live); ok {
			return v, true
		}
	}
	if best != nil && j.given.state() == slurm.Cancelled && requeued.MatchString(best.Text) {
		// It went back into the queue, and somebody cancelled it there.
		return j.endedAfterLastLine(outcome.SlurmCancelled, "slurm's state"), true
	}
	if best != nil {
		j.placeInterrupt(best)
		v := verdict{class: best.Class, event: best, noneAtFault: severalSay(best.Class, live), why: "slurm ended it"}
		if v.class == outcome.SlurmCancelled && j.given.Preempted { // in a grace time Slurm ends a job as scancel does
			v.class, v.why = outcome.SlurmPreempted, "slurm's state"
		}
		return v, true
	}
	byState := map[slurm.State]string{
		slurm.Timeout:     outcome.SlurmTimeLimit,
		slurm.Deadline:    outcome.SlurmTimeLimit,
		slurm.Preempted:   outcome.SlurmPreempted,
		slurm.Requeued:    outcome.SlurmPreempted,
		slurm.NodeFail:    outcome.SlurmNodeFail,
		slurm.BootFail:    outcome.SlurmNodeFail,
		slurm.OutOfMemory: outcome.HostOOM,
	}
	if class := byState[j.given.state()]; class != "" && (class != outcome.SlurmTimeLimit || !stuck) {
		return verdict{class: class, event: j.account, why: "slurm's state"}, true
	}
	if j.given.Preempted && !j.finished() {
		return j.endedAfterLastLine(outcome.SlurmPreempted, "slurm's state"), true
	}
	if j.given.OOMKilled {
		return verdict{class: outcome.HostOOM, why: "slurm's state"}, true
	}
	return verdict{}, false
}

// stuck reports whether a collective timed out, or a transfer between nodes failed, and the job did nothing more.
// The time limit then ended a job that had failed: PyTorch's watchdog may hang while it ends its process, and
// without a watchdog the others wait for the transfer.
func (j *job) stuck(live []*scan.Event) bool {
	return slices.ContainsFunc(live, func(e *scan.Event) bool {
		return (e.Class == outcome.NCCLTimeout && e.Weight >= pattern.TimedOut && e.Weight < pattern.Death || transferFailed.MatchString(e.Text)) &&
			e.Form != pattern.Bare && j.progressSince(e) == 0 && j.after(e) == noSign
	})
}

// transferFailed matches NCCL's warning that a transfer over InfiniBand or RoCE failed, which it does not repeat.
var transferFailed = lazy.On("Got completion", `NCCL WARN NET/IB ?: Got completion (?:from peer \S+ )?with (?:error|status=?) ?\d`)

// requeued matches the line with which Slurm ends a run in order to put the job back into the queue.
var requeued = lazy.New(`(?i)due to job requeue`)

// putBack returns which of the two a preempted or requeued job is, by Slurm's state or by the line with
// which Slurm ended it; "" if neither tells.
func (j *job) putBack(v verdict) slurm.State {
	line := strings.ToLower(v.eventOrEmpty().Text)
	switch {
	case j.given.Preempted, strings.Contains(line, "preempt"):
		return slurm.Preempted
	case j.given.state() == slurm.Requeued, strings.Contains(line, "requeue"):
		return slurm.Requeued
	}
	return ""
}

// placeInterrupt finds the rank of a KeyboardInterrupt whose line names none: the only one that its launcher reports to have ended by
// SIGINT. Python ends itself by that signal after the exception.
func (j *job) placeInterrupt(e *scan.Event) {
	if e.Kind != scan.Interrupt || e.Rank >= 0 {
		return
	}
	var by []scan.ElasticEntry
	for _, f := range j.files {
		for _, entry := range f.Elastic {
			if entry.Exit == -2 && entry.Rank >= 0 {
				by = append(by, entry)
			}
		}
	}
	if len(by) == 1 && (e.Node == "" || e.Node == by[0].Host) {
		e.Rank, e.Node = by[0].Rank, by[0].Host
	}
}

// endedByScript reports whether a step was only ended, without a reason of Slurm's, soon after the run had said that all its
// work was done, in the same file or by the dates, and nothing had failed: a script ends a program that it started beside the run,
// and not a second run that does not say so.
func (j *job) endedByScript(e *scan.Event) bool {
	in := e.File
	if j.files[in].Finished == nil {
		in = slices.IndexFunc(j.files, func(f *scan.Facts) bool { return f.Finished != nil })
	}
	if in < 0 || j.given.state() != "" || j.given.ExitCode != "" || strings.Contains(e.Text, "DUE TO") || !j.endsWell() {
		return false
	}
	done, at := j.files[in].Finished, e.When()
	another := slices.ContainsFunc(j.files, func(f *scan.Facts) bool { return f.Finished == nil && len(f.Progress) > 0 })
	if in == e.File && done.Off > e.Off || in != e.File && another || done.At.IsZero() || at.IsZero() || at.Before(done.At) || at.Sub(done.At) > skew {
		return false
	}
	return !slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		// What srun says of the step.
		ended := o.Agent && o.Weight <= pattern.Death && !scan.IsEnd(o.Class) && (o.Exit == 0 || o.Exit == -9 || o.Exit == -15)
		return o != e && !ended && (o.File != in || o.Off > done.Off)
	})
}
