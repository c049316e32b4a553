package script

import (
	"slices"
	"strings"
)

// A Choice is the value that Settle chose for a variable which the environment or a
// branch decides when the script runs.
type Choice struct {
	Name  string
	Line  int
	Taken Value
	// Default is true for the default of an expansion such as ${TP:-2}, and false for
	// one of several values that branches assign.
	Default bool
	// Dropped is true for an environment variable that only a branch which Settle does not take sets.
	Dropped bool
}

// Settle reads a script like Read, but chooses one value for each variable, as callers
// that plan a job need. A variable that the file does not set has its default. A
// variable that a branch changes has its value from before the branch, unless that is
// empty. Of several branches, only the first that goes on is read. The job's Choices list the chosen values.
func Settle(name string, src []byte) *Script { return (&reader{settling: true}).file(name, src) }

// settled chooses one of two states of a variable, preferring the first that is not
// blank. Either may be nil, for a variable that is unset.
func (r *reader) settled(name string, first, second *Var) *Var {
	v := first
	if v.blank() {
		v = second
	}
	if v.blank() {
		v = first
	}
	if v == nil {
		v = &Var{Empty: true}
	}
	taken := v.Value
	if v.Array {
		taken = joinWords(v.Elems)
	}
	r.choose(Choice{Name: name, Line: v.Line, Taken: taken})
	return v
}

func (r *reader) choose(c Choice) {
	if isPositional(c.Name) {
		c.Name = "$" + c.Name
	}
	same := func(o Choice) bool { return o.Name == c.Name && o.Line == c.Line }
	if !slices.ContainsFunc(r.job.Choices, same) {
		r.job.Choices = append(r.job.Choices, c)
	}
}

// blank reports whether v is unset or has no text.
func (v *Var) blank() bool {
	switch {
	case v == nil || v.Empty:
		return true
	case v.Array:
		return len(v.Elems) == 0
	}
	s, ok := v.Value.Literal()
	return ok && strings.TrimSpace(s) == ""
}

// workdir returns the working directory of sh, or "." if sh has not changed it.
func (sh *Shell) workdir(line int) Value {
	if len(sh.Dir) == 0 {
		return textValue(".", line)
	}
	return sh.Dir
}

// Training returns the start of the job's main program: the last one whose program own
// accepts, else the last one by a launcher, else the last one of a known program, a step
// before others. It returns nil if the job
// starts nothing.
func (j *Job) Training(own func(program string) bool) *Start {
	var best *Start
	score := func(s *Start) int {
		n := 0
		if own(s.Program.Text()) {
			n += 8
		}
		if s.Launcher.Forks() {
			n += 4
		}
		if s.Launcher != Wrapper {
			n += 2
		}
		if s.Step != nil {
			n++
		}
		if s.Trap || s.Subst {
			n -= 16
		}
		return n
	}
	for _, s := range j.Starts {
		if best == nil || score(s) >= score(best) {
			best = s
		}
	}
	return best
}

// Filled returns v as text. Variables that Slurm sets have the values that follow from
// the job's options. If other parts are unknown, they appear as written and ok is false.
func (j *Job) Filled(v Value) (s string, ok bool) {
	var b strings.Builder
	ok = true
	for _, p := range v {
		if p.Ref == nil {
			b.WriteString(p.Text)
			continue
		}
		if t, shown := j.text(Value{p}); shown {
			b.WriteString(t)
			continue
		}
		if span, shown := p.Ref.Expr.Span(j.span); p.Ref.Kind == Sum && shown && span.Lo == span.Hi {
			b.WriteString(textOf(span.Lo))
			continue
		}
		b.WriteString(p.Ref.Source)
		ok = false
	}
	return b.String(), ok
}
