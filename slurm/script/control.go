package script

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// body evaluates the body of a loop once. After that, a variable that the body changes
// may have its value from before or after the loop.
func (r *reader) body(list []*syntax.Stmt, f frame) {
	before := maps.Clone(f.sh.vars)
	r.stmts(list, f)
	f.sh.ended = false
	f.sh.vars = r.merge(f.sh, before, f.sh.vars)
}

func (r *reader) forClause(c *syntax.ForClause, f frame) {
	line := f.text.at(c.ForPos.Offset())
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		loop := &Loop{Name: l.Name.Value}
		for _, w := range l.Items {
			loop.Items = append(loop.Items, r.word(w, f)...)
		}
		ref := &Ref{Name: l.Name.Value, Line: line, Shell: f.sh, Loop: true, Alt: loop.Items, Source: "$" + l.Name.Value}
		r.assign(l.Name.Value, refValue(ref), f, line)
		f.loop = loop
	case *syntax.CStyleLoop:
		f.loop = &Loop{}
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			if x != nil {
				r.arith(x, f)
			}
		}
	}
	r.body(c.Do, f)
}

// branches evaluates each arm from the same state and merges the resulting variables.
// complete reports that one of the arms always runs.
func (r *reader) branches(f frame, arms []func(frame), complete bool, node syntax.Node) {
	start := f.sh.vars
	var ends []map[string]*Var
	if !complete {
		ends = append(ends, start)
	}
	allEnded := complete
	for i, arm := range arms {
		g := f
		g.branch = append(slices.Clip(f.branch), Arm{node, i})
		f.sh.vars = maps.Clone(start)
		arm(g)
		if f.sh.ended {
			f.sh.ended = false
			continue
		}
		allEnded = false
		ends = append(ends, f.sh.vars)
	}
	if allEnded && len(arms) > 0 {
		f.sh.ended = true
	}
	if len(ends) == 0 {
		f.sh.vars = start
		return
	}
	if r.settling {
		ends = r.oneArm(ends, complete)
	}
	f.sh.vars = ends[0]
	for _, e := range ends[1:] {
		f.sh.vars = r.merge(f.sh, f.sh.vars, e)
	}
}

// oneArm returns the state at the end of the first arm that goes on, after the state before the
// branch where no arm may run: no value of one arm meets a value of another. The job's Choices
// list what the other arms set.
func (r *reader) oneArm(ends []map[string]*Var, complete bool) []map[string]*Var {
	first := 1
	if complete {
		first = 0
	}
	taken := ends[min(first, len(ends)-1)]
	for _, end := range ends[min(first+1, len(ends)):] {
		for _, name := range slices.Sorted(maps.Keys(end)) {
			switch v, other := taken[name], end[name]; {
			case v == nil && other.Exported:
				r.choose(Choice{Name: name, Line: other.Line, Dropped: true})
			case v != nil && v != other && !(!v.Array && !other.Array && sameValue(v.Value, other.Value)):
				r.settled(name, v, nil)
			}
		}
	}
	return ends[:min(first+1, len(ends))]
}

// merge returns the variables after one of two branches ran, which left a and b.
func (r *reader) merge(sh *Shell, a, b map[string]*Var) map[string]*Var {
	out := maps.Clone(b)
	for n, x := range a {
		if _, ok := b[n]; !ok {
			out[n] = r.uncertain(sh, n, x, nil)
		}
	}
	for n, y := range b {
		x := a[n]
		if x == y {
			continue
		}
		if x != nil && !x.Array && !y.Array && sameValue(x.Value, y.Value) {
			out[n] = &Var{Value: y.Value, Exported: x.Exported || y.Exported, Line: y.Line}
			continue
		}
		out[n] = r.uncertain(sh, n, y, x)
	}
	return out
}

// uncertain returns the state of a variable that is x or y. y is nil if the variable
// may be unset.
func (r *reader) uncertain(sh *Shell, name string, x, y *Var) *Var {
	if r.settling {
		return r.settled(name, y, x)
	}
	v := &Var{Exported: x.Exported || y != nil && y.Exported, Line: x.Line, Array: x.Array || y != nil && y.Array}
	ref := &Ref{Name: name, Line: x.Line, Shell: sh, Source: "$" + name, Guarded: true}
	if y != nil && r.appended(v, ref, x, y) || y != nil && r.appended(v, ref, y, x) {
		return v
	}
	for _, z := range []*Var{y, x} {
		if z != nil {
			ref.Alt = append(ref.Alt, z.Value)
			ref.Alt = append(ref.Alt, z.Elems...)
		}
	}
	v.Value = refValue(ref)
	if v.Array {
		ref.Index = "@" // any number of words
		v.Elems = []Value{v.Value}
		v.Value = nil
	}
	return v
}

// appended sets v if long is short with words appended, as in ARGS="$ARGS --fp8" or
// ARGS+=(--fp8): the common words are certain, and ref stands for the others.
func (r *reader) appended(v *Var, ref *Ref, long, short *Var) bool {
	if long.Array != short.Array || short.blank() {
		return false
	}
	if long.Array {
		n := len(short.Elems)
		if len(long.Elems) == n && slices.EqualFunc(long.Elems, short.Elems, sameValue) {
			v.Elems = short.Elems
			return true
		}
		if len(long.Elems) <= n || !slices.EqualFunc(long.Elems[:n], short.Elems, sameValue) {
			return false
		}
		ref.Index, ref.Alt = "@", long.Elems[n:]
		v.Elems = append(slices.Clip(short.Elems), refValue(ref))
		return true
	}
	n := len(short.Value)
	if len(long.Value) <= n || !sameValue(long.Value[:n], short.Value) {
		return false
	}
	tail := long.Value[n:]
	if tail[0].Ref != nil || strings.IndexAny(tail[0].Text, " \t\n") != 0 {
		return false
	}
	ref.Alt = []Value{nil, tail}
	v.Value = append(slices.Clip(short.Value), Piece{Text: tail[0].Text[:1], Line: tail[0].Line}, refValue(ref)[0])
	return true
}

func (r *reader) ifClause(c *syntax.IfClause, f frame) {
	var arms []func(frame)
	complete := false
	for e := c; e != nil; e = e.Else {
		if len(e.Cond) == 0 {
			complete = true
			arms = append(arms, func(g frame) { r.stmts(e.Then, g) })
			break
		}
		g := f
		g.checked, g.condition = true, true
		if len(arms) > 0 {
			g.branch = append(slices.Clip(f.branch), Arm{c, len(arms)})
		}
		r.stmts(e.Cond, g)
		if len(arms) == 0 {
			if yes, known := r.decide(e.Cond, f); known && yes {
				r.stmts(e.Then, f)
				return
			} else if known {
				if e.Else == nil {
					return
				}
				if len(e.Else.Cond) == 0 {
					r.stmts(e.Else.Then, f)
					return
				}
				continue
			}
		}
		arms = append(arms, func(g frame) { r.stmts(e.Then, g) })
	}
	r.branches(f, arms, complete, c)
}

func (r *reader) caseClause(c *syntax.CaseClause, f frame) {
	v := r.word(c.Word, f)
	subject, known := joinWords(v).Literal()
	known = known && len(v) > 0
	complete := false
	var arms []func(frame)
	for _, it := range c.Items {
		arm := func(g frame) { r.stmts(it.Stmts, g) }
		for _, p := range it.Patterns {
			complete = complete || p.Lit() == "*"
			re := r.casePattern(p, f)
			known = known && re != nil // an arm that may match hides those after it
			if known && re.MatchString(subject) {
				arm(f)
				return
			}
		}
		arms = append(arms, arm)
	}
	r.branches(f, arms, complete, c)
}

// casePattern returns the expression of what a pattern of case matches, or nil if the file
// does not show the pattern.
func (r *reader) casePattern(w *syntax.Word, f frame) *regexp.Regexp {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(part.Value)
			continue
		case *syntax.ExtGlob:
			b.WriteString(part.Op.String() + part.Pattern.Value + ")")
			continue
		}
		text, shown := joinWords(r.word(&syntax.Word{Parts: []syntax.WordPart{part}}, f)).Literal()
		if !shown {
			return nil
		}
		b.WriteString(pattern.QuoteMeta(text, 0)) // a quoted character stands for itself
	}
	expr, err := pattern.Regexp(b.String(), pattern.EntireString|pattern.ExtendedOperators)
	if err != nil {
		return nil
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil
	}
	return re
}

func (r *reader) binary(c *syntax.BinaryCmd, f frame) {
	x, y := f, f
	switch c.Op {
	case syntax.AndStmt:
		x.checked = true
		r.stmt(c.X, x)
		uncertain := isTest(c.X)
		if uncertain {
			if yes, known := r.decide([]*syntax.Stmt{c.X}, f); known && !yes {
				return
			} else if !known {
				y.branch = append(slices.Clip(f.branch), Arm{c, 1})
			} else {
				uncertain = false
			}
		}
		r.maybe(c.Y, y, uncertain)
	case syntax.OrStmt:
		x.checked = true
		if succeeds(c.Y) {
			x.masked = f.text.at(c.Y.Pos().Offset())
		}
		r.stmt(c.X, x)
		y.branch = append(slices.Clip(f.branch), Arm{c, 1})
		r.maybe(c.Y, y, true)
	default:
		p := &Pipe{Safe: f.sh.PipeFail}
		if call, ok := c.Y.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			p.Reader = call.Args[0].Lit()
		}
		x.pipe, x.checked = p, false
		if f.pipe != nil {
			y.pipe = f.pipe
		}
		y.pipedInto = true
		sh := f.sh
		x.sh = sh.fork()
		r.stmt(c.X, x)
		y.sh = sh.fork()
		r.stmt(c.Y, y)
	}
}

// maybe evaluates a statement after && or ||. If the statement ends the shell, the script
// goes on with the variables from before. Otherwise, uncertain says whether the statement
// may be skipped, so that its variables may have their values from before.
func (r *reader) maybe(s *syntax.Stmt, f frame, uncertain bool) {
	before := maps.Clone(f.sh.vars)
	r.stmt(s, f)
	if f.sh.ended {
		f.sh.ended = false
		f.sh.vars = before
	} else if uncertain {
		f.sh.vars = r.merge(f.sh, before, f.sh.vars)
	}
}

func isTest(s *syntax.Stmt) bool {
	switch c := s.Cmd.(type) {
	case *syntax.TestClause, *syntax.ArithmCmd:
		return true
	case *syntax.CallExpr:
		return len(c.Args) > 0 && (c.Args[0].Lit() == "[" || c.Args[0].Lit() == "test")
	}
	return false
}

// succeeds reports whether s always succeeds, such as true, : or echo. After || it
// hides a failure.
func succeeds(s *syntax.Stmt) bool {
	if b, ok := s.Cmd.(*syntax.Block); ok && len(b.Stmts) > 0 {
		return succeeds(b.Stmts[len(b.Stmts)-1])
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	switch call.Args[0].Lit() {
	case "true", ":", "echo", "printf", "/bin/true", "date":
		return true
	case "exit":
		return len(call.Args) > 1 && call.Args[1].Lit() == "0"
	}
	return false
}
