// Package lint judges somebody's batch or launch script: which lines make
// Slurm refuse the job, or make the training fail, hang or do another thing
// than what is written. It reads the script through slurm/script and never
// greps it; what a script does not show is no fault.
//
// Check gives the findings, Fix mends what can be mended without thinking.
package lint

import (
	"cmp"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// A Rule is one row of the table of faults.
type Rule struct {
	// ID is stable, such as "missing-srun".
	ID       string
	Severity rules.Severity
	// Why says what goes wrong, Fix the smallest change that mends it.
	Why, Fix lang.Text
	check    func(c *checker)
}

// A Finding is one fault of a script.
type Finding struct {
	Rule     string         `json:"rule"`
	Line     int            `json:"line"`
	Severity rules.Severity `json:"severity"`
	Message  string         `json:"message"`
	Fix      string         `json:"fix"`
}

// Rules is the table of faults, by topic.
func Rules() []Rule {
	return slices.Concat(
		launchRules,
		stepRules,
		rendezvousRules,
		valueRules,
		syntaxRules,
		directiveRules,
		logRules,
		endRules,
		containerRules,
		environmentRules,
		megatronRules,
	)
}

// Check finds the faults of a script, told in English.
func Check(name string, src []byte) []Finding { return CheckIn(name, src, lang.EN) }

// CheckIn finds the faults of a script, told in l, by line.
func CheckIn(name string, src []byte, l lang.Lang) []Finding {
	s := script.Read(name, src)
	table := Rules()
	var out []Finding
	for _, j := range s.Jobs {
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
	return slices.CompactFunc(out, func(a, b Finding) bool { return a.Line == b.Line && a.Rule == b.Rule })
}

// A checker is one job under one rule.
type checker struct {
	job    *script.Job
	starts []*script.Start // of trainings
	lang   lang.Lang
	rule   *Rule
	out    []Finding
}

// report adds a finding; what is the part of the script that is at fault, as
// written, or "".
func (c *checker) report(line int, what string) { c.say(line, what, lang.Text{}) }

// say is report with a fix for this case.
func (c *checker) say(line int, what string, fix lang.Text) {
	if fix.EN == "" {
		fix = c.rule.Fix
	}
	msg := c.rule.Why.In(c.lang)
	if what != "" {
		msg = clip(what) + ": " + msg
	}
	c.out = append(c.out, Finding{c.rule.ID, max(line, 1), c.rule.Severity, msg, fix.In(c.lang)})
}

// found reports whether a rule has found something in this job.
func (c *checker) found(id string) bool {
	return slices.ContainsFunc(c.out, func(f Finding) bool { return f.Rule == id })
}

// clip keeps a quotation of the script short and on one line.
func clip(s string) string {
	const most = 80
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

// warn is report for a case of the rule that does not stop the job.
func (c *checker) warn(line int, what string) {
	c.report(line, what)
	c.out[len(c.out)-1].Severity = rules.Warning
}
