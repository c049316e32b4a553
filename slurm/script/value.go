package script

import (
	"slices"
	"strings"
)

// A Value is what a word expands to: text that the file shows, and references
// to what it does not show.
type Value []Piece

// A Piece is a part of a Value: text of one line, or a reference.
type Piece struct {
	Text string
	Ref  *Ref
	Line int
	// Quoted pieces are not split into words.
	Quoted bool
}

// A RefKind says what a reference refers to.
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
	Name string // of a variable
	Line int
	// Shell is the shell that expands it: the batch shell, a task, a container.
	Shell *Shell
	// Op is the operator of an expansion such as ${X%%,*}: "%%"; "!" for
	// indirection, "slice", "replace", "length".
	Op    string
	Index string // of an array
	// Default is the value of ${X:-default}; Guarded is true for it and for ${X:?}.
	Default Value
	Guarded bool
	// Positional is true for $1 and its like, Loop for the variable of a loop.
	Positional, Loop bool
	// Commands are those of a command substitution.
	Commands []*Command
	// Expr is the arithmetic of a Sum.
	Expr *Expr
	// Of is the value that Op is applied to, where the variable is assigned.
	Of Value
	// Alt are the values that the variable may have, of which the file does not
	// show the one.
	Alt []Value
	// Source is the expansion as written.
	Source string
}

// Literal is the text of v; ok is false where a part of it is unknown.
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

// String is v as a shell user would read it: unknown parts as they are written.
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

// Refs are the unknown parts of v, and those that they are made from.
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

// Only is the single reference that v consists of, or nil.
func (v Value) Only() *Ref {
	if len(v) == 1 {
		return v[0].Ref
	}
	return nil
}

// Line is the line of the first part of v, or 0.
func (v Value) Line() int {
	for _, p := range v {
		if p.Line > 0 {
			return p.Line
		}
	}
	return 0
}

// Unknown reports whether a part of v is not shown by the file.
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
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Text != b[i].Text || a[i].Ref != b[i].Ref {
			return false
		}
	}
	return true
}

// A reference that stands inside text to be read again, such as the argument
// of `bash -c`, is one rune of a private plane, which the parser takes for an
// ordinary letter.
const refRune = 0xF0000

// flatten is v as source text.
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

// decode turns the runes of flatten back into references.
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
