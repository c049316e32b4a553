// Package compute answers questions with numbers: about layouts, batches, hostlists,
// times and states. It parses the configuration in the question and computes the answer.
// It never guesses.
package compute

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Result is a computed answer and the source of its rule.
type Result struct {
	Text                string
	Skill, Section, URL string
	// Setting reports that numbers of this kind often only describe the situation in a
	// question about something else.
	Setting bool
	asked   bool
}

// Asked reports whether the question asks for the value itself. It is false where the
// numbers only describe the situation.
func (r Result) Asked() bool { return r.asked }

// A question is the input of the answerers below.
type question struct {
	text string // as asked
	low  string // folded: lower case, ASCII punctuation
	lang lang.Lang
	cfg  config

	// Answerers set invalid where the numbers do not fit together, and success where an
	// exit code means success. They set refused where the answer says already that Megatron refuses.
	invalid, success, refused bool
}

// sayInvalid is say for numbers that do not fit together.
func (q *question) sayInvalid(en, zh string, args ...any) string {
	q.invalid = true
	return q.say(en, zh, args...)
}

// say formats a text in the question's language.
func (q *question) say(en, zh string, args ...any) string {
	return fmt.Sprintf(lang.Text{EN: en, ZH: zh}.In(q.lang), args...)
}

func (q *question) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(q.low, w) })
}

// An answerer computes one kind of answer. An empty text means that the question is not
// of this kind.
type answerer struct {
	section string
	skill   string
	url     string
	answer  func(*question) string
	purpose purpose
}

// A purpose is the usual role of the numbers in a question.
type purpose int

const (
	result  purpose = iota // the question asks for a value computed from them
	setting                // they often only describe the situation
	choice                 // the question names a model and asks for a layout: "which is best" asks for it too
	failure                // they say how a program ended; the question asks what they mean
	command                // the answer is the command that the question asks for: "how do I" asks for it too
	meaning                // there are none: the question asks what a name such as BOOT_FAIL means
)

const (
	guide    = "slurm-user-guide"
	parallel = "parallel-layout"
	run      = "run-on-slurm"
	sbatch   = "https://slurm.schedmd.com/sbatch.html"
)

// answerers are tried in this order.
var answerers = []answerer{
	{"Cancel all jobs but some", guide, "https://slurm.schedmd.com/scancel.html", keep, command},
	{"Dependencies", guide, sbatch + "#OPT_dependency", dependency, command},
	{"Job arrays", guide, "https://slurm.schedmd.com/job_array.html", array, result},
	{"Node lists", guide, "https://slurm.schedmd.com/scontrol.html", hosts, result},
	{"sinfo", guide, "https://slurm.schedmd.com/sinfo.html", sinfo, result},
	{"Time limits", guide, sbatch + "#OPT_time", duration, result},
	{"Begin times", guide, sbatch + "#OPT_begin", begin, result},
	{"Signals", guide, sbatch + "#OPT_signal", signal, setting},
	{"Exit codes", guide, "https://slurm.schedmd.com/job_exit_code.html", exitCode, failure},
	{"CUDA_DEVICE_MAX_CONNECTIONS", run, "", connections, result},
	{"Hyper-threading", guide, sbatch + "#OPT_hint", threads, result},
	{"Layout of a model", parallel, "", modelLayout, choice},
	{"Ranks", parallel, "", globalRank, result},
	{"Ranks", parallel, "", ranksOfNode, result},
	{"Ranks", parallel, "", rankPlace, result},
	{"Pipeline bubble", parallel, "", bubble, setting},
	{"Micro batches", parallel, "", microbatches, setting},
	{"Heads", parallel, "", heads, setting},
	{"Context parallel", parallel, "", contextParallel, setting},
	{"Vocabulary", parallel, "", vocabulary, setting},
	{"Experts", parallel, "", experts, setting},
	{"Layers", parallel, "", layers, setting},
	{"Layout", parallel, "", layout, setting},
	{"Layout", parallel, "", verdict, setting},
	{"Tasks", guide, sbatch + "#OPT_ntasks-per-node", tasks, setting},
	{"World size", run, "", world, setting},
	{"Releases of Megatron-LM", run, "", releases, result},
	{"States", guide, "https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES", state, meaning},
}

// Answer computes an answer. ok is false where the question asks for nothing that can be
// computed.
func Answer(text string, l lang.Lang) (Result, bool) {
	low := fold(text)
	q := &question{text: text, low: low, lang: l, cfg: readConfig(inPercent.ReplaceAllString(low, " ; "))}
	for _, a := range answerers {
		if t := a.answer(q); t != "" {
			if a.skill == parallel && a.purpose != choice {
				t = q.judged(t)
			}
			asked := a.purpose == choice || q.explainsProblem(a.purpose) || !q.describesProblem(a.purpose)
			return Result{Text: t, Skill: a.skill, Section: a.section, URL: a.url, Setting: a.purpose == setting || a.purpose == failure, asked: asked}, true
		}
	}
	return Result{}, false
}
