// Package compute answers questions that hold numbers: layouts, batches,
// hostlists, times, states. It reads the configuration out of the question and
// works the answer out; it never guesses one.
package compute

import (
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Result is a computed answer and where its rule is told.
type Result struct {
	Text                string
	Skill, Section, URL string
	// Told reports that the question also speaks of a failure, a way or a reason,
	// which the numbers do not answer.
	Told bool
	// Wanted reports that the question says that it wants the value.
	Wanted bool
	// Measured reports that the question gives what was measured, a rate or a time,
	// so that the value is a matter of arithmetic and foretells nothing.
	Measured bool
}

// Asked reports whether the value itself is asked for. Where it is not, what tells
// of the failure, the way or the reason goes before it.
func (r Result) Asked() bool { return !r.Told || r.Wanted }

// A question is what the answerers below look at.
type question struct {
	text string // as asked
	low  string // folded: lower case, ASCII punctuation
	lang lang.Lang
	cfg  Config
}

// say is a text in the question's language.
func (q *question) say(en, zh string, args ...any) string {
	return fmt.Sprintf(lang.Text{EN: en, ZH: zh}.In(q.lang), args...)
}

// has reports whether the question holds one of the words.
func (q *question) has(words ...string) bool {
	for _, w := range words {
		if strings.Contains(q.low, w) {
			return true
		}
	}
	return false
}

// An answerer is one kind of computed answer: an empty text means that the
// question is not of its kind.
type answerer struct {
	section string
	skill   string
	url     string
	answer  func(*question) string
}

const (
	guide    = "slurm-user-guide"
	parallel = "parallel-layout"
	run      = "run-on-slurm"
	sbatch   = "https://slurm.schedmd.com/sbatch.html"
)

// answerers are tried in order.
var answerers = []answerer{
	{"Dependencies", guide, sbatch + "#OPT_dependency", dependency},
	{"Job arrays", guide, "https://slurm.schedmd.com/job_array.html", array},
	{"Time-outs", "diagnose-failures", "", milliseconds},
	{"Ports", run, "", port},
	{"Bandwidth", "diagnose-failures", "", bandwidth},
	{"Node lists", guide, "https://slurm.schedmd.com/scontrol.html", hosts},
	{"sinfo", guide, "https://slurm.schedmd.com/sinfo.html", sinfo},
	{"Accounting", guide, "https://slurm.schedmd.com/sacct.html", cpuSeconds},
	{"Length of a run", parallel, "", lengths},
	{"Time limits", guide, sbatch + "#OPT_time", duration},
	{"Begin times", guide, sbatch + "#OPT_begin", begin},
	{"Signals", guide, sbatch + "#OPT_signal", signal},
	{"Exit codes", guide, "https://slurm.schedmd.com/job_exit_code.html", exitCode},
	{"CUDA_DEVICE_MAX_CONNECTIONS", run, "", connections},
	{"Tasks, CPUs and memory", guide, sbatch + "#OPT_cpus-per-task", demand},
	{"Hyper-threading", guide, sbatch + "#OPT_hint", threads},
	{"Order of ranks", parallel, "", rankGroups},
	{"Ranks", parallel, "", rankPlace},
	{"Pipeline bubble", parallel, "", bubble},
	{"GPU hours", guide, "", gpuHours},
	{"Batch size ramp-up", parallel, "", rampup},
	{"Model size", parallel, "", model},
	{"Tokens and steps", parallel, "", tokens},
	{"Memory", parallel, "", memory},
	{"Micro batches", parallel, "", microbatches},
	{"Head size", parallel, "", headSize},
	{"Heads", parallel, "", heads},
	{"Context parallel", parallel, "", contextParallel},
	{"Vocabulary", parallel, "", vocabulary},
	{"Experts", parallel, "", experts},
	{"Layers", parallel, "", layers},
	{"Layout", parallel, "", layout},
	{"World size", run, "", world},
	{"States", guide, "https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES", state},
}

// Answer computes an answer; ok is false where the question asks for nothing
// that can be computed.
func Answer(text string, l lang.Lang) (Result, bool) {
	low := fold(text)
	q := &question{text: text, low: low, lang: l, cfg: read(low)}
	for _, a := range answerers {
		if t := a.answer(q); t != "" {
			told := q.told(t)
			return Result{Text: q.denied(t), Skill: a.skill, Section: a.section, URL: a.url, Told: told, Wanted: q.wants(told), Measured: q.measured(a.section)}, true
		}
	}
	return Result{}, false
}
