package script

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// A Shell is one shell process that reads commands: the batch script itself,
// the argument of `bash -c`, a here-document, a script that the file writes.
type Shell struct {
	Place
	// Parent is the shell that started this one.
	Parent *Shell
	// Kind says where its commands come from.
	Kind ShellKind
	Line int
	// Login is true for a shell that reads the user's profile.
	Login bool
	// Sourced is true once the shell has sourced a file whose text is unknown, or set
	// variables whose names are unknown, as "export $(cat .env)" does.
	Sourced bool
	// ErrExit, PipeFail, NoUnset and AllExport are the options set so far.
	ErrExit, PipeFail, NoUnset, AllExport bool
	// Dir is the working directory, from the last cd; nil at the start.
	Dir Value

	vars  map[string]*Var
	funcs map[string]function
	ended bool // exit was reached
	// shifted is how many of the script's parameters shift has removed.
	shifted int
	// subshellOf is the shell that this subshell was forked from, or nil.
	subshellOf *Shell
}

// A ShellKind says where the commands of a shell come from.
type ShellKind string

// The kinds of shells.
const (
	Batch       ShellKind = "batch"
	CommandText ShellKind = "bash -c"
	HereDoc     ShellKind = "here-document"
	File        ShellKind = "file"
	Direct      ShellKind = "direct" // not a shell, but the environment of one command
)

// A Var is the state of a variable in a shell.
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
}

// Lookup returns the variable name of sh, exported or not, or nil.
func (sh *Shell) Lookup(name string) *Var { return sh.vars[name] }

// Env returns the value of name in the environment of programs that sh starts; ok is
// false if the file does not export the variable.
func (sh *Shell) Env(name string) (v Value, ok bool) {
	if x := sh.vars[name]; x != nil && x.Exported && !x.Array && !x.Empty {
		return x.Value, true
	}
	return nil, false
}

// unexport removes the variable name from the environment of programs that sh starts
// from now on.
func (sh *Shell) unexport(name string) {
	if v := sh.vars[name]; v != nil {
		own := *v
		own.Exported = false
		sh.vars[name] = &own
	}
}

// Names returns the names of the variables that sh exports, sorted.
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

// outer returns the variable name of the nearest parent shell that has it, or nil.
func (sh *Shell) outer(name string) *Var {
	for s := sh.Parent; s != nil; s = s.Parent {
		if v := s.vars[name]; v != nil && !v.Empty {
			return v
		}
	}
	return nil
}

// fork returns a subshell of sh. It has the same variables, and its changes do not
// affect sh.
func (sh *Shell) fork() *Shell {
	c := *sh
	c.vars = maps.Clone(sh.vars)
	c.subshellOf = sh.forkedFrom()
	return &c
}

// forkedFrom returns the shell that sh was forked from, directly or through further
// subshells, or sh itself.
func (sh *Shell) forkedFrom() *Shell {
	if sh.subshellOf != nil {
		return sh.subshellOf
	}
	return sh
}

// Same reports whether two shells read the same text. One may be a subshell of the
// other, such as a part of a pipeline.
func (sh *Shell) Same(other *Shell) bool { return sh.forkedFrom() == other.forkedFrom() }

// spawn returns a new process that sh starts in p. The process has the variables that
// sh exports, unless it runs in a container that does not pass them.
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

// A Loop is a for or while loop that contains a command.
type Loop struct {
	Name  string // variable of a for loop
	Items []Value
}

// An Arm is one branch of an if, a case, an && or an || that contains a command.
type Arm struct {
	Node syntax.Node
	Arm  int // number of the branch in Node
}

// A Pipe is the reading end of the pipe after a command.
type Pipe struct {
	Reader string // name of the reading command, or ""
	Safe   bool   // pipefail was set
}

// A frame is the context in which a statement runs.
type frame struct {
	sh           *Shell
	text         text
	args         *params // positional parameters; nil if unknown
	background   int     // line of the & after the statement or a statement around it, or 0
	pipe         *Pipe
	pipedInto    bool // reads from a pipe
	masked       int  // line of `|| true`
	checked      bool // the script tests its status: if, &&, ||, !
	condition    bool // it is the condition of an if
	branch       []Arm
	loop         *Loop
	trap         bool
	substitution bool
	document     bool
	depth        int
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

// These limits bound the cost of a script that calls itself or doubles its variables:
// the depth of shells and functions, the number of commands and statements, and the
// bytes that words expand to.
const (
	maxDepth    = 24
	maxCommands = 4000
	maxStmts    = 20000
	maxBytes    = 8 << 20
)

// exhausted reports whether the reading has reached one of the limits.
func (r *reader) exhausted() bool {
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
	if f.depth > maxDepth || r.exhausted() {
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
		f.loop = &Loop{}
		r.body(c.Do, f)
	case *syntax.ForClause:
		r.forClause(c, f)
	case *syntax.BinaryCmd:
		r.binary(c, f)
	case *syntax.FuncDecl:
		if c.Name != nil {
			f.sh.funcs[c.Name.Value] = function{c.Body, f.text}
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

// assign sets a variable in the frame's shell. A nil value is the empty text.
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
	r.job.Assignments = append(r.job.Assignments, Assignment{Name: name, Var: v, Shell: f.sh, Line: v.Line, Branch: f.branch, Trap: f.trap})
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
		v.Elems = append(slices.Clone(v.Elems), joinWords(r.word(a.Value, f)))
	default:
		// Bash does not split the value of an assignment into words.
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

// unsplit expands a word as bash expands the right side of an assignment: without
// splitting it into words.
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
