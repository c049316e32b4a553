package script

import (
	"slices"
	"strings"
)

// A Value is the expansion of a word: text that the file shows, and references to
// parts that the file does not show.
type Value []Piece

// A Piece is one part of a Value: text from one line, or a reference.
type Piece struct {
	Text string
	Ref  *Ref
	Line int
	// Quoted pieces are not split into words.
	Quoted bool
}

// A RefKind is the kind of a reference.
type RefKind int

// The kinds of references.
const (
	Variable RefKind = iota // a variable whose value the file does not show
	Output                  // the output of a command
	Sum                     // arithmetic on unknown values
)

// A Ref is a part of a value that the file does not show.
type Ref struct {
	Kind RefKind
	Name string // name of a variable
	Line int
	// Shell is the shell that expands the reference: the batch shell, or the shell of a
	// task or in a container.
	Shell *Shell
	// Op is the operator of an expansion: "%%" for ${X%%,*}, "!" for indirection,
	// "slice", "replace" or "length".
	Op    string
	Index string // index of an array
	// Default is the value of ${X:-default}. Guarded is true for expansions that handle
	// an unset variable, such as ${X:-default} and ${X:?}.
	Default Value
	Guarded bool
	// Positional is true for parameters such as $1, Loop for the variable of a loop.
	Positional, Loop bool
	// Commands are the commands of a command substitution.
	Commands []*Command
	// Expr is the expression of a Sum.
	Expr *Expr
	// Of is the variable's value, to which Op applies, if the file assigns one.
	Of Value
	// Alt are the alternative values of the variable, if branches or a loop decide its
	// value. A variable that only one branch sets has one alternative, and may be unset.
	Alt []Value
	// Source is the expansion as written.
	Source string
}

// Literal returns the text of v; ok is false if a part of v is unknown.
func (v Value) Literal() (s string, ok bool) {
	var b strings.Builder
	for _, p := range v {
		if p.Ref != nil {
			return "", false
		}
		b.WriteString(p.Text)
	}
	return b.String(), true
}

// String returns the text of v, with unknown parts as written in the source.
func (v Value) String() string {
	var b strings.Builder
	for _, p := range v {
		if p.Ref != nil {
			b.WriteString(p.Ref.Source)
			continue
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// Refs returns the references in v, and the references that these depend on.
func (v Value) Refs() []*Ref {
	var out []*Ref
	v.eachRef(func(r *Ref) { out = append(out, r) }, 0)
	return out
}

func (v Value) eachRef(f func(*Ref), depth int) {
	if depth > 8 {
		return
	}
	for _, p := range v {
		if p.Ref == nil {
			continue
		}
		f(p.Ref)
		p.Ref.Of.eachRef(f, depth+1)
		for _, a := range p.Ref.Alt {
			a.eachRef(f, depth+1)
		}
		p.Ref.Expr.each(func(leaf Value) { leaf.eachRef(f, depth+1) })
	}
}

// Only returns the reference that v consists of, or nil if v is anything else.
func (v Value) Only() *Ref {
	if len(v) == 1 {
		return v[0].Ref
	}
	return nil
}

// Line returns the line of the first part of v, or 0 if it is unknown.
func (v Value) Line() int {
	for _, p := range v {
		if p.Line > 0 {
			return p.Line
		}
	}
	return 0
}

// Unknown reports whether v has a part that the file does not show.
func (v Value) Unknown() bool {
	return slices.ContainsFunc(v, func(p Piece) bool { return p.Ref != nil })
}

func textValue(s string, line int) Value {
	return Value{{Text: s, Line: line}}
}

func refValue(r *Ref) Value {
	return Value{{Ref: r, Line: r.Line}}
}

func (v Value) quoted() Value {
	out := make(Value, len(v))
	for i, p := range v {
		p.Quoted = true
		out[i] = p
	}
	return out
}

func sameValue(a, b Value) bool {
	x, okx := a.Literal()
	y, oky := b.Literal()
	if okx || oky {
		return okx && oky && x == y
	}
	return slices.EqualFunc(a, b, func(p, q Piece) bool { return p.Text == q.Text && p.Ref == q.Ref })
}

// refRune is the first of the runes that encode references in text that is parsed
// again, such as the argument of `bash -c`. The runes lie in a private use plane, and
// the parser reads them as ordinary letters.
const refRune = 0xF0000

// flatten returns v as source text, with one rune in place of each reference.
func (r *reader) flatten(v Value) text {
	var b strings.Builder
	var lines []int32
	last := 1
	r.cost(v)
	for _, p := range v {
		s := p.Text
		if p.Ref != nil {
			r.refs = append(r.refs, p.Ref)
			s = string(rune(refRune + min(len(r.refs)-1, 0xFFFD)))
		}
		if p.Line > 0 {
			last = p.Line
		}
		b.WriteString(s)
		for range len(s) {
			lines = append(lines, int32(last))
		}
	}
	return text{src: b.String(), line: append(lines, int32(last))}
}

// decode replaces the runes that flatten wrote by their references.
func (r *reader) decode(s string, line int) Value {
	start := 0
	var out Value
	for i, c := range s {
		if c < refRune || int(c-refRune) >= len(r.refs) {
			continue
		}
		if i > start {
			out = append(out, Piece{Text: s[start:i], Line: line})
		}
		out = append(out, Piece{Ref: r.refs[c-refRune], Line: line})
		start = i + len(string(c))
	}
	if start < len(s) || len(out) == 0 {
		out = append(out, Piece{Text: s[start:], Line: line})
	}
	return out
}
