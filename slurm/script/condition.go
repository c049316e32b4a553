package script

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// decide evaluates a condition if both of its sides are known. A number that Slurm sets
// is known from the directives.
func (r *reader) decide(cond []*syntax.Stmt, f frame) (yes, known bool) {
	if len(cond) != 1 || cond[0].Negated || cond[0].Background {
		return false, false
	}
	quiet := f
	var sink []Expansion
	quiet.expansions = &sink
	switch c := cond[0].Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false, false
		}
		if n := c.Args[0].Lit(); n != "[" && n != "test" {
			if n == "true" || n == "false" {
				return n == "true", true
			}
			return false, false
		}
		var vs []Value
		for _, w := range c.Args[1:] {
			vs = append(vs, joinWords(r.word(w, quiet)))
		}
		if len(vs) > 0 && vs[len(vs)-1].String() == "]" {
			vs = vs[:len(vs)-1]
		}
		if len(vs) == 3 {
			return r.compare(vs[0], vs[1].String(), vs[2])
		}
	case *syntax.TestClause:
		if b, ok := c.X.(*syntax.BinaryTest); ok {
			x, okx := b.X.(*syntax.Word)
			y, oky := b.Y.(*syntax.Word)
			if okx && oky {
				return r.compare(joinWords(r.word(x, quiet)), b.Op.String(), joinWords(r.word(y, quiet)))
			}
		}
	case *syntax.ArithmCmd:
		if b, ok := c.X.(*syntax.BinaryArithm); ok {
			x, y := r.arith(b.X, quiet), r.arith(b.Y, quiet)
			return r.compareSpans(x, b.Op.String(), y)
		}
	}
	return false, false
}

func (r *reader) compare(x Value, op string, y Value) (yes, known bool) {
	switch op {
	case "=", "==", "!=":
		a, oka := r.job.text(x)
		b, okb := r.job.text(y)
		if !oka || !okb || strings.ContainsAny(b, "*?[") {
			return false, false
		}
		return (a == b) == (op != "!="), true
	}
	return r.compareSpans(&Expr{Leaf: x}, op, &Expr{Leaf: y})
}

func (r *reader) compareSpans(x *Expr, op string, y *Expr) (yes, known bool) {
	a, oka := x.Span(r.job.span)
	b, okb := y.Span(r.job.span)
	if !oka || !okb || a.Lo != a.Hi || b.Lo != b.Hi {
		return false, false
	}
	switch op {
	case "-eq", "==":
		return a.Lo == b.Lo, true
	case "-ne", "!=":
		return a.Lo != b.Lo, true
	case "-gt", ">":
		return a.Lo > b.Lo, true
	case "-ge", ">=":
		return a.Lo >= b.Lo, true
	case "-lt", "<":
		return a.Lo < b.Lo, true
	case "-le", "<=":
		return a.Lo <= b.Lo, true
	}
	return false, false
}

// test records [[ … ]] as a command.
func (r *reader) test(c *syntax.TestClause, f frame) {
	var exps []Expansion
	f.expansions = &exps
	line := f.text.at(c.Left.Offset())
	cmd := r.command(f, line, f.text.at(c.Right.Offset()))
	cmd.Args = []Arg{{Value: textValue("[[", line), Line: line}}
	var walk func(x syntax.TestExpr)
	walk = func(x syntax.TestExpr) {
		switch x := x.(type) {
		case *syntax.Word:
			cmd.Args = append(cmd.Args, Arg{Value: joinWords(r.word(x, f)), Line: line})
		case *syntax.UnaryTest:
			walk(x.X)
		case *syntax.ParenTest:
			walk(x.X)
		case *syntax.BinaryTest:
			walk(x.X)
			cmd.Args = append(cmd.Args, Arg{Value: textValue(x.Op.String(), line), Line: line})
			walk(x.Y)
		}
	}
	walk(c.X)
	cmd.Expansions = exps
	for i := range cmd.Expansions {
		cmd.Expansions[i].Guarded = true
	}
	r.record(cmd)
}

// text returns v as text. Variables that Slurm sets have the values that follow from
// the job's options. ok is false if a part of v is unknown.
func (j *Job) text(v Value) (string, bool) {
	if s, ok := v.Literal(); ok {
		return s, true
	}
	if n, ok := j.Int(v); ok {
		return strconv.Itoa(n), true
	}
	return "", false
}
