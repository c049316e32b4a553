package script

import (
	"cmp"
	"strconv"
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
			l.add(r.single(p, f))
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

// cost adds the size of v to the cost of the reading.
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

func (r *reader) single(p *syntax.SglQuoted, f frame) Value {
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

// param expands ${…}. multi is true for expansions such as "${A[@]}" and "$@", which
// give one word per value.
func (r *reader) param(p *syntax.ParamExp, f frame, quoted, whole bool) (vs []Value, multi bool) {
	if p.Param == nil {
		return []Value{nil}, false
	}
	name := p.Param.Value
	line := f.text.at(p.Pos().Offset())
	source := f.text.slice(p.Pos(), p.End())
	index := ""
	if p.Index != nil {
		index = f.text.slice(p.Index.Pos(), p.Index.End())
		if index != "@" && index != "*" {
			if s, ok := joinWords(r.indexValue(p.Index, f)).Literal(); ok {
				index = s
			}
		}
	}
	op := operator(p)
	guarded := op == ":-" || op == "-" || op == ":?" || op == "?" || op == ":=" || op == "=" || op == ":+" || op == "+" || op == "!"
	v, found := f.sh.vars[name]
	e := Expansion{
		Name:    name,
		Index:   index,
		Line:    line,
		Quoted:  quoted,
		Whole:   whole,
		Word:    f.wordIndex(),
		Shell:   f.sh,
		Guarded: guarded,
		HereDoc: f.document,
		Op:      op,
	}
	if found {
		e.Var = v
	} else {
		e.Outer = f.sh.outer(name)
	}
	if f.expansions != nil {
		*f.expansions = append(*f.expansions, e)
	}
	ref := &Ref{Name: name, Line: line, Shell: f.sh, Op: op, Index: index, Guarded: guarded, Positional: isPositional(name), Source: source}
	var value Value
	switch {
	case isPositional(name):
		if f.args != nil {
			vs, multi, value = positional(name, f.args.list)
			if multi && op == "" {
				return vs, name == "@" || !quoted
			}
		}
	case found && v.Array:
		ref.Of = joinWords(v.Elems)
		if op == "" || op == "length" {
			if index == "@" || index == "*" {
				if op == "length" {
					for _, e := range v.Elems {
						if e.Unknown() {
							return []Value{refValue(ref)}, false
						}
					}
					return []Value{textValue(strconv.Itoa(len(v.Elems)), line)}, false
				}
				if index == "*" && quoted {
					return []Value{joinWords(v.Elems)}, false
				}
				return v.Elems, true
			}
			i, err := strconv.Atoi(index)
			if index == "" {
				i, err = 0, nil
			}
			if i < 0 {
				i += len(v.Elems)
			}
			if err == nil && i >= 0 && i < len(v.Elems) {
				value = v.Elems[i]
				if r := value.Only(); r != nil && r.Kind == Output {
					// One word of the output of a command. The index tells which one; -1 is the last.
					value, ref.Index = nil, cmp.Or(index, "0")
				}
			}
		}
	case found:
		value = v.Value
	case r.settling && name == "PWD":
		return []Value{f.sh.workdir(line)}, false
	}
	return []Value{r.operate(p, op, value, found, ref, f)}, false
}

// operate applies the operator of an expansion to the variable's value.
func (r *reader) operate(p *syntax.ParamExp, op string, value Value, found bool, ref *Ref, f frame) Value {
	unknown := value == nil && !found
	switch op {
	case "":
		if value != nil || found && ref.Of == nil {
			return value
		}
		return refValue(ref)
	case ":-", "-", ":=", "=":
		def := joinWords(r.word(p.Exp.Word, f))
		if s, ok := value.Literal(); found && ok && s != "" || found && !ok {
			either, changed := value.withDefault(def, op, 0)
			if changed && strings.HasSuffix(op, "=") {
				r.assign(ref.Name, either, f, ref.Line)
			}
			return either
		}
		if found && ref.Of == nil && op[0] != ':' { // the variable is set, although it is empty
			return value
		}
		ref.Default = def
		if r.settling && value == nil && !strings.HasPrefix(ref.Name, "SLURM_") {
			r.choose(Choice{Name: ref.Name, Line: ref.Line, Taken: def, Default: true})
			if op == ":=" || op == "=" {
				r.assign(ref.Name, def, f, ref.Line)
			}
			return def
		}
		if op == ":=" || op == "=" {
			r.assign(ref.Name, refValue(ref), f, ref.Line)
		}
		if found && value != nil {
			return def
		}
	case ":?", "?":
		if value != nil {
			return value
		}
	case "length":
		if s, ok := value.Literal(); ok && !unknown {
			return textValue(strconv.Itoa(len(s)), ref.Line)
		}
	case ":+", "+":
		other := joinWords(r.word(p.Exp.Word, f))
		if r.settling && unknown {
			return nil
		}
		if s, ok := value.Literal(); r.settling && ok && s != "" {
			return other
		}
	default:
		if p.Exp != nil {
			r.word(p.Exp.Word, f)
		}
	}
	if ref.Of == nil {
		ref.Of = value
	}
	return refValue(ref)
}

// withDefault returns v after an expansion with the operator op, such as :-, and the
// default def. If v is a variable that branches set, def replaces each alternative that
// is unset, or that is empty and op begins with a colon. changed reports that def
// replaced an alternative.
func (v Value) withDefault(def Value, op string, depth int) (either Value, changed bool) {
	if s, ok := v.Literal(); ok {
		if len(v) == 0 || s == "" && op[0] == ':' {
			return def, true
		}
		return v, false
	}
	ref := v.Only()
	if ref == nil || len(ref.Alt) == 0 || ref.List() || ref.Loop || depth > maxReadings {
		return v, false
	}
	own := *ref
	own.Alt = nil
	if len(ref.Alt) == 1 { // a branch leaves the variable unset
		own.Alt, changed = append(own.Alt, def), true
	}
	for _, alternative := range ref.Alt {
		one, replaced := alternative.withDefault(def, op, depth+1)
		own.Alt, changed = append(own.Alt, one), changed || replaced
	}
	if !changed {
		return v, false
	}
	return Value{{Ref: &own, Line: v[0].Line, Quoted: v[0].Quoted}}, true
}

func operator(p *syntax.ParamExp) string {
	switch {
	case p.Excl, p.Names != 0:
		return "!"
	case p.Length:
		return "length"
	case p.Slice != nil:
		return "slice"
	case p.Repl != nil:
		return "replace"
	case p.Exp != nil:
		return p.Exp.Op.String()
	}
	return ""
}

// isPositional reports whether name is a positional or special parameter, such as 1 or @.
func isPositional(name string) bool {
	switch name {
	case "@", "*", "#", "?", "$", "!", "-":
		return true
	}
	_, err := strconv.Atoi(name)
	return err == nil
}

func positional(name string, args []Value) (vs []Value, multi bool, v Value) {
	switch name {
	case "@", "*":
		return args, true, joinWords(args)
	case "#":
		return nil, false, textValue(strconv.Itoa(len(args)), 0)
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 1 && i <= len(args) {
		return nil, false, args[i-1]
	}
	return nil, false, nil
}

func (r *reader) indexValue(x syntax.ArithmExpr, f frame) []Value {
	return []Value{sumValue(r.arith(x, f), f, f.text.at(x.Pos().Offset()), "")}
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

// joinWords joins words with blanks.
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
