package script

import (
	"maps"
	"path"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// A Shell is one shell process that reads commands: the batch script itself,
// the argument of `bash -c`, a here-document, a script that the file writes.
type Shell struct {
	Place
	// Parent is the shell that started this one.
	Parent *Shell
	// Kind says what it reads.
	Kind ShellKind
	Line int
	// Login is true for a shell that reads the user's profile.
	Login bool
	// Sourced is true once a file was read in that this file does not show.
	Sourced bool
	// ErrExit, PipeFail, NoUnset and AllExport are its options, so far.
	ErrExit, PipeFail, NoUnset, AllExport bool
	// Dir is where it stands: the last cd, nil at the start.
	Dir Value

	vars  map[string]*Var
	funcs map[string]function
	ended bool // exit was reached
}

// A ShellKind says what a shell reads.
type ShellKind string

// The kinds of shells.
const (
	Batch       ShellKind = "batch"
	CommandText ShellKind = "bash -c"
	HereDoc     ShellKind = "here-document"
	File        ShellKind = "file"
	Direct      ShellKind = "direct" // no shell: the environment of one command
)

// A Var is a variable as a shell has it.
type Var struct {
	Value    Value
	Elems    []Value
	Array    bool
	Exported bool
	Line     int
	// Empty is true for a name that is declared without a value.
	Empty bool
}

type function struct {
	body *syntax.Stmt
	text text
	line int
}

// Lookup is the variable name of sh, whether exported or not.
func (sh *Shell) Lookup(name string) *Var { return sh.vars[name] }

// Env is the value that a program started by sh finds under name; ok is false
// where the file does not set it.
func (sh *Shell) Env(name string) (v Value, ok bool) {
	if x := sh.vars[name]; x != nil && x.Exported && !x.Array && !x.Empty {
		return x.Value, true
	}
	return nil, false
}

// Names are the variables of sh that it exports.
func (sh *Shell) Names() []string {
	var out []string
	for n, v := range sh.vars {
		if v.Exported && !v.Empty {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// outer is the variable name where a shell around sh has it without export.
func (sh *Shell) outer(name string) *Var {
	for s := sh.Parent; s != nil; s = s.Parent {
		if v := s.vars[name]; v != nil && !v.Empty {
			return v
		}
	}
	return nil
}

// fork is a subshell: the same variables, and none of its changes come back.
func (sh *Shell) fork() *Shell {
	c := *sh
	c.vars = maps.Clone(sh.vars)
	return &c
}

// spawn is a new process of sh in place: it sees what is exported.
func (sh *Shell) spawn(p Place, kind ShellKind, line int) *Shell {
	c := &Shell{Place: p, Parent: sh, Kind: kind, Line: line, vars: map[string]*Var{}, funcs: sh.funcs, Sourced: sh.Sourced, Dir: sh.Dir}
	if p.Container != sh.Container && p.Container != nil {
		c.Dir = p.Container.Workdir
		if !p.Container.PassesEnv {
			for n, v := range p.Container.Env {
				if v == nil {
					if v = sh.vars[n]; v == nil || !v.Exported {
						continue
					}
				}
				c.vars[n] = v
			}
			return c
		}
	}
	for n, v := range sh.vars {
		if v.Exported && !v.Array { // bash does not export arrays
			c.vars[n] = v
		}
	}
	if p.Container != nil && p.Container != sh.Container {
		for n, v := range p.Container.Env {
			if v != nil {
				c.vars[n] = v
			}
		}
	}
	return c
}

// A Loop is a for or while that a command stands in.
type Loop struct {
	Name  string // of the variable
	Items []Value
	Line  int
}

// An Arm is one branch of an if, a case or an && list that a command stands in.
type Arm struct {
	Node syntax.Node
	Arm  int
	// Condition is what decides, as written.
	Condition string
	Line      int
}

// A Pipe is what reads the output of a command.
type Pipe struct {
	Line   int
	Reader string // the command that reads, or ""
	Safe   bool   // pipefail was set
}

// frame are the circumstances of a statement.
type frame struct {
	sh           *Shell
	text         text
	args         *params // positional parameters; nil where unknown
	background   int     // line of the & around it, or 0
	pipe         *Pipe
	pipedInto    bool // reads from a pipe
	masked       int  // line of `|| true`
	checked      bool // its status is looked at: if, &&, ||, !
	branch       []Arm
	loop         *Loop
	trap         bool
	substitution bool
	document     bool
	depth        int
	function     string
	callLine     int
	redirs       []Redirect
	expansions   *[]Expansion
	words        *int
}

type params struct{ list []Value }

func (f frame) wordIndex() int {
	if f.words == nil {
		return -1
	}
	return *f.words
}

// These bound what a script that calls itself, or doubles its variables, can
// cost: the depth of shells and functions, the commands, the statements, and
// the bytes that its words expand to.
const (
	maxDepth    = 24
	maxCommands = 4000
	maxStmts    = 20000
	maxBytes    = 8 << 20
)

// spent reports whether the reading has cost enough.
func (r *reader) spent() bool {
	return r.count > maxCommands || r.steps > maxStmts || r.bytes > maxBytes
}

func (r *reader) stmts(list []*syntax.Stmt, f frame) {
	for _, s := range list {
		if f.sh.ended {
			return
		}
		r.stmt(s, f)
	}
}

func (r *reader) stmt(s *syntax.Stmt, f frame) {
	if f.depth > maxDepth || r.spent() {
		return
	}
	r.steps++
	f.depth++
	if s.Background {
		f.background = f.text.at(s.Semicolon.Offset())
		f.checked, f.masked = false, 0
	}
	if s.Negated {
		f.checked = true
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(c, s, f)
		return
	case *syntax.DeclClause:
		r.declare(c, s, f)
		return
	case nil:
		r.redirects(s.Redirs, f)
		return
	}
	redirs := r.redirects(s.Redirs, f)
	f.redirs = append(slices.Clip(f.redirs), redirs...)
	switch c := s.Cmd.(type) {
	case *syntax.Block:
		r.stmts(c.Stmts, f)
	case *syntax.Subshell:
		f.sh = f.sh.fork()
		r.stmts(c.Stmts, f)
	case *syntax.IfClause:
		r.ifClause(c, f)
	case *syntax.CaseClause:
		r.caseClause(c, f)
	case *syntax.WhileClause:
		g := f
		g.checked = true
		r.stmts(c.Cond, g)
		f.loop = &Loop{Line: f.text.at(c.WhilePos.Offset())}
		r.body(c.Do, f)
	case *syntax.ForClause:
		r.forClause(c, f)
	case *syntax.BinaryCmd:
		r.binary(c, f)
	case *syntax.FuncDecl:
		if c.Name != nil {
			f.sh.funcs[c.Name.Value] = function{c.Body, f.text, f.text.at(c.Position.Offset())}
			r.job.Functions[c.Name.Value] = false
		}
	case *syntax.ArithmCmd:
		r.arith(c.X, f)
	case *syntax.LetClause:
		for _, e := range c.Exprs {
			r.arith(e, f)
		}
	case *syntax.TestClause:
		r.test(c, f)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			r.stmt(c.Stmt, f)
		}
	case *syntax.CoprocClause:
		f.background = f.text.at(c.Coproc.Offset())
		r.stmt(c.Stmt, f)
	}
}

// body runs the body of a loop once; what it changes is not certain afterwards.
func (r *reader) body(list []*syntax.Stmt, f frame) {
	before := maps.Clone(f.sh.vars)
	r.stmts(list, f)
	f.sh.ended = false
	f.sh.vars = merge(f.sh, before, f.sh.vars)
}

func (r *reader) forClause(c *syntax.ForClause, f frame) {
	line := f.text.at(c.ForPos.Offset())
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		loop := &Loop{Name: l.Name.Value, Line: line}
		for _, w := range l.Items {
			loop.Items = append(loop.Items, r.word(w, f)...)
		}
		ref := &Ref{Name: l.Name.Value, Line: line, Shell: f.sh, Loop: true, Alt: loop.Items, Source: "$" + l.Name.Value}
		r.assign(l.Name.Value, refValue(ref), f, line)
		f.loop = loop
	case *syntax.CStyleLoop:
		f.loop = &Loop{Line: line}
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			if x != nil {
				r.arith(x, f)
			}
		}
	}
	r.body(c.Do, f)
}

// branches runs each arm from the same start and joins what they leave.
func (r *reader) branches(f frame, arms []func(frame), complete bool, node syntax.Node, cond string) {
	start := f.sh.vars
	var ends []map[string]*Var
	if !complete {
		ends = append(ends, start)
	}
	line := f.text.at(node.Pos().Offset())
	allEnded := complete
	for i, arm := range arms {
		g := f
		g.branch = append(slices.Clip(f.branch), Arm{node, i, cond, line})
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
	f.sh.vars = ends[0]
	for _, e := range ends[1:] {
		f.sh.vars = merge(f.sh, f.sh.vars, e)
	}
}

// merge is what is known after one of two ways was taken.
func merge(sh *Shell, a, b map[string]*Var) map[string]*Var {
	out := maps.Clone(b)
	for n, x := range a {
		if _, ok := b[n]; !ok {
			out[n] = uncertain(sh, n, x, nil)
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
		out[n] = uncertain(sh, n, y, x)
	}
	return out
}

func uncertain(sh *Shell, name string, x, y *Var) *Var {
	v := &Var{Exported: x.Exported || y != nil && y.Exported, Line: x.Line, Array: x.Array || y != nil && y.Array}
	ref := &Ref{Name: name, Line: x.Line, Shell: sh, Source: "$" + name, Guarded: true}
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

func (r *reader) ifClause(c *syntax.IfClause, f frame) {
	var arms []func(frame)
	complete := false
	cond := ""
	for e := c; e != nil; e = e.Else {
		if len(e.Cond) == 0 {
			complete = true
			arms = append(arms, func(g frame) { r.stmts(e.Then, g) })
			break
		}
		g := f
		g.checked = true
		if len(arms) > 0 {
			g.branch = append(slices.Clip(f.branch), Arm{c, len(arms), cond, f.text.at(c.Pos().Offset())})
		}
		r.stmts(e.Cond, g)
		cond += " " + f.text.slice(e.Cond[0].Pos(), e.Cond[len(e.Cond)-1].End())
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
	r.branches(f, arms, complete, c, cond)
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
			lit := p.Lit()
			if lit == "*" {
				complete = true
			}
			if known && lit != "" {
				if ok, err := path.Match(lit, subject); err == nil && ok {
					arm(f)
					return
				}
			}
		}
		arms = append(arms, arm)
	}
	r.branches(f, arms, complete, c, f.text.slice(c.Word.Pos(), c.Word.End()))
}

func (r *reader) binary(c *syntax.BinaryCmd, f frame) {
	line := f.text.at(c.OpPos.Offset())
	x, y := f, f
	switch c.Op {
	case syntax.AndStmt:
		x.checked = true
		r.stmt(c.X, x)
		if isTest(c.X) {
			if yes, known := r.decide([]*syntax.Stmt{c.X}, f); known && !yes {
				return
			} else if !known {
				y.branch = append(slices.Clip(f.branch), Arm{c, 1, f.text.slice(c.X.Pos(), c.X.End()), line})
			}
		}
		before := maps.Clone(f.sh.vars)
		r.stmt(c.Y, y)
		if f.sh.ended {
			f.sh.ended = false
			f.sh.vars = before
		} else if isTest(c.X) {
			f.sh.vars = merge(f.sh, before, f.sh.vars)
		}
	case syntax.OrStmt:
		x.checked = true
		if harmless(c.Y) {
			x.masked = f.text.at(c.Y.Pos().Offset())
		}
		r.stmt(c.X, x)
		y.branch = append(slices.Clip(f.branch), Arm{c, 1, "||" + f.text.slice(c.X.Pos(), c.X.End()), line})
		before := maps.Clone(f.sh.vars)
		r.stmt(c.Y, y)
		if f.sh.ended {
			f.sh.ended = false
			f.sh.vars = before
		} else {
			f.sh.vars = merge(f.sh, before, f.sh.vars)
		}
	default:
		p := &Pipe{Line: line, Safe: f.sh.PipeFail}
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

func isTest(s *syntax.Stmt) bool {
	switch c := s.Cmd.(type) {
	case *syntax.TestClause, *syntax.ArithmCmd:
		return true
	case *syntax.CallExpr:
		return len(c.Args) > 0 && (c.Args[0].Lit() == "[" || c.Args[0].Lit() == "test")
	}
	return false
}

// harmless reports whether s is a command that hides a failure: true, :, echo.
func harmless(s *syntax.Stmt) bool {
	if b, ok := s.Cmd.(*syntax.Block); ok && len(b.Stmts) > 0 {
		return harmless(b.Stmts[len(b.Stmts)-1])
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

// assign sets a variable of the frame's shell.
func (r *reader) assign(name string, v Value, f frame, line int) {
	if name == "" {
		return
	}
	if v == nil {
		v = textValue("", line)
	}
	old := f.sh.vars[name]
	n := &Var{Value: v, Line: line, Exported: f.sh.AllExport || old != nil && old.Exported}
	f.sh.vars[name] = n
	r.noteAssignment(name, n, f)
}

func (r *reader) noteAssignment(name string, v *Var, f frame) {
	r.job.Assigned[name] = true
	r.job.Assignments = append(r.job.Assignments, Assignment{Name: name, Var: v, Shell: f.sh, Line: v.Line, Branch: f.branch, Seq: r.count, Trap: f.trap})
}

// assignment performs NAME=value, NAME+=value or NAME=(…).
func (r *reader) assignment(a *syntax.Assign, f frame, export bool) {
	name := a.Name.Value
	line := f.text.at(a.Pos().Offset())
	old := f.sh.vars[name]
	v := &Var{Line: line, Exported: export || f.sh.AllExport || old != nil && old.Exported}
	switch {
	case a.Naked:
		if old != nil {
			c := *old
			c.Exported = c.Exported || export
			f.sh.vars[name] = &c
			return
		}
		v.Empty = true
		f.sh.vars[name] = v
		return
	case a.Array != nil:
		v.Array = true
		if a.Append && old != nil {
			v.Elems = slices.Clone(old.Elems)
			if !old.Array {
				v.Elems = []Value{old.Value}
			}
		}
		for _, e := range a.Array.Elems {
			if e.Value != nil {
				v.Elems = append(v.Elems, r.word(e.Value, f)...)
			}
		}
	case a.Index != nil:
		if old != nil {
			c := *old
			v = &c
		}
		v.Array = true
		v.Elems = append(slices.Clone(v.Elems), joinFields(r.word(a.Value, f)))
	default:
		// An assignment is not split into words, whatever its quotes.
		val := r.unsplit(a.Value, f)
		if a.Append && old != nil {
			if old.Array {
				c := *old
				v = &c
				break
			}
			val = append(slices.Clip(old.Value), val...)
		}
		if val == nil {
			val = textValue("", line)
		}
		r.cost(val)
		v.Value = val
	}
	f.sh.vars[name] = v
	r.noteAssignment(name, v, f)
}

// unsplit expands a word as the right side of an assignment does.
func (r *reader) unsplit(w *syntax.Word, f frame) Value {
	if w == nil {
		return nil
	}
	dq := &syntax.DblQuoted{}
	var out Value
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst:
			var l fieldList
			dq.Parts = []syntax.WordPart{p}
			r.quotedPart(p, f, &l, len(w.Parts) == 1)
			l.end()
			out = append(out, joinWords(l.out)...)
		default:
			out = append(out, joinWords(r.word(&syntax.Word{Parts: []syntax.WordPart{part}}, f))...)
		}
	}
	return out
}
