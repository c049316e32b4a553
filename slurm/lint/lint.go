// Package lint finds faults in batch and launch scripts: lines that make Slurm reject
// the job, or that make the training fail, hang or do something else than the author
// intended. It uses the reading of slurm/script instead of searching the text. Facts
// that a script does not show never count as faults.
//
// Check returns the findings. Fix corrects the faults that have only one correction.
package lint

import (
	"cmp"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// A Rule describes one kind of fault.
type Rule struct {
	// ID is a stable name, such as "missing-srun".
	ID       string
	Severity rules.Severity
	// Why says what goes wrong. Fix is the smallest change that corrects it.
	Why, Fix lang.Text
	check    func(c *checker)
}

// A Finding is one fault in a script.
type Finding struct {
	Rule     string         `json:"rule"`
	Line     int            `json:"line"`
	Severity rules.Severity `json:"severity"`
	Message  string         `json:"message"`
	Fix      string         `json:"fix"`
}

// Rules returns all rules, grouped by topic.
func Rules() []Rule {
	return slices.Concat(
		launchRules,
		stepRules,
		rendezvousRules,
		valueRules,
		syntaxRules,
		lookalikeRules,
		directiveRules,
		logRules,
		endRules,
		containerRules,
		environmentRules,
		megatronRules,
	)
}

// Check finds the faults in a script, with messages in English.
func Check(name string, src []byte) []Finding { return CheckIn(name, src, lang.EN) }

// CheckIn finds the faults in a script, sorted by line, with messages in l.
func CheckIn(name string, src []byte, l lang.Lang) []Finding {
	found, _ := Examine(name, src, l)
	return found
}

// Examine is CheckIn that also reports whether the script launches anything that the
// rules on launches judge: a step, a training, a container, or another job.
func Examine(name string, src []byte, l lang.Lang) (_ []Finding, launches bool) {
	s := script.Read(name, src)
	table := Rules()
	var out []Finding
	for _, j := range s.Jobs {
		launches = launches || len(j.Starts)+len(j.Steps)+len(j.Allocations)+len(j.Containers)+len(j.Submissions) > 0
		c := &checker{job: j, lang: l, starts: trainings(j)}
		for i := range table {
			c.rule = &table[i]
			table[i].check(c)
		}
		out = append(out, c.out...)
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return slices.CompactFunc(out, func(a, b Finding) bool { return a.Line == b.Line && a.Rule == b.Rule }), launches
}

// A checker applies the rules to one job.
type checker struct {
	job    *script.Job
	starts []*script.Start // starts of trainings
	lang   lang.Lang
	rule   *Rule // the current rule
	out    []Finding
}

// report adds a finding of the current rule. what is the faulty part of the script, as
// written, or "".
func (c *checker) report(line int, what string) { c.reportWithFix(line, what, lang.Text{}) }

// reportWithFix is report with a fix that replaces the rule's own. An empty fix keeps
// the rule's.
func (c *checker) reportWithFix(line int, what string, fix lang.Text) {
	if fix.EN == "" {
		fix = c.rule.Fix
	}
	msg := c.rule.Why.In(c.lang)
	if what != "" {
		msg = about.With(clip(what), msg).In(c.lang)
	}
	c.out = append(c.out, Finding{c.rule.ID, max(line, 1), c.rule.Severity, msg, fix.In(c.lang)})
}

// about puts what a sentence is about before the sentence.
var about = lang.Text{EN: "%s: %s", ZH: "%s：%s"}

// reportThat is report with a text that replaces the rule's own.
func (c *checker) reportThat(line int, what string, why lang.Text) {
	c.report(line, "")
	c.out[len(c.out)-1].Message = about.With(clip(what), why).In(c.lang)
}

// warnThat is reportThat for a case that does not stop the job, with severity warning.
func (c *checker) warnThat(line int, what string, why lang.Text) {
	c.reportThat(line, what, why)
	c.out[len(c.out)-1].Severity = rules.Warning
}

// found reports whether a rule already has a finding in this job.
func (c *checker) found(id string) bool {
	return slices.ContainsFunc(c.out, func(f Finding) bool { return f.Rule == id })
}

// clip shortens a quotation of the script and puts it on one line.
func clip(s string) string {
	const most = 120
	out := make([]rune, 0, most)
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r >= 0xF0000 {
			r = ' '
		}
		if out = append(out, r); len(out) >= most {
			return string(out) + "…"
		}
	}
	return string(out)
}

// warn is report for a case that does not stop the job, with severity warning.
func (c *checker) warn(line int, what string) {
	c.report(line, what)
	c.out[len(c.out)-1].Severity = rules.Warning
}
