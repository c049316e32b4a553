package script

import (
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// An Expr is an arithmetic expression whose operands may be unknown.
type Expr struct {
	Op   string // "" for a leaf
	X, Y *Expr
	Leaf Value
}

func (e *Expr) each(f func(Value)) {
	if e == nil {
		return
	}
	if e.Op == "" {
		f(e.Leaf)
		return
	}
	e.X.each(f)
	e.Y.each(f)
}

// A Span is the range of values that an expression can have, from Lo to Hi inclusive.
type Span struct{ Lo, Hi int64 }

// Span returns the range of e. leaf returns the range of operands that are not numbers.
func (e *Expr) Span(leaf func(Value) (Span, bool)) (Span, bool) {
	if e == nil {
		return Span{}, false
	}
	if e.Op == "" {
		if s, ok := e.Leaf.Literal(); ok {
			n, err := strconv.ParseInt(s, 0, 64)
			if err != nil {
				n, err = strconv.ParseInt(s, 10, 64)
			}
			return Span{n, n}, err == nil
		}
		if r := e.Leaf.Only(); r != nil && r.Kind == Sum {
			return r.Expr.Span(leaf)
		}
		return leaf(e.Leaf)
	}
	x, ok := e.X.Span(leaf)
	if !ok {
		if e.Op == "%" {
			if y, ok := e.Y.Span(leaf); ok && y.Lo == y.Hi && y.Lo > 0 {
				return Span{0, y.Lo - 1}, true
			}
		}
		return Span{}, false
	}
	y, ok := e.Y.Span(leaf)
	if !ok {
		return Span{}, false
	}
	return apply(e.Op, x, y)
}

func apply(op string, x, y Span) (Span, bool) {
	switch op {
	case "+":
		return Span{x.Lo + y.Lo, x.Hi + y.Hi}, true
	case "-":
		return Span{x.Lo - y.Hi, x.Hi - y.Lo}, true
	case "*":
		if x.Lo < 0 || y.Lo < 0 {
			return Span{}, false
		}
		return Span{x.Lo * y.Lo, x.Hi * y.Hi}, true
	case "/":
		if y.Lo <= 0 || x.Lo < 0 {
			return Span{}, false
		}
		return Span{x.Lo / y.Hi, x.Hi / y.Lo}, true
	case "%":
		if y.Lo <= 0 || x.Lo < 0 {
			return Span{}, false
		}
		if x.Lo == x.Hi && y.Lo == y.Hi {
			return Span{x.Lo % y.Lo, x.Lo % y.Lo}, true
		}
		return Span{0, min(x.Hi, y.Hi-1)}, true
	}
	return Span{}, false
}

// Int returns the value of e; ok is false if an operand is not a number.
func (e *Expr) Int() (int64, bool) {
	s, ok := e.Span(func(Value) (Span, bool) { return Span{}, false })
	return s.Lo, ok && s.Lo == s.Hi
}

// arith converts a syntax tree of arithmetic, and evaluates the assignments in it.
func (r *reader) arith(x syntax.ArithmExpr, f frame) *Expr {
	switch x := x.(type) {
	case *syntax.Word:
		v := joinWords(r.word(x, f))
		if s, ok := v.Literal(); ok && isName(s) {
			v = r.variable(s, f, f.text.at(x.Pos().Offset()), "$"+s)
		}
		if ref := v.Only(); ref != nil && ref.Kind == Sum {
			return ref.Expr
		}
		return &Expr{Leaf: v}
	case *syntax.ParenArithm:
		return r.arith(x.X, f)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Minus {
			return &Expr{Op: "-", X: &Expr{Leaf: textValue("0", 0)}, Y: r.arith(x.X, f)}
		}
		if w, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.Inc || x.Op == syntax.Dec) {
			r.assign(w.Lit(), refValue(&Ref{Name: w.Lit(), Shell: f.sh, Guarded: true}), f, f.text.at(x.Pos().Offset()))
		} else {
			r.arith(x.X, f)
		}
	case *syntax.BinaryArithm:
		switch x.Op {
		case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn:
			y := r.arith(x.Y, f)
			if w, ok := x.X.(*syntax.Word); ok && x.Op == syntax.Assgn {
				r.assign(w.Lit(), sumValue(y, f, f.text.at(x.Pos().Offset()), ""), f, f.text.at(x.Pos().Offset()))
			} else if ok {
				r.assign(w.Lit(), refValue(&Ref{Name: w.Lit(), Shell: f.sh, Guarded: true}), f, f.text.at(x.Pos().Offset()))
			}
			return y
		}
		return &Expr{Op: x.Op.String(), X: r.arith(x.X, f), Y: r.arith(x.Y, f)}
	}
	return &Expr{Leaf: refValue(&Ref{Kind: Output, Shell: f.sh, Source: "$((…))"})}
}

// sumValue returns the value of an arithmetic expansion: a number if all operands are
// known, else a reference.
func sumValue(e *Expr, f frame, line int, source string) Value {
	if n, ok := e.Int(); ok {
		return textValue(textOf(n), line)
	}
	return refValue(&Ref{Kind: Sum, Expr: e, Shell: f.sh, Line: line, Source: source})
}

func textOf(n int64) string { return strconv.FormatInt(n, 10) }

func isName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
