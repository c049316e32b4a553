package script

import (
	"cmp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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
			if s, ok := sumValue(r.arith(p.Index, f), f, f.text.at(p.Index.Pos().Offset()), "").Literal(); ok {
				index = s
			}
		}
	}
	op := operator(p)
	guarded := op == ":-" || op == "-" || op == ":?" || op == "?" || op == ":=" || op == "=" || op == ":+" || op == "+" || op == "!"
	if n, err := strconv.Atoi(name); err == nil && n > 0 && f.args == nil && f.sh.shifted > 0 && op == "" {
		name = strconv.Itoa(n + f.sh.shifted) // as whoever submits the script counts them
		source = "$" + name
	}
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
	case "replace":
		if s, ok := value.Literal(); ok && !unknown && ref.Of == nil && ref.Index == "" { // no array's
			if text, ok := replaced(s, p.Repl, joinWords(r.word(p.Repl.Orig, f)), joinWords(r.word(p.Repl.With, f))); ok {
				return textValue(text, ref.Line)
			}
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

// replaced returns s after ${…/from/to} or ${…//from/to}. It fails for patterns, and for text that
// is not known.
func replaced(s string, how *syntax.Replace, from, to Value) (string, bool) {
	old, known := from.Literal()
	text, shown := to.Literal()
	if !known || !shown || old == "" || strings.ContainsAny(old, `*?[(\`) || strings.ContainsAny(old[:1], "#%") || strings.Contains(text, "&") {
		return "", false
	}
	if how.All {
		return strings.ReplaceAll(s, old, text), true
	}
	return strings.Replace(s, old, text, 1), true
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
