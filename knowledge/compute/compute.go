// Package compute answers questions that hold numbers: layouts, batches,
// hostlists, times, states. It reads the configuration out of the question and
// works the answer out; it never guesses one.
package compute

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Result is a computed answer and where its rule is told.
type Result struct {
	Text                string
	Skill, Section, URL string
	// Setting reports that numbers of this kind are often only the setting of a
	// question about something else.
	Setting bool
	asked   bool
}

// Asked reports whether the question asks for the value itself, and does not only
// give its numbers as the setting of something else.
func (r Result) Asked() bool { return r.asked }

// A question is what the answerers below look at.
type question struct {
	text string // as asked
	low  string // folded: lower case, ASCII punctuation
	lang lang.Lang
	cfg  config

	// What its answer says: that numbers do not go together, or that all is well.
	refused, well bool
}

// refuse is say of numbers that do not go together.
func (q *question) refuse(en, zh string, args ...any) string {
	q.refused = true
	return q.say(en, zh, args...)
}

// say is a text in the question's language.
func (q *question) say(en, zh string, args ...any) string {
	return fmt.Sprintf(lang.Text{EN: en, ZH: zh}.In(q.lang), args...)
}

// has reports whether the question holds one of the words.
func (q *question) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(q.low, w) })
}

// An answerer is one kind of computed answer: an empty text means that the
// question is not of its kind.
type answerer struct {
	section string
	skill   string
	url     string
	answer  func(*question) string
	use     use
}

// A use is what the numbers of a question are mostly there for.
type use int

const (
	result  use = iota // what is asked for
	setting            // often only the setting of a question about something else
	failure            // how a program ended: telling of trouble asks for nothing else
)

const (
	guide    = "slurm-user-guide"
	parallel = "parallel-layout"
	run      = "run-on-slurm"
	sbatch   = "https://slurm.schedmd.com/sbatch.html"
)

// answerers are tried in order.
var answerers = []answerer{
	{"Dependencies", guide, sbatch + "#OPT_dependency", dependency, result},
	{"Job arrays", guide, "https://slurm.schedmd.com/job_array.html", array, result},
	{"Node lists", guide, "https://slurm.schedmd.com/scontrol.html", hosts, result},
	{"sinfo", guide, "https://slurm.schedmd.com/sinfo.html", sinfo, result},
	{"Time limits", guide, sbatch + "#OPT_time", duration, result},
	{"Begin times", guide, sbatch + "#OPT_begin", begin, result},
	{"Signals", guide, sbatch + "#OPT_signal", signal, setting},
	{"Exit codes", guide, "https://slurm.schedmd.com/job_exit_code.html", exitCode, failure},
	{"CUDA_DEVICE_MAX_CONNECTIONS", run, "", connections, result},
	{"Hyper-threading", guide, sbatch + "#OPT_hint", threads, result},
	{"Ranks", parallel, "", rankPlace, result},
	{"Pipeline bubble", parallel, "", bubble, setting},
	{"Micro batches", parallel, "", microbatches, setting},
	{"Heads", parallel, "", heads, setting},
	{"Context parallel", parallel, "", contextParallel, setting},
	{"Vocabulary", parallel, "", vocabulary, setting},
	{"Experts", parallel, "", experts, setting},
	{"Layers", parallel, "", layers, setting},
	{"Layout", parallel, "", layout, setting},
	{"Tasks", guide, sbatch + "#OPT_ntasks-per-node", tasks, setting},
	{"World size", run, "", world, setting},
	{"Releases of Megatron-LM", run, "", releases, result},
	{"States", guide, "https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES", state, result},
}

// Answer computes an answer; ok is false where the question asks for nothing
// that can be computed.
func Answer(text string, l lang.Lang) (Result, bool) {
	low := fold(text)
	q := &question{text: text, low: low, lang: l, cfg: read(inPercent.ReplaceAllString(low, " ; "))}
	for _, a := range answerers {
		if t := a.answer(q); t != "" {
			return Result{Text: t, Skill: a.skill, Section: a.section, URL: a.url, Setting: a.use != result, asked: q.explains(a.use) || !q.told(t)}, true
		}
	}
	return Result{}, false
}
