package script

import (
	"slices"
	"strings"
)

// A Choice is a value that Settle took where the environment or a branch
// decides when the script runs.
type Choice struct {
	Name  string
	Line  int
	Taken Value
	// Default is true for the default of an expansion such as ${TP:-2}, false
	// for one of several values that branches leave.
	Default bool
}

// Settle reads a script as Read does, for a planner, who wants one answer: a
// variable that the file does not set has its default, and one that a branch
// changes has the value it has without that branch, if that is not empty. What
// was taken is among the job's Choices.
func Settle(name string, src []byte) *Script { return (&reader{settles: true}).file(name, src) }

// settled is the one of two values of a variable that is taken; either may be
// nil, for a variable that is not set that way.
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

// blank reports whether v holds nothing.
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

// here is where sh stands, as pwd prints it; "." where it has not moved.
func (sh *Shell) here(line int) Value {
	if len(sh.Dir) == 0 {
		return textValue(".", line)
	}
	return sh.Dir
}

// Training is the start that the job is about: the last whose program is one of
// the caller's own, else the last that a launcher starts, else the last; nil where
// nothing is started.
func (j *Job) Training(own func(program string) bool) *Start {
	var best *Start
	score := func(s *Start) int {
		n := 0
		if own(s.Program.Text()) {
			n += 4
		}
		if s.Launcher.Forks() {
			n += 2
		}
		if s.Launcher != Wrapper {
			n++
		}
		if s.Trap || s.Subst {
			n -= 8
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

// Filled is v as text, with what Slurm sets filled in from the job's options;
// ok is false, and unknown parts are as written, where the file does not show
// all of it.
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
