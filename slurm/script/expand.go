package script

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// An Expansion is one `$NAME` in a command.
type Expansion struct {
	Name, Index string
	Line        int
	// Quoted is true inside double quotes; Whole is true if the word consists of the
	// expansion alone.
	Quoted, Whole bool
	// Word is the number of the word in the command, or -1 outside the words.
	Word  int
	Shell *Shell
	// Var is the variable in the expanding shell, or nil. Outer is then the variable of
	// a parent shell that did not export it, or nil.
	Var, Outer *Var
	Guarded    bool
	HereDoc    bool
	Op         string
}

// A quoting says which backslashes the shell removes.
type quoting int

const (
	bare quoting = iota
	double
	document // an unquoted here-document
	raw      // single quotes, or a quoted here-document
)

// literal converts source text to pieces, one per line, and removes the backslashes
// that the shell removes.
func (r *reader) literal(src string, off uint, q quoting, f frame) Value {
	var out Value
	var b strings.Builder
	line := f.text.at(off)
	emit := func() {
		if b.Len() > 0 {
			for _, p := range r.decode(b.String(), line) {
				p.Quoted = true
				out = append(out, p)
			}
			b.Reset()
		}
	}
	for i := 0; i < len(src); i++ {
		if at := f.text.at(off + uint(i)); at != line {
			emit()
			line = at
		}
		c := src[i]
		if c == '\\' && q != raw && i+1 == len(src) && f.text.byteAt(off+uint(len(src))) == '\n' {
			continue // the parser ends a literal between a backslash and its newline
		}
		if c == '\\' && q != raw && i+1 < len(src) {
			n := src[i+1]
			switch {
			case n == '\n':
				i++
				continue
			case q == bare, n == '$', n == '\\', n == '`', q == double && n == '"':
				i++
				c = n
			}
		}
		switch c {
		case plainBracket:
			c = '['
		case plainDollar:
			c = '$'
		case plainBlank:
			c = ' '
		}
		b.WriteByte(c)
	}
	emit()
	return out
}

// A fieldList collects the words that a word of the source expands to.
type fieldList struct {
	out  []Value
	cur  Value
	open bool
}

func (l *fieldList) add(v Value) {
	l.cur = append(l.cur, v...)
	l.open = true
}

func (l *fieldList) end() {
	if l.open {
		l.out = append(l.out, l.cur)
	}
	l.cur, l.open = nil, false
}

// split adds v as an unquoted expansion: blanks in v separate words.
func (l *fieldList) split(v Value) {
	for _, p := range v {
		if p.Ref != nil {
			p.Quoted = false
			l.add(Value{p})
			continue
		}
		rest := p.Text
		for rest != "" {
			i := strings.IndexAny(rest, " \t\n")
			if i < 0 {
				l.add(Value{{Text: rest, Line: p.Line}})
				break
			}
			if i > 0 {
				l.add(Value{{Text: rest[:i], Line: p.Line}})
			}
			l.end()
			rest = rest[i+1:]
		}
	}
}

// list adds the elements of an array, each as a separate word.
func (l *fieldList) list(vs []Value, quoted bool) {
	for i, v := range vs {
		if i > 0 {
			l.end()
		}
		if quoted {
			l.add(v.quoted())
		} else {
			l.split(v)
		}
	}
}

// word expands w to the words that the command receives.
func (r *reader) word(w *syntax.Word, f frame) []Value {
	var l fieldList
	if w == nil || r.exhausted() {
		return nil
	}
	whole := len(w.Parts) == 1
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if v := r.literal(f.text.slice(p.ValuePos, p.ValueEnd), p.ValuePos.Offset(), bare, f); len(v) > 0 {
				for i := range v {
					v[i].Quoted = v[i].Ref == nil
				}
				l.add(v)
			}
		case *syntax.SglQuoted:
			l.add(r.singleQuoted(p, f))
		case *syntax.DblQuoted:
			l.open = true
			for _, q := range p.Parts {
				r.quotedPart(q, f, &l, whole && len(p.Parts) == 1)
			}
		case *syntax.ParamExp:
			if vs, multi := r.param(p, f, false, whole); multi {
				l.list(vs, false)
			} else {
				l.split(vs[0])
			}
		default:
			l.split(r.other(part, f))
		}
	}
	l.end()
	for _, v := range l.out {
		r.cost(v)
	}
	return l.out
}

func (r *reader) cost(v Value) {
	r.bytes += 8 * len(v)
	for _, p := range v {
		r.bytes += len(p.Text)
	}
}

func (r *reader) quotedPart(q syntax.WordPart, f frame, l *fieldList, whole bool) {
	switch q := q.(type) {
	case *syntax.Lit:
		l.add(r.literal(f.text.slice(q.ValuePos, q.ValueEnd), q.ValuePos.Offset(), double, f))
	case *syntax.ParamExp:
		if vs, multi := r.param(q, f, true, whole); multi && len(vs) == 0 {
			l.open = l.open && !whole
		} else if multi {
			l.list(vs, true)
		} else {
			l.add(vs[0].quoted())
		}
	default:
		l.add(r.other(q, f).quoted())
	}
}

func (r *reader) singleQuoted(p *syntax.SglQuoted, f frame) Value {
	off := p.Left.Offset() + 1
	if p.Dollar {
		if strings.Contains(p.Value, `\`) {
			said, _, _ := expand.Format(nil, p.Value, nil)
			return textValue(said, f.text.at(off))
		}
		off++
	}
	end := p.Right.Offset()
	if end < off || int(end) > len(f.text.src) {
		return textValue(p.Value, f.text.at(off))
	}
	return r.literal(f.text.src[off:end], off, raw, f)
}

// other expands a part that is neither text nor a variable.
func (r *reader) other(part syntax.WordPart, f frame) Value {
	line := f.text.at(part.Pos().Offset())
	source := f.text.slice(part.Pos(), part.End())
	switch p := part.(type) {
	case *syntax.ArithmExp:
		return sumValue(r.arith(p.X, f), f, line, source)
	case *syntax.CmdSubst:
		return r.substitute(p.Stmts, f, line, source)
	case *syntax.ProcSubst:
		return r.substitute(p.Stmts, f, line, source)
	}
	return r.literal(source, part.Pos().Offset(), bare, f)
}

// substitute evaluates the commands of $( … ). Their output is unknown, except that of
// a single echo.
func (r *reader) substitute(stmts []*syntax.Stmt, f frame, line int, source string) Value {
	inner := f
	inner.substitution = true
	inner.background, inner.pipe = 0, nil
	inner.sh = f.sh.fork()
	from := len(r.job.Commands)
	r.stmts(stmts, inner)
	cmds := r.job.Commands[from:len(r.job.Commands):len(r.job.Commands)]
	if len(cmds) == 1 && cmds[0].Name() == "echo" && len(cmds[0].Args) > 1 && cmds[0].Pipe == nil && cmds[0].Loop == nil && len(cmds[0].Branch) == len(f.branch) {
		var v Value
		for i, a := range cmds[0].Args[1:] {
			if i > 0 {
				v = append(v, Piece{Text: " ", Line: line})
			}
			v = append(v, a.Value...)
		}
		return v
	}
	if r.settling && len(cmds) == 1 && cmds[0].Name() == "pwd" {
		return f.sh.workdir(line)
	}
	return refValue(&Ref{Kind: Output, Commands: cmds, Shell: f.sh, Line: line, Source: source})
}

// variable returns the value of a variable that arithmetic names without a dollar.
func (r *reader) variable(name string, f frame, line int, source string) Value {
	if v, ok := f.sh.vars[name]; ok && !v.Array {
		return v.Value
	}
	if f.expansions != nil {
		*f.expansions = append(*f.expansions, Expansion{Name: name, Line: line, Word: f.wordIndex(), Shell: f.sh, Outer: f.sh.outer(name), HereDoc: f.document})
	}
	return refValue(&Ref{Name: name, Line: line, Shell: f.sh, Source: source})
}

func joinWords(vs []Value) Value {
	var out Value
	for i, v := range vs {
		if i > 0 {
			out = append(out, Piece{Text: " ", Line: v.Line()})
		}
		out = append(out, v...)
	}
	return out
}
